//! The workload of the benchmarks in `bench/`, served by two programs: `bench-server` on our own listener, and
//! `bench-server-axum` in an axum router. Two programs, because code that both used would be inlined differently.
//!
//! All defaults apply: arguments are validated, Host and Origin are checked, limits are enforced. Only
//! the limits on sessions are raised, because one client of the benchmark opens more than 10,000.

#![allow(missing_docs, reason = "a benchmark, not a library for others")]

use anyhow::{Context as _, bail};
use bench_common as workload;
use bindpost::http::{SessionLimits, SessionMode, Settings};
use bindpost::protocol::CallToolResult;
use bindpost::{Args, ResourceEntry, Server, ServerBuilder, ToolEntry};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payload {
    bytes: usize,
}

async fn echo(Args(Echo { text }): Args<Echo>) -> String {
    text
}

async fn add(Args(Add { a, b }): Args<Add>) -> CallToolResult {
    CallToolResult::structured(json!({"result": a + b}))
}

async fn payload(Args(Payload { bytes }): Args<Payload>) -> String {
    workload::payload_text(bytes)
}

async fn dummy() -> &'static str {
    "dummy"
}

/// Parses the command line: the settings and the port.
pub fn options() -> anyhow::Result<(Settings, u16)> {
    let mut settings = Settings {
        session_limits: SessionLimits { total: 100_000, anonymous: 100_000, ..SessionLimits::default() },
        ..Settings::default()
    };
    let mut port = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--stateless" => settings.sessions = SessionMode::Off,
            "--port" => port = Some(words.next().context("--port needs a number")?.parse()?),
            other => bail!("unknown option {other}; use --port N and --stateless"),
        }
    }
    Ok((settings, port.context("--port N is missing")?))
}

pub fn server() -> anyhow::Result<Server> {
    let mut builder: ServerBuilder = Server::builder(workload::SERVER_NAME, "0.1.0").resource(
        ResourceEntry::text(workload::RESOURCE_URI, "text", workload::resource_text())
            .mime_type("text/plain"),
    );
    for tool in workload::tools() {
        let entry = match tool.name.as_str() {
            "echo" => ToolEntry::new("echo", echo),
            "add" => ToolEntry::new("add", add),
            "payload" => ToolEntry::new("payload", payload),
            _ => ToolEntry::new(tool.name, dummy),
        };
        let entry = entry.description(tool.description).input_schema(tool.input);
        builder = builder.tool(match tool.output {
            Some(schema) => entry.output_schema(schema),
            None => entry,
        });
    }
    Ok(builder.build()?)
}
