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
use crate::listener::SentHeaderNames;
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
    /// The request that opened the stream.
    opening: Arc<HttpRequest>,
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
    let Some(paths) = &endpoint.settings.sse_paths else { return empty(StatusCode::NOT_FOUND) };
    let Some((_, id)) = new_id() else { return empty(StatusCode::INTERNAL_SERVER_ERROR) };
    let out = endpoint.server.new_stream();
    let pipe = Pipe::new(endpoint.server.clone(), out.clone(), caller.clone());
    let pipe = OpenPipe {
        caller: caller.clone(),
        opening: admitted.http.clone(),
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
    let address = address_to_post(&endpoint.settings, paths, admitted.http, &id);
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

/// Returns the address to which the client of a new pipe posts messages. By default it is relative to the address of
/// the stream: a proxy may serve both below a prefix that only the client knows.
fn address_to_post(
    settings: &Settings,
    (stream, messages): &(String, String),
    http: &HttpRequest,
    id: &str,
) -> String {
    let SseOptions { absolute, repeats, .. } = &settings.sse;
    let host = http.uri().authority().map(|authority| authority.as_str()).or_else(|| http.header("host"));
    let path = match host {
        Some(host) if *absolute => {
            let forwarded = http.header("x-forwarded-proto").filter(|scheme| *scheme == "https");
            let scheme = if settings.tls.is_some() { "https" } else { "http" };
            format!("{}://{host}{messages}", forwarded.unwrap_or(scheme))
        }
        _ => relative_path(stream, messages),
    };
    let mut address = format!("{path}?sessionId={id}");
    for (name, value) in repeats.iter().filter_map(|name| Some((name, http.query(name)?))) {
        address.push_str(&format!("&{name}={value}"));
    }
    address
}

/// Returns a relative reference from one absolute path to another one.
fn relative_path(from: &str, to: &str) -> String {
    let folder = |path: &str| path.rsplit_once('/').map_or(0, |(folder, _)| folder.len() + 1);
    let common = from.bytes().zip(to.bytes()).take_while(|(one, other)| one == other).count();
    let common = common.min(folder(from)).min(folder(to));
    let shared = from.get(..common).map_or(0, folder);
    let levels = from.get(shared..).unwrap_or_default().matches('/').count();
    let rest = to.get(shared..).unwrap_or(to);
    format!("{}{rest}", "../".repeat(levels))
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
    let caller = admitted.sender.caller.clone();
    let http = Arc::new(with_headers_of(&pipe.opening, admitted.http));
    let listing = admitted.endpoint.listing();
    let guarded = admitted.endpoint.gate.is_some();
    pipe.pipe.lock().await.receive_posted(decoded, caller, listing, guarded, http).await;
    Ok(empty(StatusCode::ACCEPTED))
}

/// Returns a posted request with the headers of the request that opened its stream, unless it has them itself. Clients
/// may send credentials and other headers with the first request only.
fn with_headers_of(opening: &HttpRequest, posted: &HttpRequest) -> HttpRequest {
    let mut parts = posted.parts.clone();
    for name in opening.headers().keys().filter(|name| !posted.headers().contains_key(*name)) {
        for value in opening.headers().get_all(name) {
            parts.headers.append(name.clone(), value.clone());
        }
    }
    let sent = |http: &HttpRequest| http.parts.extensions.get::<SentHeaderNames>().cloned();
    if let (Some(own), Some(first)) = (sent(posted), sent(opening)) {
        parts.extensions.insert(own.followed_by(&first));
    }
    HttpRequest { parts, peer: posted.peer }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_leads_from_one_path_to_another() {
        for (from, to, expected) in [
            ("/sse", "/message", "message"),
            ("/mcp/sse", "/mcp/message", "message"),
            ("/mcp/sse", "/mcp/sse/message", "sse/message"),
            ("/mcp/sse", "/message", "../message"),
            ("/mcp/events/sse", "/mcp/message", "../message"),
            ("/sse", "/mcp/message", "mcp/message"),
            ("/mcp/sse", "/mcps/message", "../mcps/message"),
            ("/one/two/sse", "/three/message", "../../three/message"),
        ] {
            assert_eq!(relative_path(from, to), expected, "{from} {to}");
        }
    }
}
