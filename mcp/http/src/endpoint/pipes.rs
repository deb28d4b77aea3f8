//! HTTP+SSE, the transport of 2024-11-05. A pipe combines one stream to the client with the messages
//! that the client posts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bindpost_mcp_protocol::{DecodeError, DecodedBody, RequestId, jsonrpc};
use bindpost_mcp_server::transport::{MessageStream, Pipe};
use bindpost_mcp_server::{Caller, HttpRequest};
use bytes::Bytes;
use http::StatusCode;

use crate::endpoint::EndpointState;
use crate::endpoint::events::EventStream;
use crate::endpoint::reply::{BoxedReply, Reply, empty, refuse, too_many_sessions};
use crate::endpoint::request::AdmittedRequest;
use crate::endpoint::sessions::new_id;
use crate::endpoint::streaming::event_stream_reply;
use crate::settings::{SessionLimits, Settings, SseOptions};

/// The open pipes. A pipe is closed when its client disconnects from the stream.
#[derive(Debug, Default)]
pub(crate) struct PipeStore {
    open: Mutex<HashMap<String, OpenPipe>>,
    /// The number of pipes opened since the start.
    opened: AtomicU64,
}

#[derive(Debug, Clone)]
struct OpenPipe {
    caller: Caller,
    number: u64,
    /// Whether the client has posted a message.
    used: bool,
    out: Arc<MessageStream>,
    pipe: Arc<tokio::sync::Mutex<Pipe>>,
}

impl PipeStore {
    /// Adds a pipe. If a limit is reached, the oldest unused pipe is evicted. Returns `false` if all
    /// are in use.
    fn add(&self, id: String, pipe: OpenPipe, limits: &SessionLimits) -> bool {
        let mut open = self.lock();
        let most = if pipe.caller.is_authenticated() { limits.per_caller } else { limits.anonymous };
        let is_own = |other: &OpenPipe| other.caller == pipe.caller;
        let at_own_cap = open.len() >= most && open.values().filter(|other| is_own(other)).count() >= most;
        if at_own_cap || open.len() >= limits.total {
            let unused = open.iter().filter(|(_, other)| !other.used && (!at_own_cap || is_own(other)));
            let Some((oldest, _)) = unused.min_by_key(|(_, other)| other.number) else { return false };
            let oldest = oldest.clone();
            if let Some(pipe) = open.remove(&oldest) {
                pipe.out.end();
            }
        }
        open.insert(id, pipe);
        true
    }

    /// Returns the pipe with this id if it belongs to this caller, and marks it as used.
    fn find(&self, id: &str, caller: &Caller) -> Option<OpenPipe> {
        let mut open = self.lock();
        let pipe = open.get_mut(id).filter(|pipe| pipe.caller == *caller)?;
        pipe.used = true;
        Some(pipe.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, OpenPipe>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shuts down all pipes. Each answers the requests it has received and ends, within `most`.
    pub(crate) fn drain(&self, most: Duration) {
        for pipe in self.lock().values().cloned() {
            tokio::spawn(async move {
                pipe.pipe.lock().await.drain(most).await;
                pipe.out.end();
            });
        }
    }

    /// Ends the streams of callers whose credentials are no longer valid, which closes their pipes.
    pub(crate) fn end_unless_known(&self, knows: impl Fn(&Caller) -> bool) {
        let open: Vec<OpenPipe> = self.lock().values().cloned().collect();
        open.iter().filter(|pipe| !knows(&pipe.caller)).for_each(|pipe| pipe.out.end());
    }
}

/// Closes the pipe when its client disconnects.
#[derive(Debug)]
pub(crate) struct PipeGuard {
    endpoint: Arc<EndpointState>,
    id: String,
}

impl Drop for PipeGuard {
    fn drop(&mut self) {
        self.endpoint.pipes.lock().remove(&self.id);
    }
}

/// Handles `GET /sse`: opens a pipe. The first event has the address for messages.
pub(crate) fn open_pipe(admitted: &AdmittedRequest<'_>) -> Reply {
    let (endpoint, caller) = (admitted.endpoint, &admitted.sender.caller);
    let Some((_, message_path)) = &endpoint.settings.sse_paths else { return empty(StatusCode::NOT_FOUND) };
    let Some((_, id)) = new_id() else { return empty(StatusCode::INTERNAL_SERVER_ERROR) };
    let out = endpoint.server.new_stream();
    let pipe = Pipe::new(endpoint.server.clone(), out.clone(), caller.clone());
    let pipe = OpenPipe {
        caller: caller.clone(),
        number: endpoint.pipes.opened.fetch_add(1, Ordering::Relaxed),
        used: false,
        out: out.clone(),
        pipe: Arc::new(tokio::sync::Mutex::new(pipe)),
    };
    if !endpoint.pipes.add(id.clone(), pipe, &endpoint.settings.session_limits) {
        return too_many_sessions(None);
    }
    if endpoint.draining.load(Ordering::SeqCst) {
        out.end();
    }
    let address = address_to_post(&endpoint.settings, message_path, admitted.http, &id);
    let opening = format!("event: endpoint\ndata: {address}\n\n");
    if let Some(every) = endpoint.settings.sse.ping {
        tokio::spawn(ping(Arc::downgrade(&out), every));
    }
    let guard = PipeGuard { endpoint: endpoint.clone(), id };
    let events = EventStream::attach(out, None, endpoint.settings.keep_alive);
    let expires = caller.expires_at();
    event_stream_reply(
        events.map(|events| events.opening(Bytes::from(opening)).guarding(guard).expiring(expires)),
    )
}

/// Returns the address to which the client of a new pipe posts messages.
fn address_to_post(settings: &Settings, path: &str, http: &HttpRequest, id: &str) -> String {
    let SseOptions { absolute, repeats, .. } = &settings.sse;
    let host = http.uri().authority().map(|authority| authority.as_str()).or_else(|| http.header("host"));
    let origin = match host {
        Some(host) if *absolute => {
            let forwarded = http.header("x-forwarded-proto").filter(|scheme| *scheme == "https");
            let scheme = if settings.tls.is_some() { "https" } else { "http" };
            format!("{}://{host}", forwarded.unwrap_or(scheme))
        }
        _ => String::new(),
    };
    let mut address = format!("{origin}{path}?sessionId={id}");
    for (name, value) in repeats.iter().filter_map(|name| Some((name, http.query(name)?))) {
        address.push_str(&format!("&{name}={value}"));
    }
    address
}

/// Handles `POST /message?sessionId=…`: passes the message to the pipe. The response is sent on
/// the stream.
///
/// A pipe is never transferred to another caller. Otherwise the reader of its stream would get the
/// responses for that caller.
pub(crate) async fn post_to_pipe(
    admitted: &AdmittedRequest<'_>,
    decoded: Result<DecodedBody, DecodeError>,
) -> Result<Reply, BoxedReply> {
    let Some(id) = admitted.http.query("sessionId") else {
        let reason =
            "the parameter sessionId is missing; open the stream first and post to the address it sends";
        return Ok(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
    };
    let Some(pipe) = admitted.endpoint.pipes.find(id, &admitted.sender.caller) else {
        return Err(admitted.refuse_not_found(None, "unknown or closed stream; open it again"));
    };
    let (caller, http) = (admitted.sender.caller.clone(), admitted.http.clone());
    let listing = admitted.endpoint.listing();
    let guarded = admitted.endpoint.gate.is_some();
    pipe.pipe.lock().await.receive_posted(decoded, caller, listing, guarded, http).await;
    Ok(empty(StatusCode::ACCEPTED))
}

/// Sends `ping` requests to a client at this interval until it disconnects. The responses are ignored.
async fn ping(out: Weak<MessageStream>, every: Duration) {
    for number in 1.. {
        tokio::time::sleep(every).await;
        let Some(out) = out.upgrade() else { return };
        let id = RequestId::from(format!("ping-{number}").as_str());
        if !out.send(jsonrpc::encode_request(&id, "ping", &serde_json::json!({})).into()).await {
            return;
        }
    }
}
