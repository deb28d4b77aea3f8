//! The service behind: where it is, who we are there, how long we wait, what we take from it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Url, redirect};

/// A service we call.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: Client,
    base: Url,
    credential: Credential,
    limits: UpstreamLimits,
}

/// How long we wait for a service, and how much we take from it.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamLimits {
    /// Until there is a connection.
    pub connect: Duration,
    /// For one request with all its tries.
    pub total: Duration,
    /// How often a request is sent that may be sent again.
    pub tries: u32,
    /// The longest wait that a `Retry-After` may ask for.
    pub retry_after: Duration,
    /// The largest body of an answer, in bytes.
    pub body: usize,
}

impl Default for UpstreamLimits {
    fn default() -> UpstreamLimits {
        UpstreamLimits {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
            tries: 3,
            retry_after: Duration::from_secs(30),
            body: 16 << 20,
        }
    }
}

/// Text that must not appear in logs.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, to be sent and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Who we are at the service. It is sent to the base address's origin and nowhere else.
#[derive(Clone, Debug, Default)]
pub enum Credential {
    /// Nobody.
    #[default]
    None,
    /// A header with a key in it.
    Header(HeaderName, Secret),
    /// A parameter of the query with a key in it.
    Query(String, Secret),
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic(String, Secret),
    /// Whatever the source says at the time.
    Source(Arc<dyn CredentialSource>),
}

/// Gives credentials that change, such as access tokens.
pub trait CredentialSource: Send + Sync + fmt::Debug {
    /// The value of `Authorization` now, or why there is none (for the log; clients are told less).
    fn authorization(&self) -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send + '_>>;
    /// The service refused this one with 401: it should not be given again.
    fn refused(&self, authorization: &Secret);
}

/// A request to the service.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The verb.
    pub method: Method,
    /// Path and query below the base address, encoded already, with a leading `/`.
    pub path: String,
    /// Headers besides those of the credential.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
    /// Whether sending it twice does no more than sending it once.
    pub repeatable: bool,
}

/// What the service answered, whatever the status.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, whole.
    pub body: Bytes,
}

/// Why there is no answer. The texts are for the model: they name no address and no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The base address, or what was made of it, is no address.
    #[error("the address of the service cannot be used: {0}")]
    Address(String),
    /// Nobody answered.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The answer took too long.
    #[error("the service did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The answer is too long.
    #[error("the answer of the service has more than {0} bytes; ask for less")]
    TooLarge(usize),
    /// The service sent us elsewhere.
    #[error("the service redirects to another origin, which is not followed")]
    Redirected,
    /// There is no credential.
    #[error("there is no credential for the service")]
    NoCredential(String),
}

impl Upstream {
    /// A service at this address; paths of requests go below the address's path.
    pub fn new(
        base: &str,
        credential: Credential,
        limits: UpstreamLimits,
    ) -> Result<Upstream, UpstreamError> {
        let base = Url::parse(base).map_err(|error| UpstreamError::Address(error.to_string()))?;
        let client = Client::builder()
            .connect_timeout(limits.connect)
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| UpstreamError::Address(error.without_url().to_string()))?;
        Ok(Upstream { client, base, credential, limits })
    }

    /// Where it is.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: Outgoing) -> Result<Incoming, UpstreamError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{base}{}", request.path))
            .map_err(|error| UpstreamError::Address(error.to_string()))?;
        let mut headers = request.headers;
        if let Credential::Header(name, secret) = &self.credential {
            let value = HeaderValue::from_str(secret.reveal())
                .map_err(|_| UpstreamError::NoCredential("the key is no header value".to_owned()))?;
            headers.insert(name.clone(), value);
        }
        let broken = |error: reqwest::Error| match error.is_timeout() {
            true => UpstreamError::TimedOut(self.limits.total),
            false => UpstreamError::Unreachable(error.without_url().to_string()),
        };
        let mut sent = self.client.request(request.method, url).headers(headers).timeout(self.limits.total);
        if let Some(body) = request.body {
            sent = sent.body(body);
        }
        let mut response = sent.send().await.map_err(broken)?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            if body.len() + piece.len() > self.limits.body {
                return Err(UpstreamError::TooLarge(self.limits.body));
            }
            body.extend_from_slice(&piece);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Incoming { status, headers, body: body.into() })
    }
}
