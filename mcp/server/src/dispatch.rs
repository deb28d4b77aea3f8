//! The table of methods: one line each. A request finds its line; the line says who answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bindpost_mcp_protocol::lifecycle::{CompleteParams, CompletionReference};
use bindpost_mcp_protocol::{Notification, Params, Request, Revision, jsonrpc};
use serde::Serialize;
use serde_json::json;

use crate::answer::Answer;
use crate::auth::Demand;
use crate::call::{Call, Finished, Running, Subject};
use crate::catalog::cursor_of;
use crate::cursor::Kind;
use crate::error::ProtocolError;
use crate::peer::Peer;
use crate::server::{Cache, Server, Shared, Wording};
use crate::session::Session;
use crate::transport::{Exchange, HeaderValues};
use crate::{lifecycle, prompt, resource, subscriptions, tasks, tool};

/// What becomes of a request.
#[derive(Debug)]
pub enum Dispatch {
    /// It is answered.
    Answer(Answer),
    /// A handler works on it.
    Running(Running),
    /// It was `initialize`: a session is open.
    Opened(Session, Answer),
}

/// A request with what came along.
pub(crate) struct Inbound {
    pub(crate) server: Arc<Shared>,
    pub(crate) request: Request,
    pub(crate) exchange: Exchange,
}

impl Inbound {
    pub(crate) fn revision(&self) -> Revision {
        self.exchange.peer.revision()
    }

    /// Answers with a complete result; it must serialise to an object.
    pub(crate) fn answer(&self, result: impl Serialize) -> Dispatch {
        let mut message = Vec::with_capacity(256);
        jsonrpc::write_result_start(&mut message, &self.request.id);
        self.server.write_complete(&mut message, self.revision(), &result, None, Cache::Unsaid);
        message.push(jsonrpc::RESULT_END);
        Dispatch::Answer(Answer::whole(message))
    }

    pub(crate) fn refuse(&self, error: &ProtocolError) -> Dispatch {
        Dispatch::Answer(Answer::refused(&self.request.id, error, self.revision()))
    }

    /// Refuses a name or URI that nothing has, in the server's own words if it has some.
    pub(crate) fn refuse_unknown(&self, error: ProtocolError) -> Dispatch {
        match self.server.wording.as_ref().and_then(|Wording(word)| word(&error)) {
            Some(object) => self.refuse(&ProtocolError::Other(object)),
            None => self.refuse(&error),
        }
    }
}

/// One method.
pub(crate) struct Line {
    name: &'static str,
    /// Revisions that have it.
    has: fn(Revision) -> bool,
    /// Servers that offer it.
    offered: fn(&Shared) -> bool,
    /// What it demands of its caller.
    pub(crate) demands: fn(&Shared, &Params) -> Demand,
    run: fn(Inbound, &dyn HeaderValues) -> Dispatch,
}

const fn line(
    name: &'static str,
    has: fn(Revision) -> bool,
    offered: fn(&Shared) -> bool,
    demands: fn(&Shared, &Params) -> Demand,
    run: fn(Inbound, &dyn HeaderValues) -> Dispatch,
) -> Line {
    Line { name, has, offered, demands, run }
}

/// Every method we answer.
#[rustfmt::skip]
const METHODS: &[Line] = &[
    line("tools/call",               any,                     has_tools,       the_tool,     tool::call),
    line("tools/list",               any,                     has_tools,       opening,      |i, _| list(i, Kind::Tools)),
    line("resources/read",           any,                     has_resources,   the_resource, resource::read),
    line("resources/list",           any,                     has_resources,   opening,      |i, _| list(i, Kind::Resources)),
    line("resources/templates/list", any,                     has_resources,   opening,      |i, _| list(i, Kind::Templates)),
    line("resources/subscribe",      Revision::has_handshake, has_resources,   the_resource, subscriptions::subscribe),
    line("resources/unsubscribe",    Revision::has_handshake, has_resources,   opening,      subscriptions::unsubscribe),
    line("prompts/get",              any,                     has_prompts,     the_prompt,   prompt::get),
    line("prompts/list",             any,                     has_prompts,     opening,      |i, _| list(i, Kind::Prompts)),
    line("completion/complete",      any,                     has_completions, the_reference, prompt::complete),
    line("server/discover",          stands_alone,            always,          opening,      lifecycle::discover),
    line("initialize",               Revision::has_handshake, always,          opening,      lifecycle::initialize),
    line("ping",                     Revision::has_handshake, always,          opening,      |i, _| i.answer(json!({}))),
    line("logging/setLevel",         Revision::has_handshake, always,          opening,      lifecycle::set_level),
    line("subscriptions/listen",     stands_alone,            always,          what_it_hears, subscriptions::listen),
    line("tasks/get",                stands_alone,            has_tasks,       opening,      tasks::get),
    line("tasks/update",             stands_alone,            has_tasks,       opening,      tasks::update),
    line("tasks/cancel",             stands_alone,            has_tasks,       opening,      tasks::cancel),
];

pub(crate) fn find_line(method: &str) -> Option<&'static Line> {
    METHODS.iter().find(|line| line.name == method)
}

fn any(_: Revision) -> bool {
    true
}
fn stands_alone(revision: Revision) -> bool {
    !revision.has_handshake()
}
fn always(_: &Shared) -> bool {
    true
}
fn has_tools(server: &Shared) -> bool {
    server.capabilities.tools.is_some()
}
fn has_resources(server: &Shared) -> bool {
    server.capabilities.resources.is_some()
}
fn has_prompts(server: &Shared) -> bool {
    server.capabilities.prompts.is_some()
}
fn has_completions(server: &Shared) -> bool {
    server.capabilities.completions.is_some()
}
fn has_tasks(server: &Shared) -> bool {
    server.tasks.is_some()
}

/// Sessions and tasks belong to their caller, so an unknown one finds nothing but its own.
fn opening(_: &Shared, _: &Params) -> Demand {
    Demand::Opening
}
fn the_tool(server: &Shared, params: &Params) -> Demand {
    Demand::of(params.text("name").and_then(|name| server.catalog.snapshot().access_of_tool(&name)))
}
fn the_resource(server: &Shared, params: &Params) -> Demand {
    Demand::of(params.text("uri").and_then(|uri| server.catalog.snapshot().access_of_resource(&uri)))
}
fn the_prompt(server: &Shared, params: &Params) -> Demand {
    Demand::of(params.text("name").and_then(|name| server.catalog.snapshot().access_of_prompt(&name)))
}
fn the_reference(server: &Shared, params: &Params) -> Demand {
    let snapshot = server.catalog.snapshot();
    let access = params.decode::<CompleteParams>().ok().and_then(|params| match params.reference {
        CompletionReference::Prompt { name } => snapshot.access_of_prompt(&name),
        CompletionReference::Resource { uri } => snapshot.access_of_template(&uri),
    });
    Demand::of(access)
}
fn what_it_hears(server: &Shared, params: &Params) -> Demand {
    let snapshot = server.catalog.snapshot();
    // What is not there is left out of what is listened to.
    let named = subscriptions::resources_of(params);
    let access: Vec<_> = named.iter().filter_map(|uri| snapshot.access_of_resource(uri)).collect();
    if access.is_empty() { Demand::Opening } else { Demand::Entries(access) }
}

impl Server {
    /// Answers a request, at once or by a call that has to be driven.
    ///
    /// `headers` are those of the request, for transports that repeat arguments there.
    pub fn dispatch(&self, request: Request, exchange: Exchange, headers: &dyn HeaderValues) -> Dispatch {
        let revision = exchange.peer.revision();
        let inbound = Inbound { server: self.shared().clone(), request, exchange };
        let method = inbound.request.method();
        // Those with a handshake were settled by it.
        if !revision.has_handshake() && !inbound.server.revisions.contains(&revision) {
            return inbound.refuse(&inbound.server.unsupported(revision.as_str()));
        }
        let line = find_line(method).filter(|line| (line.has)(revision) && (line.offered)(&inbound.server));
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
        // What panics in here is somebody's completer or schema; it ends this request only.
        let dispatched = catch_unwind(AssertUnwindSafe(|| (line.run)(inbound, headers)));
        let dispatched = dispatched.unwrap_or_else(|_| {
            tracing::error!(method = line.name, "a handler panicked");
            let error = ProtocolError::Internal("the handler panicked".to_owned());
            Dispatch::Answer(Answer::refused(&id, &error, revision))
        });
        // A call logs for itself when it ends.
        if let (Dispatch::Answer(answer), Some(started)) = (&dispatched, started) {
            let outcome = if answer.refusal().is_some() { "refused" } else { "ok" };
            let duration_ms = started.elapsed().as_secs_f64() * 1000.0;
            let revision = revision.as_str();
            tracing::info!(method = line.name, revision, caller, outcome, duration_ms, "request");
        }
        dispatched
    }

    /// Takes a notification. Those we do not know are ignored.
    pub fn notify(&self, notification: &Notification, peer: &Peer) {
        if notification.method() == "notifications/cancelled"
            && let Some(session) = peer.session()
            && let Some(id) = notification.params().get("requestId").and_then(|id| id.decode().ok())
        {
            session.cancel(&id);
        }
    }
}

/// The four lists.
fn list(inbound: Inbound, kind: Kind) -> Dispatch {
    let catalog = &inbound.server.catalog;
    if kind == Kind::Resources && !catalog.snapshot().lists.is_empty() {
        return list_by_asking(inbound);
    }
    match catalog.page(kind, inbound.revision(), inbound.request.params(), inbound.exchange.seer()) {
        Ok(page) => Dispatch::Answer(Answer::shared(&inbound.request.id, page)),
        Err(error) => inbound.refuse(&error),
    }
}

/// The resources where some are listed when somebody asks.
fn list_by_asking(inbound: Inbound) -> Dispatch {
    let after = match cursor_of(Kind::Resources, inbound.request.params()) {
        Ok(after) => after,
        Err(error) => return inbound.refuse(&error),
    };
    let timeout = inbound.server.limits.call_timeout;
    let (seer, asker) = (inbound.exchange.seer().cloned(), inbound.exchange.asker().cloned());
    let call = Call::new(inbound, Subject::Listing);
    Running::start(call, "resources/list", timeout, false, |context| {
        Box::pin(async move {
            let server = context.call().server().clone();
            let page = server.catalog.page_of_listed(context, after, seer.as_ref(), asker.as_ref()).await?;
            Ok(Finished::Listed(page))
        })
    })
}
