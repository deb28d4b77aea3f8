//! The service behind: where it is, who we are there, how long we wait, what we take from it.
//!
//! A request has one time limit for everything: credential, tries, pauses, redirects and the body of the answer.
//! Dropping the future ends it and closes its connection.

mod address;
mod credential;
mod failure;
mod mask;
mod reserved;
mod retry;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use reqwest::{Client, Response, Url, redirect};
use tokio::time::Instant;

use address::BaseUrl;
pub(crate) use address::{is_dot_segment, is_path_traversal};
pub use credential::{Credential, CredentialSource, Secret};
pub use failure::UpstreamError;
use failure::{AttemptError, causes};
use mask::SecretMask;
pub(crate) use retry::retry_after;

/// How many redirects of one try are followed.
const REDIRECTS: u32 = 5;

/// What belongs to one connection, or is set from what is sent. `Accept-ValueEncoding` among them: with one that is not its
/// own the HTTP client leaves answers compressed.
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

/// A service we call. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: Client,
    base: BaseUrl,
    credential: Credential,
    /// Finds a credential that is always the same.
    mask: SecretMask,
    limits: UpstreamLimits,
    allow_plain: bool,
}

/// How long we wait for a service, and how much we take from it.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamLimits {
    /// Until there is a connection.
    pub connect: Duration,
    /// For one request with all its tries, until the last byte of the answer.
    pub total: Duration,
    /// How often a request is sent that may be sent again.
    pub tries: u32,
    /// The pause before the second try, about, if the service asks for none; each further one is four times as long.
    pub pause: Duration,
    /// The longest wait that a `Retry-After` may ask for. Who asks for more is not asked again.
    pub retry_after: Duration,
    /// The largest body of an answer, in bytes, when it is unpacked.
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

/// A request to the service.
#[derive(Clone, Debug)]
pub struct UpstreamRequest {
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

/// What the service answered, whatever the status. Where it repeated our credential, in whatever spelling, it has
/// `(secret)` instead.
#[derive(Clone, Debug)]
pub struct UpstreamResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, whole.
    pub body: Bytes,
    /// How long the service asks us to wait before the next request.
    pub retry_after: Option<Duration>,
    mask: SecretMask,
}

impl UpstreamResponse {
    /// A text made of the answer, once more without our credential: taking something out, such as markup, may have put
    /// it together.
    pub(crate) fn masked(&self, text: String) -> String {
        self.mask.mask_text(text)
    }
}

/// Decides on a redirect by the verb and the path, with its query, that it leads to below the base address. Gives the
/// path to ask for, or why the redirect is not followed and who can change that.
pub type Redirects<'a> = &'a (dyn Fn(&Method, &str) -> Result<String, String> + Send + Sync);

/// An [`Upstream`] being described.
#[derive(Clone, Debug)]
pub struct UpstreamBuilder {
    base: String,
    credential: Credential,
    limits: UpstreamLimits,
    allow_plain: bool,
    is_documented: bool,
}

impl UpstreamBuilder {
    /// Who we are there; nobody if not said.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// How long we wait, and how much we take.
    pub fn limits(mut self, limits: UpstreamLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets credentials go over plain http to another machine, where everybody on the way can read them.
    pub fn allow_plain(mut self) -> Self {
        self.allow_plain = true;
        self
    }

    /// The address is the document's word, not the operator's. Link-local addresses and those of metadata services, which
    /// give credentials to every program of this machine that asks, are refused then: here, and when a name is found to lead there.
    pub fn named_by_document(mut self) -> Self {
        self.is_documented = true;
        self
    }

    /// The service, or what is wrong with its address. Nothing is sent yet.
    pub fn build(self) -> Result<Upstream, UpstreamError> {
        let UpstreamBuilder { base, credential, limits, allow_plain, is_documented } = self;
        let base = BaseUrl::parse(&base)?;
        if is_documented && base.is_reserved() {
            return Err(UpstreamError::reserved());
        }
        if base.is_exposed() && !allow_plain && !matches!(credential, Credential::None) {
            return Err(UpstreamError::exposed());
        }
        let mut client = Client::builder()
            .user_agent(concat!("bindpost/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect)
            .redirect(redirect::Policy::none())
            .referer(false);
        // No proxy can reach a service on this machine, and none should see what is sent to it.
        if base.is_loopback() {
            client = client.no_proxy();
        }
        if is_documented {
            client = client.dns_resolver(std::sync::Arc::new(reserved::UnreservedResolver));
        }
        let client = client.build().map_err(|error| UpstreamError::Address(causes(error)))?;
        let mask = SecretMask::new(&credential.sent_secrets(None));
        Ok(Upstream { client, base, credential, mask, limits, allow_plain })
    }
}

impl Upstream {
    /// A service at this address; paths of requests go below the address's path.
    pub fn new(
        base: &str,
        credential: Credential,
        limits: UpstreamLimits,
    ) -> Result<Upstream, UpstreamError> {
        Upstream::builder(base).credential(credential).limits(limits).build()
    }

    /// A service at this address, to be described further.
    pub fn builder(base: impl Into<String>) -> UpstreamBuilder {
        UpstreamBuilder {
            base: base.into(),
            credential: Credential::None,
            limits: UpstreamLimits::default(),
            allow_plain: false,
            is_documented: false,
        }
    }

    /// Where it is.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// The path of a link that the answer to `path` contained, for a request of its own.
    ///
    /// A link to another origin, or out of the base address's path, is [`UpstreamError::Redirected`].
    pub fn link_path(&self, path: &str, link: &str) -> Result<String, UpstreamError> {
        let url = self.base.join(path)?.join(link).map_err(|_| UpstreamError::Redirected)?;
        let url = match &self.credential {
            Credential::Query(name, _) => address::without_parameter(url, name),
            _ => url,
        };
        self.base.safe_path_below(&url).ok_or(UpstreamError::Redirected)
    }

    /// Sends a request and reads the whole answer.
    ///
    /// Failures that may pass are tried again: 429, 502, 503, 504 and broken connections, if the request is repeatable
    /// or was surely not processed. The last answer is given as it came, whatever its status. Redirects are followed to
    /// every path below the base address; see [`Upstream::send_within`] for fewer.
    pub async fn send(&self, request: UpstreamRequest) -> Result<UpstreamResponse, UpstreamError> {
        self.send_within(request, &|_, path| Ok(path.to_owned())).await
    }

    /// The same, following only the redirects that this decides for, of those to paths below the base address.
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
        let mut made = 1;
        loop {
            let result = self.send_signed(&request, &url, redirects).await;
            let asked = match &result {
                Ok(answer) => answer.retry_after,
                Err(_) => None,
            };
            let again = match &result {
                Ok(answer) => retry::is_retryable_status(answer.status, request.repeatable),
                Err(broken) => broken.is_retryable(request.repeatable),
            };
            let pause = match again && made < self.limits.tries {
                true => retry::retry_delay(&self.limits, made, asked, until),
                false => None,
            };
            let Some(pause) = pause else { return result.map_err(UpstreamError::from) };
            tracing::debug!(?pause, made, "asking the service again");
            tokio::time::sleep(pause).await;
            made += 1;
        }
    }

    /// One try. A credential from a source that is refused is replaced once: a 401 says that nothing was done.
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

    /// Sends a request, and takes what was sent as our credential out of the answer: some services repeat it.
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
            if !self.base.is_same_origin(&target) {
                return Err(AttemptError::Final(UpstreamError::Redirected));
            }
            let reads = matches!(method, Method::GET | Method::HEAD);
            match answer.status {
                _ if reads => {}
                StatusCode::SEE_OTHER => (method, body) = (Method::GET, None),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT if request.repeatable => {}
                // Whether it may be sent again, and with which verb, is for the caller to say.
                _ => return Ok(answer),
            }
            url = self.redirect_url(&method, &target, redirects).map_err(|reason| {
                let path: String = mask.mask_text(target.path().to_owned()).chars().take(200).collect();
                let to = format!("{method} {path}");
                tracing::warn!(to, reason, "a redirect is not followed");
                AttemptError::Final(UpstreamError::RedirectRefused { to, reason })
            })?;
        }
        Err(AttemptError::Final(UpstreamError::RedirectLoop))
    }

    /// The address that a redirect leads to, or why it is not followed.
    fn redirect_url(&self, method: &Method, target: &Url, redirects: Redirects<'_>) -> Result<Url, String> {
        let path = self.base.safe_path_below(target).ok_or(
            "it is not below the path of the base address; if the service has moved, the operator has to change the \
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
        let url = self.credential.sign(url.clone(), &mut headers, authorization)?;
        let mut sent = self.client.request(method.clone(), url).headers(headers);
        match body {
            Some(body) => sent = sent.body(body),
            // Some services want a length even of nothing.
            None if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
                sent = sent.header(header::CONTENT_LENGTH, "0");
            }
            None => {}
        }
        let response =
            sent.send().await.map_err(|error| AttemptError::from_reqwest(error, self.limits.connect))?;
        self.read(response).await
    }

    async fn read(&self, mut response: Response) -> Result<UpstreamResponse, AttemptError> {
        let limit = self.limits.body;
        let too_large = || AttemptError::Final(UpstreamError::TooLarge(limit));
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        // Pieces come unpacked, so what is counted is what is kept.
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
