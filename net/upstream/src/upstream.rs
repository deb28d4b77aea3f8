//! The upstream service: its address, its credential, its limits and the requests to it.
//!
//! One timeout covers the whole request: credential, attempts, delays, redirects and the response body.
//! Dropping the future cancels the request and closes its connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, Method, StatusCode, header};
use reqwest::{Client, Response, Url, redirect};
use tokio::time::Instant;

use crate::address::{self, BaseUrl};
use crate::credential::{self, Credential};
use crate::failure::{AttemptError, UpstreamError, error_chain};
use crate::handler::{self, RequestHandler};
use crate::mask::SecretMask;
use crate::reserved;
use crate::retry::{self, RetryPolicy, RetryState};
use crate::secret::Secret;

/// The maximum number of redirects of one attempt.
const REDIRECTS: u32 = 5;

/// Headers that belong to one connection or are derived from the request. `Accept-Encoding` is one of
/// them, because the HTTP client decompresses responses only if it set the header itself.
const CONNECTION_HEADERS: [HeaderName; 10] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// An upstream service. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Upstream {
    transport: RequestTransport,
    base: BaseUrl,
    credential: Credential,
    /// Masks a credential that never changes.
    mask: SecretMask,
    limits: UpstreamLimits,
    allow_plain: bool,
}

/// What answers the requests.
#[derive(Clone, Debug)]
enum RequestTransport {
    /// The service at the base address.
    Http(Client),
    /// A part of this process.
    Handler(Arc<dyn RequestHandler>),
}

/// Timeouts and limits of requests to an upstream service.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamLimits {
    /// The timeout for a connection.
    pub connect: Duration,
    /// The timeout for one request with all its attempts, until the last byte of the response.
    pub total: Duration,
    /// The maximum number of attempts of a request that may be repeated.
    pub tries: u32,
    /// The approximate delay before the second attempt, if the service requests none. Each further delay
    /// is four times as long.
    pub pause: Duration,
    /// The maximum `Retry-After` that is honoured. If the service requests more, the
    /// request is not retried.
    pub retry_after: Duration,
    /// The maximum size of a decompressed response body, in bytes.
    pub body: usize,
}

impl Default for UpstreamLimits {
    fn default() -> UpstreamLimits {
        UpstreamLimits {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
            tries: 3,
            pause: Duration::from_millis(200),
            retry_after: Duration::from_secs(30),
            body: 16 << 20,
        }
    }
}

/// A request to an upstream service.
#[derive(Clone, Debug)]
pub struct UpstreamRequest {
    /// The HTTP method.
    pub method: Method,
    /// Path and query below the base address, already encoded, with a leading `/`.
    pub path: String,
    /// The headers, without those of the credential.
    pub headers: HeaderMap,
    /// The request body.
    pub body: Option<Bytes>,
    /// Whether repeating the request has no additional effect.
    pub repeatable: bool,
    /// Values for a [`RequestHandler`](crate::RequestHandler). They are not sent to a service.
    pub extensions: Extensions,
}

/// A response of the service, with any status. If it repeats our credential, in any spelling, the
/// credential is replaced by `(secret)`.
#[derive(Clone, Debug)]
pub struct UpstreamResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// The response headers.
    pub headers: HeaderMap,
    /// The complete body.
    pub body: Bytes,
    /// The delay that the service requests before the next request.
    pub retry_after: Option<Duration>,
    mask: SecretMask,
}

impl UpstreamResponse {
    /// Masks our credential in a text derived from the response. Removing something, such as markup, may
    /// have joined the parts of a credential.
    pub fn masked(&self, text: String) -> String {
        self.mask.mask_text(text)
    }
}

/// Decides on a redirect, given the method and the path with its query below the base address. Returns
/// the path to request, or the reason why the redirect is not followed and who can change that.
pub type Redirects<'a> = &'a (dyn Fn(&Method, &str) -> Result<String, String> + Send + Sync);

/// Builds an [`Upstream`].
#[derive(Clone, Debug)]
pub struct UpstreamBuilder {
    base: String,
    credential: Credential,
    limits: UpstreamLimits,
    allow_plain: bool,
    is_documented: bool,
}

impl UpstreamBuilder {
    /// Sets the credential. Default: none.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// Sets the timeouts and limits.
    pub fn limits(mut self, limits: UpstreamLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows credentials over plain HTTP to another machine, where they can be read in transit.
    pub fn allow_plain(mut self) -> Self {
        self.allow_plain = true;
        self
    }

    /// Declares that the address comes from the document, not from the operator. Link-local addresses and
    /// those of metadata services, which hand out credentials to every program on this machine, are then
    /// rejected. The check is repeated when a name is resolved.
    pub fn named_by_document(mut self) -> Self {
        self.is_documented = true;
        self
    }

    /// Builds the upstream, or returns an error if its address is invalid. Sends nothing.
    pub fn build(self) -> Result<Upstream, UpstreamError> {
        let UpstreamBuilder { base, credential, limits, allow_plain, is_documented } = self;
        let base = BaseUrl::parse(&base)?;
        if is_documented && base.is_reserved() {
            return Err(UpstreamError::reserved());
        }
        if base.is_exposed() && !allow_plain && !matches!(credential, Credential::None) {
            return Err(UpstreamError::exposed());
        }
        let mut client = crate::tls::client_builder()
            .user_agent(concat!("bindpost/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect)
            .redirect(redirect::Policy::none())
            .referer(false);
        // A proxy cannot reach a service on this machine, and must not see requests to it.
        if base.is_loopback() {
            client = client.no_proxy();
        }
        if is_documented {
            client = client.dns_resolver(std::sync::Arc::new(reserved::UnreservedResolver));
        }
        let client = client.build().map_err(|error| UpstreamError::Address(error_chain(error)))?;
        let mask = SecretMask::new(&credential.sent_secrets(None));
        let transport = RequestTransport::Http(client);
        Ok(Upstream { transport, base, credential, mask, limits, allow_plain })
    }
}

impl Upstream {
    /// Creates an upstream with this address. Paths of requests are appended to the address's path.
    pub fn new(
        base: &str,
        credential: Credential,
        limits: UpstreamLimits,
    ) -> Result<Upstream, UpstreamError> {
        Upstream::builder(base).credential(credential).limits(limits).build()
    }

    /// Creates an upstream whose requests are answered in this process. No connection is made. The address is that of the
    /// requests' URIs, and redirects and links below it are followed, with `http` and with `https`.
    pub fn handled_by(
        handler: Arc<dyn RequestHandler>,
        base: &str,
        limits: UpstreamLimits,
    ) -> Result<Upstream, UpstreamError> {
        Ok(Upstream {
            transport: RequestTransport::Handler(handler),
            base: BaseUrl::parse(base)?,
            credential: Credential::None,
            mask: SecretMask::default(),
            limits,
            allow_plain: true,
        })
    }

    /// Returns whether requests are answered in this process.
    pub fn is_handled(&self) -> bool {
        matches!(self.transport, RequestTransport::Handler(_))
    }

    /// Creates a builder for an upstream with this address.
    pub fn builder(base: impl Into<String>) -> UpstreamBuilder {
        UpstreamBuilder {
            base: base.into(),
            credential: Credential::None,
            limits: UpstreamLimits::default(),
            allow_plain: false,
            is_documented: false,
        }
    }

    /// Returns the base address.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// Returns the path of a link in the response to `path`, for a request of its own.
    ///
    /// A link to another origin, or outside the base address's path, is [`UpstreamError::Redirected`].
    pub fn link_path(&self, path: &str, link: &str) -> Result<String, UpstreamError> {
        let url = self.base.join(path)?.join(link).map_err(|_| UpstreamError::Redirected)?;
        let url = self.with_own_scheme(url);
        let url = match &self.credential {
            Credential::Query(name, _) => address::without_parameter(url, name),
            _ => url,
        };
        self.base.safe_path_below(&url).ok_or(UpstreamError::Redirected)
    }

    /// Sends a request and reads the whole response.
    ///
    /// Transient failures are retried: 429, 502, 503, 504 and broken connections, if the request is
    /// repeatable or was certainly not processed. The last response is returned unchanged, whatever its
    /// status. Redirects are followed to every path below the base address. See [`Upstream::send_within`]
    /// to restrict them.
    pub async fn send(&self, request: UpstreamRequest) -> Result<UpstreamResponse, UpstreamError> {
        self.send_within(request, &|_, path| Ok(path.to_owned())).await
    }

    /// Like [`Upstream::send`], but follows only the redirects below the base
    /// address that `redirects` allows.
    pub async fn send_within(
        &self,
        request: UpstreamRequest,
        redirects: Redirects<'_>,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let total = self.limits.total;
        let until = Instant::now() + total;
        let work = self.send_with_tries(request, redirects, until);
        tokio::time::timeout_at(until, work).await.unwrap_or(Err(UpstreamError::TimedOut(total)))
    }

    async fn send_with_tries(
        &self,
        mut request: UpstreamRequest,
        redirects: Redirects<'_>,
        until: Instant,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let url = self.base.join(&request.path)?;
        for name in &CONNECTION_HEADERS {
            request.headers.remove(name);
        }
        if self.base.is_exposed() && !self.allow_plain && request.headers.contains_key(header::AUTHORIZATION)
        {
            return Err(UpstreamError::exposed());
        }
        let UpstreamLimits { tries, pause, retry_after, .. } = self.limits;
        let mut attempts = RetryState::start(RetryPolicy { tries, pause, retry_after, until });
        loop {
            let result = self.send_signed(&request, &url, redirects).await;
            let (retryable, asked) = match &result {
                Ok(answer) => {
                    (retry::is_retryable_status(answer.status, request.repeatable), answer.retry_after)
                }
                Err(broken) => (broken.is_retryable(request.repeatable), None),
            };
            if !retryable || !attempts.wait(asked).await {
                return result.map_err(UpstreamError::from);
            }
        }
    }

    /// Makes one attempt. A credential from a source that gets a 401 is replaced once, because the
    /// request was not processed.
    async fn send_signed(
        &self,
        request: &UpstreamRequest,
        url: &Url,
        redirects: Redirects<'_>,
    ) -> Result<UpstreamResponse, AttemptError> {
        let Credential::Source(source) = &self.credential else {
            return self.send_masked(request, url, redirects, None, self.mask.clone()).await;
        };
        let first = credential::request_authorization(source.as_ref()).await?;
        let mut secrets = self.credential.sent_secrets(Some(&first));
        let answer =
            self.send_masked(request, url, redirects, Some(&first), SecretMask::new(&secrets)).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        source.refused(&first);
        match credential::request_authorization(source.as_ref()).await {
            Ok(second) if second != first => {
                secrets.extend(self.credential.sent_secrets(Some(&second)));
                self.send_masked(request, url, redirects, Some(&second), SecretMask::new(&secrets)).await
            }
            _ => Ok(answer),
        }
    }

    /// Sends a request and masks the credential in the response, because some services repeat it.
    async fn send_masked(
        &self,
        request: &UpstreamRequest,
        url: &Url,
        redirects: Redirects<'_>,
        authorization: Option<&Secret>,
        mask: SecretMask,
    ) -> Result<UpstreamResponse, AttemptError> {
        let mut answer = self.send_redirected(request, url, redirects, authorization, &mask).await?;
        mask.mask_response(&mut answer.headers, &mut answer.body);
        answer.mask = mask;
        Ok(answer)
    }

    /// Sends a request and follows redirects below the base address.
    async fn send_redirected(
        &self,
        request: &UpstreamRequest,
        url: &Url,
        redirects: Redirects<'_>,
        authorization: Option<&Secret>,
        mask: &SecretMask,
    ) -> Result<UpstreamResponse, AttemptError> {
        let (mut method, mut url) = (request.method.clone(), url.clone());
        let mut body = request.body.clone();
        for _ in 0..=REDIRECTS {
            let answer = self.send_once(request, &method, &url, body.clone(), authorization).await?;
            let Some(target) = address::redirect_target(answer.status, &answer.headers, &url) else {
                return Ok(answer);
            };
            let target = self.with_own_scheme(target);
            if !self.base.is_same_origin(&target) {
                return Err(AttemptError::Final(UpstreamError::Redirected));
            }
            let reads = matches!(method, Method::GET | Method::HEAD);
            match answer.status {
                _ if reads => {}
                StatusCode::SEE_OTHER => (method, body) = (Method::GET, None),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT if request.repeatable => {}
                // The caller decides whether the request is sent again, and with which method.
                _ => return Ok(answer),
            }
            url = self.redirect_url(&method, &target, redirects).map_err(|reason| {
                let path: String = mask.mask_text(target.path().to_owned()).chars().take(200).collect();
                let to = format!("{method} {path}");
                tracing::warn!(to, reason, "redirect not followed");
                AttemptError::Final(UpstreamError::RedirectRefused { to, reason })
            })?;
        }
        Err(AttemptError::Final(UpstreamError::RedirectLoop))
    }

    /// Gives a link the scheme of the base address if a part of this process wrote it, which may not know the scheme.
    fn with_own_scheme(&self, mut link: Url) -> Url {
        if self.is_handled() && matches!(link.scheme(), "http" | "https") {
            // It fails for no two of these schemes.
            let _ = link.set_scheme(self.base.scheme());
        }
        link
    }

    /// Returns the target address of a redirect, or the reason why it is not followed.
    fn redirect_url(&self, method: &Method, target: &Url, redirects: Redirects<'_>) -> Result<Url, String> {
        let path = self.base.safe_path_below(target).ok_or(
            "the target is not below the path of the base address; if the service has moved, the operator has to change the \
             base address",
        )?;
        let path = redirects(method, &path)?;
        self.base.join(&path).map_err(|error| error.to_string())
    }

    async fn send_once(
        &self,
        request: &UpstreamRequest,
        method: &Method,
        url: &Url,
        body: Option<Bytes>,
        authorization: Option<&Secret>,
    ) -> Result<UpstreamResponse, AttemptError> {
        let mut headers = request.headers.clone();
        if body.is_none() {
            headers.remove(header::CONTENT_TYPE);
        }
        let client = match &self.transport {
            RequestTransport::Http(client) => client,
            // Boxed, because most requests go to a service: their future stays small.
            RequestTransport::Handler(handler) => {
                return Box::pin(self.hand_over(handler.as_ref(), request, method, url, headers, body)).await;
            }
        };
        let url = self.credential.sign(url.clone(), &mut headers, authorization)?;
        let mut sent = client.request(method.clone(), url).headers(headers);
        match body {
            Some(body) => sent = sent.body(body),
            // Some services require a length even for an empty body.
            None if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
                sent = sent.header(header::CONTENT_LENGTH, "0");
            }
            None => {}
        }
        let response =
            sent.send().await.map_err(|error| AttemptError::from_reqwest(error, self.limits.connect))?;
        self.read(response).await
    }

    async fn hand_over(
        &self,
        handler: &dyn RequestHandler,
        request: &UpstreamRequest,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<UpstreamResponse, AttemptError> {
        let response = handler::pass_request(handler, request, method.clone(), url, headers, body).await?;
        let (head, body) = response.into_parts();
        if body.len() > self.limits.body {
            return Err(AttemptError::Final(UpstreamError::TooLarge(self.limits.body)));
        }
        let retry_after = retry::retry_after(&head.headers);
        let (status, headers, mask) = (head.status, head.headers, SecretMask::default());
        Ok(UpstreamResponse { status, headers, body, retry_after, mask })
    }

    async fn read(&self, mut response: Response) -> Result<UpstreamResponse, AttemptError> {
        let limit = self.limits.body;
        let too_large = || AttemptError::Final(UpstreamError::TooLarge(limit));
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        // Chunks arrive decompressed, so the limit applies to the decompressed size.
        while let Some(piece) =
            response.chunk().await.map_err(|error| AttemptError::from_reqwest(error, self.limits.connect))?
        {
            if body.len() + piece.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let retry_after = retry::retry_after(&headers);
        Ok(UpstreamResponse { status, headers, body: body.into(), retry_after, mask: SecretMask::default() })
    }
}
