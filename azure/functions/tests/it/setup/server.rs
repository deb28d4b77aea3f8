//! Self-hosted apps: packages and builds by what the folder shows, with the machine's real Python, pip, Node and npm.

use std::path::Path;

use bindpost_azure_functions::setup::{PreparedServer, ServerCommand, prepare_server};

use super::{Folder, Kept, SetupError, SetupOptions};

/// Prepares an app with this command. Returns the steps that began.
async fn prepare(
    app: &Folder,
    command: &[&str],
    install: bool,
) -> (Result<PreparedServer, SetupError>, Vec<String>) {
    let path = std::env::var_os("PATH").unwrap();
    let environment = |name: &str| (name == "PATH").then(|| path.clone());
    let options = SetupOptions { install, ..SetupOptions::new(&environment) };
    let (program, arguments) = command.split_first().unwrap();
    let command = ServerCommand { program, arguments: arguments.to_vec(), directory: app.0.clone() };
    let kept = Kept::default();
    let prepared = prepare_server(&app.0, &command, &options, &kept).await;
    (prepared, kept.started.into_inner().unwrap())
}

async fn ready(app: &Folder, command: &[&str]) -> (PreparedServer, Vec<String>) {
    let (prepared, steps) = prepare(app, command, true).await;
    (prepared.unwrap_or_else(|error| panic!("{error}\nfix: {:?}", error.fix())), steps)
}

async fn refused(app: &Folder, command: &[&str], install: bool) -> String {
    let (prepared, _) = prepare(app, command, install).await;
    let error = prepared.unwrap_err();
    format!("{error}\n  fix: {}", error.fix().unwrap_or_default())
}

fn installed(app: &Folder, package: &str) -> bool {
    let found = std::fs::read_dir(app.path(".venv/lib")).unwrap().flatten();
    let mut folders = found.map(|python| python.path().join("site-packages").join(package));
    folders.any(|folder| folder.is_dir())
}

#[tokio::test]
async fn python_packages_of_a_project_are_installed_without_the_library_of_functions() {
    let app = Folder::new();
    app.write("server.py", "");
    app.write("requirements.txt", "no-such-package-of-bindpost\n");
    let project = "[project]\nname = 'app'\nversion = '1'\ndependencies = ['iniconfig>=1']\n";
    app.write("pyproject.toml", project);
    let lock =
        "version = 1\n[[package]]\nname = 'iniconfig'\nversion = '2.0.0'\nsource = { registry = 'x' }\n";
    app.write("uv.lock", lock);
    let (prepared, steps) = ready(&app, &["python", "server.py"]).await;
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(steps[1].starts_with("Installing the dependencies of pyproject.toml into .venv"), "{steps:?}");
    assert!(installed(&app, "iniconfig") && installed(&app, "iniconfig-2.0.0.dist-info"));
    assert_eq!(prepared.program, app.path(".venv/bin/python"));
    assert_eq!(prepared.files, [app.path("server.py")]);
    let variable =
        |name: &str| prepared.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let path = variable("PATH").unwrap().to_str().unwrap();
    assert!(path.starts_with(app.path(".venv/bin").to_str().unwrap()), "{path}");
    assert_eq!(variable("PYTHONUNBUFFERED").unwrap(), "1");

    let (_, steps) = ready(&app, &["python", "server.py"]).await;
    assert_eq!(steps, [""; 0]);
    // A program of a package is one of the environment.
    app.write(".venv/bin/my-server", "#!/bin/sh\n");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(app.path(".venv/bin/my-server"), permissions).unwrap();
    let (prepared, _) = ready(&app, &["my-server"]).await;
    assert_eq!((prepared.program, prepared.files), (app.path(".venv/bin/my-server"), Vec::new()));
}

/// The environment has no marker: the user created it.
#[tokio::test]
async fn packages_that_the_users_environment_lacks_are_installed() {
    let app = Folder::new();
    app.write("server.py", "");
    super::run("python3", &["-m".as_ref(), "venv".as_ref(), &app.path(".venv")]);
    app.write("requirements.txt", "pip\nsome-windows-package; sys_platform == 'win32'\n");
    let (_, steps) = ready(&app, &["python3", "server.py"]).await;
    assert_eq!(steps, [""; 0], "nothing is missing");
    app.write("requirements.txt", "iniconfig\n");
    let (_, steps) = ready(&app, &["python3", "server.py"]).await;
    assert_eq!(steps, ["Installing requirements.txt into .venv: iniconfig is missing"]);
    assert!(installed(&app, "iniconfig"));
}

const BUILD: &str = r#"{
    "name": "app", "dependencies": {"is-number": "7.0.0"},
    "scripts": {
        "build": "node -e \"const f=require('fs');f.mkdirSync('dist',{recursive:true});f.writeFileSync('dist/index.js','')\"",
        "start": "npm run build && node --enable-source-maps dist/index.js"
    }
}"#;

#[tokio::test]
async fn node_packages_are_installed_and_a_missing_file_is_built() {
    for command in [&["node", "dist/index.js"][..], &["npm", "run", "start"], &["npm", "start"]] {
        let app = Folder::new();
        app.write("package.json", BUILD);
        let (_, steps) = ready(&app, command).await;
        let install = "Installing packages with npm: packages are missing";
        assert_eq!(steps, [install, "Building the app: its output is missing"], "{command:?}");
        assert!(app.path("node_modules/is-number").is_dir() && app.path("dist/index.js").is_file());
        let (prepared, steps) = ready(&app, command).await;
        assert_eq!((steps.len(), prepared.notices.len()), (0, 0), "{command:?}");
    }
}

#[tokio::test]
async fn a_missing_file_without_a_build_is_reported() {
    let app = Folder::new();
    app.write("package.json", r#"{"name": "app"}"#);
    let refusal = refused(&app, &["node", "dist/index.js"], true).await;
    assert!(
        refusal.starts_with("host.json: customHandler.description.arguments: dist/index.js does not exist"),
        "{refusal}"
    );
    app.write("package.json", BUILD);
    app.write("node_modules/is-number/package.json", "{}");
    let refusal = refused(&app, &["node", "dist/index.js"], false).await;
    let expected = "no file matches \"arguments\" of host.json: dist/index.js\n  fix: npm run build   (in ";
    assert!(refusal.starts_with(expected), "{refusal}");
}

/// The official sample for Node has such a lock file.
#[tokio::test]
async fn a_stale_lock_file_is_not_used_and_not_changed() {
    let app = Folder::new();
    app.write("server.js", "");
    app.write(
        "package.json",
        r#"{"name": "app", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}}"#,
    );
    let lock = r#"{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
        "packages": {"": {"name": "app", "version": "1.0.0"}}}"#;
    app.write("package-lock.json", lock);
    let (prepared, steps) = ready(&app, &["node", "server.js"]).await;
    assert_eq!(steps.last().unwrap(), "Installing packages with npm, without package-lock.json");
    assert!(app.path("node_modules/is-number").is_dir());
    assert_eq!(app.read("package-lock.json"), lock);
    let notice = &prepared.notices[0];
    assert!(
        notice.message.contains("versions in it are not used: Missing: is-number@7.0.0 from lock file"),
        "{notice:?}"
    );
    let (_, steps) = ready(&app, &["node", "server.js"]).await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn the_folder_decides_not_the_name_of_the_runtime() {
    // A program of the app without files of a language needs no preparation.
    let app = Folder::new();
    app.stub("server", "exit 0");
    let (prepared, steps) = ready(&app, &["server"]).await;
    assert_eq!((prepared.program.as_path(), steps.len()), (Path::new(&app.path("server")), 0));
    assert_eq!(prepared.files, [app.path("server")]);
    assert!(prepared.environment.is_empty());
}
