//! Apps that do not start: what their errors say.

use crate::served::Launch;

const HOST: (&str, &str) = ("host.json", r#"{"version": "2.0"}"#);
const BROKEN: &str = "import azure.functions as func\n\nprint('before')\napp = func.FunctionApp(\n";

#[tokio::test]
async fn the_last_line_is_the_error_of_the_app() {
    let python = Launch::of_files(&[HOST, ("function_app.py", BROKEN)]).python("1.25.0");
    let error = python.refusal().await;
    assert_eq!(
        error,
        "the worker could not list its functions: SyntaxError in function_app.py, line 4: '(' was never closed"
    );

    let printing = "print('before')\nraise ValueError('no licence')\n";
    let python = Launch::of_files(&[HOST, ("function_app.py", printing)]).python("1.25.0");
    assert_eq!(
        python.refusal().await,
        "the worker could not list its functions\n  the last lines of its console:\n    before\n  ValueError in function_app.py, line 2: no licence"
    );
}

#[tokio::test]
async fn the_last_lines_are_the_console_if_the_worker_exits() {
    let package = ("package.json", r#"{"main": "crash.js"}"#);
    let crash = ("crash.js", "console.error('no licence'); process.exit(3);");
    let error = Launch::of_files(&[HOST, package, crash]).node("4.16.5").refusal().await;
    assert!(error.starts_with("the worker exited (exit code 3) before it was ready\n  command: "), "{error}");
    assert!(error.contains("  the last lines of its console:\n    no licence"), "{error}");
    assert!(
        error.ends_with("    The app called process.exit(3) at crash.js:1, so its worker exits."),
        "{error}"
    );

    let handler = r#"{"version": "2.0", "customHandler": {"description": {"defaultExecutablePath": "sh",
        "arguments": ["-c", "echo no licence >&2; exit 3"]}}}"#;
    let tool =
        r#"{"bindings": [{"type": "mcpToolTrigger", "direction": "in", "name": "c", "toolName": "t"}]}"#;
    let error = Launch::of_files(&[("host.json", handler), ("t/function.json", tool)]).refusal().await;
    assert!(error.ends_with("    no licence"), "{error}");
}

#[tokio::test]
async fn an_old_library_is_reported_with_the_version_that_has_the_feature() {
    let tool = r#"@app.mcp_tool_trigger(arg_name="context", tool_name="t", description="d")"#;
    let prompt = r#"@app.mcp_prompt_trigger(arg_name="context", prompt_name="p")"#;
    for (installed, import, decorator, says) in [
        (
            "1.21.0",
            "",
            tool,
            "line 4: mcp_tool_trigger needs azure-functions 1.24.0 or newer, but 1.21.0 is installed",
        ),
        (
            "1.24.0",
            "",
            "@app.mcp_tool()",
            "line 4: mcp_tool needs azure-functions 1.25.0 or newer, but 1.24.0 is installed",
        ),
        (
            "1.24.0",
            "from azure.functions import MCPToolContext",
            tool,
            "line 2: MCPToolContext needs azure-functions 1.25.0 or newer, but 1.24.0 is installed",
        ),
        (
            "1.24.0",
            "kind = func.McpPropertyType.STRING",
            tool,
            "line 2: McpPropertyType needs azure-functions 1.25.0 or newer, but 1.24.0 is installed",
        ),
        (
            "1.25.0",
            "",
            prompt,
            "line 4: mcp_prompt_trigger needs azure-functions 1.26.0b3 or newer, but 1.25.0 is installed",
        ),
    ] {
        let code = format!(
            "import azure.functions as func\n{import}\napp = func.FunctionApp()\n{decorator}\ndef f(context):\n    return ''\n"
        );
        let files = [HOST, ("function_app.py", code.as_str()), ("requirements.txt", "azure-functions\n")];
        let error = Launch::of_files(&files).python(installed).refusal().await;
        assert!(error.starts_with("the worker could not list its functions: function_app.py, "), "{error}");
        assert!(error.contains(says), "{error}");
        assert!(
            error.contains("is installed. Require azure-functions>=1.2")
                && error.contains(" in requirements.txt"),
            "{error}"
        );
        // Without the decorator, the trigger can be written as a generic one.
        assert_eq!(error.contains("generic_trigger"), decorator == prompt, "{error}");
    }
}

#[tokio::test]
async fn other_missing_names_are_reported_as_they_are() {
    let code = "import azure.functions as func\napp = func.FunctionApp()\napp.mcp_tol_trigger()\n";
    let error = Launch::of_files(&[HOST, ("function_app.py", code)]).python("1.25.0").refusal().await;
    assert!(error.ends_with("AttributeError in function_app.py, line 3: 'FunctionApp' object has no attribute 'mcp_tol_trigger'"), "{error}");
}

#[tokio::test]
async fn an_app_without_functions_says_where_they_were_searched() {
    let app = ("function_app.py", "import azure.functions as func\napp = func.FunctionApp()\n");
    let none = "no folder of the app has a function.json";
    let error = Launch::of_files(&[HOST, app]).python("1.25.0").refusal().await;
    let says = format!(
        "no functions were found: function_app.py declares none, and {none}\n  fix: add a function with"
    );
    assert!(error.starts_with(&says), "{error}");

    let requirements = ("requirements.txt", "azure-functions\n");
    let error = Launch::of_files(&[HOST, requirements]).python("1.25.0").refusal().await;
    let says = format!(
        "no functions were found: there is no function_app.py, and {none}\n  fix: put the functions into"
    );
    assert!(error.starts_with(&says), "{error}");

    for (package, index, places) in [
        (
            r#"{"main": "src/*.js"}"#,
            "src/a.js",
            r#"no file that "main" of package.json names (src/*.js) registers one"#,
        ),
        ("{}", "index.js", r#"package.json has no "main", index.js registers none"#),
        ("{}", "other.js", r#"package.json has no "main", there is no index.js"#),
    ] {
        let files = [HOST, ("package.json", package), (index, "console.log('loaded');")];
        let error = Launch::of_files(&files).node("4.16.5").refusal().await;
        let says = format!("no functions were found: {places}, and {none}\n  fix: ");
        assert!(error.starts_with(&says), "{error}");
        let loaded = "\n  the last lines of the worker's console:\n    loaded";
        assert_eq!(error.ends_with(loaded), index != "other.js", "{error}");
    }

    let handler = r#"{"version": "2.0", "customHandler": {"description": {"defaultExecutablePath": "no-such-program"}}}"#;
    let error = Launch::of_files(&[("host.json", handler)]).refusal().await;
    let says = format!("no functions were found: {none}\n  fix: add a folder for each function");
    assert!(error.starts_with(&says), "{error}");
}
