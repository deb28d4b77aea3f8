//! Authorization with keys.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::app::{App, PID};
use super::client::{Client, Events, MCP, SSE, call};
use super::host::{Host, command};

fn app() -> App {
    App::node().tool("pid", PID)
}

/// Returns the key of this name in the key file of the app.
fn key(app: &App, name: &str) -> String {
    let keys = app.read(".bindpost/keys").expect("the file exists");
    let mut lines = keys.lines().filter_map(|line| line.split_once(" = "));
    lines.find(|(found, _)| *found == name).expect("the key exists").1.to_owned()
}

/// Returns the status of a call with these headers.
fn status(client: &Client, path: &str, headers: &[(&str, &str)]) -> u16 {
    client.post(path, headers, &call("pid", json!({}))).expect("an answer").status
}

#[test]
fn require_key_requires_a_key_on_loopback() {
    let app = app();
    let host = Host::start(&app, &["--require-key"]);
    assert_eq!(host.ready["requiresKey"], true);
    let (own, master) = (key(&app, "mcp_extension"), key(&app, "_master"));
    assert_ne!(own, master);
    assert_eq!(status(&host, MCP, &[]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", "wrong")]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", "")]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &own)]), 200);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &master)]), 200);
    assert_eq!(status(&host, &format!("{MCP}?code={own}"), &[]), 200);
    assert_eq!(status(&host, &format!("{MCP}?code={master}"), &[]), 200);
    assert_eq!(status(&host, &format!("{MCP}?code=wrong"), &[]), 401);
    assert_eq!(status(&host, &format!("/mcp?code={own}"), &[]), 200);
    assert_eq!(status(&host, "/mcp", &[]), 401);
    // The header takes precedence, as on Azure.
    assert_eq!(status(&host, &format!("{MCP}?code={own}"), &[("x-functions-key", "wrong")]), 401);
    assert_eq!(host.get(SSE).status, 401);
    // The health endpoints need no key.
    assert_eq!(host.get("/_/healthz").status, 200);
    assert_eq!(host.readiness(), 200);
    // Keys must not be in the log.
    assert!(!host.said().contains(&own), "{}", host.said());
}

#[test]
fn keys_are_created_once_and_only_their_owner_can_read_them() {
    let app = app();
    let first = {
        let _host = Host::start(&app, &["--require-key"]);
        app.read(".bindpost/keys").expect("created at the start")
    };
    let mode =
        std::fs::metadata(app.path().join(".bindpost/keys")).expect("the file exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let host = Host::start(&app, &["--require-key"]);
    assert_eq!(app.read(".bindpost/keys").expect("the file exists"), first);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app, "mcp_extension"))]), 200);
}

#[test]
fn a_host_without_authentication_creates_no_keys() {
    let app = app();
    let host = Host::start(&app, &[]);
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(status(&host, MCP, &[]), 200);
    assert_eq!(app.read(".bindpost/keys"), None);
}

#[test]
fn the_endpoint_event_repeats_a_key_only_if_it_came_in_the_query() {
    let app = app();
    let host = Host::start(&app, &["--require-key"]);
    let own = key(&app, "mcp_extension");
    let by_header = Events::open(&host, SSE, &[("x-functions-key", &own)]).next().expect("an event");
    assert!(by_header.contains("message?") && !by_header.contains("code"), "{by_header}");
    let mut stream = Events::open(&host, &format!("{SSE}?code={own}"), &[]);
    let by_query = stream.next().expect("an event");
    assert!(by_query.contains(&own) || by_query.contains(&own.replace('=', "%3D")), "{by_query}");
    // The endpoint leads back to this stream without further parameters.
    let path = format!("{MCP}/{}", by_query.rsplit('/').next().expect("a path"));
    assert_eq!(status(&host, &path, &[]), 202);
    assert_eq!(status(&host, &path.replace("code=", "no="), &[]), 401);
}

fn start_for_others(app: &App, arguments: &[&str]) -> Host {
    Host::start_with(command(app.path()).args(["--host", "0.0.0.0", "--port", "0"]).args(arguments))
}

#[test]
fn an_address_that_other_machines_can_reach_requires_a_key() {
    let app = app();
    let host = start_for_others(&app, &[]);
    assert_eq!(host.ready["requiresKey"], true);
    assert_eq!(status(&host, MCP, &[]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app, "mcp_extension"))]), 200);
}

/// A host name other than the loopback names means that other machines are served, whatever the address is.
#[test]
fn a_name_that_other_machines_use_requires_a_key() {
    let app = app();
    for name in ["functions.example.com", "*"] {
        let host = Host::start(&app, &["--allow-host", name]);
        assert_eq!(host.ready["requiresKey"], true, "{name}");
        assert_eq!(status(&host, MCP, &[]), 401, "{name}");
        assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app, "mcp_extension"))]), 200, "{name}");
    }
    let host = Host::start(&app, &["--allow-host", "functions.example.com", "--without-auth"]);
    assert_eq!(host.ready["requiresKey"], false);
    let host = Host::start(&app, &["--allow-host", "localhost:8080"]);
    assert_eq!(host.ready["requiresKey"], false);
}

#[test]
fn without_auth_requires_no_key_on_any_address() {
    let app = app();
    let host = start_for_others(&app, &["--without-auth"]);
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(status(&host, MCP, &[]), 200);
}

#[test]
fn an_anonymous_app_requires_no_key_on_any_address() {
    let anonymous = json!({"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}}});
    let app = app().host(anonymous);
    let host = start_for_others(&app, &[]);
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(status(&host, MCP, &[]), 200);
}
