//! Finds the identity that the usual environment variables configure.

use bindpost_net_upstream::{Secret, is_loopback};
use reqwest::Url;

use super::TokenSource;

const AUTHORITY: &str = "https://login.microsoftonline.com/";
/// The address of a virtual machine's identity service. It is never routed beyond the machine's host.
const VIRTUAL_MACHINE: &str = "http://169.254.169.254/";

/// An environment variable with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
#[allow(missing_docs, reason = "the message explains it")]
pub struct SettingError {
    pub variable: &'static str,
    pub problem: &'static str,
}

/// Returns the token sources to try, in order, by the variables that Azure and its tools set.
///
/// A configured identity is used exclusively: a wrong secret must not lead to tokens of another identity. An
/// app registration comes first, then a workload identity, then the platform's managed identity. If none is
/// configured, the managed identity of a virtual machine and then the Azure CLI are tried.
pub fn offered_sources(variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<TokenSource>, SettingError> {
    let set = |name: &str| {
        let value = variable(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let (tenant, client_id) = (set("AZURE_TENANT_ID"), set("AZURE_CLIENT_ID"));
    if let Some(secret) = set("AZURE_CLIENT_SECRET") {
        let needed = |variable| SettingError { variable, problem: "is required with AZURE_CLIENT_SECRET" };
        return Ok(vec![TokenSource::ClientSecret {
            authority: authority(set("AZURE_AUTHORITY_HOST").as_deref())?,
            tenant: tenant.ok_or(needed("AZURE_TENANT_ID"))?,
            client_id: client_id.ok_or(needed("AZURE_CLIENT_ID"))?,
            secret: Secret::new(secret),
        }]);
    }
    if let Some(file) = set("AZURE_FEDERATED_TOKEN_FILE") {
        let needed =
            |variable| SettingError { variable, problem: "is required with AZURE_FEDERATED_TOKEN_FILE" };
        return Ok(vec![TokenSource::Workload {
            authority: authority(set("AZURE_AUTHORITY_HOST").as_deref())?,
            tenant: tenant.ok_or(needed("AZURE_TENANT_ID"))?,
            client_id: client_id.ok_or(needed("AZURE_CLIENT_ID"))?,
            token_file: file.into(),
        }]);
    }
    managed_sources(&set, client_id)
}

/// Returns the platform's managed identity, or that of a virtual machine and then the Azure CLI.
pub fn managed_sources(
    variable: &dyn Fn(&str) -> Option<String>,
    client_id: Option<String>,
) -> Result<Vec<TokenSource>, SettingError> {
    match TokenSource::managed(variable, client_id)? {
        machine @ TokenSource::VirtualMachine { .. } => Ok(vec![machine, TokenSource::azure_cli()]),
        platform => Ok(vec![platform]),
    }
}

impl TokenSource {
    /// Returns the managed identity: that of the platform if it sets its variables, or else that of a virtual
    /// machine.
    pub fn managed(
        variable: &dyn Fn(&str) -> Option<String>,
        client_id: Option<String>,
    ) -> Result<TokenSource, SettingError> {
        if let (Some(endpoint), Some(header)) = (variable("IDENTITY_ENDPOINT"), variable("IDENTITY_HEADER")) {
            // The platform's own service on the same host, which has no TLS.
            let endpoint = parse_address("IDENTITY_ENDPOINT", &endpoint)?;
            return Ok(TokenSource::AppService { endpoint, header: Secret::new(header), client_id });
        }
        let address = parse_address("the machine's identity service", VIRTUAL_MACHINE)?;
        Ok(TokenSource::VirtualMachine { address, client_id })
    }

    /// Returns the Azure CLI, with its program name on this system.
    pub fn azure_cli() -> TokenSource {
        TokenSource::AzureCli { program: if cfg!(windows) { "az.cmd" } else { "az" }.into() }
    }
}

/// Returns the address of Entra ID from the value of `AZURE_AUTHORITY_HOST`. Defaults to the public cloud.
pub fn authority(set: Option<&str>) -> Result<Url, SettingError> {
    let variable = "AZURE_AUTHORITY_HOST";
    let url = parse_address(variable, set.unwrap_or(AUTHORITY))?;
    match url.scheme() == "https" || is_loopback(&url) {
        true => Ok(url),
        false => {
            let problem = "is not https, and secrets are not sent unencrypted";
            Err(SettingError { variable, problem })
        }
    }
}

/// Parses the address in a variable.
fn parse_address(variable: &'static str, address: &str) -> Result<Url, SettingError> {
    match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => Err(SettingError { variable, problem: "is neither an http nor an https address" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variables: &[(&str, &str)]) -> Result<Vec<&'static str>, String> {
        let lookup = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_string())
        };
        match offered_sources(&lookup) {
            Ok(sources) => Ok(sources.iter().map(TokenSource::name).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn only_the_configured_identity_is_used() {
        let app = [("IDENTITY_ENDPOINT", "http://127.0.0.1:1/"), ("IDENTITY_HEADER", "x")];
        let who = [("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")];
        let (file, secret) = (("AZURE_FEDERATED_TOKEN_FILE", "/t"), ("AZURE_CLIENT_SECRET", "s"));
        let last = ["the machine's managed identity", "the Azure CLI"];
        assert_eq!(names(&[]).unwrap(), last);
        assert_eq!(names(&who).unwrap(), last);
        assert_eq!(names(&[("AZURE_CLIENT_SECRET", " ")]).unwrap(), last);
        assert_eq!(names(&app).unwrap(), ["the app's managed identity"]);
        assert_eq!(names(&[&app[..], &who, &[file]].concat()).unwrap(), ["the workload identity"]);
        assert_eq!(names(&[&app[..], &who, &[file, secret]].concat()).unwrap(), ["the client secret"]);
    }

    #[test]
    fn missing_and_invalid_variables_are_named() {
        for (variables, said) in [
            (vec![("AZURE_CLIENT_SECRET", "s")], "AZURE_TENANT_ID is required with AZURE_CLIENT_SECRET"),
            (
                vec![("AZURE_FEDERATED_TOKEN_FILE", "/t"), ("AZURE_TENANT_ID", "t")],
                "AZURE_CLIENT_ID is required with AZURE_FEDERATED_TOKEN_FILE",
            ),
            (
                vec![("IDENTITY_ENDPOINT", "nowhere"), ("IDENTITY_HEADER", "x")],
                "IDENTITY_ENDPOINT is neither an http nor an https address",
            ),
            (
                vec![("AZURE_CLIENT_SECRET", "s"), ("AZURE_AUTHORITY_HOST", "http://login.example/")],
                "AZURE_AUTHORITY_HOST is not https, and secrets are not sent unencrypted",
            ),
        ] {
            assert_eq!(names(&variables).unwrap_err(), said);
        }
    }
}
