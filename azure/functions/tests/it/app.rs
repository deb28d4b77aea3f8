//! Reads apps from disk.

use std::path::Path;
use std::time::Duration;

use bindpost_azure_functions::app::{
    App, HttpToolConfig, LocalHostConfig, LogLevel, McpConfig, NamePatterns, TaskConfig,
    WebhookAuthorization, WorkerRuntime,
};
use bindpost_azure_functions::function::Trigger;

use crate::folder::Folder;

const TOOL: &str = r#"{"type": "mcpToolTrigger", "direction": "in", "name": "context", "toolName": "t"}"#;

fn with_host(host: &str) -> Folder {
    Folder::app(&[("host.json", host)])
}

#[test]
fn a_small_app_has_the_defaults_of_azure() {
    let folder = Folder::app(&[]);
    let app = folder.open(&[]).unwrap();
    assert_eq!(
        app.host.mcp,
        McpConfig {
            server_name: "Azure Functions MCP server".to_owned(),
            server_version: "1.0.0".to_owned(),
            instructions: None,
            encrypt_client_state: true,
            use_absolute_uri_for_endpoint: false,
            webhook_authorization: WebhookAuthorization::System,
            validate_arguments: false,
            detect_prompt_json: true,
            max_request_body_bytes: 104_857_600,
            tasks: TaskConfig {
                tools: NamePatterns::Matching(Vec::new()),
                lifetime: Duration::from_secs(3600),
                answer_after: None,
            },
            http_tools: HttpToolConfig::default(),
        }
    );
    assert_eq!(app.host.function_timeout, Some(Duration::from_secs(1800)));
    assert_eq!(app.host.log_levels.level("Host.Startup"), LogLevel::Information);
    assert!(app.host.custom_handler.is_none());
    assert_eq!(app.runtime, WorkerRuntime::Python);
    assert_eq!(app.local, LocalHostConfig::default());
    assert_eq!(app.folder, folder.path());
    assert_eq!(app.worker_folder(), None);
}

#[test]
fn host_json_is_read_in_any_case_with_comments_and_settings() {
    let host = r#"{
        "Version": "2.0", // the only one
        "unknown": {"a": [1,]},
        "Extensions": {"MCP": {
            "ServerName": "%NAME% server", "serverVersion": "2.1.0", "instructions": "Ask.", "encryptClientState": false,
            "messageOptions": {"useAbsoluteUriForEndpoint": true}, "system": {"webhookAuthorizationLevel": "anonymous"},
            "validateArguments": true, "detectPromptJson": false, "maxRequestBodyBytes": 1024,
            "tasks": {"tools": ["mine_*", "dig"], "lifetime": "02:00:00", "answerAfter": "00:00:20"},
            "HttpTools": {"Include": ["Get*"], "exclude": "GetAll", "openapi": "docs/api.yaml"},
        }},
        "functionTimeout": "00:10:00",
        "logging": {"logLevel": {"default": "Error", "Function.a": "Debug"}},
    }"#;
    let app = with_host(host).open(&[("NAME", "My")]).unwrap();
    assert_eq!(
        app.host.mcp,
        McpConfig {
            server_name: "My server".to_owned(),
            server_version: "2.1.0".to_owned(),
            instructions: Some("Ask.".to_owned()),
            encrypt_client_state: false,
            use_absolute_uri_for_endpoint: true,
            webhook_authorization: WebhookAuthorization::Anonymous,
            validate_arguments: true,
            detect_prompt_json: false,
            max_request_body_bytes: 1024,
            tasks: TaskConfig {
                tools: NamePatterns::Matching(vec!["mine_*".to_owned(), "dig".to_owned()]),
                lifetime: Duration::from_secs(7200),
                answer_after: Some(Duration::from_secs(20)),
            },
            http_tools: HttpToolConfig {
                include: NamePatterns::Matching(vec!["Get*".to_owned()]),
                exclude: NamePatterns::Matching(vec!["GetAll".to_owned()]),
                openapi: Some("docs/api.yaml".to_owned()),
            },
        }
    );
    assert_eq!(app.host.function_timeout, Some(Duration::from_secs(600)));
    assert_eq!(app.host.log_levels.level("Function.a.User"), LogLevel::Debug);
    assert_eq!(app.host.log_levels.level("Function.b"), LogLevel::Error);
}

#[test]
fn unknown_members_of_the_mcp_section_are_warnings() {
    let host = r#"{"version": "2.0", "extensions": {"http": {"x": 1}, "mcp": {
        "SERVERNAME": "s", "instruction": "i", "colour": 1,
        "system": {"authorizationLevel": "System"}, "messageOptions": {"useAbsoluteUri": true}, "tasks": {"lifetimes": "01:00:00"}, "httpTools": {"includes": ["a"]}}}}"#;
    let app = with_host(host).open(&[]).unwrap();
    let told: Vec<String> = app.host.warnings.iter().map(ToString::to_string).collect();
    let at = "host.json: extensions.mcp.";
    let says = "is not a setting and has no effect\n  fix:";
    let all = "the settings are serverName, serverVersion, instructions, encryptClientState, messageOptions, system, validateArguments, \
               detectPromptJson, maxRequestBodyBytes, tasks, httpTools";
    let expected = [
        format!("{at}colour: {says} remove it; {all}"),
        format!("{at}instruction: {says} write \"instructions\""),
        format!("{at}messageOptions.useAbsoluteUri: {says} write \"useAbsoluteUriForEndpoint\""),
        format!("{at}system.authorizationLevel: {says} write \"webhookAuthorizationLevel\""),
        format!("{at}tasks.lifetimes: {says} write \"lifetime\""),
        format!("{at}httpTools.includes: {says} write \"include\""),
    ];
    assert_eq!(told, expected);
    assert_eq!(with_host(r#"{"version": "2.0"}"#).open(&[]).unwrap().host.warnings, []);
}

#[test]
fn settings_change_host_json() {
    let app = with_host(
        r#"{"version": "2.0", "extensions": {"mcp": {"serverName": "a"}}, "functionTimeout": "-1"}"#,
    )
    .open(&[
        ("AzureFunctionsJobHost__extensions__mcp__servername", "b"),
        ("AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel", "Anonymous"),
        ("AzureFunctionsJobHost__extensions__mcp__validateArguments", "true"),
        ("AzureFunctionsJobHost__extensions__mcp__tasks__tools", "True"),
        ("AzureFunctionsJobHost__logging__logLevel__default", "Trace"),
    ])
    .unwrap();
    assert_eq!(app.host.mcp.tasks.tools, NamePatterns::All);
    assert_eq!(app.host.mcp.server_name, "b");
    assert_eq!(app.host.mcp.webhook_authorization, WebhookAuthorization::Anonymous);
    assert!(app.host.mcp.validate_arguments);
    assert_eq!(app.host.log_levels.level("x"), LogLevel::Trace);
    assert_eq!(app.host.function_timeout, None);
}

#[test]
fn every_mistake_in_host_json_is_reported_with_its_member() {
    let told = with_host(
        r#"{"version": "1.0", "functionTimeout": "5", "logging": {"logLevel": {"a": "loud"}},
            "extensions": {"mcp": {"serverName": {}, "messageOptions": null, "system": {"webhookAuthorizationLevel": "function"},
                "tasks": {"tools": [{}], "lifetime": "00:00:00"}}},
            "customHandler": {"description": {}, "port": "http"}}"#,
    )
    .refusal(&[]);
    assert_eq!(
        told,
        r#"host.json: version: "1.0" is not a supported version of host.json
  fix: write "version": "2.0"
host.json: extensions.mcp.messageOptions: Message options cannot be null.
  fix: write {}, or remove it
host.json: extensions.mcp.serverName: must be text, not an object
host.json: extensions.mcp.system.webhookAuthorizationLevel: "function" is not an authorization level
  fix: write System or Anonymous
host.json: extensions.mcp.tasks.tools: contains a value that is not text
  fix: give an array of texts
host.json: extensions.mcp.tasks.lifetime: must be more than zero
  fix: write it as hh:mm:ss, like 00:01:30
host.json: functionTimeout: "5" is not a valid duration
  fix: write it as hh:mm:ss, like 00:01:30
host.json: logging.logLevel.a: "loud" is not a log level
  fix: write one of Trace, Debug, Information, Warning, Error, Critical, None
host.json: customHandler.description.defaultExecutablePath: is required
  fix: give defaultExecutablePath a text that is not blank
host.json: customHandler.port: must be a whole number from 0 up, not 'http'"#
    );
}

#[test]
fn a_folder_without_an_app_is_rejected_with_a_fix() {
    let folder = Folder::new();
    assert!(
        folder
            .refusal(&[])
            .starts_with("host.json: does not exist, so this folder is not a function app\n  fix: ")
    );
    let told = App::open(&folder.path().join("nowhere"), []).unwrap_err().to_string();
    assert!(told.contains("nowhere: cannot open the folder: ") && told.contains("fix: "), "{told}");
    let told = with_host("{\n  \"version\": \"2.0\"\n  \"x\": 1}").refusal(&[]);
    assert_eq!(told, "host.json: is not valid JSON: line 3, column 3: expected `,` or `}`");
    assert_eq!(with_host("[]").refusal(&[]), "host.json: must contain a JSON object, but has Array");
    assert_eq!(
        with_host("{}").refusal(&[]),
        "host.json: version: is required\n  fix: write \"version\": \"2.0\""
    );
    let folder = Folder::app(&[]);
    std::fs::write(folder.path().join("host.json"), b"\xff\xfe{\0}\0").unwrap();
    assert_eq!(folder.refusal(&[]), "host.json: is not valid UTF-8\n  fix: save it with the encoding UTF-8");
}

#[test]
fn local_settings_are_read_below_the_environment() {
    let folder = Folder::app(&[(
        "local.settings.json",
        r#"{
        "isEncrypted": false, // fine
        "Values": {"A": "file", "B": "file", "Number": 5, "Flag": true, "Nothing": null, "Deep__Name": "x"},
        "ConnectionStrings": {"Db": "one", "Other": {"ConnectionString": "two", "ProviderName": "p"}},
        "Host": {"LocalHttpPort": 7072, "CORS": "https://a, https://b", "CORSCredentials": true},
    }"#,
    )]);
    let app = folder.open(&[("A", "environment")]).unwrap();
    let get = |name: &str| app.settings.get(name);
    assert_eq!(
        [get("A"), get("B"), get("Number"), get("Flag")],
        [Some("environment"), Some("file"), Some("5"), Some("true")]
    );
    assert_eq!([get("Nothing"), get("deep:name")], [None, Some("x")]);
    assert_eq!([get("ConnectionStrings:Db"), get("ConnectionStrings__Other")], [Some("one"), Some("two")]);
    assert!(app.settings.iter().any(|pair| pair == ("Number", "5")));
    let cors = vec!["https://a".to_owned(), "https://b".to_owned()];
    assert_eq!(app.local, LocalHostConfig { port: Some(7072), cors, cors_credentials: true });
}

#[test]
fn mistakes_in_local_settings_are_reported() {
    let refusal = |text: &str| Folder::app(&[("local.settings.json", text)]).refusal(&[]);
    let told = refusal(r#"{"IsEncrypted": true, "Values": {"A": "CfDJ8"}}"#);
    assert!(told.starts_with("local.settings.json: IsEncrypted: the settings are encrypted"), "{told}");
    assert!(told.contains("func settings decrypt"), "{told}");
    let told = refusal(
        r#"{"Values": {"A": {"B": "secret"}, "C=D": "x", "E": "a\u0000b"}, "Host": {"LocalHttpPort": 0}}"#,
    );
    for member in ["Values.A: ", "Values.C=D: ", "Values.E: ", "Host.LocalHttpPort: "] {
        assert!(told.contains(&format!("local.settings.json: {member}")), "{told}");
    }
    assert!(!told.contains("secret") && told.contains("A__B"), "{told}");
    assert!(
        refusal("{\"Values\": ").starts_with("local.settings.json: is not valid JSON: line 1, column 11: ")
    );
}

#[test]
fn the_setting_chooses_the_runtime() {
    let folder = Folder::app(&[("package.json", "{}")]);
    for (name, runtime) in
        [("node", WorkerRuntime::Node), ("JAVA", WorkerRuntime::Java), ("python", WorkerRuntime::Python)]
    {
        assert_eq!(folder.open(&[("FUNCTIONS_WORKER_RUNTIME", name)]).unwrap().runtime, runtime);
    }
    let told = folder.refusal(&[("FUNCTIONS_WORKER_RUNTIME", "powershell")]);
    assert!(told.contains("has no worker for it\n  fix: set it to python, node, java or custom"), "{told}");
    assert!(told.contains("Azure Functions Core Tools has it in the folder workers/powershell"), "{told}");
    let own = [("FUNCTIONS_WORKER_RUNTIME", "Go"), ("languageWorkers__go__workerDirectory", "w")];
    assert_eq!(folder.open(&own).unwrap().runtime, WorkerRuntime::Other("go".to_owned()));
    let told = folder.refusal(&[("FUNCTIONS_WORKER_RUNTIME", "custom")]);
    assert!(told.starts_with("host.json: customHandler: is required"), "{told}");
}

#[test]
fn the_runtime_is_inferred_from_the_files() {
    let app = |files: &[(&str, &str)]| Folder::app(files).without("function_app.py");
    let function = |script: &str| format!(r#"{{"scriptFile": "{script}", "bindings": []}}"#);
    let handler = r#"{"version": "2.0", "customHandler": {"description": {"defaultExecutablePath": "h"}}}"#;
    for (files, runtime) in [
        (vec![("requirements.txt", "")], WorkerRuntime::Python),
        (vec![("package.json", "")], WorkerRuntime::Node),
        (vec![("pom.xml", "")], WorkerRuntime::Java),
        (vec![("pom.xml", ""), ("extensions.csproj", "")], WorkerRuntime::Java),
        (vec![("package.json", ""), ("host.json", handler)], WorkerRuntime::Custom),
        (vec![("F/function.json", function("../app.jar").as_str())], WorkerRuntime::Java),
        (vec![("F/function.json", function("index.mjs").as_str())], WorkerRuntime::Node),
        (vec![("F/function.json", function("__init__.py").as_str())], WorkerRuntime::Python),
    ] {
        assert_eq!(app(&files).open(&[]).unwrap().runtime, runtime, "{files:?}");
    }
    let python = app(&[("main.py", "")]).open(&[("PYTHON_SCRIPT_FILE_NAME", "main.py")]).unwrap();
    assert_eq!(python.runtime, WorkerRuntime::Python);
    for (files, told) in [
        (vec![], "the language of the app is unknown"),
        (
            vec![("requirements.txt", ""), ("package.json", "")],
            "the app has both a requirements.txt and a package.json",
        ),
        (
            vec![("My.csproj", "")],
            "the app has a My.csproj: .NET apps are supported only if they are isolated",
        ),
        (
            vec![("F/function.json", function("../bin/a.dll").as_str())],
            "a function.json of the app names a .dll: .NET apps are supported only if they are isolated",
        ),
    ] {
        let refusal = app(&files).refusal(&[]);
        assert!(refusal.starts_with(told) && refusal.contains("\n  fix: "), "{refusal}");
    }
}

#[test]
fn a_custom_handler_is_a_program_of_the_app_or_of_the_path() {
    let host = r#"{"version": "2.0", "customHandler": {
        "description": {"defaultExecutablePath": "bin/handler", "workingDirectory": "work", "arguments": ["%A%", "b"], "workerArguments": ["c"]},
        "enableForwardingHttpRequest": true, "http": {"enableProxying": true}, "port": "8080"}}"#;
    let folder = with_host(host).with("bin/handler", "");
    let app = folder.open(&[("A", "a")]).unwrap();
    let handler = app.host.custom_handler.unwrap();
    assert_eq!(
        (handler.arguments.join(" "), handler.worker_arguments.join(" ")),
        ("a b".to_owned(), "c".to_owned())
    );
    assert!(handler.enable_forwarding_http_request && handler.enable_proxying_http_request);
    assert_eq!(handler.port, Some(8080));
    assert_eq!(handler.program(folder.path()), folder.path().join("bin/handler"));
    assert_eq!(handler.directory(folder.path()), folder.path().join("work"));
    let folder = folder.without("bin/handler");
    assert_eq!(handler.program(folder.path()), Path::new("bin/handler"));
}

#[test]
fn functions_of_java_are_read_from_their_folders() {
    let function = format!(
        r#"{{"scriptFile": "../app.jar", "entryPoint": "a.B.c", "bindings": [{TOOL},
        {{"type": "blob", "direction": "out", "name": "$return", "path": "files/d", "dataType": "binary"}}]}}"#
    );
    let folder =
        Folder::app(&[("app.jar", ""), ("Save/function.json", &function)]).without("function_app.py");
    let app = folder.open(&[]).unwrap();
    let found = app.function_folders();
    assert_eq!((found.problems, found.skipped), (vec![], vec![]));
    let [save] = found.functions.as_slice() else { panic!() };
    assert_eq!(
        (save.name.as_str(), save.id.as_str(), save.source.language.as_str()),
        ("Save", "Save", "java")
    );
    assert_eq!(save.source.script_file, folder.path().join("app.jar").display().to_string());
    assert_eq!(save.source.directory, folder.path().join("Save").display().to_string());
    assert_eq!(save.source.entry_point, "a.B.c");
    assert!(matches!(save.trigger, Trigger::Tool(_)) && save.outputs.len() == 1);
}

#[test]
fn a_mistake_in_one_function_does_not_affect_the_others() {
    let queue = r#"{"scriptFile": "gone.js", "bindings": [{"type": "queueTrigger", "name": "q"}]}"#;
    let good = format!(r#"{{"bindings": [{TOOL}], }}"#);
    let folder = Folder::app(&[
        ("package.json", "{}"),
        ("Good/function.json", &good),
        ("Good/index.js", ""),
        ("Queue/function.json", queue),
        ("Broken/function.json", "{\n \"bindings\": [}"),
        ("NoBindings/function.json", r#"{"bindings": {}}"#),
        (
            "NoScript/function.json",
            r#"{"scriptFile": "gone.js", "bindings": [{"type": "mcpToolTrigger", "name": "c"}]}"#,
        ),
        ("1st/function.json", &good),
        ("Off/function.json", &format!(r#"{{"disabled": true, "bindings": [{TOOL}]}}"#)),
        ("OffBySetting/function.json", &good),
        ("OffByName/function.json", &format!(r#"{{"disabled": "IS_OFF", "bindings": [{TOOL}]}}"#)),
        ("lib/index.js", ""),
    ])
    .without("function_app.py");
    let app = folder.open(&[("AzureWebJobs.offbysetting.Disabled", "1"), ("IS_OFF", "true")]).unwrap();
    assert!(app.is_disabled("OffBySetting") && !app.is_disabled("Good"));
    let found = app.function_folders();
    let names: Vec<&str> = found.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["Good"]);
    assert_eq!(
        found.functions[0].source.script_file,
        folder.path().join("Good/index.js").display().to_string()
    );
    let skipped: Vec<String> =
        found.skipped.iter().map(|skipped| format!("{}: {}", skipped.name, skipped.reason)).collect();
    assert_eq!(
        skipped,
        [
            "Off: it is disabled in Off/function.json",
            "OffByName: it is disabled in OffByName/function.json",
            "OffBySetting: it is disabled by the setting AzureWebJobs.OffBySetting.Disabled",
            "Queue: the trigger queueTrigger is not supported; bindpost runs mcpToolTrigger, mcpResourceTrigger, mcpPromptTrigger, httpTrigger and timerTrigger",
        ]
    );
    let told: Vec<String> =
        found.problems.iter().map(|problem| problem.to_string().lines().next().unwrap().to_owned()).collect();
    let gone = folder.path().join("NoScript/gone.js");
    assert_eq!(
        told,
        [
            "1st/function.json: function 1st: '1st' is not a valid function name.".to_owned(),
            "Broken/function.json: function Broken: is not valid JSON: line 2, column 15: expected value"
                .to_owned(),
            "NoBindings/function.json: function NoBindings: bindings: must be an array of objects".to_owned(),
            format!(
                "NoScript/function.json: function NoScript: scriptFile: {} does not exist",
                gone.display()
            ),
            "NoScript/function.json: function NoScript: mcpToolTrigger.toolName: is required".to_owned(),
        ]
    );
}

#[test]
fn sources_of_a_java_app_are_distinguished_from_the_app() {
    let folder = Folder::app(&[("pom.xml", "")]).without("function_app.py");
    let found = folder.open(&[]).unwrap().function_folders();
    assert!(
        found.problems[0]
            .to_string()
            .contains("fix: run `mvn package`, then pass the folder target/azure-functions/")
    );
}
