//! Authentication at the service with access tokens of Entra ID instead of a key.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bindpost_azure_hosting::identity::{self, AzureIdentity, IdentityError, SettingError, offered_sources};
use bindpost_mcp_openapi::{CredentialSource, Secret};

/// The resource of the access tokens. The scope is `https://search.azure.com/.default`.
const RESOURCE: &str = "https://search.azure.com";

/// Access tokens for Azure AI Search, cached until shortly before they expire.
#[derive(Debug)]
pub struct EntraCredential {
    identity: AzureIdentity,
    /// The token that the service rejected. It is discarded before the next token is returned.
    refused: Mutex<Option<identity::Secret>>,
}

/// An error in the configuration of the identity.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("{0}")]
    Setting(#[from] SettingError),
    #[error("{0}")]
    Identity(#[from] IdentityError),
}

impl EntraCredential {
    /// Uses the identity of the usual environment variables; see [`offered_sources`]. No token is
    /// requested yet.
    pub fn from_variables(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<EntraCredential, CredentialError> {
        EntraCredential::for_resource(RESOURCE, variable)
    }

    /// Does the same for another service than search, with the resource of its tokens.
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
        let token = authorization.reveal().strip_prefix("Bearer ").map(identity::Secret::new);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }
}
