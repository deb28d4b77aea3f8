//! [`TokenSource`]: fetches access tokens, with one request or one command per source.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bindpost_net_upstream::{Secret, error_chain, is_loopback};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::{AccessToken, IdentityError};

/// The timeout for a virtual machine's identity service, which answers at once. Elsewhere requests get no
/// response.
const VIRTUAL_MACHINE_TIME: Duration = Duration::from_secs(2);
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The timeout of the Azure CLI, a Python program that may have to sign in.
const COMMAND_TIME: Duration = Duration::from_secs(20);
const MAX_ANSWER: usize = 256 * 1024;
/// The minimum lifetime of a token in seconds, even if its expiry and this machine's clock give less. It is a
/// minute more than the time before expiry at which tokens are replaced.
const LEAST_LEFT: i64 = 6 * 60;

/// A source of access tokens.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields are named as Azure names them")]
pub enum TokenSource {
    /// The managed identity of an App Service or Functions app.
    AppService { endpoint: Url, header: Secret, client_id: Option<String> },
    /// The managed identity of a virtual machine. Outside tests `address` is fixed.
    VirtualMachine { address: Url, client_id: Option<String> },
    /// A Kubernetes workload identity, whose token in a file is exchanged for an access token.
    Workload { authority: Url, tenant: String, client_id: String, token_file: PathBuf },
    /// An app registration and its secret.
    ClientSecret { authority: Url, tenant: String, client_id: String, secret: Secret },
    /// The account that is signed in to the Azure CLI. `program` is `az`.
    AzureCli { program: PathBuf },
}

impl TokenSource {
    /// Returns the name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            TokenSource::AppService { .. } => "the app's managed identity",
            TokenSource::VirtualMachine { .. } => "the machine's managed identity",
            TokenSource::Workload { .. } => "the workload identity",
            TokenSource::ClientSecret { .. } => "the client secret",
            TokenSource::AzureCli { .. } => "the Azure CLI",
        }
    }

    /// Requests a token once. `near` is the client for services on this machine, which uses no proxy.
    pub(super) async fn fetch(
        &self,
        resource: &str,
        client: &Client,
        near: &Client,
    ) -> Result<AccessToken, IdentityError> {
        let (request, time) = match self {
            TokenSource::AppService { endpoint, header, client_id } => {
                let url = with_query(endpoint, resource, "2019-08-01", client_id.as_deref());
                (near.get(url).header("X-IDENTITY-HEADER", header.reveal()), REQUEST_TIME)
            }
            TokenSource::VirtualMachine { address, client_id } => {
                let mut url = address.clone();
                url.set_path("/metadata/identity/oauth2/token");
                let url = with_query(&url, resource, "2018-02-01", client_id.as_deref());
                (near.get(url).header("Metadata", "true"), VIRTUAL_MACHINE_TIME)
            }
            TokenSource::Workload { authority, tenant, client_id, token_file } => {
                // Read each time, because Kubernetes replaces it every hour.
                let file = token_file.clone();
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await;
                let assertion =
                    read.unwrap_or_else(|stopped| Err(io::Error::other(stopped))).map_err(|error| {
                        IdentityError::TokenFile { path: token_file.clone(), problem: error.to_string() }
                    })?;
                let about = [("scope", scope(resource)), ("client_id", client_id.clone())];
                let form = [
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", assertion.trim()),
                ];
                (entra_request(client, near, authority, tenant, &about, &form), REQUEST_TIME)
            }
            TokenSource::ClientSecret { authority, tenant, client_id, secret } => {
                let about = [("scope", scope(resource)), ("client_id", client_id.clone())];
                let form = [("client_secret", secret.reveal())];
                (entra_request(client, near, authority, tenant, &about, &form), REQUEST_TIME)
            }
            TokenSource::AzureCli { program } => return self.run_azure_cli(program, resource).await,
        };
        match tokio::time::timeout(time, self.send_request(request)).await {
            Ok(answer) => self.decode(&answer?),
            Err(_) => Err(IdentityError::Unreachable(self.name(), "it took too long".into())),
        }
    }

    async fn send_request(&self, request: RequestBuilder) -> Result<Vec<u8>, IdentityError> {
        let broken = |error| IdentityError::Unreachable(self.name(), error_chain(error));
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        let mut answer = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            if answer.len() + piece.len() > MAX_ANSWER {
                return Err(IdentityError::Unexpected(self.name(), "it is too long"));
            }
            answer.extend_from_slice(&piece);
        }
        if status.is_success() {
            return Ok(answer);
        }
        Err(IdentityError::Refused { asked: self.name(), status, reason: error_reason(&answer) })
    }

    async fn run_azure_cli(&self, program: &PathBuf, resource: &str) -> Result<AccessToken, IdentityError> {
        let mut command = tokio::process::Command::new(program);
        command.args(["account", "get-access-token", "--output", "json", "--resource", resource]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(COMMAND_TIME, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(IdentityError::Command(format!("cannot run az: {error}"))),
            Err(_) => return Err(IdentityError::Command("az took too long".into())),
        };
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no error message");
            return Err(IdentityError::Command(format!("az failed: {}", shortened(first))));
        }
        self.decode(&output.stdout)
    }

    /// Decodes a response. All sources send nearly the same JSON.
    fn decode(&self, answer: &[u8]) -> Result<AccessToken, IdentityError> {
        let unexpected = |problem| IdentityError::Unexpected(self.name(), problem);
        let answer: Value = serde_json::from_slice(answer).map_err(|_| unexpected("it is not JSON"))?;
        let token = ["access_token", "accessToken"].iter().find_map(|name| answer.get(name)?.as_str());
        let token = token.filter(|token| !token.is_empty() && token.is_ascii());
        let token = token.ok_or_else(|| unexpected("it has no token"))?;
        // Numbers, or numbers in quotation marks.
        let number = |name: &str| {
            let value = answer.get(name)?;
            value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        // The platform issues valid tokens. If one seems expired, this machine's clock is ahead. If a service
        // rejects it, it is replaced.
        let until = |at: i64| at.saturating_sub(chrono::Utc::now().timestamp()).max(LEAST_LEFT);
        let left = number("expires_in")
            .or_else(|| number("expires_on").map(until))
            // Old versions of `az` return only a local time, so the token is replaced soon.
            .unwrap_or(600);
        let left = Duration::from_secs(u64::try_from(left).unwrap_or_default());
        Ok(AccessToken::new(Secret::new(token), left))
    }
}

/// Returns the scope of Entra ID for all permissions on a resource.
fn scope(resource: &str) -> String {
    format!("{}/.default", resource.trim_end_matches('/'))
}

fn with_query(url: &Url, resource: &str, version: &str, client_id: Option<&str>) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().append_pair("api-version", version).append_pair("resource", resource);
    if let Some(client_id) = client_id {
        url.query_pairs_mut().append_pair("client_id", client_id);
    }
    url
}

/// Builds a request to Entra ID for a token of an app.
fn entra_request(
    client: &Client,
    near: &Client,
    authority: &Url,
    tenant: &str,
    about: &[(&str, String)],
    proof: &[(&str, &str)],
) -> RequestBuilder {
    let mut url = authority.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend([tenant, "oauth2", "v2.0", "token"]);
    }
    // Only the query of this URL is used, as the body.
    let mut form = authority.clone();
    form.set_query(None);
    form.query_pairs_mut()
        .append_pair("grant_type", "client_credentials")
        .extend_pairs(about)
        .extend_pairs(proof);
    let body = form.query().unwrap_or_default().to_owned();
    let client = if is_loopback(&url) { near } else { client };
    client.post(url).header("Content-Type", "application/x-www-form-urlencoded").body(body)
}

/// Returns the error message of Entra ID or the identity service in one short line.
fn error_reason(answer: &[u8]) -> String {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else { return String::new() };
    let text = ["error_description", "message", "error"].iter().find_map(|name| answer.get(name)?.as_str());
    text.map(|text| format!(": {}", shortened(text.lines().next().unwrap_or_default()))).unwrap_or_default()
}

fn shortened(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(300).collect()
}
