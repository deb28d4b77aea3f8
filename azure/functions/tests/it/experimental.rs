//! .NET and PowerShell apps, run by a stand-in for `dotnet`: no .NET is needed. They show what bindpost sends and
//! accepts, not that the real workers agree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bindpost_azure_functions::WorkerKind;
use bindpost_azure_functions::app::WorkerRuntime;
use serde_json::json;

use crate::client::Way;
use crate::folder::Folder;
use crate::scratch::Scratch;
use crate::served::Launch;
use crate::worker_scripted::{SCRIPT, Script, Step};

const HOST: (&str, &str) = ("host.json", r#"{"version": "2.0"}"#);

const DOTNET: &str = r#"{"description": {"language": "dotnet-isolated", "extensions": [".dll"],
    "defaultExecutablePath": "dotnet", "defaultWorkerPath": "App.dll", "workerIndexing": "true", "canUsePlaceholder": true}}"#;

const POWERSHELL: &str = r#"{"description": {"language": "powershell", "extensions": [".ps1", ".psm1"],
    "defaultExecutablePath": "dotnet", "defaultRuntimeVersion": "7.4",
    "defaultWorkerPath": "%FUNCTIONS_WORKER_RUNTIME_VERSION%/Worker.dll"}}"#;

/// Makes a folder with a program `dotnet` that is a scripted worker.
fn stand_in_for_dotnet() -> Scratch {
    let folder = Scratch::new();
    let dotnet = folder.path().join("dotnet");
    let worker = std::env::current_exe().unwrap();
    let worker = worker.display();
    let line = format!(
        "#!/bin/sh\nexec {worker} --exact --nocapture --test-threads=1 -- worker_scripted::process \"$@\"\n"
    );
    fs::write(&dotnet, line).unwrap();
    fs::set_permissions(&dotnet, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn with_script(launch: Launch, dotnet: &Path, script: &Script) -> Launch {
    let path = format!("{}:{}", dotnet.display(), std::env::var("PATH").unwrap());
    launch.setting("PATH", &path).setting(SCRIPT, &serde_json::to_string(script).unwrap())
}

fn steps(step: Step) -> BTreeMap<String, Vec<Step>> {
    BTreeMap::from([("Hello".to_owned(), vec![step])])
}

#[tokio::test]
async fn a_built_dotnet_app_is_its_own_worker() {
    let binding =
        json!({"type": "mcpToolTrigger", "direction": "In", "name": "context", "toolName": "hello"});
    let script = Script {
        functions: steps(Step::Return("hello from .NET".to_owned())),
        binding: Some(binding.to_string()),
        ..Script::default()
    };
    let dotnet = stand_in_for_dotnet();
    let launch = Launch::of_files(&[HOST, ("worker.config.json", DOTNET), ("App.dll", "")]);
    let host = with_script(launch, dotnet.path(), &script).serve();
    assert_eq!(host.report.worker.kind, WorkerKind::Public);
    let warnings: Vec<&str> = host.report.warnings.iter().map(|warning| &*warning.message).collect();
    assert!(warnings[0].starts_with(".NET apps are experimental"), "{warnings:?}");
    for mut client in host.clients().await {
        assert_eq!(client.call("hello", json!({})).await["content"][0]["text"], "hello from .NET");
    }
    assert_eq!(fs::read_to_string(host.file("loads")).unwrap(), "context=mcpToolTrigger\n");
}

#[tokio::test]
async fn a_powershell_tool_returns_what_it_writes_to_the_pipeline() {
    let function = json!({"bindings": [
        {"type": "mcpToolTrigger", "direction": "in", "name": "call", "toolName": "hello"},
        {"type": "blob", "direction": "out", "name": "file", "path": "files/a"},
    ]});
    let text = r#"{"b":1,"a":[2,  3]}"#;
    let script = Script { functions: steps(Step::ReturnJson(text.to_owned())), ..Script::default() };
    let (dotnet, worker) = (stand_in_for_dotnet(), Folder::new());
    let worker = worker.with("worker.config.json", POWERSHELL).with("7.4/Worker.dll", "");
    let launch =
        Launch::of_files(&[HOST, ("Hello/function.json", &function.to_string()), ("Hello/run.ps1", "")])
            .setting("FUNCTIONS_WORKER_RUNTIME", "powershell")
            .setting("languageWorkers__powershell__workerDirectory", worker.path().to_str().unwrap());
    let host = with_script(launch, dotnet.path(), &script).serve();
    let warnings: Vec<&str> = host.report.warnings.iter().map(|warning| &*warning.message).collect();
    assert!(warnings[0].starts_with("PowerShell apps are experimental"), "{warnings:?}");
    let mut client = host.client(Way::Alone).await;
    // A script that writes JSON text gets the same text to the client.
    assert_eq!(client.call("hello", json!({})).await["content"][0]["text"], text);
    assert_eq!(fs::read_to_string(host.file("loads")).unwrap(), "call=activityTrigger file=blob\n");
}

#[test]
fn a_dotnet_project_is_told_what_to_run() {
    let project = |files: &[(&str, &str)]| Folder::app(files).without("function_app.py");
    let isolated = r#"<PackageReference Include="Microsoft.Azure.Functions.Worker" Version="2.0.0" />"#;
    let told = project(&[("My.csproj", isolated)]).refusal(&[]);
    assert!(told.starts_with("the app has a My.csproj: it must be built before"), "{told}");
    assert!(told.contains("fix: dotnet build"), "{told}");
    let built = project(&[("My.csproj", isolated), ("bin/Debug/net8.0/worker.config.json", DOTNET)]);
    let told = built.refusal(&[]);
    assert!(told.contains("fix: bindpost run ") && told.ends_with("bin/Debug/net8.0"), "{told}");
    let told = project(&[("My.csproj", "<Project />")]).refusal(&[]);
    assert!(told.contains("supported only if they are isolated"), "{told}");
}

#[test]
fn an_output_folder_of_dotnet_is_recognized_without_a_setting() {
    let output = Folder::app(&[("worker.config.json", DOTNET)]).without("function_app.py");
    let app = output.open(&[]).unwrap();
    assert_eq!(app.runtime, WorkerRuntime::Other("dotnet-isolated".to_owned()));
    assert_eq!(app.worker_folder().as_deref(), Some(app.folder.as_path()));
}
