//! Authentication and authorization: [`Authorizer`] identifies the caller, [`Denial`] is the reason why
//! it could not, and [`Auth`] holds the settings.
//!
//! The server decides which access a message requires, and compares it with the caller's rights
//! ([`Server::refuse_body`](bindpost_mcp_server::Server::refuse_body)). `gate.rs` calls it, and `refusal.rs`
//! builds the error response.

pub(crate) mod api_keys;
pub(crate) mod either;
pub(crate) mod gate;
pub(crate) mod identity;
pub(crate) mod key_file;
pub(crate) mod key_line;
pub(crate) mod metadata;
pub(crate) mod refusal;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_server::{Caller, HttpRequest, ListVisibility};

use self::either::EitherAuthorizer;

/// The code of the JSON-RPC error in a 401 or 403.
pub const UNAUTHORIZED: i64 = bindpost_mcp_server::transport::UNAUTHORIZED;

/// Authenticates callers: identifies the caller of an HTTP request from its head.
///
/// It runs once for every HTTP request, before the message is read. Authorization happens later, based
/// on the caller's scopes and roles.
///
/// ```
/// use bindpost_mcp_http::{Authorizer, Denial};
/// use bindpost_mcp_server::{Caller, HttpRequest, Identity};
///
/// /// Trusts the proxy in front, which names the user in a header.
/// #[derive(Debug)]
/// struct Proxy;
///
/// impl Authorizer for Proxy {
///     async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
///         match request.header("x-user").filter(|user| !user.is_empty()) {
///             Some(user) => Ok(Identity::new(user).scope("orders.read").into()),
///             None => Err(Denial::missing()),
///         }
///     }
/// }
/// ```
pub trait Authorizer: Debug + Send + Sync + 'static {
    /// Identifies the caller of this request.
    fn authorize(&self, request: &HttpRequest) -> impl Future<Output = Result<Caller, Denial>> + Send;

    /// Returns the challenge of a 401 response: the authentication scheme and its parameters, like
    /// `ApiKey header="x-api-key"`. The realm is added. `None` means `Bearer`.
    fn challenge(&self) -> Option<String> {
        None
    }

    /// Returns all challenges of a 401 response. Each gets a `WWW-Authenticate` header. Only combined
    /// authorizers have several.
    fn challenges(&self) -> Vec<Option<String>> {
        vec![self.challenge()]
    }

    /// Returns the request headers it reads besides `Authorization`. Web pages of allowed origins may
    /// send them.
    fn headers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the authorization servers whose tokens are accepted. They are listed in the protected
    /// resource metadata, which is served if there is at least one.
    fn authorization_servers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the headers it reads that only a platform in front of the server may set, each as the
    /// beginning of its name, in lower case. The endpoint removes them from requests unless
    /// [`Settings::trust_platform_identity`](crate::Settings::trust_platform_identity) is set.
    fn identity_headers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether the credentials of this caller are still valid. The endpoint asks this
    /// periodically and ends the open sessions and streams of callers for which it is `false`. Return
    /// `true` for callers of other authorizers.
    fn knows(&self, _caller: &Caller) -> bool {
        true
    }

    /// Returns a mistake in the authorizer's configuration. The server then does not start.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Returns what is suspicious in the authorizer's configuration, for the log. `needed` are the scopes that the
    /// entries of the server require.
    fn warnings(&self, _needed: &[String]) -> Vec<String> {
        Vec::new()
    }

    /// Combines this authorizer with another one. The first that identifies the caller decides.
    ///
    /// ```
    /// use bindpost_mcp_http::{ApiKeys, Auth, Authorizer as _};
    ///
    /// let people = ApiKeys::new().key("alice", "not so secret");
    /// let machines = ApiKeys::new().header("x-machine-key").key("robot", "hardly secret");
    /// let auth = Auth::new(people.or(machines));
    /// # let _ = auth;
    /// ```
    fn or<B: Authorizer>(self, other: B) -> EitherAuthorizer<Self, B>
    where
        Self: Sized,
    {
        EitherAuthorizer::new(self, other)
    }
}

/// Settings of authentication and authorization.
///
/// Sessions, streams, tasks and states belong to the caller that created them. An unauthenticated
/// session is transferred to the first authenticated caller that uses its id, and stays with that
/// caller: clients connect first and get a token when a call requires one. A stream of HTTP+SSE is
/// never transferred. Its client has to open a new one.
///
/// ```
/// use bindpost_mcp_http::{AnonymousAccess, ApiKeys, Auth, Settings};
/// use bindpost_mcp_server::ListVisibility;
///
/// let keys = ApiKeys::new().key("ops", "a long secret").key_with_scopes("bot", "another", ["orders.read"]);
/// let auth = Auth::new(keys).opening(AnonymousAccess::Closed).listing(ListVisibility::Permitted);
/// let settings = Settings { auth: Some(auth), ..Settings::default() };
/// # let _ = settings;
/// ```
#[derive(Clone, Debug)]
pub struct Auth {
    /// Identifies the caller of a request.
    pub authorizer: AnyAuthorizer,
    /// Whether unauthenticated callers may connect.
    pub opening: AnonymousAccess,
    /// Which entries lists show.
    pub listing: ListVisibility,
    /// The public address of the MCP endpoint, like `https://api.example.com/mcp`. Clients request
    /// tokens for it. By default the address is built from the `Host` header, if that names a listed
    /// host or one of the loopback interface.
    pub resource: Option<String>,
    /// The scopes in the protected resource metadata. `None`, the default, means the scopes of all entries.
    pub scopes_supported: Option<Vec<String>>,
    /// The realm of a challenge. Default: `mcp`.
    pub realm: String,
    /// The timeout of the authorizer, after which the response is 503. Default: 10 s.
    pub timeout: Duration,
}

/// Whether unauthenticated callers may connect, stay connected and list entries.
///
/// This does not affect calls. Each entry decides which callers may use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnonymousAccess {
    /// They may, while at least one entry allows unauthenticated callers. Otherwise the first request
    /// gets a 401: a client that has connected without credentials may never ask its user for them.
    #[default]
    Auto,
    /// They may always connect.
    Open,
    /// They may never connect.
    Closed,
}

impl Auth {
    /// Authenticates callers with this authorizer, with the defaults of all other settings.
    pub fn new(authorizer: impl Authorizer) -> Auth {
        Auth {
            authorizer: AnyAuthorizer::new(authorizer),
            opening: AnonymousAccess::Auto,
            listing: ListVisibility::All,
            resource: None,
            scopes_supported: None,
            realm: "mcp".to_owned(),
            timeout: Duration::from_secs(10),
        }
    }

    /// Sets whether unauthenticated callers may connect.
    pub fn opening(mut self, opening: AnonymousAccess) -> Auth {
        self.opening = opening;
        self
    }

    /// Sets which entries lists show.
    pub fn listing(mut self, listing: ListVisibility) -> Auth {
        self.listing = listing;
        self
    }

    /// Sets the public address of the MCP endpoint.
    pub fn resource(mut self, resource: impl Into<String>) -> Auth {
        self.resource = Some(resource.into());
        self
    }

    /// Sets the scopes in the protected resource metadata.
    pub fn scopes_supported(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Auth {
        self.scopes_supported = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the realm of a challenge.
    pub fn realm(mut self, realm: impl Into<String>) -> Auth {
        self.realm = realm.into();
        self
    }

    /// Sets the timeout of the authorizer.
    pub fn timeout(mut self, timeout: Duration) -> Auth {
        self.timeout = timeout;
        self
    }
}

/// The reason why a caller is not authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub(crate) kind: DenialKind,
    pub(crate) text: String,
    pub(crate) challenge: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialKind {
    /// The request has no credentials.
    Missing,
    /// The credentials are invalid.
    Invalid,
    /// The credentials are malformed.
    Malformed,
    /// The credentials cannot be verified now.
    Unavailable,
    /// The authorizer failed.
    Failed,
}

impl Denial {
    /// The request has no credentials. The response is 401.
    pub fn missing() -> Denial {
        Denial::new(DenialKind::Missing, "authentication is required")
    }

    /// The credentials are invalid. The response is 401. The text says what is wrong with them (`the
    /// token has expired`), but never how close they were to valid ones.
    pub fn invalid(text: impl Into<String>) -> Denial {
        Denial::new(DenialKind::Invalid, text)
    }

    /// The credentials are malformed. The response is 400.
    pub fn malformed(text: impl Into<String>) -> Denial {
        Denial::new(DenialKind::Malformed, text)
    }

    /// The credentials cannot be verified now. The response is 503.
    pub fn unavailable(text: impl Into<String>) -> Denial {
        Denial::new(DenialKind::Unavailable, text)
    }

    /// Sets the value of the `WWW-Authenticate` header. By default it is built from the
    /// authorizer's challenges.
    pub fn with_challenge(mut self, challenge: impl Into<String>) -> Denial {
        self.challenge = Some(challenge.into());
        self
    }

    /// The authorizer failed. The response is 500.
    pub(crate) fn failed() -> Denial {
        Denial::new(DenialKind::Failed, "internal error: the authorizer failed")
    }

    fn new(kind: DenialKind, text: impl Into<String>) -> Denial {
        Denial { kind, text: text.into(), challenge: None }
    }
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Denial {}

/// An [`Authorizer`] of any type.
#[derive(Clone, Debug)]
pub struct AnyAuthorizer(Arc<dyn ErasedAuthorizer>);

/// The result of [`Authorizer::authorize`], not yet complete.
pub(crate) type AuthorizeFuture = Pin<Box<dyn Future<Output = Result<Caller, Denial>> + Send>>;

trait ErasedAuthorizer: Debug + Send + Sync {
    /// Returns a future that borrows nothing, so that it can be stored with the request.
    fn authorize_owned(self: Arc<Self>, request: Arc<HttpRequest>) -> AuthorizeFuture;
    fn authorize_boxed<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Caller, Denial>> + Send + 'a>>;
    fn challenges(&self) -> Vec<Option<String>>;
    fn headers(&self) -> Vec<String>;
    fn authorization_servers(&self) -> Vec<String>;
    fn identity_headers(&self) -> Vec<String>;
    fn knows(&self, caller: &Caller) -> bool;
    fn problem(&self) -> Option<String>;
    fn warnings(&self, needed: &[String]) -> Vec<String>;
}

impl<A: Authorizer> ErasedAuthorizer for A {
    fn authorize_owned(self: Arc<Self>, request: Arc<HttpRequest>) -> AuthorizeFuture {
        Box::pin(async move { Authorizer::authorize(&*self, &request).await })
    }
    fn authorize_boxed<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Caller, Denial>> + Send + 'a>> {
        Box::pin(Authorizer::authorize(self, request))
    }
    fn challenges(&self) -> Vec<Option<String>> {
        Authorizer::challenges(self)
    }
    fn headers(&self) -> Vec<String> {
        Authorizer::headers(self)
    }
    fn authorization_servers(&self) -> Vec<String> {
        Authorizer::authorization_servers(self)
    }
    fn identity_headers(&self) -> Vec<String> {
        Authorizer::identity_headers(self)
    }
    fn knows(&self, caller: &Caller) -> bool {
        Authorizer::knows(self, caller)
    }
    fn problem(&self) -> Option<String> {
        Authorizer::problem(self)
    }
    fn warnings(&self, needed: &[String]) -> Vec<String> {
        Authorizer::warnings(self, needed)
    }
}

impl AnyAuthorizer {
    /// Erases the type of an authorizer.
    pub fn new(authorizer: impl Authorizer) -> AnyAuthorizer {
        AnyAuthorizer(Arc::new(authorizer))
    }

    /// Starts to identify the caller of a request.
    pub(crate) fn authorize_owned(&self, request: &Arc<HttpRequest>) -> AuthorizeFuture {
        self.0.clone().authorize_owned(request.clone())
    }
}

/// Authorizers that are chosen at run time can be combined, because this is an authorizer too.
impl Authorizer for AnyAuthorizer {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        self.0.authorize_boxed(request).await
    }
    fn challenge(&self) -> Option<String> {
        self.0.challenges().into_iter().next().flatten()
    }
    fn challenges(&self) -> Vec<Option<String>> {
        self.0.challenges()
    }
    fn headers(&self) -> Vec<String> {
        self.0.headers()
    }
    fn authorization_servers(&self) -> Vec<String> {
        self.0.authorization_servers()
    }
    fn identity_headers(&self) -> Vec<String> {
        self.0.identity_headers()
    }
    fn knows(&self, caller: &Caller) -> bool {
        self.0.knows(caller)
    }
    fn problem(&self) -> Option<String> {
        self.0.problem()
    }
    fn warnings(&self, needed: &[String]) -> Vec<String> {
        self.0.warnings(needed)
    }
}
