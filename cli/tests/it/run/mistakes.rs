//! Apps that do not start: their errors, and that no process is left behind.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use super::app::{App, PID, tool};
use super::host::{command, run_to_end};

/// Runs an app that must not start and returns its stderr.
fn refusal(command: Command) -> String {
    let output = run_to_end(command);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it must fail, printed:\n{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "errors belong on stderr");
    stderr
}

fn assert_says(stderr: &str, parts: &[&str]) {
    for part in parts {
        assert!(stderr.contains(part), "{part:?} is not in:\n{stderr}");
    }
}

fn on_any_port(app: &App) -> Command {
    let mut command = command(app.path());
    command.args(["--port", "0"]);
    command
}

#[test]
fn a_mistake_in_host_json_names_the_file_the_member_and_the_fix() {
    let cases: [(&str, &[&str]); 4] = [
        (
            r#"{"version": "2.0", "functionTimeout": "soon"}"#,
            &["host.json: functionTimeout: \"soon\"", "fix: write it as hh:mm:ss"],
        ),
        (r#"{"version": "1.0"}"#, &["host.json: version:", "fix: write \"version\": \"2.0\""]),
        (r#"{"version": "2.0","#, &["host.json: is not valid JSON: line 1"]),
        (
            r#"{"version": "2.0", "extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Guest"}}}}"#,
            &["host.json: extensions.mcp.system.webhookAuthorizationLevel", "fix:"],
        ),
    ];
    for (host, says) in cases {
        let app = App::node().tool("pid", PID).with("host.json", host);
        assert_says(&refusal(on_any_port(&app)), says);
    }
}

#[test]
fn a_mistake_in_the_only_function_names_the_file_the_function_the_member_and_the_fix() {
    let trigger = tool("pid").replace("\"toolName\"", "\"noName\"");
    let app = App::node().tool("pid", PID).with("pid/function.json", &trigger);
    let stderr = refusal(on_any_port(&app));
    assert_says(
        &stderr,
        &[
            "pid/function.json: function pid: mcpToolTrigger.toolName: is required",
            "fix: give toolName a text",
        ],
    );
}

#[test]
fn a_script_that_does_not_load_is_shown_with_its_error() {
    let app = App::node().tool("pid", "module.exports = async () => {");
    assert_says(
        &refusal(on_any_port(&app)),
        &["function pid", "the worker cannot load it: pid/index.js:1: "],
    );
}

#[test]
fn a_missing_folder_is_named() {
    let app = App::node();
    let stderr = refusal(command(app.path().join("nowhere")));
    assert_says(&stderr, &["nowhere", "fix: pass the folder that contains the app's host.json"]);
}

#[test]
fn a_folder_without_host_json_is_rejected() {
    let app = App::node();
    std::fs::create_dir(app.path().join("empty")).expect("creates");
    assert_says(
        &refusal(command(app.path().join("empty"))),
        &["host.json", "this folder is not a function app", "fix:"],
    );
}

#[test]
fn a_missing_interpreter_is_reported_with_a_fix() {
    let app = App::node().tool("pid", PID);
    let mut command = on_any_port(&app);
    command.env("PATH", app.path());
    let stderr = refusal(command);
    assert_says(&stderr, &["Node was not found: looked for node on the PATH", "\n  fix: "]);
}

#[test]
fn a_missing_custom_handler_is_named() {
    let app = App::handler(&["pid"], "", "").with(
        "host.json",
        r#"{"version": "2.0", "customHandler": {"description": {"defaultExecutablePath": "no-such-handler"}}}"#,
    );
    assert_says(&refusal(on_any_port(&app)), &["no-such-handler"]);
}

#[test]
fn a_port_in_use_fails_at_once_and_starts_no_worker() {
    let app = App::node().tool("pid", &format!("require('node:fs').writeFileSync('started.txt', '');{PID}"));
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = taken.local_addr().expect("bound");
    let mut command = command(app.path());
    command.args(["--port", &address.port().to_string()]);
    let begin = Instant::now();
    let stderr = refusal(command);
    // The requirement is one second on an idle machine.
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_says(&stderr, &[&address.to_string(), "fix: choose another port with --port N"]);
    assert_eq!(app.read("started.txt"), None, "a worker was started");
}

#[test]
fn a_worker_that_ends_while_it_starts_is_not_restarted() {
    let crash =
        "require('node:fs').appendFileSync('starts.txt', '.'); console.error('no licence'); process.exit(3);";
    let app =
        App::node().tool("pid", PID).with("package.json", r#"{"main": "crash.js"}"#).with("crash.js", crash);
    let mut command = on_any_port(&app);
    command.arg("--no-install");
    let stderr = refusal(command);
    assert_says(&stderr, &["exit code 3", "no licence"]);
    assert_eq!(app.read("starts.txt").as_deref(), Some("."));

    let more = "open('starts.txt', 'a').write('.'); print('no licence', file=sys.stderr); sys.exit(3)";
    let app = App::handler(&["pid"], "", more);
    let stderr = refusal(on_any_port(&app));
    assert_says(&stderr, &["exit code 3", "no licence", "handler.py"]);
    assert_eq!(app.read("starts.txt").as_deref(), Some("."));
}
