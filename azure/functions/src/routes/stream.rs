//! Functions whose worker has an HTTP server of its own: the request is forwarded to it, and both bodies stream.
//!
//! The worker learns of the request twice: by an ordinary invocation without a body, and by the forwarded request, which
//! carries the id of the invocation. The response is that of the forwarded request. The invocation ends after it.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_mcp_http::listener::ConnectedClient;
use bytes::Bytes;
use http::header::HeaderValue;
use http::{HeaderName, Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::task::JoinHandle;

use super::request::{self, HttpForm};
use super::template::RouteValues;
use super::throttle::RequestPlace;
use crate::forward::{ForwardError, ForwardOptions, ForwardedBody, Forwarder, UploadLimits};
use crate::function::Function;
use crate::host::console::{self, ConsoleLogSink};
use crate::invocation::{FunctionFailure, FunctionRunner, TraceContext};
use crate::worker::StreamSlot;

/// How long a response may be late after its function has ended.
const LATE_RESPONSE: Duration = Duration::from_secs(10);

const INVOCATION_ID: HeaderName = HeaderName::from_static("x-ms-invocation-id");

/// Why a streamed request got no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// The function failed. The failure is logged already.
    #[error("{0}")]
    Function(FunctionFailure),
    /// The function ended without a response.
    #[error("the function ended without a response")]
    NoResponse,
    /// The request was not forwarded.
    #[error(transparent)]
    Forward(#[from] ForwardError),
}

/// The servers of the workers, each with its connections.
#[derive(Debug, Default)]
pub(crate) struct StreamServers(Mutex<Vec<Forwarder>>);

impl StreamServers {
    fn forwarder(&self, server: SocketAddr, most_bytes: u64) -> Forwarder {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(forwarder) = known.iter().find(|forwarder| forwarder.target() == server) {
            return forwarder.clone();
        }
        let uploads = UploadLimits { bytes: most_bytes, ..UploadLimits::default() };
        let forwarder = Forwarder::new(server, ForwardOptions { uploads, trusts_forwarded: false });
        // A worker that is replaced leaves an entry, and workers are replaced rarely.
        known.push(forwarder.clone());
        forwarder
    }
}

/// A request to a streaming function.
pub(crate) struct StreamedRequest<'a> {
    pub(crate) runner: Arc<FunctionRunner>,
    pub(crate) function: Arc<Function>,
    pub(crate) request: Request<Incoming>,
    pub(crate) values: RouteValues,
    pub(crate) form: HttpForm,
    pub(crate) trace: TraceContext,
    pub(crate) client: &'a ConnectedClient,
    pub(crate) place: RequestPlace,
    /// The maximum size of the body.
    pub(crate) most_bytes: u64,
}

impl StreamedRequest<'_> {
    /// Runs the function. Returns the response as soon as its head has arrived.
    pub(crate) async fn answer(self, servers: &StreamServers) -> Result<Response<StreamedBody>, StreamError> {
        let StreamedRequest { runner, function, request, values, form, trace, client, place, most_bytes } =
            self;
        let (mut parts, body) = request.into_parts();
        let (slot, target) = StreamSlot::new();
        let event = request::stream_event(&parts, values, form, slot);
        let handle = tokio::spawn(async move {
            let logs = ConsoleLogSink { levels: &runner.log_levels, function: &function.name };
            let ran = runner.run(&function, event, trace, &logs).await;
            ran.map(drop).inspect_err(|failure| console::log_failure(&function.name, failure))
        });
        let mut run = FunctionRun { handle, cancels: true };
        let target = tokio::select! {
            biased;
            target = target => target.map_err(|_| StreamError::NoResponse)?,
            ended = &mut run.handle => return Err(end_of(ended)),
        };
        let id = HeaderValue::try_from(target.invocation.as_ref()).map_err(|_| StreamError::NoResponse)?;
        parts.headers.insert(INVOCATION_ID, id);
        let forwarder = servers.forwarder(target.server, most_bytes);
        let mut forwarding = pin!(forwarder.forward(Request::from_parts(parts, body), client));
        let response = tokio::select! {
            biased;
            response = &mut forwarding => response,
            ended = &mut run.handle => match ended {
                // The worker has sent the response before, on the other connection.
                Ok(Ok(())) => tokio::time::timeout(LATE_RESPONSE, forwarding).await.map_err(|_| StreamError::NoResponse)?,
                // A function that fails before it responds leaves the forwarded request without a response.
                ended => return Err(end_of(ended)),
            },
        };
        let mut response = response?;
        response.headers_mut().remove(INVOCATION_ID);
        if response.body().is_end_stream() {
            run.detach();
        }
        Ok(response.map(|inner| StreamedBody { inner, run, _place: place }))
    }
}

fn end_of(ended: Result<Result<(), FunctionFailure>, tokio::task::JoinError>) -> StreamError {
    match ended {
        Ok(Err(failure)) => StreamError::Function(failure),
        Ok(Ok(())) | Err(_) => StreamError::NoResponse,
    }
}

/// The task that runs a function. Dropping it cancels the invocation.
#[derive(Debug)]
struct FunctionRun {
    handle: JoinHandle<Result<(), FunctionFailure>>,
    cancels: bool,
}

impl FunctionRun {
    /// Lets the function finish on its own.
    fn detach(&mut self) {
        self.cancels = false;
    }
}

impl Drop for FunctionRun {
    fn drop(&mut self) {
        if self.cancels {
            self.handle.abort();
        }
    }
}

/// The body of a streamed response. Dropping it before its end cancels the function.
#[derive(Debug)]
pub(crate) struct StreamedBody {
    inner: ForwardedBody,
    run: FunctionRun,
    _place: RequestPlace,
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.inner.is_end_stream() {
            self.run.detach();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
