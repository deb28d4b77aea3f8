//! The gRPC service that public workers connect to: one method, `FunctionRpc/EventStream`, on loopback.
//!
//! gRPC is HTTP/2 with a five byte header before each message and a status in the trailers. It is implemented
//! here on hyper instead of with a gRPC framework. This way, an answer that is too large is skipped and does
//! not end the stream, and queued messages are sent in one write.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::framing::Framing;
use crate::worker::channel::outbox::{CloseReason, WorkerOutbox};
use crate::worker::pool::arrivals::{ExpectedWorkers, INTRODUCTION, IncomingStream};

const METHOD: &str = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream";

/// Flow control windows that allow payloads of megabytes without waiting for acknowledgements.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 32 << 20;
const FRAME: u32 = 1 << 20;

/// The status codes of gRPC that we send.
#[derive(Clone, Copy)]
enum GrpcStatus {
    Ok = 0,
    PermissionDenied = 7,
    Unimplemented = 12,
}

/// Accepts the streams of public workers.
pub(crate) struct GrpcListener {
    listener: TcpListener,
}

impl GrpcListener {
    /// Listens on a free port of 127.0.0.1.
    pub(crate) async fn bind() -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        Ok((Self { listener }, address))
    }

    /// Serves every connection until this is dropped.
    pub(crate) async fn serve(self, arrivals: Arc<ExpectedWorkers>) {
        let mut connections = JoinSet::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if connections.len() < arrivals.max_streams() => {
                    connections.spawn(serve_connection(stream, Arc::clone(&arrivals)));
                }
                Ok(_) => {}
                // Probably no file descriptors are available. Some may be closed soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            while connections.try_join_next().is_some() {}
        }
    }
}

async fn serve_connection(stream: TcpStream, arrivals: Arc<ExpectedWorkers>) {
    // Without it, small messages may wait for an acknowledgement. A failure only causes delays.
    let _ = stream.set_nodelay(true);
    let admitted = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let response = handle_request(request, &arrivals, &admitted);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_concurrent_streams(8)
        .max_send_buf_size(1 << 20)
        .serve_connection(TokioIo::new(stream), service);
    // An unknown connection must not occupy a slot that a worker may need.
    let stranger = async {
        tokio::time::sleep(INTRODUCTION).await;
        if admitted.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // On an error the connection ends, and the readers of its streams get the error too.
        _ = connection => {}
        () = stranger => {}
    }
}

fn handle_request(
    request: Request<Incoming>,
    arrivals: &Arc<ExpectedWorkers>,
    admitted: &Arc<AtomicBool>,
) -> Response<GrpcResponseBody> {
    let is_grpc = request
        .headers()
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if !is_grpc {
        let mut response = Response::new(GrpcResponseBody(None));
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    if request.method() != Method::POST || request.uri().path() != METHOD {
        let mut response = grpc_response(GrpcResponseBody(None));
        response.headers_mut().extend(status(GrpcStatus::Unimplemented));
        return response;
    }
    let outbox = Arc::new(WorkerOutbox::new(Framing::Grpc, arrivals.message_limit(), None));
    let reception = IncomingStream::new(Arc::clone(arrivals), Framing::Grpc, Arc::clone(&outbox))
        .with_admitted_flag(Arc::clone(admitted));
    tokio::spawn(read(request.into_body(), reception));
    grpc_response(GrpcResponseBody(Some(outbox)))
}

fn grpc_response(body: GrpcResponseBody) -> Response<GrpcResponseBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

fn status(status: GrpcStatus) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from(status as u16))])
}

async fn read(mut body: Incoming, mut reception: IncomingStream) {
    loop {
        let frame = match reception.time_left() {
            Some(left) => match tokio::time::timeout(left, body.frame()).await {
                Ok(frame) => frame,
                Err(_) => return,
            },
            None => body.frame().await,
        };
        match frame {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    reception.inbox().push(&data);
                }
            }
            Some(Err(error)) => {
                return reception.end(&format!("the stream to the worker broke: {error}"));
            }
            None => return reception.end("the worker closed its stream"),
        }
        if reception.drain().is_err() {
            return;
        }
    }
}

/// The messages to one worker, as the body of the response. The body is empty without an outbox.
struct GrpcResponseBody(Option<Arc<WorkerOutbox>>);

impl Body for GrpcResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(outbox) = &self.0 else { return Poll::Ready(None) };
        outbox.poll_take(context).map(|taken| {
            Some(Ok(match taken {
                Ok(bytes) => Frame::data(bytes),
                Err(closed) => {
                    self.0 = None;
                    Frame::trailers(status(match closed {
                        CloseReason::Refused => GrpcStatus::PermissionDenied,
                        CloseReason::Done => GrpcStatus::Ok,
                    }))
                }
            }))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}
