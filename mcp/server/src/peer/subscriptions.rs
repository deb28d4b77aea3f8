//! Change notifications to sessions and to `subscriptions/listen` requests.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bindpost_mcp_protocol::lifecycle::SubscriptionFilter;
use bindpost_mcp_protocol::tasks::{LegacyTask, Task};
use bindpost_mcp_protocol::{Params, RequestId, jsonrpc, meta};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::auth::Caller;
use crate::call::{Call, CallTarget, HandlerOutput, RunningCall};
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::ProtocolError;
use crate::peer::session::{Session, declares_extension};
use crate::peer::stream::MessageStream;
use crate::server::{Server, ServerLimits};
use crate::transport::HeaderValues;

/// The maximum number of resources and of tasks that one listener names.
const MAX_NAMED: usize = 1_000;

/// A change to notify subscribers of.
#[derive(Debug)]
pub(crate) enum ChangeNotification<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a str),
    /// For listeners of the tasks extension.
    Task(&'a Task),
    /// For the session in which a task was requested (2025-11-25).
    TaskOfSession(&'a Weak<Session>, &'a Task),
}

impl ChangeNotification<'_> {
    fn method(&self) -> &'static str {
        match self {
            ChangeNotification::Tools => "notifications/tools/list_changed",
            ChangeNotification::Prompts => "notifications/prompts/list_changed",
            ChangeNotification::Resources => "notifications/resources/list_changed",
            ChangeNotification::Resource(_) => "notifications/resources/updated",
            ChangeNotification::Task(_) => "notifications/tasks",
            ChangeNotification::TaskOfSession(..) => "notifications/tasks/status",
        }
    }

    fn params(&self) -> Map<String, Value> {
        let params = match self {
            ChangeNotification::Tools | ChangeNotification::Prompts | ChangeNotification::Resources => {
                json!({})
            }
            ChangeNotification::Resource(uri) => json!({"uri": uri}),
            ChangeNotification::Task(task) => json!(task),
            ChangeNotification::TaskOfSession(_, task) => json!(LegacyTask::from(*task)),
        };
        match params {
            Value::Object(params) => params,
            _ => Map::new(),
        }
    }
}

/// All listeners for changes.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionHub {
    listeners: Mutex<Vec<ChangeListener>>,
    last: AtomicU64,
}

#[derive(Debug)]
struct ChangeListener {
    number: u64,
    who: ListenerOwner,
    stream: Weak<MessageStream>,
}

#[derive(Debug)]
enum ListenerOwner {
    Session(Weak<Session>),
    Request { id: RequestId, caller: Caller, filter: SubscriptionFilter },
}

impl SubscriptionHub {
    /// Notifies all interested listeners. A listener whose stream is full misses the notification.
    pub(crate) fn announce(&self, change: &ChangeNotification<'_>) {
        self.announce_to(change, |_| true);
    }

    /// Notifies all interested listeners of the callers that `reaches` accepts. It runs with the hub locked.
    pub(crate) fn announce_to(&self, change: &ChangeNotification<'_>, reaches: impl Fn(&Caller) -> bool) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.stream.upgrade().is_some_and(|stream| !stream.has_ended()));
        // A session may have several streams. Each message goes to one: the newest with a reader.
        let mut targets: HashMap<*const Session, Arc<MessageStream>> = HashMap::new();
        for listener in listeners.iter().filter(|listener| listener.who.is_caller(&reaches)) {
            let Some(stream) = listener.stream.upgrade() else { continue };
            match &listener.who {
                ListenerOwner::Session(session) => {
                    let known = targets.get(&session.as_ptr());
                    if known.is_none_or(|known| stream.is_read() || !known.is_read()) {
                        targets.insert(session.as_ptr(), stream);
                    }
                }
                ListenerOwner::Request { .. } => {
                    if let Some(message) = listener.who.notification_for(change) {
                        stream.try_send(message);
                    }
                }
            }
        }
        for listener in listeners.iter() {
            if let ListenerOwner::Session(session) = &listener.who
                && let Some(stream) = targets.remove(&session.as_ptr())
                && let Some(message) = listener.who.notification_for(change)
            {
                stream.try_send(message);
            }
        }
    }

    /// Returns the callers of all listeners.
    pub(crate) fn callers(&self) -> HashSet<Caller> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let callers = listeners.iter().filter_map(|listener| match &listener.who {
            ListenerOwner::Session(session) => Some(session.upgrade()?.caller().clone()),
            ListenerOwner::Request { caller, .. } => Some(caller.clone()),
        });
        callers.collect()
    }

    /// Returns the resources that have subscribers.
    pub(crate) fn watched_resources(&self) -> BTreeSet<String> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.stream.upgrade().is_some_and(|stream| !stream.has_ended()));
        let mut watched = BTreeSet::new();
        for listener in listeners.iter() {
            match &listener.who {
                ListenerOwner::Session(session) => {
                    watched.extend(session.upgrade().into_iter().flat_map(|session| session.subscriptions()));
                }
                ListenerOwner::Request { filter, .. } => {
                    watched.extend(filter.resource_subscriptions.iter().cloned());
                }
            }
        }
        watched
    }

    /// Returns whether the limits allow one more listener of this caller.
    fn has_room(&self, caller: &Caller, limits: &ServerLimits) -> bool {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let mut requests = 0;
        let mut of_caller = 0;
        for listener in listeners.iter() {
            if let ListenerOwner::Request { caller: other, .. } = &listener.who {
                requests += 1;
                of_caller += usize::from(other == caller);
            }
        }
        requests < limits.listeners && (caller.id().is_none() || of_caller < limits.listeners_per_caller)
    }

    /// Adds the stream of a session. It replaces the session that the stream belonged to before.
    pub(crate) fn add_session(&self, session: &Arc<Session>, stream: &Arc<MessageStream>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let same_stream = listener.stream.as_ptr() == Arc::as_ptr(stream);
            !(same_stream && matches!(listener.who, ListenerOwner::Session(_)))
        });
        drop(listeners);
        self.add(ListenerOwner::Session(Arc::downgrade(session)), stream);
    }

    fn add(&self, who: ListenerOwner, stream: &Arc<MessageStream>) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let listener = ChangeListener { number, who, stream: Arc::downgrade(stream) };
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.stream.strong_count() > 0);
        listeners.push(listener);
        number
    }

    fn remove(&self, number: u64) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.number != number);
    }
}

impl Server {
    /// Returns whether this resource has a subscriber that can be notified now.
    pub fn is_watched(&self, uri: &str) -> bool {
        self.shared().hub.watched_resources().contains(uri)
    }

    /// Returns the resources with subscribers that can be notified now, in a session or as listeners. A
    /// server that polls for changes need not poll any other resource.
    pub fn watched_resources(&self) -> BTreeSet<String> {
        self.shared().hub.watched_resources()
    }
}

impl ListenerOwner {
    fn is_caller(&self, accepts: impl Fn(&Caller) -> bool) -> bool {
        match self {
            ListenerOwner::Session(session) => {
                session.upgrade().is_some_and(|session| accepts(session.caller()))
            }
            ListenerOwner::Request { caller, .. } => accepts(caller),
        }
    }

    /// Returns the notification for this listener, if it subscribed to the change.
    fn notification_for(&self, change: &ChangeNotification<'_>) -> Option<Bytes> {
        match self {
            ListenerOwner::Session(session) => {
                let wanted = match change {
                    ChangeNotification::Tools
                    | ChangeNotification::Prompts
                    | ChangeNotification::Resources => true,
                    ChangeNotification::Resource(uri) => session.upgrade()?.subscribes_to(uri),
                    ChangeNotification::Task(_) => false,
                    ChangeNotification::TaskOfSession(owner, _) => session.ptr_eq(owner),
                };
                wanted.then(|| {
                    let params = change.params();
                    let params = (!params.is_empty()).then_some(&params);
                    jsonrpc::encode_notification(change.method(), params).into()
                })
            }
            ListenerOwner::Request { id, filter, .. } => {
                let wanted = match change {
                    ChangeNotification::Tools => filter.tools_list_changed,
                    ChangeNotification::Prompts => filter.prompts_list_changed,
                    ChangeNotification::Resources => filter.resources_list_changed,
                    ChangeNotification::Resource(uri) => {
                        filter.resource_subscriptions.iter().any(|wanted| wanted == uri)
                    }
                    ChangeNotification::Task(task) => filter.task_ids.contains(&task.task_id),
                    ChangeNotification::TaskOfSession(..) => false,
                };
                wanted.then(|| {
                    let mut params = change.params();
                    params.insert("_meta".to_owned(), json!({meta::SUBSCRIPTION_ID: id}));
                    jsonrpc::encode_notification(change.method(), Some(&params)).into()
                })
            }
        }
    }
}

/// `resources/subscribe`
pub(crate) fn subscribe(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "resources/subscribe";
    let Some(uri) = inbound.request.params().text("uri") else {
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`uri` must be a string"));
    };
    if !inbound.visible_entries().has_resource(&uri) {
        let error = ProtocolError::UnknownResource(uri.into_owned());
        return inbound.refuse_not_found(error);
    }
    let subscribed = match inbound.exchange.peer.session() {
        Some(session) => session.subscribe(&uri, &inbound.server.budget),
        None => Err(ProtocolError::invalid_params(METHOD, "subscriptions need a session")),
    };
    match subscribed {
        Ok(()) => inbound.answer(json!({})),
        Err(error) => inbound.refuse(&error),
    }
}

/// `resources/unsubscribe`
pub(crate) fn unsubscribe(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    let Some(uri) = inbound.request.params().text("uri") else {
        let error = ProtocolError::invalid_params("resources/unsubscribe", "`uri` must be a string");
        return inbound.refuse(&error);
    };
    if let Some(session) = inbound.exchange.peer.session() {
        session.unsubscribe(&uri);
    }
    inbound.answer(json!({}))
}

/// `subscriptions/listen`: a request that stays open and is answered when the subscription ends.
pub(crate) fn listen(mut inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "subscriptions/listen";
    let params = inbound.request.params();
    let filter: SubscriptionFilter = match params.get("notifications").map(|raw| raw.decode()) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            let reason = format!("`notifications`: {error}");
            return inbound.refuse(&ProtocolError::invalid_params(METHOD, reason));
        }
        None => {
            let reason = "`notifications` must name the changes to listen for";
            return inbound.refuse(&ProtocolError::invalid_params(METHOD, reason));
        }
    };
    if filter.resource_subscriptions.len() > MAX_NAMED || filter.task_ids.len() > MAX_NAMED {
        let reason = format!("a listener names at most {MAX_NAMED} resources and {MAX_NAMED} tasks");
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, reason));
    }
    let capabilities = params.meta(meta::CLIENT_CAPABILITIES).and_then(|raw| raw.decode().ok());
    if !filter.task_ids.is_empty()
        && !declares_extension(&capabilities.unwrap_or_default(), meta::TASKS_EXTENSION)
    {
        let required = json!({"extensions": {meta::TASKS_EXTENSION: {}}});
        return inbound.refuse(&ProtocolError::MissingCapability(required));
    }
    if !inbound.request.id.is_ordinary() {
        let reason = "an id that does not fit 64 bits cannot tag messages; use a string";
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, reason));
    }
    if !inbound.server.hub.has_room(&inbound.exchange.caller, &inbound.server.limits) {
        return inbound.refuse(&ProtocolError::Busy { retry_after_seconds: 5 });
    }
    // A listener may stay for days. The filter has all that is needed of the parameters.
    inbound.request.forget_params();
    let call = Call::new(inbound, CallTarget::Changes);
    if call.stream().is_none() {
        let reason = "listening needs a stream; accept text/event-stream";
        return call.refuse(&ProtocolError::invalid_params(METHOD, reason));
    }
    let filter = call.supported_filter(filter);
    RunningCall::start_listener(call, METHOD, |call| {
        Box::pin(async move {
            let tag = json!({meta::SUBSCRIPTION_ID: call.id()});
            let acknowledged = json!({"_meta": tag, "notifications": filter});
            let method = "notifications/subscriptions/acknowledged";
            let message = jsonrpc::encode_notification(method, Some(&acknowledged));
            if call.send(message.into()).await
                && let Some(stream) = call.stream()
            {
                let hub = call.server().hub.clone();
                let who =
                    ListenerOwner::Request { id: call.id().clone(), caller: call.caller().clone(), filter };
                let number = hub.add(who, stream);
                let _registered = ListenerGuard { hub, number };
                tokio::select! {
                    () = call.server().until_shutdown() => {}
                    () = call.until_ending() => {}
                }
            }
            let Value::Object(tag) = tag else { return Ok(HandlerOutput::Listened(Map::new())) };
            Ok(HandlerOutput::Listened(tag))
        })
    })
}

/// Returns the resources that a listener names.
pub(crate) fn subscribed_resources(params: &Params) -> Vec<String> {
    let filter = params.get("notifications").and_then(|raw| raw.decode::<SubscriptionFilter>().ok());
    filter.map(|filter| filter.resource_subscriptions).unwrap_or_default()
}

impl Call {
    /// Returns the part of a filter that this server supports for this caller.
    fn supported_filter(&self, mut filter: SubscriptionFilter) -> SubscriptionFilter {
        let server = self.server();
        filter.tools_list_changed &= server.capabilities.tools.is_some();
        filter.prompts_list_changed &= server.capabilities.prompts.is_some();
        filter.resources_list_changed &= server.capabilities.resources.is_some();
        let visible = server.catalog.visible_to(self.caller());
        filter.resource_subscriptions.retain(|uri| visible.has_resource(uri));
        match &server.tasks {
            Some(tasks) => filter.task_ids.retain(|id| tasks.belongs_to(id, self.caller())),
            None => filter.task_ids.clear(),
        }
        filter
    }
}

/// Removes a listener from the hub when its request ends.
struct ListenerGuard {
    hub: Arc<SubscriptionHub>,
    number: u64,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.hub.remove(self.number);
    }
}
