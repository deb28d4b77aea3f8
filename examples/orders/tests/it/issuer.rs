//! A token issuer in a separate process that signs tokens like Entra ID: `mcp/oauth/tests/issuer.mjs`, on Node.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::program::send;

pub(crate) const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
pub(crate) const CLIENT: &str = "00001111-aaaa-2222-bbbb-3333cccc4444";

/// The issuer. Its process ends when this value is dropped.
pub(crate) struct EntraIssuer {
    process: Child,
    pub(crate) url: String,
}

impl EntraIssuer {
    /// Starts an issuer with the metadata of one tenant, for tokens of both versions.
    pub(crate) fn start() -> EntraIssuer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mcp/oauth/tests/issuer.mjs");
        // Its input is closed whenever this process ends.
        let mut process = Command::new("node")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the tests need node");
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let issuer = EntraIssuer { process, url: url.trim().to_owned() };
        issuer.ask("/control", json!({"add": [{"kid": "one"}, {"kid": "two"}]}));
        let all = issuer.ask("/moved", json!({}))["keys"].clone();
        let key = |kid: &str| -> Vec<&Value> {
            all.as_array().unwrap().iter().filter(|key| key["kid"] == kid).collect()
        };
        let url = &issuer.url;
        issuer.ask(
            "/control",
            json!({"documents": {
                format!("/{TENANT}/.well-known/openid-configuration"): {"json": {
                    "issuer": format!("https://sts.windows.net/{TENANT}/"),
                    "jwks_uri": format!("{url}/{TENANT}/discovery/keys")}},
                format!("/{TENANT}/discovery/keys"): {"json": {"keys": key("one")}},
                format!("/{TENANT}/v2.0/.well-known/openid-configuration"): {"json": {
                    "issuer": format!("https://login.microsoftonline.com/{TENANT}/v2.0"),
                    "jwks_uri": format!("{url}/{TENANT}/discovery/v2.0/keys")}},
                format!("/{TENANT}/discovery/v2.0/keys"): {"json": {"keys": key("two")}},
            }}),
        );
        issuer
    }

    /// Signs a token of version 1.0 (`api://…` as audience) or 2.0 (the client id), with more claims.
    pub(crate) fn token(&self, version: &str, more: Value) -> String {
        let (key, iss, aud) = match version {
            "1.0" => ("one", format!("https://sts.windows.net/{TENANT}/"), format!("api://{CLIENT}")),
            _ => ("two", format!("https://login.microsoftonline.com/{TENANT}/v2.0"), CLIENT.to_owned()),
        };
        let mut claims = json!({"iss": iss, "aud": aud, "ver": version, "tid": TENANT, "oid": "object",
            "sub": "pairwise", "name": "Alice"});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let token = self.ask("/token", json!({"key": key, "header": {"typ": "JWT"}, "claims": claims}));
        token["token"].as_str().unwrap_or_else(|| panic!("no token: {token}")).to_owned()
    }

    fn ask(&self, path: &str, body: Value) -> Value {
        let address = self.url.strip_prefix("http://").unwrap();
        send(address, "POST", path, &format!("Host: {address}\r\n"), &body.to_string()).json()
    }
}

impl Drop for EntraIssuer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
