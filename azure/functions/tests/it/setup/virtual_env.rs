//! Virtual environments: who owns them, what is installed into them, and which are broken.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::python::real_python;
use super::{Folder, Preparation, SetupError, WorkerRuntime, until_exists, variable};

fn python(app: &Folder) -> Preparation {
    Preparation::of(WorkerRuntime::Python, app)
}

/// Creates a virtual environment as a user would.
fn make(folder: &Path, flags: &[&str]) {
    let made = Command::new(real_python()).args(["-m", "venv"]).args(flags).arg(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Creates one without pip that contains `azure.functions`.
fn make_complete(folder: &Path) {
    make(folder, &["--without-pip"]);
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let answer = Command::new(folder.join("bin/python")).args(["-c", ask]).output().unwrap();
    let packages = String::from_utf8(answer.stdout).unwrap();
    let package = Path::new(packages.trim()).join("azure/functions");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("__init__.py"), "").unwrap();
}

/// Writes a wheel of a package that has only `azure.functions`. pip installs it in a second, without a
/// network.
fn write_wheel(app: &Folder) {
    let script = r#"
import sys, zipfile
name = "azure_functions-9.9-py3-none-any.whl"
with zipfile.ZipFile(sys.argv[1] + "/" + name, "w") as wheel:
    info = "azure_functions-9.9.dist-info/"
    wheel.writestr("azure/functions/__init__.py", "")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: azure-functions\nVersion: 9.9\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
"#;
    let written = Command::new(real_python()).args(["-c", script]).arg(&app.0).status().unwrap();
    assert!(written.success());
    app.write("requirements.txt", "--no-index\n./azure_functions-9.9-py3-none-any.whl\n");
}

#[tokio::test]
async fn the_users_environment_gets_packages_only_if_the_library_is_missing() {
    let app = Folder::new();
    make(&app.path("venv"), &[]);
    write_wheel(&app);
    let (error, fix) = python(&app).no_install().refused().await;
    assert!(matches!(error, SetupError::NotInstalled { .. }), "{error}");
    assert!(fix.contains("venv/bin/python\" -m pip install") && fix.contains("requirements.txt"), "{fix}");

    let (prepared, steps) = python(&app).ready().await;
    assert_eq!(steps, ["Installing requirements.txt into venv: azure.functions is missing"]);
    assert_eq!(prepared.interpreter.unwrap().path, app.path("venv/bin/python"));
    let (_, steps) = python(&app).no_install().ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn a_complete_environment_of_the_user_is_not_changed() {
    let app = Folder::new();
    make_complete(&app.path("env"));
    app.write("requirements.txt", "--no-index\nno-such-package\n");
    let (prepared, steps) = python(&app).ready().await;
    assert_eq!(steps, [""; 0]);
    assert_eq!(prepared.interpreter.unwrap().path, app.path("env/bin/python"));
}

#[tokio::test]
async fn an_environment_without_pip_reports_how_to_get_it() {
    let app = Folder::new();
    make(&app.path(".venv"), &["--without-pip"]);
    app.write("requirements.txt", "azure-functions\n");
    let (error, fix) = python(&app).refused().await;
    assert!(matches!(error, SetupError::NoModule { module: "pip", .. }), "{error}");
    assert!(fix.ends_with(".venv/bin/python\" -m ensurepip --upgrade"), "{fix}");
}

#[tokio::test]
async fn the_apps_own_environment_comes_before_the_active_one() {
    let (app, other) = (Folder::new(), Folder::new());
    make_complete(&other.path("active"));
    let active = || python(&app).variable("VIRTUAL_ENV", other.path("active"));
    let (prepared, _) = active().ready().await;
    assert_eq!(prepared.interpreter.as_ref().unwrap().path, other.path("active/bin/python"));
    assert_eq!(variable(&prepared, "VIRTUAL_ENV").unwrap(), other.path("active").as_os_str());

    make_complete(&app.path(".venv"));
    let (prepared, _) = active().ready().await;
    assert_eq!(prepared.interpreter.unwrap().path, app.path(".venv/bin/python"));

    let (prepared, _) = python(&app).executable(other.path("active/bin/python")).ready().await;
    assert_eq!(prepared.interpreter.unwrap().path, other.path("active/bin/python"));
}

#[tokio::test]
async fn a_deleted_active_environment_is_ignored_with_a_notice() {
    let app = Folder::new();
    app.write(".python_packages/lib/site-packages/azure/functions/__init__.py", "");
    let (prepared, _) = python(&app).variable("VIRTUAL_ENV", "/no/such").ready().await;
    assert!(prepared.notices[0].message.contains("/no/such"), "{:?}", prepared.notices);
}

#[tokio::test]
async fn a_broken_environment_of_the_user_is_reported_and_kept() {
    let app = Folder::new();
    app.write("requirements.txt", "azure-functions\n");
    app.write(".venv/pyvenv.cfg", "home = /gone\n");
    fs::create_dir_all(app.path(".venv/bin")).unwrap();
    symlink("/gone/python3", app.path(".venv/bin/python")).unwrap();
    let (error, fix) = python(&app).refused().await;
    assert!(matches!(error, SetupError::BrokenVirtualEnv { .. }), "{error}");
    assert_eq!(fix, format!("rm -r \"{}\"   (then start again)", app.path(".venv").display()));
    assert!(app.path(".venv/pyvenv.cfg").exists());
}

#[tokio::test]
async fn an_environment_whose_creation_was_cancelled_is_created_again() {
    let app = Folder::new();
    write_wheel(&app);
    // Python exists early. pip comes last, from a child process.
    let begun = app.path(".venv/bin/python");
    tokio::select! {
        _ = python(&app).run() => panic!("it takes longer than that to install pip"),
        () = until_exists(&begun) => {}
    }
    let (error, _) = python(&app).no_install().refused().await;
    assert!(matches!(error, SetupError::BrokenVirtualEnv { .. }), "{error}");
    let (prepared, steps) = python(&app).ready().await;
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(prepared.notices[0].message.ends_with("it was created again"), "{:?}", prepared.notices);
    let (_, steps) = python(&app).ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn a_folder_with_other_files_is_not_overwritten() {
    let app = Folder::new();
    app.write("requirements.txt", "azure-functions\n");
    app.write(".venv/notes.txt", "mine");
    let (error, fix) = python(&app).refused().await;
    assert!(matches!(error, SetupError::InTheWay { .. }), "{error}");
    assert!(fix.starts_with("rename or delete "), "{fix}");
    assert_eq!(app.read(".venv/notes.txt"), "mine");
}

#[tokio::test]
async fn a_failed_install_is_retried_and_a_useless_one_is_not() {
    let app = Folder::new();
    app.write("requirements.txt", "--no-index\nno-such-package-anywhere\n");
    for _ in 0..2 {
        let (error, fix) = python(&app).refused().await;
        let SetupError::CommandFailed { command, output, .. } = &error else { panic!("{error}") };
        assert!(command.contains("-m pip install"), "{command}");
        assert!(output.iter().any(|line| line.contains("No matching distribution")), "{output:?}");
        assert!(error.to_string().contains("No matching distribution"), "{error}");
        assert!(fix.contains(command.as_str()), "{fix}");
    }
    app.write("requirements.txt", "# nothing yet\n");
    for steps in [1, 0] {
        let outcome = python(&app).run().await;
        assert_eq!(outcome.steps.len(), steps, "{:?}", outcome.steps);
        let error = outcome.result.unwrap_err();
        assert!(matches!(error, SetupError::NotInstalled { .. }), "{error}");
        assert!(error.fix().unwrap().starts_with("add the line `azure-functions` to requirements.txt"));
    }
    write_wheel(&app);
    let (_, steps) = python(&app).ready().await;
    assert_eq!(steps, ["Installing requirements.txt into .venv: requirements.txt or Python has changed"]);

    // Our own environment is reported too when its Python is deleted. Only an install creates it again.
    let link = app.path(".venv/bin/python");
    fs::remove_file(&link).unwrap();
    symlink("/gone/python3", &link).unwrap();
    let (error, _) = python(&app).no_install().refused().await;
    assert!(matches!(error, SetupError::BrokenVirtualEnv { .. }), "{error}");
}
