//! A test server over real HTTP, and stateless requests to it.

use std::net::SocketAddr;

use bindpost_mcp_http::listener::DrainTrigger;
use bindpost_mcp_http::{Settings, bind};
use bindpost_mcp_server::{Context, Server, ToolEntry};
use reqwest::Client;
use serde_json::{Value, json};

use crate::issuer::within;

#[derive(Debug)]
pub(crate) struct TestServer {
    address: SocketAddr,
    client: Client,
    _serving: DrainTrigger,
}

impl TestServer {
    /// Starts a server with tools that return the caller.
    pub(crate) async fn start(settings: Settings) -> TestServer {
        let server = Server::builder("test", "1.0.0")
            .tool(ToolEntry::new("whoami", who))
            .tool(ToolEntry::new("read", who).scopes(["Orders.Read"]))
            .tool(ToolEntry::new("all", who).roles(["Orders.All"]))
            .build()
            .unwrap();
        let (address, serving) = bind("127.0.0.1:0").await.unwrap().serve_in_background(server, settings);
        TestServer {
            address,
            client: bindpost_net_upstream::client_builder().no_proxy().build().unwrap(),
            _serving: serving,
        }
    }

    /// Returns the status of a call with these headers and the text of its result.
    pub(crate) async fn call(&self, tool: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut request = self
            .client
            .post(format!("http://{}/mcp", self.address))
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = within(request.body(message.to_string()).send()).await.unwrap();
        let status = response.status().as_u16();
        let answer: Value = serde_json::from_slice(&within(response.bytes()).await.unwrap()).unwrap();
        (status, answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    }
}

async fn who(context: Context) -> String {
    context.caller().id().unwrap_or("unauthenticated").to_owned()
}
