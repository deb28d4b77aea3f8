//! [`EntraCredential`]: authentication at an upstream service with access tokens of Entra ID instead of a key.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bindpost_net_upstream::{CredentialSource, Secret};

use super::{AzureIdentity, IdentityError, SettingError, offered_sources};

/// Access tokens for one service, cached until shortly before they expire.
#[derive(Debug)]
pub struct EntraCredential {
    identity: AzureIdentity,
    /// The token that the service rejected. It is discarded before the next token is returned.
    refused: Mutex<Option<Secret>>,
}

/// An error in the configuration of the identity.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// An environment variable has an invalid value.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// The identity cannot be used.
    #[error("{0}")]
    Identity(#[from] IdentityError),
}

impl EntraCredential {
    /// Uses the identity of the usual environment variables; see [`offered_sources`]. The resource of the
    /// tokens is that of the service, such as `https://search.azure.com`. No token is requested yet.
    pub fn for_resource(
        resource: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<EntraCredential, CredentialError> {
        let identity = AzureIdentity::new(resource, offered_sources(variable)?)?;
        Ok(EntraCredential { identity, refused: Mutex::default() })
    }
}

impl CredentialSource for EntraCredential {
    fn authorization(&self) -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send + '_>> {
        Box::pin(async {
            let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(refused) = refused {
                self.identity.forget(&refused).await;
            }
            match self.identity.token().await {
                Ok(token) => Ok(Secret::new(format!("Bearer {}", token.reveal()))),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn refused(&self, authorization: &Secret) {
        let token = authorization.reveal().strip_prefix("Bearer ").map(Secret::new);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }
}
