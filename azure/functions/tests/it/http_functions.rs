//! Apps whose functions have HTTP triggers, served by a host: the fixture apps `tests/apps/http-*`.

/// Creates a test for each scenario and each language.
macro_rules! for_each_language {
    ($($scenario:ident),+ $(,)?) => {
        mod python {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Python).await;
            })+
        }
        mod node {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Node).await;
            })+
        }
        mod java {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Java).await;
            })+
        }
    };
}

mod frameworks;
mod generated;
mod keys;
mod requests;
mod streaming;

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::client::within;
use crate::served::{Language, Launch, Served};

/// A response of a function.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// Returns the values of a header.
    fn header(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }
}

/// Returns the fixture app in this language, not served yet.
fn launch(language: Language) -> Launch {
    match language {
        Language::Python => Launch::copy_of("tests/apps/http-python").python("1.25.0"),
        Language::Node => Launch::copy_of("tests/apps/http-node").node("4.16.5"),
        Language::Java => Launch::packaged("tests/apps/http-java"),
    }
}

/// Sends a request on a connection of its own.
async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    within(async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    })
    .await
}

async fn get(host: &Served, path: &str) -> Answer {
    send(host.address, "GET", path, &[], "").await
}

/// Posts JSON and returns the text of the response.
pub(crate) async fn post(host: &Served, path: &str, body: &'static str) -> String {
    let headers = [("content-type", "application/json")];
    send(host.address, "POST", path, &headers, body).await.text().to_owned()
}
