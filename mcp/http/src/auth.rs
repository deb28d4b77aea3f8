//! [`Authorizer`]: who sends a request. [`Denial`]: why nobody does. [`Auth`]: what follows from that.
//!
//! Which message demands what is the server's to say
//! ([`Server::demand`](bindpost_mcp_server::Server::demand)); `gate.rs` compares the two, and `refusal.rs`
//! tells the client.

pub(crate) mod api_keys;
pub(crate) mod either;
pub(crate) mod gate;
pub(crate) mod key_file;
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
pub const UNAUTHORIZED: i64 = -32001;

/// Establishes who sends a request, with everything the request says at hand.
///
/// It is asked once for every HTTP request, before anything of the message is looked at. Whether the
/// caller may do what it wants is decided later, from its scopes and roles.
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
    /// Who sends this request.
    fn authorize(&self, request: &HttpRequest) -> impl Future<Output = Result<Caller, Denial>> + Send;

    /// How to ask for credentials: the scheme of a challenge and its parameters, like
    /// `ApiKey header="x-api-key"`. The realm is added. `None` stands for `Bearer`.
    fn challenge(&self) -> Option<String> {
        None
    }

    /// All ways to ask for credentials, one header each. Only combined authorizers have several.
    fn challenges(&self) -> Vec<Option<String>> {
        vec![self.challenge()]
    }

    /// The headers it reads besides `Authorization`: web pages of allowed origins may send them.
    fn headers(&self) -> Vec<String> {
        Vec::new()
    }

    /// The authorization servers whose tokens are taken: they are named in the metadata of the resource,
    /// which is served if there is at least one.
    fn authorization_servers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether this caller would still be known: now and then, open sessions and streams of one that is
    /// not are ended. One that was never this authorizer's counts as known.
    fn knows(&self, _caller: &Caller) -> bool {
        true
    }

    /// What is wrong with how it was set up: nothing is served then.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Asks another one too: the first that knows somebody decides.
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

/// Who may come in, and what strangers are told.
///
/// Sessions, streams, tasks and states belong to the caller that made them. A session that nobody in
/// particular has opened becomes that of the first known caller that names it, and stays it: clients connect
/// first and get a token when a call asks for one. A pipe of HTTP+SSE stays whose it was; its client has to
/// open it again.
///
/// ```
/// use bindpost_mcp_http::{ApiKeys, Auth, Opening, Settings};
/// use bindpost_mcp_server::Listing;
///
/// let keys = ApiKeys::new().key("ops", "a long secret").key_with_scopes("bot", "another", ["orders.read"]);
/// let settings = Settings {
///     auth: Some(Auth::new(keys).opening(Opening::Closed).listing(Listing::Permitted)),
///     ..Settings::default()
/// };
/// # let _ = settings;
/// ```
#[derive(Clone, Debug)]
pub struct Auth {
    /// Establishes who sends a request.
    pub authorizer: AnyAuthorizer,
    /// Whether strangers may open a conversation.
    pub opening: AnonymousAccess,
    /// What lists show.
    pub listing: ListVisibility,
    /// The public address of the MCP endpoint, like `https://api.example.com/mcp`: what clients ask tokens
    /// for. Without it, the address is made up from the Host header, if that names a host which is
    /// listed by its name or is of the loopback.
    pub resource: Option<String>,
    /// The scopes that are named in the metadata; those of all entries unless it says otherwise.
    pub scopes_supported: Option<Vec<String>>,
    /// What a challenge says it is for: `mcp`.
    pub realm: String,
    /// How long the authorizer may take. 10 s, then 503.
    pub timeout: Duration,
}

/// Whether callers that nobody knows may open a conversation, keep one going and see lists. Calls
/// are for those whom their entry permits, whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnonymousAccess {
    /// While at least one entry is for anybody. Otherwise they are asked for credentials at once: a client
    /// that connected once may never ask again.
    #[default]
    Auto,
    /// Always.
    Open,
    /// Never.
    Closed,
}

impl Auth {
    /// Callers are those whom this authorizer knows.
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

    /// Whether strangers may open a conversation.
    pub fn opening(mut self, opening: AnonymousAccess) -> Auth {
        self.opening = opening;
        self
    }

    /// What lists show.
    pub fn listing(mut self, listing: ListVisibility) -> Auth {
        self.listing = listing;
        self
    }

    /// The public address of the MCP endpoint.
    pub fn resource(mut self, resource: impl Into<String>) -> Auth {
        self.resource = Some(resource.into());
        self
    }

    /// The scopes that are named in the metadata.
    pub fn scopes_supported(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Auth {
        self.scopes_supported = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// What a challenge says it is for.
    pub fn realm(mut self, realm: impl Into<String>) -> Auth {
        self.realm = realm.into();
        self
    }

    /// How long the authorizer may take.
    pub fn timeout(mut self, timeout: Duration) -> Auth {
        self.timeout = timeout;
        self
    }
}

/// Why nobody is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub(crate) kind: DenialKind,
    pub(crate) text: String,
    pub(crate) challenge: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialKind {
    /// No credentials.
    Missing,
    /// Credentials that do not count.
    Invalid,
    /// What should be credentials is not even that.
    Malformed,
    /// Whoever could tell does not answer.
    Unavailable,
    /// The authorizer broke.
    Failed,
}

impl Denial {
    /// There are no credentials.
    pub fn missing() -> Denial {
        Denial::new(DenialKind::Missing, "authentication is required")
    }

    /// There are credentials, but they do not count. Say what is wrong with them (`the token has
    /// expired`), never how near they were.
    pub fn invalid(text: impl Into<String>) -> Denial {
        Denial::new(DenialKind::Invalid, text)
    }

    /// The request is broken where credentials should be; it is answered with 400.
    pub fn malformed(text: impl Into<String>) -> Denial {
        Denial::new(DenialKind::Malformed, text)
    }

    /// Nobody can tell now whether the credentials count; it is answered with 503.
    pub fn unavailable(text: impl Into<String>) -> Denial {
        Denial::new(DenialKind::Unavailable, text)
    }

    /// The value of `WWW-Authenticate`, instead of the one that is made up from what is known.
    pub fn with_challenge(mut self, challenge: impl Into<String>) -> Denial {
        self.challenge = Some(challenge.into());
        self
    }

    /// The authorizer broke; it is answered with 500.
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

/// A request whose sender is being established.
pub(crate) type AuthorizeFuture = Pin<Box<dyn Future<Output = Result<Caller, Denial>> + Send>>;

trait ErasedAuthorizer: Debug + Send + Sync {
    /// Owns what it needs, so that it can be kept with the request.
    fn authorize_owned(self: Arc<Self>, request: Arc<HttpRequest>) -> AuthorizeFuture;
    fn authorize_boxed<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Caller, Denial>> + Send + 'a>>;
    fn challenges(&self) -> Vec<Option<String>>;
    fn headers(&self) -> Vec<String>;
    fn authorization_servers(&self) -> Vec<String>;
    fn knows(&self, caller: &Caller) -> bool;
    fn problem(&self) -> Option<String>;
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
    fn knows(&self, caller: &Caller) -> bool {
        Authorizer::knows(self, caller)
    }
    fn problem(&self) -> Option<String> {
        Authorizer::problem(self)
    }
}

impl AnyAuthorizer {
    /// This authorizer.
    pub fn new(authorizer: impl Authorizer) -> AnyAuthorizer {
        AnyAuthorizer(Arc::new(authorizer))
    }

    /// Starts to establish who sends a request.
    pub(crate) fn authorize_owned(&self, request: &Arc<HttpRequest>) -> AuthorizeFuture {
        self.0.clone().authorize_owned(request.clone())
    }
}

/// So that authorizers chosen at run time can be combined.
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
    fn knows(&self, caller: &Caller) -> bool {
        self.0.knows(caller)
    }
    fn problem(&self) -> Option<String> {
        self.0.problem()
    }
}
