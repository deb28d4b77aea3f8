//! A configurable test service on this machine, with real HTTP over real sockets.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{self, Poll};
use std::time::Duration;

use bindpost_net_upstream::{Credential, Upstream, UpstreamLimits, UpstreamRequest};
use http::{Extensions, HeaderMap, Method};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A request as received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// The body of a response, in chunks.
pub(crate) struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

pub(crate) type Sender = mpsc::Sender<io::Result<Bytes>>;
pub(crate) type Answer = Response<Pieces>;

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Returns a response with a complete body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let (answer, pieces) = streamed(status, headers);
    pieces.try_send(Ok(body.into())).unwrap();
    answer
}

/// Returns a response and a sender for the chunks of its body. The body ends when the sender is dropped.
pub(crate) fn streamed(status: u16, headers: &[(&str, &str)]) -> (Answer, Sender) {
    let (sender, receiver) = mpsc::channel(4);
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    (response.body(Pieces(receiver)).unwrap(), sender)
}

/// A service that listens until the test ends.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

impl Service {
    /// Starts a service. The function creates each response from the request and the
    /// number of earlier requests.
    pub(crate) async fn start(answers: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Service {
            port: listener.local_addr().unwrap().port(),
            seen: Arc::default(),
            connections: Arc::default(),
        };
        let (answers, kept) = (Arc::new(answers), service.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                kept.connections.fetch_add(1, Ordering::SeqCst);
                let (answers, kept) = (answers.clone(), kept.clone());
                let handler = move |request: Request<Incoming>| {
                    let (answers, kept) = (answers.clone(), kept.clone());
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                        let seen = Seen {
                            method: parts.method,
                            target: parts.uri.to_string(),
                            headers: parts.headers,
                            body,
                        };
                        let before = {
                            let mut all = kept.seen.lock().unwrap();
                            all.push(seen.clone());
                            all.len() - 1
                        };
                        Ok::<_, Infallible>(answers(&seen, before))
                    }
                };
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(handler)),
                );
            }
        });
        service
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns an upstream for this service, without a credential.
    pub(crate) fn upstream(&self) -> Upstream {
        self.upstream_as(Credential::None)
    }

    pub(crate) fn upstream_as(&self, credential: Credential) -> Upstream {
        Upstream::new(&self.address(), credential, quick()).unwrap()
    }

    pub(crate) fn upstream_within(&self, limits: UpstreamLimits) -> Upstream {
        Upstream::new(&self.address(), Credential::None, limits).unwrap()
    }
}

/// Returns the default limits with short delays.
pub(crate) fn quick() -> UpstreamLimits {
    UpstreamLimits { pause: Duration::from_millis(2), ..UpstreamLimits::default() }
}

pub(crate) fn get(path: &str) -> UpstreamRequest {
    UpstreamRequest {
        method: Method::GET,
        path: path.to_owned(),
        headers: HeaderMap::new(),
        body: None,
        repeatable: true,
        extensions: Extensions::new(),
    }
}

/// Returns a request that may change data each time it is sent.
pub(crate) fn post(path: &str, body: &'static str) -> UpstreamRequest {
    UpstreamRequest { method: Method::POST, body: Some(body.into()), repeatable: false, ..get(path) }
}
