//! Package managers: which one is used, with which arguments, and when nothing is installed.

use super::{Folder, Preparation, SetupError, WorkerRuntime};

/// A PATH with Node and the named managers, which log their arguments and install the library.
struct Tools(Folder);

impl Tools {
    fn with(managers: &[&str]) -> Self {
        let tools = Folder::new();
        tools.stub("node", "echo v20.0.0");
        let log = tools.path("log");
        for manager in managers {
            let script = format!(
                r#"PATH=/usr/bin:/bin
echo "{manager} $* NODE_ENV=$NODE_ENV" >> "{}"
mkdir -p node_modules/@azure/functions && echo '{{}}' > node_modules/@azure/functions/package.json"#,
                log.display()
            );
            tools.stub(manager, &script);
        }
        Self(tools)
    }

    fn log(&self) -> String {
        self.0.read("log")
    }

    fn start(&self, app: &Folder) -> Preparation {
        Preparation::of(WorkerRuntime::Node, app).variable("PATH", &self.0.0)
    }
}

const MANIFEST: &str = r#"{"dependencies":{"@azure/functions":"^4"}}"#;

fn app() -> Folder {
    let app = Folder::new();
    app.write("package.json", MANIFEST);
    app.write("index.js", "");
    app
}

#[tokio::test]
async fn npm_uses_a_lock_file_and_installs_changes() {
    let (app, tools) = (app(), Tools::with(&["npm"]));
    app.write("package-lock.json", "{}");
    tools.start(&app).ready().await;
    app.write("package.json", r#"{"dependencies":{"@azure/functions":"^4","other":"1"}}"#);
    tools.start(&app).ready().await;
    tools.start(&app).ready().await;
    let expected = "npm ci --no-audit --no-fund NODE_ENV=\nnpm install --no-audit --no-fund NODE_ENV=\n";
    assert_eq!(tools.log(), expected);
}

#[tokio::test]
async fn without_a_lock_file_npm_installs() {
    let (app, tools) = (app(), Tools::with(&["npm", "pnpm", "yarn"]));
    tools.start(&app).ready().await;
    assert_eq!(tools.log(), "npm install --no-audit --no-fund NODE_ENV=\n");
}

#[tokio::test]
async fn the_lock_file_chooses_the_manager() {
    for (lock, manager) in [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")] {
        let (app, tools) = (app(), Tools::with(&["npm", "pnpm", "yarn"]));
        app.write(lock, "");
        let (prepared, _) = tools.start(&app).ready().await;
        assert_eq!(tools.log(), format!("{manager} install NODE_ENV=\n"));
        assert!(prepared.notices.is_empty());
    }
}

#[tokio::test]
async fn npm_replaces_a_missing_manager_with_a_notice() {
    let (app, tools) = (app(), Tools::with(&["npm"]));
    app.write("yarn.lock", "");
    let (prepared, _) = tools.start(&app).ready().await;
    assert_eq!(tools.log(), "npm install --no-audit --no-fund NODE_ENV=\n");
    assert_eq!(prepared.notices[0].message, "yarn is not installed, so npm is used");
}

#[tokio::test]
async fn development_packages_are_installed_in_production_too() {
    let (first, tools) = (app(), Tools::with(&["npm", "yarn"]));
    tools.start(&first).variable("NODE_ENV", "production").ready().await;
    let second = app();
    second.write("yarn.lock", "");
    tools.start(&second).variable("NODE_ENV", "production").ready().await;
    let expected =
        "npm install --no-audit --no-fund --include=dev NODE_ENV=\nyarn install NODE_ENV=development\n";
    assert_eq!(tools.log(), expected);
}

#[tokio::test]
async fn packages_of_the_user_are_not_changed() {
    let (app, tools) = (app(), Tools::with(&["npm"]));
    app.write("node_modules/@azure/functions/package.json", "{}");
    tools.start(&app).ready().await;
    app.write("package.json", r#"{"dependencies":{"@azure/functions":"^4","other":"1"}}"#);
    let (_, steps) = tools.start(&app).ready().await;
    assert_eq!(steps, [""; 0]);
    assert_eq!(tools.log(), "");
}

#[tokio::test]
async fn packages_hoisted_to_a_folder_above_are_found() {
    let (workspace, tools) = (Folder::new(), Tools::with(&["npm", "pnpm"]));
    workspace.write("package.json", r#"{"workspaces":["apps/*"]}"#);
    workspace.write("pnpm-lock.yaml", "");
    workspace.write("apps/one/package.json", MANIFEST);
    workspace.write("apps/one/index.js", "");
    let start = || Preparation { app: workspace.path("apps/one"), ..tools.start(&workspace) };
    let (_, fix) = start().no_install().refused().await;
    assert!(fix.starts_with("pnpm install "), "{fix}");
    workspace.write("node_modules/@azure/functions/package.json", "{}");
    let (_, steps) = start().ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn missing_packages_without_install_report_the_command() {
    let (app, tools) = (app(), Tools::with(&["npm"]));
    app.write("package-lock.json", "{}");
    let (error, fix) = tools.start(&app).no_install().refused().await;
    assert_eq!(error.to_string(), "@azure/functions is not installed");
    assert_eq!(fix, format!("npm ci --no-audit --no-fund   (in {})", app.0.display()));
    assert_eq!(tools.log(), "");
}

#[tokio::test]
async fn a_missing_npm_is_named() {
    let (app, tools) = (app(), Tools::with(&[]));
    let (error, _) = tools.start(&app).refused().await;
    assert!(matches!(error, SetupError::Missing { program: "npm", .. }), "{error}");
}

/// The real npm.
#[tokio::test]
async fn a_lock_file_that_does_not_match_is_reported_with_the_reason_of_npm() {
    let app = app();
    let lock = r#"{"name":"app","lockfileVersion":3,"requires":true,"packages":{"":{"name":"app"}}}"#;
    app.write("package-lock.json", lock);
    let (error, fix) = Preparation::of(WorkerRuntime::Node, &app).refused().await;
    let SetupError::StaleLock { reasons, .. } = &error else { panic!("{error}") };
    assert!(reasons.iter().any(|reason| reason.starts_with("Missing: @azure/functions@4")), "{reasons:?}");
    assert!(
        error.to_string().starts_with("package-lock.json does not match package.json:\n  Missing: "),
        "{error}"
    );
    let expected =
        format!("npm install   (in {}); then commit package-lock.json and start again", app.0.display());
    assert_eq!(fix, expected);
    assert_eq!(app.read("package-lock.json"), lock, "the file of the user is not changed");
}
