//! Python: which interpreter is used, and the errors for a missing, old or incomplete one.

use std::process::Command;

use super::{Folder, Preparation, SetupError, WorkerRuntime, variable};

fn python(app: &Folder) -> Preparation {
    Preparation::of(WorkerRuntime::Python, app)
}

/// Returns the machine's Python itself, not a shim.
pub(super) fn real_python() -> String {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a `python3` in `tools` that runs the real one after `patch`, without packages, and handles
/// `-m venv` itself.
fn stub_python(tools: &Folder, patch: &str) {
    let real = real_python();
    let script = format!(
        r#"if [ "$1" = -m ]; then echo "The virtual environment was not created: ensurepip is not available." >&2; exit 1; fi
exec "{real}" -S -c "import sys; sys.executable='$0'; {patch}; exec(sys.argv[1])" "$2""#
    );
    tools.stub("python3", &script);
}

#[tokio::test]
async fn a_fresh_app_is_installed_once_and_again_when_its_requirements_change() {
    let app = Folder::new();
    app.write("requirements.txt", "azure-functions==1.25.0\n");
    let outcome = python(&app).run().await;
    let prepared = outcome.result.unwrap();
    assert_eq!(outcome.steps.len(), 2, "{:?}", outcome.steps);
    assert!(outcome.steps[0].starts_with("Creating a virtual environment in .venv"), "{:?}", outcome.steps);
    assert!(outcome.steps[1].starts_with("Installing requirements.txt into .venv"), "{:?}", outcome.steps);
    assert!(
        outcome.output.iter().any(|line| line.starts_with("Successfully installed")),
        "{:?}",
        outcome.output
    );
    let interpreter = prepared.interpreter.clone().unwrap();
    assert_eq!(interpreter.path, app.path(".venv/bin/python"));
    assert_eq!(variable(&prepared, "VIRTUAL_ENV").unwrap(), app.path(".venv").as_os_str());
    let path = variable(&prepared, "PATH").unwrap();
    assert_eq!(std::env::split_paths(path).next().unwrap(), app.path(".venv/bin"));
    let import =
        "import azure.functions, platform; print(azure.functions.__version__, platform.python_version())";
    let imported = Command::new(&interpreter.path).args(["-c", import]).output().unwrap();
    let printed = String::from_utf8(imported.stdout).unwrap();
    assert_eq!(printed.trim(), format!("1.25.0 {}", interpreter.version));

    let (again, steps) = python(&app).ready().await;
    assert_eq!(steps, [""; 0]);
    assert_eq!(again.interpreter, prepared.interpreter);

    app.write("requirements.txt", "-r base.txt\n");
    app.write("base.txt", "azure-functions==1.25.0\n");
    let (stale, steps) = python(&app).no_install().ready().await;
    assert_eq!(steps, [""; 0]);
    assert!(stale.notices[0].message.contains("has changed"), "{:?}", stale.notices);
    let (_, steps) = python(&app).ready().await;
    assert!(steps.len() == 1 && steps[0].contains("has changed"), "{steps:?}");
    app.write("base.txt", "azure-functions>=1.25.0,<2\n");
    let (_, steps) = python(&app).ready().await;
    assert!(steps.len() == 1 && steps[0].contains("has changed"), "{steps:?}");
}

#[tokio::test]
async fn without_install_the_commands_are_named_and_nothing_is_created() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("requirements.txt", "azure-functions==1.25.0\n");
    stub_python(&tools, "pass");
    let (error, fix) = python(&app).variable("PATH", &tools.0).no_install().refused().await;
    assert!(matches!(error, SetupError::NotInstalled { package: "azure.functions", .. }), "{error}");
    let venv = app.path(".venv");
    let (venv, app_path) = (venv.display(), app.0.display());
    let expected = format!(
        "\"{}\" -m venv \"{venv}\" && \"{venv}/bin/python\" -m pip install -r \"{app_path}/requirements.txt\"",
        tools.path("python3").display()
    );
    assert_eq!(fix, expected);
    assert!(!app.path(".venv").exists());
}

#[tokio::test]
async fn a_missing_requirements_file_is_reported() {
    let (app, tools) = (Folder::new(), Folder::new());
    stub_python(&tools, "pass");
    let (error, fix) = python(&app).variable("PATH", &tools.0).refused().await;
    assert!(error.to_string().ends_with("and there is no requirements.txt"), "{error}");
    assert!(fix.starts_with("create requirements.txt with the line `azure-functions`"), "{fix}");
    let (_, fix) = python(&app).variable("PATH", &tools.0).no_install().refused().await;
    assert!(fix.contains("-m pip install") && fix.ends_with("azure-functions"), "{fix}");
}

#[tokio::test]
async fn a_missing_python_reports_how_to_install_it() {
    let app = Folder::new();
    app.write("requirements.txt", "azure-functions\n");
    let (error, fix) = python(&app).variable("PATH", "").refused().await;
    assert_eq!(error.to_string(), "Python was not found: looked for python3 and python on the PATH");
    assert!(
        ["sudo apt install python3", "brew install python"].iter().any(|known| fix.starts_with(known)),
        "{fix}"
    );
    assert!(!app.path(".venv").exists());
}

#[tokio::test]
async fn an_old_python_is_rejected() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("requirements.txt", "azure-functions\n");
    stub_python(&tools, "sys.version_info = (3, 8, 20)");
    let (error, _) = python(&app).variable("PATH", &tools.0).refused().await;
    assert!(matches!(&error, SetupError::TooOld { version, .. } if version == "3.8.20"), "{error}");
    assert!(error.to_string().ends_with("is Python 3.8.20, but 3.9 or newer is required"), "{error}");
}

#[tokio::test]
async fn the_second_name_is_tried_when_the_first_is_too_old() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write(".python_packages/lib/site-packages/azure/functions/__init__.py", "");
    stub_python(&tools, "sys.version_info = (3, 8, 20)");
    tools.stub("python", &format!("exec \"{}\" \"$@\"", real_python()));
    let (prepared, _) = python(&app).variable("PATH", &tools.0).ready().await;
    assert_eq!(prepared.interpreter.unwrap().path.to_str().unwrap(), real_python());
}

#[tokio::test]
async fn a_python_that_does_not_run_is_reported_with_its_output() {
    let (app, tools) = (Folder::new(), Folder::new());
    tools.stub("python3", "echo \"pyenv: version '3.99' is not installed\" >&2; exit 127");
    let (error, _) = python(&app).variable("PATH", &tools.0).refused().await;
    let text = error.to_string();
    assert!(text.ends_with("python3 does not run: pyenv: version '3.99' is not installed"), "{text}");
}

#[tokio::test]
async fn a_python_without_venv_reports_the_debian_package() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("requirements.txt", "azure-functions\n");
    stub_python(&tools, "pass");
    let (error, fix) = python(&app).variable("PATH", &tools.0).refused().await;
    assert!(matches!(error, SetupError::NoModule { module: "venv", .. }), "{error}");
    assert!(fix.starts_with("sudo apt install python3-venv"), "{fix}");
    assert!(!app.path(".venv").exists(), "the partial environment is deleted");
}

#[tokio::test]
async fn a_deployed_app_runs_on_the_systems_python_with_its_own_packages() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("requirements.txt", "azure-functions\n");
    app.write(".python_packages/lib/site-packages/some.py", "");
    stub_python(&tools, "pass");
    let deployed = || python(&app).variable("PATH", &tools.0).variable("PYTHONPATH", "/more");
    let (error, fix) = deployed().refused().await;
    assert!(error.to_string().contains("site-packages"), "{error}");
    assert!(fix.contains("--target") && fix.ends_with("azure-functions"), "{fix}");

    app.write(".python_packages/lib/site-packages/azure/functions/__init__.py", "");
    let (prepared, steps) = deployed().ready().await;
    assert_eq!(steps, [""; 0]);
    let expected = format!("{}:/more", app.path(".python_packages/lib/site-packages").display());
    assert_eq!(variable(&prepared, "PYTHONPATH").unwrap().to_str().unwrap(), expected);
    assert!(variable(&prepared, "VIRTUAL_ENV").is_none() && !app.path(".venv").exists());
}

#[tokio::test]
async fn a_named_interpreter_must_exist() {
    let app = Folder::new();
    let (error, _) = python(&app).executable("tools/python3").refused().await;
    assert_eq!(
        error.to_string(),
        "Python was not found: looked for tools/python3, as configured in the settings"
    );
    let (error, _) = python(&app).executable("python9").refused().await;
    assert!(error.to_string().contains("python9 on the PATH, as configured in the settings"), "{error}");
}

#[tokio::test]
async fn packages_of_a_named_system_python_are_not_changed() {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("requirements.txt", "azure-functions\n");
    stub_python(&tools, "pass");
    let (error, fix) = python(&app).executable(tools.path("python3")).refused().await;
    assert!(matches!(error, SetupError::NotInstalled { .. }), "{error}");
    assert!(fix.contains("python3\" -m pip install -r "), "{fix}");
}
