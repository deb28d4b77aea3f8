//! [`Session`]: the session that a handshake opened, in legacy revisions.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bindpost_mcp_protocol::lifecycle::{ClientCapabilities, Implementation, LogLevel};
use bindpost_mcp_protocol::{ErrorObject, RequestId, Response, Revision};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::auth::Caller;
use crate::budget::{ByteBudget, ByteReservation};
use crate::call::Call;
use crate::error::ProtocolError;
use crate::peer::stream::{MessageStream, RetentionCounter};

/// The maximum size of `clientInfo` and `capabilities` together.
const MAX_CLIENT_BYTES: usize = 8 * 1024;
/// The maximum number of resource subscriptions of one session.
const MAX_SUBSCRIPTIONS: usize = 1_000;
/// The maximum size of the subscribed URIs of one session together.
const MAX_SUBSCRIPTION_BYTES: usize = 64 * 1024;

/// The approximate memory of a subscription besides its URI.
const SUBSCRIPTION_OVERHEAD: usize = 64;

/// A session that a handshake opened. An idle session is small: rarely used parts are created on demand.
#[derive(Debug)]
pub struct Session {
    revision: Revision,
    /// `clientInfo` and `capabilities` as JSON text.
    client: Box<str>,
    caller: Caller,
    log_level: AtomicU8,
    live: Mutex<Option<Box<SessionActivity>>>,
}

#[derive(Debug, Default)]
struct SessionActivity {
    subscriptions: HashSet<String>,
    /// The bytes of the server's budget that the subscriptions use.
    subscribed: Option<ByteReservation>,
    /// The server's requests that the client has not answered yet.
    asked: HashMap<RequestId, oneshot::Sender<Result<Bytes, ErrorObject>>>,
    last_id: i64,
    running: Vec<Weak<Call>>,
    /// The stream for messages that belong to no call.
    unsolicited: Option<Arc<MessageStream>>,
    shelf: Arc<RetentionCounter>,
    closed: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ClientDeclaration {
    #[serde(default)]
    client_info: Implementation,
    #[serde(default)]
    capabilities: ClientCapabilities,
}

/// The client has not set a log level.
const UNSAID: u8 = u8::MAX;

impl Session {
    /// Opens a session of this revision, from the parameters of `initialize`.
    pub(crate) fn open(
        revision: Revision,
        client_info: &Implementation,
        capabilities: &ClientCapabilities,
        caller: Caller,
    ) -> Result<Session, ProtocolError> {
        let mut client_info = client_info.clone();
        client_info.icons.clear();
        client_info.extra.clear();
        let client = serde_json::json!({"clientInfo": client_info, "capabilities": capabilities}).to_string();
        if client.len() > MAX_CLIENT_BYTES {
            let reason = format!("clientInfo and capabilities are larger than {MAX_CLIENT_BYTES} bytes");
            return Err(ProtocolError::invalid_params("initialize", reason));
        }
        Ok(Session {
            revision,
            client: client.into(),
            caller,
            log_level: AtomicU8::new(UNSAID),
            live: Mutex::new(None),
        })
    }

    /// Returns the revision that the handshake negotiated.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the caller that opened the session. Other callers may not use it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the client's own name and version.
    pub fn client_info(&self) -> Implementation {
        self.client_declaration().client_info
    }

    /// Returns the client's own name and version as JSON text.
    pub fn client_info_json(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RawClientInfo<'a> {
            #[serde(borrow)]
            client_info: &'a RawValue,
        }
        let says: RawClientInfo<'_> = serde_json::from_str(&self.client).ok()?;
        Some(says.client_info.get().to_owned())
    }

    /// Returns the capabilities that the client declared.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.client_declaration().capabilities
    }

    fn client_declaration(&self) -> ClientDeclaration {
        serde_json::from_str(&self.client).unwrap_or_default()
    }

    /// Returns the minimum severity of log messages to send. Default: info.
    pub fn log_level(&self) -> LogLevel {
        self.requested_log_level().unwrap_or(LogLevel::Info)
    }

    /// Returns the log level that the client set, if it did.
    pub fn requested_log_level(&self) -> Option<LogLevel> {
        let level = self.log_level.load(Ordering::Relaxed);
        LogLevel::ALL.get(usize::from(level)).copied()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    fn with_activity<T>(&self, change: impl FnOnce(&mut SessionActivity) -> T) -> T {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        change(live.get_or_insert_default())
    }

    fn with_existing_activity<T: Default>(&self, change: impl FnOnce(&mut SessionActivity) -> T) -> T {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.as_deref_mut().map(change).unwrap_or_default()
    }

    pub(crate) fn subscribe(&self, uri: &str, budget: &Arc<ByteBudget>) -> Result<(), ProtocolError> {
        self.with_activity(|live| {
            let bytes = live.subscriptions.iter().map(String::len).sum::<usize>() + uri.len();
            let full = live.subscriptions.len() >= MAX_SUBSCRIPTIONS || bytes > MAX_SUBSCRIPTION_BYTES;
            if full && !live.subscriptions.contains(uri) {
                let reason = format!(
                    "a session subscribes to at most {MAX_SUBSCRIPTIONS} resources of {MAX_SUBSCRIPTION_BYTES} bytes"
                );
                return Err(ProtocolError::invalid_params("resources/subscribe", reason));
            }
            let reserved = live.subscribed.get_or_insert_with(|| budget.reserve_anyway(0));
            if !reserved.grow_to(bytes + (live.subscriptions.len() + 1) * SUBSCRIPTION_OVERHEAD) {
                return Err(ProtocolError::Overloaded { retry_after_seconds: 5 });
            }
            live.subscriptions.insert(uri.to_owned());
            Ok(())
        })
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.with_existing_activity(|live| {
            live.subscriptions.remove(uri);
        });
    }

    pub(crate) fn subscribes_to(&self, uri: &str) -> bool {
        self.with_existing_activity(|live| live.subscriptions.contains(uri))
    }

    /// Returns the subscribed resources.
    pub(crate) fn subscriptions(&self) -> Vec<String> {
        self.with_existing_activity(|live| live.subscriptions.iter().cloned().collect())
    }

    /// Returns the counter of the messages that its streams retain together.
    pub(crate) fn retention_counter(&self) -> Arc<RetentionCounter> {
        self.with_activity(|live| live.shelf.clone())
    }

    /// Sets the stream for messages that belong to no call.
    pub fn set_unsolicited(&self, stream: Arc<MessageStream>) {
        self.with_activity(|live| live.unsolicited = Some(stream));
    }

    /// Returns the stream for messages that belong to no call.
    pub fn unsolicited(&self) -> Option<Arc<MessageStream>> {
        self.with_existing_activity(|live| live.unsolicited.clone())
    }

    /// Registers a request to the client. The receiver gets the response.
    pub(crate) fn register_request(&self) -> (RequestId, oneshot::Receiver<Result<Bytes, ErrorObject>>) {
        let (sender, receiver) = oneshot::channel();
        let id = self.with_activity(|live| {
            live.last_id += 1;
            let id = RequestId::from(live.last_id);
            if !live.closed {
                live.asked.insert(id.clone(), sender);
            }
            id
        });
        (id, receiver)
    }

    pub(crate) fn forget_request(&self, id: &RequestId) {
        self.with_existing_activity(|live| {
            live.asked.remove(id);
        });
    }

    /// Receives the client's response to a request of the server. Unknown responses are ignored.
    pub fn receive_response(&self, response: Response) {
        if let Some(sender) = self.with_existing_activity(|live| live.asked.remove(&response.id)) {
            let _ = sender.send(response.outcome);
        }
    }

    /// Returns the number of running calls.
    pub fn running_calls(&self) -> usize {
        self.with_existing_activity(|live| {
            // A task needs no answer, and has limits of its own.
            live.running.retain(|call| call.upgrade().is_some_and(|call| call.is_awaited()));
            live.running.len()
        })
    }

    pub(crate) fn add_running_call(&self, call: &Arc<Call>) {
        self.with_activity(|live| {
            live.running.retain(|call| call.strong_count() > 0);
            live.running.push(Arc::downgrade(call));
        });
    }

    /// Cancels the call with this id if it still runs.
    pub(crate) fn cancel(&self, id: &RequestId) {
        let call = self.with_existing_activity(|live| {
            live.running.iter().filter_map(Weak::upgrade).find(|call| call.id() == id && call.is_awaited())
        });
        if let Some(call) = call {
            call.cancel();
        }
    }

    /// Ends the session: cancels running calls, fails unanswered requests to the client, ends its stream.
    pub fn close(&self) {
        let (running, unsolicited) = self.with_activity(|live| {
            live.closed = true;
            live.asked.clear();
            (std::mem::take(&mut live.running), live.unsolicited.take())
        });
        // A task outlives the session in which it was requested.
        let running = running.iter().filter_map(Weak::upgrade).filter(|call| call.is_awaited());
        running.for_each(|call| call.cancel());
        if let Some(stream) = unsolicited {
            stream.end();
        }
    }

    /// Fails unanswered and future requests to the client. Running calls may still finish.
    pub fn stop_asking(&self) {
        self.with_activity(|live| {
            live.closed = true;
            live.asked.clear();
        });
    }
}

/// Returns whether a client declares an extension.
pub(crate) fn declares_extension(capabilities: &ClientCapabilities, name: &str) -> bool {
    capabilities.extensions.get(name).is_some_and(Value::is_object)
}
