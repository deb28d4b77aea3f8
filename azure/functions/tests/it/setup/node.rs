//! Node: the interpreter, a real install with npm, and builds.

use std::fs::File;
use std::time::{Duration, SystemTime};

use super::{Folder, Preparation, SetupError, WorkerRuntime, variable};

fn node(app: &Folder) -> Preparation {
    Preparation::of(WorkerRuntime::Node, app)
}

/// Writes an app with its packages, whose build copies `src/index.ts`.
fn built_by_copying(app: &Folder, main: &str) {
    let build = "node -e \\\"const f=require('fs');f.mkdirSync('dist/functions',{recursive:true});\
                 f.copyFileSync('src/index.ts','dist/functions/index.js')\\\"";
    let json = format!(
        r#"{{"name":"app","main":"{main}","scripts":{{"build":"{build}"}},"dependencies":{{"@azure/functions":"4.16.5"}}}}"#
    );
    app.write("package.json", &json);
    app.write("src/index.ts", "// source\n");
}

fn installed(app: &Folder) {
    app.write("node_modules/@azure/functions/package.json", "{}");
}

fn age(app: &Folder, name: &str, seconds: u64) {
    let file = File::options().write(true).open(app.path(name)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[tokio::test]
async fn a_fresh_app_is_installed_and_built_once_and_again_when_it_changes() {
    let app = Folder::new();
    built_by_copying(&app, "dist/{index.js,functions/*.js}");
    let (prepared, steps) = node(&app).ready().await;
    assert_eq!(
        steps,
        ["Installing packages with npm: packages are missing", "Building the app: its output is missing"]
    );
    assert!(prepared.interpreter.unwrap().version.split('.').count() == 3);
    assert!(app.read("node_modules/@azure/functions/package.json").contains("\"4.16.5\""));
    assert_eq!(app.read("dist/functions/index.js"), "// source\n");

    let (prepared, steps) = node(&app).ready().await;
    assert_eq!(steps, [""; 0]);
    assert!(prepared.notices.is_empty(), "{:?}", prepared.notices);

    let json = app.read("package.json").replace("\"name\"", "\"description\":\"changed\",\"name\"");
    app.write("package.json", &json);
    let (_, steps) = node(&app).ready().await;
    assert_eq!(steps, ["Installing packages with npm: package.json or its lock file has changed"]);
}

#[tokio::test]
async fn missing_output_without_install_reports_the_command() {
    let app = Folder::new();
    built_by_copying(&app, "dist/functions/*.js");
    installed(&app);
    let (error, fix) = node(&app).no_install().refused().await;
    assert_eq!(error.to_string(), "no file matches \"main\" of package.json: dist/functions/*.js");
    assert_eq!(fix, format!("npm run build   (in {})", app.0.display()));
}

#[tokio::test]
async fn sources_newer_than_the_output_are_built_again() {
    let app = Folder::new();
    built_by_copying(&app, "dist/**/*.js");
    installed(&app);
    app.write("dist/functions/index.js", "// old output\n");
    age(&app, "dist/functions/index.js", 60);
    let (_, steps) = node(&app).ready().await;
    assert_eq!(steps, [""; 0], "without tsconfig.json nothing is compared");

    app.write("tsconfig.json", "{}");
    let (stale, _) = node(&app).no_install().ready().await;
    assert!(stale.notices[0].message.contains("sources are newer"), "{:?}", stale.notices);
    let (_, steps) = node(&app).ready().await;
    assert_eq!(steps, ["Building the app: sources are newer than its output"]);
    assert_eq!(app.read("dist/functions/index.js"), "// source\n");

    // A build that did not update its output is not repeated forever.
    age(&app, "dist/functions/index.js", 60);
    age(&app, "src/index.ts", 30);
    let (_, steps) = node(&app).ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn the_first_build_does_what_npm_start_does_before_it_starts_the_host() {
    let app = Folder::new();
    let script = |file: &str| {
        format!(
            "node -e \\\"const f=require('fs');f.mkdirSync('dist',{{recursive:true}});f.appendFileSync('dist/{file}','x')\\\""
        )
    };
    let (page, build) = (script("page.html"), script("index.js"));
    let scripts = format!(
        r#"{{"build":"{build}","page":"{page}","prestart":"npm run page && npm run build","start":"func start"}}"#
    );
    app.write("package.json", &format!(r#"{{"main":"dist/index.js","scripts":{scripts}}}"#));
    let (_, steps) = node(&app).ready().await;
    assert_eq!(steps, ["Building the app: its output is missing"]);
    assert!(app.path("dist/page.html").is_file(), "prestart builds the page, which build does not");
    // Later builds are for changed sources only.
    app.write("tsconfig.json", "{}");
    app.write("src/index.ts", "");
    node(&app).ready().await;
    let written = |file: &str| std::fs::read_to_string(app.path(file)).unwrap();
    assert_eq!((written("dist/page.html").as_str(), written("dist/index.js").as_str()), ("x", "xx"));
}

#[tokio::test]
async fn a_build_that_does_not_write_main_is_reported() {
    let app = Folder::new();
    built_by_copying(&app, "lib/index.js");
    installed(&app);
    let (error, fix) = node(&app).refused().await;
    assert!(error.to_string().ends_with("lib/index.js, although the build ran"), "{error}");
    assert!(fix.contains("\"main\" of package.json"), "{fix}");
}

#[tokio::test]
async fn a_failed_build_shows_its_last_lines() {
    let app = Folder::new();
    app.write(
        "package.json",
        r#"{"main":"dist/index.js","scripts":{"build":"echo TS2304: no such name && exit 2"}}"#,
    );
    let (error, _) = node(&app).refused().await;
    let SetupError::CommandFailed { output, .. } = &error else { panic!("{error}") };
    assert!(output.iter().any(|line| line == "TS2304: no such name"), "{output:?}");
}

#[tokio::test]
async fn an_app_of_the_older_model_needs_neither_library_nor_main() {
    let app = Folder::new();
    app.write("Hello/function.json", "{}");
    let (prepared, steps) = node(&app).ready().await;
    assert!(prepared.notices.is_empty() && steps.is_empty(), "{:?}", prepared.notices);
    app.write("package.json", "\u{feff}{\"name\":\"app\"}");
    let (prepared, steps) = node(&app).ready().await;
    assert!(prepared.notices.is_empty() && steps.is_empty(), "{:?}", prepared.notices);
}

#[tokio::test]
async fn an_empty_app_reports_what_is_missing() {
    let app = Folder::new();
    let (prepared, _) = node(&app).ready().await;
    assert_eq!(prepared.notices[0].message, "the app has no package.json");
    app.write("package.json", r#"{"main":"dist/index.js"}"#);
    let (prepared, _) = node(&app).ready().await;
    let messages: Vec<_> = prepared.notices.iter().map(|notice| notice.message.as_str()).collect();
    let library = "@azure/functions is not installed, and package.json does not list it";
    assert_eq!(messages, [library, "no file matches \"main\" of package.json: dist/index.js"]);
}

#[tokio::test]
async fn an_invalid_package_json_is_reported_with_its_place() {
    let app = Folder::new();
    app.write("package.json", "{\n  \"main\": oops\n}");
    let (error, _) = node(&app).refused().await;
    assert!(matches!(error, SetupError::InvalidManifest { .. }), "{error}");
    assert!(error.to_string().contains("line 2 column"), "{error}");
}

#[tokio::test]
async fn a_missing_or_old_node_is_rejected() {
    let (app, tools) = (Folder::new(), Folder::new());
    let (error, fix) = node(&app).variable("PATH", "").refused().await;
    assert_eq!(error.to_string(), "Node was not found: looked for node on the PATH");
    assert!(
        ["sudo apt install nodejs npm", "brew install node"].iter().any(|known| fix.starts_with(known)),
        "{fix}"
    );
    tools.stub("node", "echo v16.20.2");
    let (error, _) = node(&app).variable("PATH", &tools.0).refused().await;
    assert!(error.to_string().ends_with("node is Node 16.20.2, but 18 or newer is required"), "{error}");
}

#[tokio::test]
async fn a_named_node_comes_first_on_the_path() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("index.js", "");
    tools.stub("node", "echo v22.1.0");
    let (prepared, _) = node(&app).executable(tools.path("node")).ready().await;
    let path = variable(&prepared, "PATH").unwrap();
    assert_eq!(std::env::split_paths(path).next().unwrap(), tools.0);
    assert_eq!(prepared.interpreter.unwrap().version, "22.1.0");
}
