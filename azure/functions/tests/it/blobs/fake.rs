//! A small HTTP server that answers as a test defines and records its requests.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// The reply to a request.
pub(crate) enum Reply {
    With(u16, Vec<(&'static str, String)>, String),
    Never,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Reply {
        Reply::With(status, Vec::new(), String::new())
    }

    /// Returns an error response of the blob service.
    pub(crate) fn code(status: u16, code: &str) -> Reply {
        Reply::With(status, vec![("x-ms-error-code", code.to_owned())], String::new())
    }

    pub(crate) fn body(body: impl Into<String>) -> Reply {
        Reply::With(200, Vec::new(), body.into())
    }
}

/// A running server. It stops when this is dropped.
pub(crate) struct Fake {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    server: JoinHandle<()>,
}

impl Fake {
    /// Starts a server. `answer` gets each request and the number of requests before it.
    pub(crate) async fn start(answer: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), seen.clone());
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (answer.clone(), log.clone());
                let service = service_fn(move |request| respond(request, answer.clone(), log.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Fake { port, seen, server }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn respond(
    request: Request<Incoming>,
    answer: Arc<impl Fn(&Seen, usize) -> Reply>,
    log: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let seen = Seen {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let before = {
        let mut log = log.lock().unwrap();
        log.push(seen.clone());
        log.len() - 1
    };
    match answer(&seen, before) {
        Reply::Never => std::future::pending().await,
        Reply::With(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            Ok(response.body(Full::new(body.into())).unwrap())
        }
    }
}

/// Starts a TCP server. `serve` gets each connection after the head of its first request.
pub(crate) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Sends text. Returns whether the client is still connected.
pub(crate) async fn send(stream: &mut TcpStream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).await.is_ok()
}
