//! Access tokens for one of Azure's services. A token is fetched once for all waiting callers and cached
//! until shortly before it expires.

mod credential;
mod offered;
mod token_source;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bindpost_net_upstream::{client_builder, error_chain};
use reqwest::{Client, StatusCode, redirect};
use tokio::sync::Mutex;

pub use bindpost_net_upstream::Secret;
pub use credential::{CredentialError, EntraCredential};
pub use offered::{SettingError, authority, managed_sources, offered_sources};
pub use token_source::TokenSource;

/// How long before its expiry a token is replaced. It must be valid for the whole request, on the clock of
/// the service.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// A cache of access tokens for one resource, from the first source that has one.
#[derive(Debug)]
pub struct AzureIdentity {
    resource: String,
    sources: Vec<TokenSource>,
    client: Client,
    near: Client,
    state: Mutex<TokenCache>,
}

#[derive(Debug, Default)]
struct TokenCache {
    token: Option<AccessToken>,
    failed: Option<(Instant, IdentityError)>,
}

/// A token and its expiry.
#[derive(Debug, Clone)]
pub(crate) struct AccessToken {
    secret: Secret,
    fetched: Instant,
    lasts: Duration,
}

/// The reason why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IdentityError {
    /// The source did not answer.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(&'static str, String),
    /// The source rejected the request.
    #[error("{asked} was rejected with {}{reason}", status.as_u16())]
    #[allow(missing_docs, reason = "the message explains it")]
    Refused { asked: &'static str, status: StatusCode, reason: String },
    /// The response is invalid.
    #[error("{0} sent an invalid response: {1}")]
    Unexpected(&'static str, &'static str),
    /// The workload's own token cannot be read.
    #[error("the workload's token file {} cannot be read: {problem}", path.display())]
    #[allow(missing_docs, reason = "the message explains it")]
    TokenFile { path: PathBuf, problem: String },
    /// The Azure CLI returned no token.
    #[error("the Azure CLI returned no token: {0}; run `az login`")]
    Command(String),
    /// The HTTP client cannot start.
    #[error("the HTTP client cannot start: {0}")]
    Client(String),
    /// No source returned a token.
    #[error("{0}")]
    None(String),
}

impl IdentityError {
    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            IdentityError::Unreachable(..) => true,
            IdentityError::Refused { status, .. } => status.is_server_error() || status.as_u16() == 429,
            _ => false,
        }
    }
}

impl AccessToken {
    pub(crate) fn new(secret: Secret, lasts: Duration) -> AccessToken {
        AccessToken { secret, fetched: Instant::now(), lasts }
    }

    fn is_fresh(&self) -> bool {
        self.fetched.elapsed() + MARGIN < self.lasts
    }

    fn is_alive(&self) -> bool {
        self.fetched.elapsed() < self.lasts
    }
}

impl AzureIdentity {
    /// Creates a cache of tokens for a resource such as `https://storage.azure.com/`, from these sources in
    /// this order.
    pub fn new(
        resource: impl Into<String>,
        sources: Vec<TokenSource>,
    ) -> Result<AzureIdentity, IdentityError> {
        let builder = || {
            client_builder()
                .user_agent(concat!("bindpost/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .referer(false)
                .connect_timeout(Duration::from_secs(5))
        };
        let started = |built: Result<Client, reqwest::Error>| {
            built.map_err(|error| IdentityError::Client(error_chain(error)))
        };
        Ok(AzureIdentity {
            resource: resource.into(),
            sources,
            client: started(builder().build())?,
            near: started(builder().no_proxy().build())?,
            state: Mutex::default(),
        })
    }

    /// Returns a token that is valid for a while. Callers that arrive while a token is being fetched wait for
    /// the same request and share its result or failure.
    pub async fn token(&self) -> Result<Secret, IdentityError> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| token.is_fresh()) {
            return Ok(token.secret.clone());
        }
        if let Some((at, error)) = &state.failed
            && *at > asked
        {
            return Err(error.clone());
        }
        match self.fetch().await {
            Ok(token) => {
                let secret = token.secret.clone();
                *state = TokenCache { token: Some(token), failed: None };
                Ok(secret)
            }
            Err(error) => {
                // The old token expires soon, but is still valid.
                if let Some(token) = state.token.as_ref().filter(|token| token.is_alive()) {
                    tracing::warn!(%error, "no new access token; the old one is still used");
                    return Ok(token.secret.clone());
                }
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Discards a token that the service rejected, unless there is already a newer one.
    pub async fn forget(&self, refused: &Secret) {
        let mut state = self.state.lock().await;
        if state.token.as_ref().is_some_and(|token| token.secret == *refused) {
            state.token = None;
        }
    }

    async fn fetch(&self) -> Result<AccessToken, IdentityError> {
        let mut errors = Vec::new();
        for source in &self.sources {
            match source.fetch(&self.resource, &self.client, &self.near).await {
                Ok(token) => return Ok(token),
                Err(error) => errors.push(error),
            }
        }
        if errors.len() == 1 {
            return Err(errors.remove(0));
        }
        let all: Vec<_> = errors.iter().map(IdentityError::to_string).collect();
        Err(IdentityError::None(all.join("; ")))
    }
}
