//! A token issuer in a separate process: `issuer.mjs`, on Node.

#![allow(dead_code, reason = "the tests of several crates use this file, each a part of it")]

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A timeout that no step reaches, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("timed out")
}

/// The issuer. Its process ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct TestIssuer {
    /// Its URL, without a trailing slash.
    pub(crate) url: String,
    client: reqwest::Client,
    process: Child,
}

impl TestIssuer {
    pub(crate) async fn start() -> TestIssuer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mcp/oauth/tests/issuer.mjs");
        // Its input is closed whenever this process ends.
        let mut process = Command::new("node")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the tests need node");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = within(lines.next_line()).await.unwrap().expect("the issuer did not start");
        let client = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        TestIssuer { url, client, process }
    }

    /// Mints a token from an order with `key`, `header`, `claims` and `trick`.
    pub(crate) async fn mint(&self, order: Value) -> String {
        let answer = self.ask("/token", order).await;
        answer["token"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
    }

    /// Mints a valid token with these claims changed. `null` removes a claim.
    pub(crate) async fn token(&self, claims: Value) -> String {
        self.mint(json!({"claims": claims})).await
    }

    /// Changes how it behaves.
    pub(crate) async fn control(&self, orders: Value) {
        let answer = self.ask("/control", orders).await;
        assert_eq!(answer, json!({}));
    }

    /// Returns the keys it publishes.
    pub(crate) async fn public_keys(&self) -> Vec<Value> {
        self.ask("/moved", json!({})).await["keys"].as_array().unwrap().clone()
    }

    /// Returns how often its keys were fetched.
    pub(crate) async fn fetches(&self) -> u64 {
        self.count("jwks").await
    }

    pub(crate) async fn count(&self, what: &str) -> u64 {
        self.ask("/counts", json!({})).await[what].as_u64().unwrap()
    }

    /// Stops the process.
    pub(crate) async fn stop(&mut self) {
        within(self.process.kill()).await.unwrap();
    }

    async fn ask(&self, path: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.url)).body(body.to_string());
        let answer = within(async { request.send().await.unwrap().bytes().await.unwrap() }).await;
        serde_json::from_slice(&answer).unwrap()
    }
}
