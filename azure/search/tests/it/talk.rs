//! A client of legacy and modern revisions that answers questions.

use bindpost_mcp_server::Server;
use bindpost_mcp_server::testing::TestClient;
use serde_json::{Value, json};

/// The kind of protocol revision that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Legacy, with a session: 2025-11-25.
    Session,
    /// Modern, stateless: 2026-07-28.
    Alone,
}

pub(crate) const ERAS: [Era; 2] = [Era::Session, Era::Alone];

/// A client of a server in the same process.
pub(crate) struct Talk {
    pub(crate) client: TestClient,
    era: Era,
    last: u32,
    capabilities: Value,
    /// The user's answer to every question.
    agrees: bool,
    /// The questions to the user.
    pub(crate) asked: Vec<String>,
    /// Notifications that were received meanwhile.
    heard: Vec<Value>,
}

impl Talk {
    pub(crate) async fn start(server: &Server, era: Era) -> Talk {
        Talk::with(server, era, None).await
    }

    /// Starts a client with a user who accepts or declines every question.
    pub(crate) async fn with(server: &Server, era: Era, user: Option<bool>) -> Talk {
        let capabilities = if user.is_some() { json!({"elicitation": {}}) } else { json!({}) };
        let talk = Talk::able(server, era, capabilities).await;
        Talk { agrees: user == Some(true), ..talk }
    }

    /// Starts a client with these capabilities, and a user who accepts.
    pub(crate) async fn able(server: &Server, era: Era, capabilities: Value) -> Talk {
        let (client, asked, heard) = (TestClient::connect(server), Vec::new(), Vec::new());
        let mut talk = Talk { client, era, last: 0, capabilities, agrees: true, asked, heard };
        if era == Era::Session {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": talk.capabilities,
                "clientInfo": {"name": "test", "version": "1"}});
            talk.request("initialize", hello).await.unwrap();
            talk.client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        }
        talk
    }

    /// Sends a request without waiting for the response.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> String {
        self.last += 1;
        let id = format!("{method}-{}", self.last);
        if self.era == Era::Alone {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        if method == "tools/call" {
            params["_meta"]["progressToken"] = "p".into();
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.client.send(message.to_string()).await;
        id
    }

    /// Returns the next message of the server.
    pub(crate) async fn next(&mut self) -> Value {
        let wait = std::time::Duration::from_secs(120);
        let message = tokio::time::timeout(wait, self.client.next()).await.expect("no message");
        serde_json::from_slice(&message.expect("the server disconnected")).unwrap()
    }

    /// Sends a request, answers every question, and returns the result or the error.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let mut id = self.send(method, params.clone()).await;
        loop {
            let mut message = self.next().await;
            if message["method"] == "elicitation/create" {
                let answer = self.answer(&message["params"]);
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
                self.client.send(answer.to_string()).await;
                continue;
            }
            if message["id"] != *id {
                self.heard.push(message);
                continue;
            }
            if message.get("error").is_some() {
                return Err(message["error"].take());
            }
            let mut result = message["result"].take();
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let mut again = params.clone();
            again["requestState"] = result["requestState"].take();
            for (key, question) in result["inputRequests"].as_object().unwrap() {
                again["inputResponses"][key] = self.answer(&question["params"]);
            }
            id = self.send(method, again).await;
        }
    }

    fn answer(&mut self, question: &Value) -> Value {
        self.asked.push(question["message"].as_str().unwrap().to_owned());
        match self.agrees {
            true => json!({"action": "accept", "content": {"confirm": true}}),
            false => json!({"action": "decline"}),
        }
    }

    /// Returns and clears the progress notifications.
    pub(crate) fn progress(&mut self) -> Vec<Value> {
        let heard = std::mem::take(&mut self.heard).into_iter();
        heard
            .filter(|message| message["method"] == "notifications/progress")
            .map(|mut message| message["params"].take())
            .collect()
    }

    /// Calls a tool. Returns its structured content, or the JSON (or text) of its failure.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let parsed = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        if result["isError"] == true {
            assert!(result.get("structuredContent").is_none(), "{result}");
            return Err(parsed);
        }
        assert_eq!(result["structuredContent"], parsed);
        Ok(parsed)
    }
}
