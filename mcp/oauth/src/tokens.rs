//! [`TokenAuthorizer`]: authenticates callers by access tokens.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bindpost_mcp_http::{Authorizer, Denial};
use bindpost_mcp_server::{Caller, HttpRequest};
use reqwest::Url;
use tokio::time::Instant;
use tracing::debug;

use crate::bearer;
use crate::callers::{IssuerKeyId, RecentCallers};
use crate::claims::{self, ValidityPeriod, text};
use crate::fetch::{HttpKeySource, causes, client, is_permitted};
use crate::issuer::{Issuer, tenant};
use crate::jwks::{KeyCache, KeysUnavailable};
use crate::key::{KeyMatch, KeyQuery};
use crate::limits::OAuthLimits;
use crate::token::{Token, TokenRefusal};
use crate::verified::{VerifiedToken, VerifiedTokens, digest};

/// The maximum leeway.
const MAX_LEEWAY: Duration = Duration::from_secs(300);

/// Authenticates callers by access tokens: JWTs that a trusted issuer issued for this server.
///
/// A token must be signed by a key of its issuer, have one of the audiences, and be valid now. The
/// [`Caller`] is identified by issuer and subject. It has the scopes in `scope` and `scp`, the roles in
/// `roles`, and all claims. It is an application if `idtyp` is `app`, or if there is neither `scope`
/// nor `scp` and `sub` equals `client_id`, `azp`, `appid` or `oid`. Otherwise it is a user.
///
/// ```
/// use bindpost_mcp_http::Authorizer as _;
/// use bindpost_mcp_oauth::{Algorithm, Issuer, TokenAuthorizer};
///
/// # fn main() -> Result<(), bindpost_mcp_oauth::ConfigError> {
/// let tokens = TokenAuthorizer::builder()
///     .issuer(Issuer::new("https://issuer.example").algorithms([Algorithm::RS256]))
///     .issuer(Issuer::new("https://other.example/realms/shop"))
///     .audience("https://api.example/mcp")
///     .build()?;
/// // Clients get their tokens there.
/// assert_eq!(tokens.authorization_servers(), ["https://issuer.example", "https://other.example/realms/shop"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TokenAuthorizer(Arc<TokenAuthorizerState>);

struct TokenAuthorizerState {
    issuers: Vec<(Issuer, KeyCache)>,
    audiences: Vec<String>,
    authorization_servers: Vec<String>,
    leeway: f64,
    clock: Clock,
    max_token: usize,
    verified: VerifiedTokens,
    callers: RecentCallers,
}

/// A clock, which tests can replace.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Returns the seconds since 1970.
    fn now(&self) -> f64 {
        (self.0)().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock(Arc::new(SystemTime::now))
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// Builds a [`TokenAuthorizer`].
#[derive(Clone, Debug, Default)]
pub struct TokenAuthorizerBuilder {
    issuers: Vec<Issuer>,
    audiences: Vec<String>,
    authorization_servers: Option<Vec<String>>,
    leeway: Option<Duration>,
    clock: Clock,
    limits: OAuthLimits,
}

/// A mistake in the configuration of a [`TokenAuthorizer`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No issuer is configured.
    #[error("no issuer is trusted: add one with `issuer(Issuer::new(\"https://…\"))`")]
    NoIssuer,
    /// No audience is configured, or an empty one.
    #[error("no audience: add the `aud` of tokens for this server with `audience(\"…\")`")]
    NoAudience,
    /// The configuration of an issuer is invalid.
    #[error("the issuer {issuer:?} cannot be used: {reason}")]
    Issuer {
        /// The URL of the issuer.
        issuer: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two issuers accept the same `iss`.
    #[error("{0:?} is the name of two issuers")]
    TwoIssuers(String),
    /// The signature algorithm is not supported.
    #[error(
        "unsupported algorithm {0:?}: use RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA"
    )]
    Algorithm(String),
    /// The leeway is too long.
    #[error("a leeway of {0:?} is too long: it can be at most 300 s")]
    Leeway(Duration),
    /// The TLS client could not be created.
    #[error("the TLS client for issuers cannot be created: {}; are CA certificates installed?", causes(.0))]
    Tls(#[source] reqwest::Error),
}

impl TokenAuthorizer {
    /// Creates a builder without issuers and audiences.
    pub fn builder() -> TokenAuthorizerBuilder {
        TokenAuthorizerBuilder::default()
    }
}

impl TokenAuthorizerBuilder {
    /// Adds an issuer whose tokens are accepted.
    pub fn issuer(mut self, issuer: Issuer) -> TokenAuthorizerBuilder {
        self.issuers.push(issuer);
        self
    }

    /// Adds an audience of this server. The `aud` of a token must be or contain one of them,
    /// compared exactly.
    pub fn audience(mut self, audience: impl Into<String>) -> TokenAuthorizerBuilder {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the tolerance for differences between clocks. Default: 60 s. Maximum: 300 s.
    pub fn leeway(mut self, leeway: Duration) -> TokenAuthorizerBuilder {
        self.leeway = Some(leeway);
        self
    }

    /// Replaces the system clock, for tests.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> TokenAuthorizerBuilder {
        self.clock = Clock(Arc::new(clock));
        self
    }

    /// Sets the authorization servers at which clients get tokens. Default: the URLs of the issuers.
    pub fn authorization_servers(
        mut self,
        servers: impl IntoIterator<Item = impl Into<String>>,
    ) -> TokenAuthorizerBuilder {
        self.authorization_servers = Some(servers.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the limits on fetching keys and on sizes.
    pub fn limits(mut self, limits: OAuthLimits) -> TokenAuthorizerBuilder {
        self.limits = limits;
        self
    }

    /// Validates the configuration. No key is fetched yet.
    pub fn build(self) -> Result<TokenAuthorizer, ConfigError> {
        if self.issuers.is_empty() {
            return Err(ConfigError::NoIssuer);
        }
        if self.audiences.is_empty() || self.audiences.iter().any(String::is_empty) {
            return Err(ConfigError::NoAudience);
        }
        let leeway = self.leeway.unwrap_or(Duration::from_secs(60));
        if leeway > MAX_LEEWAY {
            return Err(ConfigError::Leeway(leeway));
        }
        let mut names = HashSet::new();
        for name in self.issuers.iter().flat_map(Issuer::accepted) {
            if !names.insert(name) {
                return Err(ConfigError::TwoIssuers(name.clone()));
            }
        }
        let mut clients = [None, None];
        let mut issuers = Vec::new();
        for issuer in &self.issuers {
            let url = issuer.validated_url()?;
            let jwks_uri = issuer.jwks_uri.as_deref().map(|keys| checked_keys(issuer, keys)).transpose()?;
            let plain = jwks_uri.as_ref().unwrap_or(&url).scheme() == "http";
            let slot = &mut clients[usize::from(plain)];
            let client = match slot {
                Some(client) => client,
                None => slot.insert(client(plain).map_err(ConfigError::Tls)?),
            };
            let source = HttpKeySource::new(client.clone(), issuer.clone(), url, jwks_uri, &self.limits);
            issuers.push((issuer.clone(), KeyCache::new(source, self.limits.clone())));
        }
        let servers = self.authorization_servers;
        Ok(TokenAuthorizer(Arc::new(TokenAuthorizerState {
            authorization_servers: servers
                .unwrap_or_else(|| self.issuers.iter().map(|issuer| issuer.url.clone()).collect()),
            issuers,
            audiences: self.audiences,
            leeway: leeway.as_secs_f64(),
            clock: self.clock,
            max_token: self.limits.max_token,
            verified: VerifiedTokens::new(self.limits.verified),
            callers: RecentCallers::default(),
        })))
    }
}

fn checked_keys(issuer: &Issuer, keys: &str) -> Result<Url, ConfigError> {
    let wrong = |reason| ConfigError::Issuer { issuer: issuer.url.clone(), reason };
    let url = Url::parse(keys).map_err(|_| wrong("the address of its keys is not a valid URL"))?;
    if !is_permitted(&url) {
        return Err(wrong("its keys must use https; http is allowed only on the loopback interface"));
    }
    Ok(url)
}

impl Authorizer for TokenAuthorizer {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        let token = bearer::bearer_token(request.headers())?;
        self.0.authorize_token(token).await
    }

    fn authorization_servers(&self) -> Vec<String> {
        self.0.authorization_servers.clone()
    }

    /// Returns `false` if the issuer has revoked the key that signed the token. An expired token ends
    /// no session, because its caller continues with the next token.
    fn knows(&self, caller: &Caller) -> bool {
        let Some(vouched) = caller.id().and_then(|id| self.0.callers.find(id)) else { return true };
        let keys = self.0.issuers.get(vouched.issuer).and_then(|(_, keys)| keys.cached());
        keys.is_none_or(|keys| keys.contains(&vouched.key))
    }
}

impl TokenAuthorizerState {
    async fn authorize_token(&self, token: &str) -> Result<Caller, Denial> {
        if token.len() > self.max_token {
            let refusal = TokenRefusal::Invalid("too long");
            log(None, None, refusal);
            return Err(refusal.into());
        }
        let digest = digest(token);
        if let Some(verified) = self.verified.get(&digest)
            && let Some((_, keys)) = self.issuers.get(verified.vouched.issuer)
        {
            let asked = Instant::now();
            let keys = keys.current(asked).await?;
            let has_ended = verified.caller.expires_at().is_some_and(|end| end <= asked.into_std());
            match verified.window.check(self.clock.now(), self.leeway) {
                // The system clock was set back, which must not extend the lifetime of a token. The
                // token stays cached, so that later requests with it are rejected too.
                Ok(()) if has_ended => return Err(TokenRefusal::Expired.into()),
                // The issuer still has the key that signed the token.
                Ok(()) if keys.set.contains(&verified.vouched.key) => return Ok(verified.caller),
                Ok(()) => self.verified.remove(&digest),
                Err(refusal) => {
                    self.verified.remove(&digest);
                    return Err(refusal.into());
                }
            }
        }
        let verified = self.verify(token).await?;
        let caller = verified.caller.clone();
        if let Some(id) = caller.id() {
            self.callers.record(id, verified.vouched);
        }
        self.verified.put(digest, verified);
        Ok(caller)
    }

    async fn verify(&self, token: &str) -> Result<VerifiedToken, Denial> {
        let asked = Instant::now();
        let token = Token::decode(token).inspect_err(|refusal| log(None, None, *refusal))?;
        let accepting = |(_, (issuer, _)): &(usize, &(Issuer, KeyCache))| issuer.accepts(&token.claims);
        let Some((number, (issuer, keys))) = self.issuers.iter().enumerate().find(accepting) else {
            let refusal = TokenRefusal::Invalid("issued by no trusted issuer");
            log(None, token.key_id(), refusal);
            return Err(refusal.into());
        };
        let refuse = |refusal: TokenRefusal| {
            log(Some(issuer), token.key_id(), refusal);
            Denial::from(refusal)
        };
        if !issuer.algorithms.contains(&token.algorithm) {
            return Err(refuse(TokenRefusal::Invalid("signed with an algorithm that is not allowed")));
        }
        if !issuer.accepts_type(token.typ()) {
            return Err(refuse(TokenRefusal::Invalid("not an access token")));
        }
        let wanted = KeyQuery {
            id: token.key_id(),
            algorithm: token.algorithm,
            issuer: text(&token.claims, "iss").unwrap_or_default(),
            tenant: tenant(&token.claims),
        };
        let mut current = keys.current(asked).await?;
        if let KeyMatch::Unknown = current.set.find(&wanted) {
            current = keys.refresh_for_unknown_key(current, asked).await;
        }
        let key = match current.set.find(&wanted) {
            KeyMatch::Key(key) => key,
            KeyMatch::Unknown => return Err(refuse(TokenRefusal::Invalid("signed by an unknown key"))),
            KeyMatch::Unfit => {
                return Err(refuse(TokenRefusal::Invalid("signed by an unsuitable key")));
            }
        };
        if !token.is_signed_by(key) {
            return Err(refuse(TokenRefusal::Invalid("the signature is invalid")));
        }
        // The signature is valid, so the claims can be trusted from here on.
        let window = ValidityPeriod::from_claims(&token.claims).map_err(refuse)?;
        let now = self.clock.now();
        window.check(now, self.leeway).map_err(refuse)?;
        if !claims::has_audience(&token.claims, &self.audiences) {
            return Err(refuse(TokenRefusal::Audience));
        }
        let unidentified = || refuse(TokenRefusal::Invalid("the claims identify no caller"));
        let mut identity = claims::identity(issuer, token.claims.clone()).ok_or_else(unidentified)?;
        if let Some(deadline) = window.deadline(now, Instant::now().into_std(), self.leeway) {
            identity = identity.expires_at(deadline);
        }
        let vouched = IssuerKeyId { issuer: number, key: key.fingerprint };
        Ok(VerifiedToken { caller: identity.into(), window, vouched })
    }
}

impl From<KeysUnavailable> for Denial {
    fn from(_: KeysUnavailable) -> Denial {
        Denial::unavailable("the token cannot be verified now; try again later")
    }
}

/// Logs why a token was rejected, without the token or its claims.
fn log(issuer: Option<&Issuer>, key: Option<&str>, refusal: TokenRefusal) {
    // The client chose the key id, so it is truncated and its control characters are escaped.
    let key = key.map(|key| key.chars().take(64).collect::<String>());
    let issuer = issuer.map(|issuer| issuer.url.as_str());
    debug!(issuer, ?key, reason = refusal.reason(), "rejected a token");
}

impl std::fmt::Debug for TokenAuthorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<&str> = self.0.issuers.iter().map(|(issuer, _)| issuer.url.as_str()).collect();
        f.debug_struct("TokenAuthorizer")
            .field("issuers", &issuers)
            .field("audiences", &self.0.audiences)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_an_invalid_configuration() {
        let issuer = || Issuer::new("https://issuer.example");
        let audience = "https://api.example/mcp";
        let two = || Issuer::new("https://metadata.example").accepts_issuer("https://issuer.example");
        for (builder, part) in [
            (TokenAuthorizer::builder().audience(audience), "no issuer"),
            (TokenAuthorizer::builder().issuer(issuer()), "no audience"),
            (TokenAuthorizer::builder().issuer(issuer()).audience(""), "no audience"),
            (TokenAuthorizer::builder().issuer(issuer()).issuer(two()).audience(audience), "two issuers"),
            (TokenAuthorizer::builder().issuer(issuer().jwks_uri("keys")).audience(audience), "valid URL"),
            (
                TokenAuthorizer::builder().issuer(issuer().jwks_uri("http://x.example")).audience(audience),
                "https",
            ),
            (TokenAuthorizer::builder().issuer(Issuer::new("http://x.example")).audience(audience), "https"),
            (
                TokenAuthorizer::builder()
                    .issuer(issuer())
                    .audience(audience)
                    .leeway(Duration::from_secs(301)),
                "at most 300 s",
            ),
        ] {
            let text = builder.build().unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_authorization_servers_can_be_set() {
        let builder = TokenAuthorizer::builder().issuer(Issuer::new("http://127.0.0.1:1/x")).audience("a");
        let tokens = builder.clone().build().unwrap();
        assert_eq!(tokens.authorization_servers(), ["http://127.0.0.1:1/x"]);
        let tokens = builder.authorization_servers(["https://login.example"]).build().unwrap();
        assert_eq!(tokens.authorization_servers(), ["https://login.example"]);
    }
}
