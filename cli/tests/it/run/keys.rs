//! Who may come in.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::app::{App, PID};
use super::client::{Client, Events, MCP, SSE, call};
use super::host::{Host, command};

fn app() -> App {
    App::node().tool("pid", PID)
}

/// The key of this name in the app's file.
fn key(app: &App, name: &str) -> String {
    let keys = app.read(".bindpost/keys").expect("the file is there");
    let mut lines = keys.lines().filter_map(|line| line.split_once(" = "));
    lines.find(|(found, _)| *found == name).expect("the key is there").1.to_owned()
}

/// The status of a call with these headers.
fn status(client: &Client, path: &str, headers: &[(&str, &str)]) -> u16 {
    client.post(path, headers, &call("pid", json!({}))).expect("an answer").status
}

#[test]
fn a_key_is_asked_for_if_the_user_wants_it() {
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
    // The header wins, as on the platform.
    assert_eq!(status(&host, &format!("{MCP}?code={own}"), &[("x-functions-key", "wrong")]), 401);
    assert_eq!(host.get(SSE).status, 401);
    // Whoever watches the host needs no key.
    assert_eq!(host.get("/_/healthz").status, 200);
    assert_eq!(host.readiness(), 200);
    // Keys do not belong in logs.
    assert!(!host.said().contains(&own), "{}", host.said());
}

#[test]
fn keys_are_made_once_and_only_their_owner_reads_them() {
    let app = app();
    let first = {
        let _host = Host::start(&app, &["--require-key"]);
        app.read(".bindpost/keys").expect("made at the start")
    };
    let mode =
        std::fs::metadata(app.path().join(".bindpost/keys")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let host = Host::start(&app, &["--require-key"]);
    assert_eq!(app.read(".bindpost/keys").expect("it stays"), first);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app, "mcp_extension"))]), 200);
}

#[test]
fn an_open_host_makes_no_keys() {
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
    // It leads back to this stream without anything added, which is what it is for.
    let path = format!("{MCP}/{}", by_query.rsplit('/').next().expect("a path"));
    assert_eq!(status(&host, &path, &[]), 202);
    assert_eq!(status(&host, &path.replace("code=", "no="), &[]), 401);
}

fn start_for_others(app: &App, arguments: &[&str]) -> Host {
    Host::start_with(command(app.path()).args(["--host", "0.0.0.0", "--port", "0"]).args(arguments))
}

#[test]
fn an_address_that_other_machines_reach_asks_for_a_key() {
    let app = app();
    let host = start_for_others(&app, &[]);
    assert_eq!(host.ready["requiresKey"], true);
    assert_eq!(status(&host, MCP, &[]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app, "mcp_extension"))]), 200);
}

/// A name beyond the loopback says that other machines are meant, whatever the address is.
#[test]
fn a_name_that_other_machines_use_asks_for_a_key() {
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
fn without_auth_opens_an_address_that_other_machines_reach() {
    let app = app();
    let host = start_for_others(&app, &["--without-auth"]);
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(status(&host, MCP, &[]), 200);
}

#[test]
fn an_app_that_is_anonymous_is_open_wherever_it_is_served() {
    let anonymous = json!({"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}}});
    let app = app().host(anonymous);
    let host = start_for_others(&app, &[]);
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(status(&host, MCP, &[]), 200);
}
