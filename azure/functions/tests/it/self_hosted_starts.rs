//! What prevents the start of a self-hosted app, and which program starts.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::{env, fs};

use serde_json::{Value, json};

use crate::served::Launch;

/// Returns a self-hosted app with this program. `handler` are more members of `customHandler`.
fn app(program: &str, arguments: &[&str], handler: Value) -> Launch {
    let mut section = json!({"description": {"defaultExecutablePath": program, "arguments": arguments}});
    section.as_object_mut().unwrap().extend(handler.as_object().unwrap().clone());
    let host = json!({
        "version": "2.0", "configurationProfile": "mcp-custom-handler", "customHandler": section,
    });
    Launch::of_files(&[("host.json", &host.to_string())])
}

/// Serves 404 on the port in the first argument.
const SERVER: &str = "
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
HTTPServer(('127.0.0.1', int(os.path.expandvars(sys.argv[1]))), BaseHTTPRequestHandler).serve_forever()
";

fn free_port() -> u16 {
    // Not a port that the system gives to the sockets of parallel tests.
    let random = RandomState::new().build_hasher().finish() % 12_000;
    let mut ports = (0..12_000).map(|step| 20_000 + ((random + step) % 12_000) as u16);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

#[tokio::test]
async fn a_port_in_use_names_the_program_that_has_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let app =
        app("python3", &["server.py", "0"], json!({"port": port.to_string()})).file("server.py", SERVER);
    let refusal = app.refusal().await;
    let begin =
        format!("host.json: customHandler.port: port {port} of the server of the app is already in use");
    assert!(refusal.starts_with(&begin), "{refusal}");
    assert!(refusal.contains("\n  fix: end that program, or choose another port"), "{refusal}");
    if cfg!(target_os = "linux") {
        assert!(refusal.contains(" in use by bindpost itself\n"), "{refusal}");
    }
}

#[tokio::test]
async fn a_server_on_another_port_is_told_with_that_port() {
    let port = free_port();
    let members = json!({"initializationTimeout": "00:00:03"});
    let app = app("python3", &["server.py", &port.to_string()], members).file("server.py", SERVER);
    let refusal = app.refusal().await;
    assert!(refusal.starts_with("the server of the app did not answer GET / on 127.0.0.1:"), "{refusal}");
    if cfg!(target_os = "linux") {
        let elsewhere = format!(
            "; it listens on 127.0.0.1:{port}\n  fix: write \"port\": {port} into customHandler of host.json"
        );
        assert!(refusal.contains(&elsewhere), "{refusal}");
    }
}

#[tokio::test]
async fn a_server_that_exits_is_told_with_its_console() {
    let app = app("python3", &["server.py"], json!({})).file("server.py", "import no_such_module");
    let refusal = app.refusal().await;
    assert!(
        refusal.starts_with("the server of the app exited (exit code 1) before it was ready\n"),
        "{refusal}"
    );
    assert!(refusal.contains("ModuleNotFoundError: No module named 'no_such_module'"), "{refusal}");
}

#[tokio::test]
async fn functions_beside_a_server_are_an_error() {
    let app =
        app("python3", &["server.py"], json!({})).file("server.py", "").file("Greet/function.json", "{}");
    let refusal = app.refusal().await;
    assert!(
        refusal.starts_with("host.json: requests are forwarded to a server, but the app also has functions: Greet/function.json"),
        "{refusal}"
    );
}

#[tokio::test]
async fn several_processes_are_not_possible() {
    let app = app("python3", &["server.py"], json!({})).file("server.py", "");
    let refusal = app.options(|options| options.processes = Some(2)).refusal().await;
    assert!(
        refusal.starts_with("--processes 2 is not possible") && refusal.contains("\n  fix: "),
        "{refusal}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_found_is_told_with_its_fix() {
    let no_program = "host.json: customHandler.description.defaultExecutablePath: ";
    for (program, says, fix) in [
        ("no-such-program", "no-such-program was not found: looked for ", "install it, or write the path"),
        ("bin/server", "bin/server was not found: looked for ", "install it, or write the path"),
        ("/no/such/server", "was not found: looked for this file and server on the PATH", "install it"),
        ("%NO_SUCH%/server", "%NO_SUCH%/server was not found", "set the setting"),
    ] {
        let refusal = app(program, &[], json!({})).refusal().await;
        assert!(refusal.starts_with(no_program) && refusal.contains(says), "{refusal}");
        assert!(refusal.contains(&format!("\n  fix: {fix}")), "{refusal}");
    }
    let refusal = app("server", &[], json!({})).file("server", "#!/bin/sh\n").refusal().await;
    assert!(refusal.contains("server is not executable\n  fix: chmod +x "), "{refusal}");
}

#[tokio::test]
async fn a_build_that_is_missing_is_told_with_its_command() {
    let missing = |file: &str| {
        format!(
            "host.json: customHandler.description.arguments: {file} does not exist: the app is not built\n  fix: "
        )
    };
    let dotnet = || app("dotnet", &["Server.dll"], json!({})).file("Server.csproj", "");
    let refusal = dotnet().refusal().await;
    let fix = "dotnet publish -c Release   (in ";
    assert!(refusal.starts_with(&(missing("Server.dll") + fix)), "{refusal}");
    let published = dotnet().file("bin/Release/net8.0/publish/Server.dll", "");
    let published = published.file("bin/Release/net8.0/publish/host.json", "{}");
    let refusal = published.refusal().await;
    assert!(refusal.ends_with("bin/Release/net8.0/publish"), "{refusal}");

    let java = || app("/opt/no/java", &["-jar", "app.jar"], json!({})).file("pom.xml", "");
    let refusal = java().refusal().await;
    assert!(refusal.starts_with(&(missing("app.jar") + "mvn package   (in ")), "{refusal}");
    let refusal = java().file("target/azure-functions/app/host.json", "{}").refusal().await;
    assert!(
        refusal.contains("fix: bindpost run ") && refusal.ends_with("target/azure-functions/app"),
        "{refusal}"
    );

    let refusal = app("python3", &["serve.py"], json!({})).refusal().await;
    assert!(
        refusal.contains("serve.py does not exist\n  fix: write the name of a file of the app"),
        "{refusal}"
    );
}

/// The official sample for Java names the path of Java in Azure.
#[tokio::test]
async fn an_absolute_path_of_another_machine_is_replaced_by_the_program_of_that_name() {
    let host = app("/no/such/bin/python3", &["server.py", "$FUNCTIONS_CUSTOMHANDLER_PORT"], json!({}))
        .file("server.py", SERVER)
        .serve();
    let warning = &host.report.warnings[0].message;
    assert!(warning.contains("/no/such/bin/python3 does not exist here; "), "{warning}");
}

#[tokio::test]
async fn settings_are_expanded_in_the_path_of_the_program() {
    let path = env::var("PATH").unwrap();
    let shell =
        env::split_paths(&path).map(|folder| folder.join("python3")).find(|file| file.is_file()).unwrap();
    let folder = shell.parent().unwrap().to_str().unwrap().to_owned();
    let host = app("%TOOLS%/python3", &["server.py", "$PORT"], json!({}))
        .setting("TOOLS", &folder)
        .file("server.py", SERVER)
        .serve();
    assert_eq!(host.report.warnings, []);
}

/// A program in the app's folder is preferred to one of the same name on the PATH. The port is in `PORT` too.
#[tokio::test]
async fn a_program_of_the_app_is_started() {
    let script = "#!/bin/sh\nexec python3 server.py \"$PORT\"\n";
    let launch =
        app("python3-server", &[], json!({})).file("server.py", SERVER).file("python3-server", script);
    let program = launch.path("python3-server");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let host = launch.serve();
    assert_eq!(host.report.worker.place.as_deref(), program.to_str());
}
