//! The stdio transport over in-memory pipes: a client for the conversations, and tests that need raw bytes.

use std::io;
use std::time::Duration;

use bindpost_mcp_server::stdio::{StdioLimits, serve};
use bindpost_mcp_server::testing::ConversationTransport;
use bindpost_mcp_server::{Server, protocol::Revision};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;

use crate::fixture;

/// A client of `stdio::serve`: it writes lines and reads lines.
pub(crate) struct StdioClient {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    serving: JoinHandle<io::Result<()>>,
}

impl StdioClient {
    pub(crate) fn connect(server: &Server) -> StdioClient {
        StdioClient::connect_with(
            server,
            StdioLimits { drain: Duration::from_secs(5), ..StdioLimits::default() },
        )
    }

    fn connect_with(server: &Server, limits: StdioLimits) -> StdioClient {
        // Smaller than most messages, so that lines arrive in pieces.
        let (input, server_input) = tokio::io::duplex(64);
        let (server_output, output) = tokio::io::duplex(64);
        let server = server.clone();
        let serving = tokio::spawn(async move { serve(&server, server_input, server_output, limits).await });
        StdioClient { input: Some(input), output: BufReader::new(output).lines(), serving }
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().expect("one more line")).unwrap()
    }

    /// Ends the input and returns all further messages. The server must end by itself.
    async fn rest(mut self) -> Vec<Value> {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.serving.await.unwrap().unwrap();
        rest
    }
}

impl ConversationTransport for StdioClient {
    const NAME: &'static str = "stdio";

    async fn send(&mut self, message: &str, _: Revision) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(message.as_bytes()).await?;
        input.write_all(b"\n").await
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.output.next_line().await?.map(Bytes::from))
    }

    async fn end_input(&mut self) -> io::Result<()> {
        self.input = None;
        Ok(())
    }
}

fn call(id: i64, name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

#[tokio::test(start_paused = true)]
async fn all_requests_before_the_end_of_the_input_are_answered() {
    let mut client = StdioClient::connect(&fixture::server(""));
    client.write(call(1, "slow", json!({"ms": 300})).as_bytes()).await;
    client.write(call(2, "slow", json!({"ms": 100})).as_bytes()).await;
    let ids: Vec<Value> = client.rest().await.into_iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_is_cancelled_after_the_end_of_the_input() {
    let mut client = StdioClient::connect(&fixture::server(""));
    client.write(call(1, "slow", json!({"ms": 3_600_000})).as_bytes()).await;
    assert_eq!(client.rest().await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_the_client_fails_when_the_input_ends() {
    let mut client = StdioClient::connect(&fixture::server(""));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": Revision::LATEST_WITH_HANDSHAKE.as_str(),
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"},
    }});
    client.write(format!("{initialize}\n").as_bytes()).await;
    client.next().await;
    client.write(call(2, "ask_name", json!({})).as_bytes()).await;
    assert_eq!(client.next().await["method"], "elicitation/create");
    let rest = client.rest().await;
    assert_eq!(rest[0]["id"], 2);
    assert_eq!(rest[0]["result"]["content"][0]["text"], "the client did not answer");
}

#[tokio::test(start_paused = true)]
async fn empty_lines_and_carriage_returns_are_ignored() {
    let mut client = StdioClient::connect(&fixture::server(""));
    client.write(b"\n  \r\n").await;
    client.write(call(1, "echo", json!({"text": "hi"})).replace('\n', "\r\n").as_bytes()).await;
    assert_eq!(client.next().await["id"], 1);
    assert_eq!(client.rest().await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_last_line_needs_no_newline() {
    let mut client = StdioClient::connect(&fixture::server(""));
    client.write(call(1, "echo", json!({"text": "hi"})).trim_end().as_bytes()).await;
    assert_eq!(client.rest().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_is_rejected_and_the_next_one_is_served() {
    let limits = StdioLimits { line: 200, ..StdioLimits::default() };
    let mut client = StdioClient::connect_with(&fixture::server(""), limits);
    client.write(call(1, "echo", json!({"text": "x".repeat(10_000)})).as_bytes()).await;
    client.write(call(2, "echo", json!({"text": "hi"})).as_bytes()).await;
    let refusal = client.next().await;
    assert_eq!(refusal["error"]["code"], -32600);
    assert_eq!(refusal.get("id"), None);
    assert_eq!(client.next().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_line_breaks_in_it_stays_on_one_line() {
    let mut client = StdioClient::connect(&fixture::server(""));
    client.write(call(1, "echo", json!({"text": "a\nb\r\nc\u{2028}d"})).as_bytes()).await;
    assert_eq!(client.next().await["result"]["content"][0]["text"], "a\nb\r\nc\u{2028}d");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_ends_the_server_quietly() {
    let StdioClient { input, output, serving } = StdioClient::connect(&fixture::server(""));
    drop(output);
    let mut input = input.unwrap();
    input.write_all(call(1, "echo", json!({"text": "hi"})).as_bytes()).await.unwrap();
    drop(input);
    serving.await.unwrap().unwrap();
}
