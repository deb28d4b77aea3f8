//! [`TokenAuthorizer`]: the authorizer.

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

/// The longest time by which clocks may differ.
const MAX_LEEWAY: Duration = Duration::from_secs(300);

/// Takes access tokens: JWTs that a trusted issuer made for this server.
///
/// A token must be signed by a key of its issuer, be made for one of the audiences, and count now. Who it
/// is about becomes the [`Caller`]: keyed by issuer and subject, with the scopes of `scope` and `scp`, the
/// roles of `roles`, and all claims. It is an application if the token says so: `idtyp` is `app`, or there is no
/// `scope` and no `scp`, and `sub` is also the `client_id`, `azp`, `appid` or `oid`. Otherwise it is a user.
///
/// ```
/// use bindpost_mcp_http::Authorizer as _;
/// use bindpost_mcp_oauth::{Algorithm, Issuer, Tokens};
///
/// # fn main() -> Result<(), bindpost_mcp_oauth::ConfigError> {
/// let tokens = Tokens::builder()
///     .issuer(Issuer::new("https://issuer.example").algorithms([Algorithm::RS256]))
///     .issuer(Issuer::new("https://other.example/realms/shop"))
///     .audience("https://api.example/mcp")
///     .build()?;
/// // Clients are sent there for a token.
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

/// What time it is.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Seconds since 1970.
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

/// Says whose tokens are taken.
#[derive(Clone, Debug, Default)]
pub struct TokenAuthorizerBuilder {
    issuers: Vec<Issuer>,
    audiences: Vec<String>,
    authorization_servers: Option<Vec<String>>,
    leeway: Option<Duration>,
    clock: Clock,
    limits: OAuthLimits,
}

/// What was configured cannot be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no issuer.
    #[error("no issuer is trusted: add one with `issuer(Issuer::new(\"https://…\"))`")]
    NoIssuer,
    /// There is no audience, or an empty one.
    #[error("no audience: add what `aud` must be in tokens for this server with `audience(\"…\")`")]
    NoAudience,
    /// Something is wrong with an issuer.
    #[error("the issuer {issuer:?} cannot be used: {reason}")]
    Issuer {
        /// Its address.
        issuer: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Two issuers go by one name.
    #[error("{0:?} is the name of two issuers")]
    TwoIssuers(String),
    /// No algorithm for tokens has this name.
    #[error(
        "{0:?} is no algorithm to trust: take RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA"
    )]
    Algorithm(String),
    /// Clocks may not differ so much.
    #[error("a leeway of {0:?} is too long: at most 300 s")]
    Leeway(Duration),
    /// Nothing can be fetched over TLS here.
    #[error("issuers cannot be asked over TLS: {}; are the certificates of authorities installed?", causes(.0))]
    Tls(#[source] reqwest::Error),
}

impl TokenAuthorizer {
    /// Nobody's tokens; say whose.
    pub fn builder() -> TokenAuthorizerBuilder {
        TokenAuthorizerBuilder::default()
    }
}

impl TokenAuthorizerBuilder {
    /// One more issuer whose tokens are taken.
    pub fn issuer(mut self, issuer: Issuer) -> TokenAuthorizerBuilder {
        self.issuers.push(issuer);
        self
    }

    /// One more name of this server: `aud` must be, or list, one of them, letter by letter.
    pub fn audience(mut self, audience: impl Into<String>) -> TokenAuthorizerBuilder {
        self.audiences.push(audience.into());
        self
    }

    /// By how much clocks may differ; 60 s unless said otherwise, and at most 300 s.
    pub fn leeway(mut self, leeway: Duration) -> TokenAuthorizerBuilder {
        self.leeway = Some(leeway);
        self
    }

    /// Tells the time by this, instead of by the clock of the machine: for tests.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> TokenAuthorizerBuilder {
        self.clock = Clock(Arc::new(clock));
        self
    }

    /// Where clients get tokens, instead of the addresses of the issuers.
    pub fn authorization_servers(
        mut self,
        servers: impl IntoIterator<Item = impl Into<String>>,
    ) -> TokenAuthorizerBuilder {
        self.authorization_servers = Some(servers.into_iter().map(Into::into).collect());
        self
    }

    /// How often keys are fetched, and how much of anything is taken.
    pub fn limits(mut self, limits: OAuthLimits) -> TokenAuthorizerBuilder {
        self.limits = limits;
        self
    }

    /// Checks all of it. No issuer is asked yet.
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
    let url = Url::parse(keys).map_err(|_| wrong("the address of its keys is no URL"))?;
    if !is_permitted(&url) {
        return Err(wrong("its keys must come over https; http is for the loopback"));
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

    /// Not once an issuer has taken back the key that vouched for it. A token that has merely expired ends
    /// nothing: its caller comes back with the next one.
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
                // The machine's clock was set back since: that makes no token last longer. It stays here, to
                // be known again.
                Ok(()) if has_ended => return Err(TokenRefusal::Expired.into()),
                // The key it was verified with is still the issuer's.
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
            let refusal = TokenRefusal::Invalid("of no issuer we trust");
            log(None, token.key_id(), refusal);
            return Err(refusal.into());
        };
        let refuse = |refusal: TokenRefusal| {
            log(Some(issuer), token.key_id(), refusal);
            Denial::from(refusal)
        };
        if !issuer.algorithms.contains(&token.algorithm) {
            return Err(refuse(TokenRefusal::Invalid("signed by an algorithm its issuer does not use")));
        }
        if !issuer.accepts_type(token.typ()) {
            return Err(refuse(TokenRefusal::Invalid("no access token")));
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
                return Err(refuse(TokenRefusal::Invalid("signed by a key that is not for this")));
            }
        };
        if !token.is_signed_by(key) {
            return Err(refuse(TokenRefusal::Invalid("the signature is wrong")));
        }
        // From here on its claims are the issuer's.
        let window = ValidityPeriod::from_claims(&token.claims).map_err(refuse)?;
        let now = self.clock.now();
        window.check(now, self.leeway).map_err(refuse)?;
        if !claims::has_audience(&token.claims, &self.audiences) {
            return Err(refuse(TokenRefusal::Audience));
        }
        let nobody = || refuse(TokenRefusal::Invalid("about nobody"));
        let mut identity = claims::identity(issuer, token.claims.clone()).ok_or_else(nobody)?;
        if let Some(deadline) = window.deadline(now, Instant::now().into_std(), self.leeway) {
            identity = identity.expires_at(deadline);
        }
        let vouched = IssuerKeyId { issuer: number, key: key.fingerprint };
        Ok(VerifiedToken { caller: identity.into(), window, vouched })
    }
}

impl From<KeysUnavailable> for Denial {
    fn from(_: KeysUnavailable) -> Denial {
        Denial::unavailable("the token cannot be checked now")
    }
}

/// Says why a token was refused; neither the token nor its claims.
fn log(issuer: Option<&Issuer>, key: Option<&str>, refusal: TokenRefusal) {
    // The client chose the name of the key: it is cut, and its control characters are escaped.
    let key = key.map(|key| key.chars().take(64).collect::<String>());
    let issuer = issuer.map(|issuer| issuer.url.as_str());
    debug!(issuer, ?key, reason = refusal.reason(), "refused a token");
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
    fn what_is_missing_is_told_at_start() {
        let issuer = || Issuer::new("https://issuer.example");
        let audience = "https://api.example/mcp";
        let two = || Issuer::new("https://metadata.example").accepts_issuer("https://issuer.example");
        for (builder, part) in [
            (TokenAuthorizer::builder().audience(audience), "no issuer"),
            (TokenAuthorizer::builder().issuer(issuer()), "no audience"),
            (TokenAuthorizer::builder().issuer(issuer()).audience(""), "no audience"),
            (TokenAuthorizer::builder().issuer(issuer()).issuer(two()).audience(audience), "two issuers"),
            (TokenAuthorizer::builder().issuer(issuer().jwks_uri("keys")).audience(audience), "no URL"),
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
    fn the_authorization_servers_can_be_said() {
        let builder = TokenAuthorizer::builder().issuer(Issuer::new("http://127.0.0.1:1/x")).audience("a");
        let tokens = builder.clone().build().unwrap();
        assert_eq!(tokens.authorization_servers(), ["http://127.0.0.1:1/x"]);
        let tokens = builder.authorization_servers(["https://login.example"]).build().unwrap();
        assert_eq!(tokens.authorization_servers(), ["https://login.example"]);
    }
}
