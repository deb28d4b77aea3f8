//! The table of methods, with one line for each method and its handler function.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bindpost_mcp_protocol::lifecycle::{CompleteParams, CompletionReference};
use bindpost_mcp_protocol::{Notification, Params, Request, Revision, jsonrpc};
use serde::Serialize;
use serde_json::json;

use crate::auth::required::RequiredAccess;
use crate::call::answer::EncodedResponse;
use crate::call::{Call, CallTarget, HandlerOutput, RunningCall, TaskStart};
use crate::call::{task_requests, tasks};
use crate::catalog::cursor::ListKind;
use crate::catalog::parse_cursor;
use crate::catalog::resource;
use crate::catalog::tool;
use crate::catalog::visible_entries::VisibleEntries;
use crate::catalog::{completion, prompt};
use crate::error::ProtocolError;
use crate::handler::nearest::nearest;
use crate::lifecycle;
use crate::peer::Peer;
use crate::peer::session::Session;
use crate::peer::subscriptions;
use crate::result_envelope::CachePolicy;
use crate::server::{NotFoundFormatter, Server, ServerState};
use crate::skills;
use crate::transport::{HeaderValues, RequestOrigin};

/// The maximum number of names that an unknown one is compared with.
const MOST_COMPARED_NAMES: usize = 500;

/// The outcome of dispatching a request.
#[derive(Debug)]
pub enum DispatchOutcome {
    /// The response is ready.
    Answer(EncodedResponse),
    /// A handler runs. The call has to be polled to its end.
    Running(RunningCall),
    /// The request was `initialize` and opened a session.
    Opened(Session, EncodedResponse),
}

/// A request with its server and its origin.
pub(crate) struct InboundRequest {
    pub(crate) server: Arc<ServerState>,
    pub(crate) request: Request,
    pub(crate) exchange: RequestOrigin,
}

impl InboundRequest {
    pub(crate) fn revision(&self) -> Revision {
        self.exchange.peer.revision()
    }

    /// Returns the entries that the caller sees.
    pub(crate) fn visible_entries(&self) -> VisibleEntries<'_> {
        self.server.catalog.visible_to(&self.exchange.caller)
    }

    /// Answers with a complete result, which must serialise to an object.
    pub(crate) fn answer(&self, result: impl Serialize) -> DispatchOutcome {
        self.answer_with(result, CachePolicy::Unsaid)
    }

    /// Answers with a complete result that has these cache members.
    pub(crate) fn answer_with(&self, result: impl Serialize, cache: CachePolicy) -> DispatchOutcome {
        let mut message = Vec::with_capacity(256);
        jsonrpc::write_result_start(&mut message, &self.request.id);
        self.server.write_complete(&mut message, self.revision(), &result, None, cache);
        message.push(jsonrpc::RESULT_END);
        DispatchOutcome::Answer(EncodedResponse::from_message(message))
    }

    pub(crate) fn refuse(&self, error: &ProtocolError) -> DispatchOutcome {
        DispatchOutcome::Answer(EncodedResponse::from_error(&self.request.id, error, self.revision()))
    }

    /// Rejects an unknown name or URI, with the server's own error if it has a formatter.
    pub(crate) fn refuse_not_found(&self, error: ProtocolError) -> DispatchOutcome {
        self.refuse_unknown_name(error, [])
    }

    /// Rejects an unknown name like [`refuse_not_found`](Self::refuse_not_found), and suggests the nearest
    /// of the names that the caller sees.
    pub(crate) fn refuse_unknown_name<'a>(
        &self,
        error: ProtocolError,
        visible: impl IntoIterator<Item = &'a str>,
    ) -> DispatchOutcome {
        let worded = self.server.wording.as_ref().and_then(|NotFoundFormatter(word)| word(&error));
        if let Some(object) = worded {
            return self.refuse(&ProtocolError::Other(object));
        }
        let (ProtocolError::UnknownTool(name) | ProtocolError::UnknownPrompt(name)) = &error else {
            return self.refuse(&error);
        };
        // A comparison takes longer than the rest of the request, so their number is limited.
        let visible: Vec<&str> = visible.into_iter().take(MOST_COMPARED_NAMES).collect();
        let Some(near) = nearest(name, &visible) else { return self.refuse(&error) };
        let mut object = error.to_object(self.revision());
        object.message = format!("{}; did you mean {near:?}?", object.message);
        self.refuse(&ProtocolError::Other(object))
    }
}

/// One line of the table of methods.
pub(crate) struct MethodDefinition {
    name: &'static str,
    /// Whether a revision has the method.
    has: fn(Revision) -> bool,
    /// Whether a server offers the method to this client.
    offered: fn(&ServerState, &RequestOrigin) -> bool,
    /// The access that the method requires of its caller.
    pub(crate) demands: fn(&ServerState, &VisibleEntries<'_>, &Params) -> RequiredAccess,
    run: fn(InboundRequest, &dyn HeaderValues) -> DispatchOutcome,
}

const fn method(
    name: &'static str,
    has: fn(Revision) -> bool,
    offered: fn(&ServerState, &RequestOrigin) -> bool,
    demands: fn(&ServerState, &VisibleEntries<'_>, &Params) -> RequiredAccess,
    run: fn(InboundRequest, &dyn HeaderValues) -> DispatchOutcome,
) -> MethodDefinition {
    MethodDefinition { name, has, offered, demands, run }
}

/// Every method that the server implements.
#[rustfmt::skip]
const METHODS: &[MethodDefinition] = &[
    method("tools/call",               all_revisions,           has_tools,         tool_access,         tool::call),
    method("tools/list",               all_revisions,           has_tools,         opening_access,      |i, _| list(i, ListKind::Tools)),
    method("resources/read",           all_revisions,           has_resources,     resource_access,     resource::read),
    method("resources/list",           all_revisions,           has_resources,     opening_access,      |i, _| list(i, ListKind::Resources)),
    method("resources/templates/list", all_revisions,           has_resources,     opening_access,      |i, _| list(i, ListKind::Templates)),
    method("resources/subscribe",      Revision::has_handshake, has_subscriptions, resource_access,     subscriptions::subscribe),
    method("resources/unsubscribe",    Revision::has_handshake, has_subscriptions, opening_access,      subscriptions::unsubscribe),
    method("prompts/get",              all_revisions,           has_prompts,       prompt_access,       prompt::get),
    method("prompts/list",             all_revisions,           has_prompts,       opening_access,      |i, _| list(i, ListKind::Prompts)),
    method("completion/complete",      all_revisions,           has_completions,   completion_access,   completion::complete),
    method("server/discover",          is_stateless,            always_offered,    opening_access,      lifecycle::discover),
    method("initialize",               Revision::has_handshake, always_offered,    opening_access,      lifecycle::initialize),
    method("ping",                     Revision::has_handshake, always_offered,    opening_access,      |i, _| i.answer(json!({}))),
    method("logging/setLevel",         Revision::has_handshake, can_notify,        opening_access,      lifecycle::set_level),
    method("subscriptions/listen",     is_stateless,            can_notify,        subscription_access, subscriptions::listen),
    method("tasks/get",                Revision::has_tasks,     has_tasks,         opening_access,      tasks::get),
    method("tasks/update",             is_stateless,            has_tasks,         opening_access,      tasks::update),
    method("tasks/cancel",             Revision::has_tasks,     has_tasks,         opening_access,      tasks::cancel),
    method("tasks/list",               Revision::has_task_requests, has_tasks,     opening_access,      task_requests::list),
    method("tasks/result",             Revision::has_task_requests, has_tasks,     opening_access,      task_requests::result),
    method("skills/list",              Revision::has_extensions, has_skills,       opening_access,      skills::list),
    method("skills/get",               Revision::has_extensions, has_skills,       skills::required_access, skills::get),
    method("resources/directory/read", Revision::has_extensions, has_skills,       skills::required_access, skills::read_directory),
];

pub(crate) fn find_method(method: &str) -> Option<&'static MethodDefinition> {
    METHODS.iter().find(|line| line.name == method)
}

fn all_revisions(_: Revision) -> bool {
    true
}
fn is_stateless(revision: Revision) -> bool {
    !revision.has_handshake()
}
fn always_offered(_: &ServerState, _: &RequestOrigin) -> bool {
    true
}
fn has_tools(server: &ServerState, _: &RequestOrigin) -> bool {
    server.capabilities.tools.is_some()
}
fn has_resources(server: &ServerState, _: &RequestOrigin) -> bool {
    server.capabilities.resources.is_some()
}
fn has_subscriptions(server: &ServerState, origin: &RequestOrigin) -> bool {
    server.capabilities.resources.is_some() && can_notify(server, origin)
}
fn can_notify(_: &ServerState, origin: &RequestOrigin) -> bool {
    origin.abilities.notifies(origin.peer.revision())
}
fn has_prompts(server: &ServerState, _: &RequestOrigin) -> bool {
    server.capabilities.prompts.is_some()
}
fn has_completions(server: &ServerState, _: &RequestOrigin) -> bool {
    server.capabilities.completions.is_some()
}
fn has_tasks(server: &ServerState, _: &RequestOrigin) -> bool {
    server.tasks.is_some()
}
fn has_skills(server: &ServerState, _: &RequestOrigin) -> bool {
    server.skills.is_some()
}

/// Sessions and tasks belong to their caller, so an anonymous caller finds only its own.
fn opening_access(_: &ServerState, _: &VisibleEntries<'_>, _: &Params) -> RequiredAccess {
    RequiredAccess::Opening
}
fn tool_access(_: &ServerState, visible: &VisibleEntries<'_>, params: &Params) -> RequiredAccess {
    let entry = params.text("name").and_then(|name| visible.tool(&name));
    RequiredAccess::from_rule(entry.map(|entry| entry.access.clone()))
}
fn resource_access(_: &ServerState, visible: &VisibleEntries<'_>, params: &Params) -> RequiredAccess {
    RequiredAccess::from_rule(params.text("uri").and_then(|uri| visible.access_of_resource(&uri)))
}
fn prompt_access(_: &ServerState, visible: &VisibleEntries<'_>, params: &Params) -> RequiredAccess {
    let entry = params.text("name").and_then(|name| visible.prompt(&name));
    RequiredAccess::from_rule(entry.map(|entry| entry.access.clone()))
}
fn completion_access(_: &ServerState, visible: &VisibleEntries<'_>, params: &Params) -> RequiredAccess {
    let access = params.decode::<CompleteParams>().ok().and_then(|params| match params.reference {
        CompletionReference::Prompt { name } => visible.prompt(&name).map(|entry| entry.access.clone()),
        CompletionReference::Resource { uri } => visible.template(&uri).map(|entry| entry.access.clone()),
    });
    RequiredAccess::from_rule(access)
}
fn subscription_access(_: &ServerState, visible: &VisibleEntries<'_>, params: &Params) -> RequiredAccess {
    // Unknown resources are ignored, because a listener is not subscribed to them either.
    let named = subscriptions::subscribed_resources(params);
    let access: Vec<_> = named.iter().filter_map(|uri| visible.access_of_resource(uri)).collect();
    if access.is_empty() { RequiredAccess::Opening } else { RequiredAccess::Entries(access) }
}

/// For [transports](crate::transport).
impl Server {
    /// Answers a request, at once or with a call that has to be polled to its end.
    ///
    /// `headers` are the headers of the request. Transports may repeat arguments there.
    pub fn dispatch(
        &self,
        request: Request,
        exchange: RequestOrigin,
        headers: &dyn HeaderValues,
    ) -> DispatchOutcome {
        let revision = exchange.peer.revision();
        let inbound = InboundRequest { server: self.shared().clone(), request, exchange };
        let method = inbound.request.method();
        // The handshake has checked legacy revisions already.
        if !revision.has_handshake() && !inbound.server.revisions.contains(&revision) {
            return inbound.refuse(&inbound.server.unsupported_revision(revision.as_str()));
        }
        let line = find_method(method)
            .filter(|line| (line.has)(revision) && (line.offered)(&inbound.server, &inbound.exchange));
        let Some(line) = line else {
            let error = ProtocolError::UnknownMethod(method.to_owned());
            return inbound.refuse(&error);
        };
        if !revision.has_handshake()
            && let Err(error) = Peer::log_level_of(inbound.request.params())
        {
            return inbound.refuse(&error);
        }
        let caller = inbound.exchange.caller.kind().as_str();
        let started = tracing::enabled!(tracing::Level::INFO).then(Instant::now);
        let id = inbound.request.id.clone();
        // A panic of a completer or a schema ends this request only.
        let dispatched = catch_unwind(AssertUnwindSafe(|| (line.run)(inbound, headers)));
        let dispatched = dispatched.unwrap_or_else(|_| {
            tracing::error!(method = line.name, "a handler panicked");
            let error = ProtocolError::Internal("the handler panicked".to_owned());
            DispatchOutcome::Answer(EncodedResponse::from_error(&id, &error, revision))
        });
        // A running call is logged when it ends.
        if let (DispatchOutcome::Answer(answer), Some(started)) = (&dispatched, started) {
            let outcome = if answer.rejection_kind().is_some() { "refused" } else { "ok" };
            let duration_ms = started.elapsed().as_secs_f64() * 1000.0;
            let revision = revision.as_str();
            tracing::info!(method = line.name, revision, caller, outcome, duration_ms, "request");
        }
        dispatched
    }

    /// Handles a notification. Unknown notifications are ignored.
    pub fn handle_notification(&self, notification: &Notification, peer: &Peer) {
        if notification.method() == "notifications/cancelled"
            && let Some(session) = peer.session()
            && let Some(id) = notification.params().get("requestId").and_then(|id| id.decode().ok())
        {
            session.cancel(&id);
        }
    }
}

/// Answers the four list methods.
fn list(inbound: InboundRequest, kind: ListKind) -> DispatchOutcome {
    let catalog = &inbound.server.catalog;
    if kind == ListKind::Resources && !catalog.snapshot().lists.is_empty() {
        return list_dynamic_resources(inbound);
    }
    let visible = inbound.visible_entries();
    let permitted = inbound.exchange.listed_for();
    match catalog.page(kind, inbound.revision(), inbound.request.params(), &visible, permitted) {
        Ok(page) => DispatchOutcome::Answer(EncodedResponse::from_shared_result(&inbound.request.id, page)),
        Err(error) => inbound.refuse(&error),
    }
}

/// Answers `resources/list` on a server with lists of resources that are computed on request.
fn list_dynamic_resources(inbound: InboundRequest) -> DispatchOutcome {
    let after = match parse_cursor(ListKind::Resources, inbound.request.params()) {
        Ok(after) => after,
        Err(error) => return inbound.refuse(&error),
    };
    let timeout = inbound.server.limits.call_timeout;
    let permitted = inbound.exchange.listed_for().cloned();
    let asker = inbound.exchange.authorized_as().cloned();
    let is_filtered = inbound.visible_entries().is_filtered();
    // The handlers of the lists know the caller.
    let depends_on_caller = permitted.is_some() || asker.is_some() || is_filtered;
    let call = Call::new(inbound, CallTarget::Listing);
    RunningCall::start(call, "resources/list", timeout, TaskStart::Never, |context| {
        Box::pin(async move {
            let server = context.call().server().clone();
            let page = server
                .catalog
                .page_with_dynamic_resources(context, after, permitted.as_ref(), asker.as_ref())
                .await?;
            Ok(HandlerOutput::Listed(page, server.stamp.cache_policy(depends_on_caller)))
        })
    })
}
