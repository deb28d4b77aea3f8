//! Self-hosted apps with the official SDKs of Python and Node, called by the official clients: the fixture apps
//! `tests/apps/self-hosted-*`.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::packages;
use crate::served::{Launch, Served};

const PYTHON_SDK: &str = "1.30.0";
const PYTHON_SDK_2: &str = "2.3.0";
const NODE_SDK: &str = "1.32.2";

/// Runs a client of the fixture app. Returns what it prints.
fn run_client(program: impl AsRef<Path>, host: &Served, client: &str, mode: &[&str], path: &str) -> Value {
    let url = format!("http://{}{path}", host.address);
    let mut command = Command::new(program.as_ref());
    command.arg(host.file(client)).args(mode).arg(url);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn expected(server: &str, revision: &str, tools: &[&str]) -> Value {
    let progress = [[1, 3], [2, 3], [3, 3]];
    json!({"server": server, "revision": revision, "tools": tools, "sum": "5", "progress": progress})
}

/// Returns the numbers of the progress without a fraction. Python sends `1.0`.
fn with_whole_numbers(mut found: Value) -> Value {
    let steps =
        found["progress"].as_array_mut().unwrap().iter_mut().flat_map(|step| step.as_array_mut().unwrap());
    steps.for_each(|number| *number = json!(number.as_f64().unwrap() as u64));
    found
}

/// Returns the server and the tools of the report, as programs get them.
fn reported(host: &Served) -> (Value, Vec<String>) {
    let report = serde_json::to_value(&host.report).unwrap();
    let tools = report["tools"].as_array().unwrap().iter();
    let tools = tools.map(|tool| {
        let arguments = tool["arguments"].as_array().unwrap().iter();
        let arguments = arguments
            .map(|row| format!("{}: {}", row["name"].as_str().unwrap(), row["type"].as_str().unwrap()));
        format!("{}({})", tool["name"].as_str().unwrap(), arguments.collect::<Vec<_>>().join(", "))
    });
    (report["server"].clone(), tools.collect())
}

#[test]
fn the_python_sdk_is_served() {
    let python = packages::pip(&[("mcp", PYTHON_SDK)]);
    let host = Launch::copy_of("tests/apps/self-hosted-python").virtual_env(&python).serve();
    let (server, tools) = reported(&host);
    let about = json!({
        "name": "python-server", "version": PYTHON_SDK, "revision": "2025-11-25", "sessions": false,
    });
    assert_eq!(server, about);
    assert_eq!(tools, ["add(a: integer, b: integer)", "header(name: string)", "steps(count: integer)"]);
    // Both paths lead to the server.
    for path in ["/mcp", "/runtime/webhooks/mcp"] {
        let found = with_whole_numbers(run_client(&python, &host, "client.py", &[], path));
        assert_eq!(found, expected("python-server", "2025-11-25", &["add", "header", "steps"]), "{path}");
    }
}

/// The second generation of the SDK speaks legacy and modern revisions.
#[test]
fn the_second_python_sdk_is_served_in_both_kinds_of_revisions() {
    let python = packages::pip(&[("mcp", PYTHON_SDK_2)]);
    let host = Launch::copy_of("tests/apps/self-hosted-python-2").virtual_env(&python).serve();
    let (server, tools) = reported(&host);
    assert_eq!((&server["name"], &server["version"]), (&json!("python-server-2"), &json!("2.0")));
    assert_eq!(tools, ["add(a: integer, b: integer)", "steps(count: integer)"]);
    for (mode, revision) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let found = with_whole_numbers(run_client(&python, &host, "client.py", &[mode], "/mcp"));
        assert_eq!(found, expected("python-server-2", revision, &["add", "steps"]));
    }
}

#[test]
fn the_npm_sdk_is_served() {
    let host = Launch::copy_of("tests/apps/self-hosted-node")
        .node_with(&[("@modelcontextprotocol/sdk", NODE_SDK)])
        .serve();
    let (server, tools) = reported(&host);
    assert_eq!((&server["name"], &server["revision"]), (&json!("node-server"), &json!("2025-11-25")));
    assert_eq!(tools, ["add(a: number, b: number)", "steps(count: number)"]);
    // It listens on all addresses.
    if cfg!(target_os = "linux") {
        let warnings: Vec<&str> =
            host.report.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert!(
            warnings.iter().any(|warning| warning.starts_with("the server also listens on ")),
            "{warnings:?}"
        );
    }
    let found = run_client("node", &host, "client.mjs", &[], "/mcp");
    assert_eq!(found, expected("node-server", "2025-11-25", &["add", "steps"]));
}
