//! Where access tokens come from: one request, or one command, per source.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::secret::Secret;
use super::{AccessToken, IdentityError, error_chain, is_loopback};

/// A virtual machine answers at once; on a laptop nobody listens, and nobody says so.
const VIRTUAL_MACHINE_TIME: Duration = Duration::from_secs(2);
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The command is a Python program that may have to sign in.
const COMMAND_TIME: Duration = Duration::from_secs(20);
const MAX_ANSWER: usize = 256 * 1024;
/// How long a token is kept at least, in seconds, by what its end and this machine's clock say: a minute more than the
/// time before its end at which it is replaced.
const LEAST_LEFT: i64 = 6 * 60;

/// A way to get access tokens.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields are named as Azure names them")]
pub enum TokenSource {
    /// The managed identity of an App Service or Functions app.
    AppService { endpoint: Url, header: Secret, client_id: Option<String> },
    /// The managed identity of a virtual machine; `address` is a fixed one outside tests.
    VirtualMachine { address: Url, client_id: Option<String> },
    /// A Kubernetes workload identity: a token in a file, exchanged for ours.
    Workload { authority: Url, tenant: String, client_id: String, token_file: PathBuf },
    /// An app registration and its secret.
    ClientSecret { authority: Url, tenant: String, client_id: String, secret: Secret },
    /// Who is signed in to the Azure CLI; `program` is `az`.
    AzureCli { program: PathBuf },
}

impl TokenSource {
    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            TokenSource::AppService { .. } => "the app's managed identity",
            TokenSource::VirtualMachine { .. } => "the machine's managed identity",
            TokenSource::Workload { .. } => "the workload identity",
            TokenSource::ClientSecret { .. } => "the client secret",
            TokenSource::AzureCli { .. } => "the Azure CLI",
        }
    }

    /// Asks for a token, once. `near` is the client for services on this machine, which no proxy can reach.
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
                // Read each time: Kubernetes replaces it every hour.
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
                return Err(IdentityError::Unexpected(self.name(), "the answer is too long"));
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
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return Err(IdentityError::Command(format!("az failed: {}", shortened(first))));
        }
        self.decode(&output.stdout)
    }

    /// All sources answer with nearly the same JSON.
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
        // A platform hands out tokens that last. One that seems to have ended means that this machine's clock is ahead;
        // a service that does not take it says so, and then it is replaced.
        let until = |at: i64| at.saturating_sub(chrono::Utc::now().timestamp()).max(LEAST_LEFT);
        let left = number("expires_in")
            .or_else(|| number("expires_on").map(until))
            // Old versions of `az` give a local time only; ask again soon.
            .unwrap_or(600);
        let left = Duration::from_secs(u64::try_from(left).unwrap_or_default());
        Ok(AccessToken::new(Secret::new(token), left))
    }
}

/// All that a resource allows, as Entra ID wants it written.
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

/// A request to Entra ID for a token of an app.
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
    // Any URL will do: only its query is used, as the body.
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

/// What Entra ID or the identity service says is wrong, in one short line.
fn error_reason(answer: &[u8]) -> String {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else { return String::new() };
    let text = ["error_description", "message", "error"].iter().find_map(|name| answer.get(name)?.as_str());
    text.map(|text| format!(": {}", shortened(text.lines().next().unwrap_or_default()))).unwrap_or_default()
}

fn shortened(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(300).collect()
}
