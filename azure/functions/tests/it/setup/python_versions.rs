//! Python: which version an app gets. The interpreters are stubs, which report a version, create virtual environments
//! and log what pip installs.

use std::fs;
use std::path::PathBuf;

use super::python::real_python;
use super::{Folder, Preparation, SetupError, WorkerRuntime, run, variable};

/// A machine with interpreters, in the folder of its PATH.
struct Machine(Folder);

impl Machine {
    /// Creates a machine whose `python3` is 3.11, with several others.
    fn new() -> Self {
        let machine = Self(Folder::new());
        for (name, version) in [
            ("python3", "3.11.7"),
            ("python3.9", "3.9.18"),
            ("python3.10", "3.10.13"),
            ("python3.12", "3.12.1"),
            ("python3.13", "3.13.0"),
            ("python3.14", "3.14.0rc2"),
        ] {
            machine.python(name, version);
        }
        machine
    }

    /// Creates a machine with one interpreter.
    fn with(name: &str, version: &str) -> Self {
        let machine = Self(Folder::new());
        machine.python(name, version);
        machine
    }

    /// Adds an interpreter. Its pip fails with the text of the file `pip-3.11` and so on, if that exists.
    fn python(&self, name: &str, version: &str) -> PathBuf {
        let (numbers, level) =
            version.split_once("rc").map_or((version, "final"), |(numbers, _)| (numbers, "candidate"));
        let numbers: Vec<&str> = numbers.split('.').collect();
        let script = format!(
            r#"folder=
PATH=/usr/bin:/bin
case "$1 $2" in
"-m venv")
  mkdir -p "$3/bin" "$3/packages/pip"
  : > "$3/packages/pip/__init__.py"
  : > "$3/pyvenv.cfg"
  sed "s|^folder=.*|folder='$3'|" "$0" > "$3/bin/python"
  chmod 755 "$3/bin/python"
  exit ;;
"-m pip")
  shift 2
  echo "{minor} $*" >> "{log}"
  if [ -e "{failure}" ]; then cat "{failure}"; exit 1; fi
  mkdir -p "$folder/packages/azure/functions"
  : > "$folder/packages/azure/functions/__init__.py"
  exit ;;
esac
exec "{real}" -S -c "import sys; sys.executable='$0'; sys.version_info=({version}, '{level}'); sys.prefix='$folder' or sys.base_prefix; sys.path.append('$folder/packages'); exec(sys.argv[1])" "$2""#,
            minor = numbers[..2].join("."),
            log = self.0.path("log").display(),
            failure = self.0.path(&format!("pip-{}", numbers[..2].join("."))).display(),
            real = real_python(),
            version = numbers.join(", "),
        );
        self.0.stub(name, &script)
    }

    /// Adds a uv that logs its arguments. Its installed interpreters are in `uv`. It creates virtual environments with
    /// `python3.13` of the folder `uv`, and fails if there is none.
    fn uv(&self) {
        let script = format!(
            r#"PATH=/usr/bin:/bin
case "$1 $2" in
"python dir") echo "{folder}"; exit ;;
esac
echo "uv $* UV_PROJECT_ENVIRONMENT=$UV_PROJECT_ENVIRONMENT" >> "{log}"
case "$1" in
venv)
  for last; do :; done
  [ -e "{folder}/download" ] || {{ echo "error: No interpreter found" >&2; exit 2; }}
  exec "{folder}/download" -m venv "$last" ;;
sync)
  mkdir -p "$UV_PROJECT_ENVIRONMENT/packages/azure/functions"
  : > "$UV_PROJECT_ENVIRONMENT/packages/azure/functions/__init__.py" ;;
esac"#,
            folder = self.0.path("uv-pythons").display(),
            log = self.0.path("log").display(),
        );
        self.0.stub("uv", &script);
    }

    fn log(&self) -> String {
        self.0.read("log")
    }

    fn start(&self, app: &Folder) -> Preparation {
        Preparation::of(WorkerRuntime::Python, app).variable("PATH", &self.0.0)
    }

    /// Prepares the app, and returns the version and the origin of its interpreter.
    async fn version(&self, app: &Folder) -> (String, String) {
        let (prepared, _) = self.start(app).ready().await;
        (prepared.interpreter.unwrap().version, prepared.interpreter_origin.unwrap())
    }
}

fn new_app(files: &[(&str, &str)]) -> Folder {
    let app = Folder::new();
    for (name, text) in files {
        app.write(name, text);
    }
    app
}

const PIP_LINES: &str = "ERROR: Ignored the following versions that require a different python version: \
                         2.0 Requires-Python >=3.13; 2.1 Requires-Python >=3.13\n\
                         ERROR: Could not find a version that satisfies the requirement news>=2\n\
                         ERROR: No matching distribution found for news>=2\n";

#[tokio::test]
async fn the_files_of_the_app_choose_the_version() {
    let machine = Machine::new();
    let project = |line: &str| format!("[project]\n{line}\n");
    for (files, version, reason) in [
        (vec![], "3.11.7", ""),
        (vec![("requirements.txt", "azure-functions>=1.25\n")], "3.11.7", ""),
        (
            vec![("requirements.txt", "azure-functions>=2.2.0b2\n")],
            "3.13.0",
            "azure-functions>=2.2.0b2 in requirements.txt needs Python >=3.13",
        ),
        (
            vec![("requirements.txt", "-r base.txt\n"), ("base.txt", "azure_functions~=2.1\n")],
            "3.13.0",
            "~=2.1",
        ),
        (vec![(".python-version", "3.10\n")], "3.10.13", ".python-version asks for Python 3.10"),
        (vec![(".python-version", "# ours\nmy-app\n3.12.1\n")], "3.12.1", "asks for Python 3.12.1"),
        // The third number is only a preference.
        (vec![(".python-version", "3.12.9\n")], "3.12.1", "asks for Python 3.12.9"),
        (
            vec![("pyproject.toml", &*project("requires-python = '>=3.12,<3.13'"))],
            "3.12.1",
            "requires Python >=3.12,<3.13",
        ),
        (vec![("pyproject.toml", &*project("requires-python = '<3.11'"))], "3.10.13", ""),
        // Releases come before pre-releases.
        (vec![("pyproject.toml", &*project("requires-python = '>=3.12'"))], "3.13.0", ""),
        (vec![("pyproject.toml", &*project("requires-python = '>=3.14'"))], "3.14.0", ""),
        (vec![("pyproject.toml", &*project("requires-python = '==3.9.*'"))], "3.9.18", ""),
        (vec![("pyproject.toml", "[tool.poetry.dependencies]\npython = '~3.12'\n")], "3.12.1", "~3.12"),
        // A pin that the packages cannot meet is not taken.
        (
            vec![(".python-version", "3.10\n"), ("requirements.txt", "azure-functions>=2\n")],
            "3.13.0",
            "azure-functions>=2 in requirements.txt",
        ),
    ] {
        let app = new_app(&files);
        if !files.iter().any(|(name, _)| *name == "requirements.txt") {
            app.write("requirements.txt", "azure-functions\n");
        }
        let (found, origin) = machine.version(&app).await;
        assert_eq!(found, version, "{files:?}");
        assert!(origin.starts_with(".venv of the app") && origin.contains(reason), "{files:?}: {origin}");
        // The next start has no reason to change anything.
        let (_, steps) = machine.start(&app).ready().await;
        assert_eq!(steps, [""; 0], "{files:?}");
    }
}

#[tokio::test]
async fn a_version_file_of_the_repository_applies_and_one_above_it_does_not() {
    let machine = Machine::new();
    let folder = new_app(&[
        (".python-version", "3.12"),
        ("repository/apps/one/requirements.txt", "azure-functions\n"),
    ]);
    let start = || Preparation { app: folder.path("repository/apps/one"), ..machine.start(&folder) };
    fs::create_dir(folder.path("repository/.git")).unwrap();
    let (prepared, _) = start().ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.11.7");

    folder.write("repository/.python-version", "3.13");
    let (prepared, steps) = start().ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.0");
    assert_eq!(steps.len(), 2, "{steps:?}");
    let notice = &prepared.notices[0].message;
    assert!(
        notice.contains("has Python 3.11.7, but ") && notice.ends_with("it was created again"),
        "{notice}"
    );
}

#[tokio::test]
async fn versions_of_pyenv_are_found_and_shims_that_fail_are_ignored() {
    let (machine, pyenv) = (Machine::with("python3", "3.11.7"), Machine(Folder::new()));
    machine.0.stub("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127");
    pyenv.python("versions/3.13.1/bin/python3", "3.13.1");
    pyenv.python("versions/3.10.4/bin/python3", "3.10.4");
    let app = new_app(&[("requirements.txt", "azure-functions>=2\n")]);
    let (error, fix) = machine.start(&app).refused().await;
    let expected = format!(
        "no suitable Python was found: azure-functions>=2 in requirements.txt needs Python >=3.13; found 3.11.7 ({})",
        machine.0.path("python3").display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(fix.contains("3.13"), "{fix}");
    assert!(!app.path(".venv").exists());

    let (prepared, _) = machine.start(&app).variable("PYENV_ROOT", &pyenv.0.0).ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.1");
}

#[tokio::test]
async fn versions_of_uv_are_found() {
    let machine = Machine::with("python3", "3.11.7");
    machine.uv();
    machine.python("uv-pythons/cpython-3.13.2-linux-x86_64-gnu/bin/python3", "3.13.2");
    machine.python("uv-pythons/pypy-3.13.3-linux-x86_64-gnu/bin/python3", "3.13.3");
    let app = new_app(&[("requirements.txt", "azure-functions>=2\n")]);
    let (version, _) = machine.version(&app).await;
    assert_eq!(version, "3.13.2");
    assert!(!machine.log().contains("uv venv"), "{}", machine.log());
}

#[tokio::test]
async fn uv_downloads_a_version_that_is_missing() {
    let machine = Machine::with("python3", "3.11.7");
    machine.uv();
    let app = new_app(&[("requirements.txt", "azure-functions>=2\n")]);
    let outcome = machine.start(&app).run().await;
    let error = outcome.result.unwrap_err();
    assert!(matches!(error, SetupError::NoSuitablePython { .. }), "{error}");
    assert_eq!(error.fix().unwrap(), "uv python install 3.13   (then start again)");
    assert!(outcome.output.iter().any(|line| line == "error: No interpreter found"), "{:?}", outcome.output);
    assert!(!app.path(".venv").exists());

    machine.python("uv-pythons/download", "3.13.5");
    let (prepared, steps) = machine.start(&app).ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.5");
    assert_eq!(steps[0], "Creating a virtual environment in .venv with uv and Python 3.13");
    let command = format!("uv venv --seed --allow-existing --python 3.13 {}", app.path(".venv").display());
    assert!(machine.log().contains(&command), "{}", machine.log());
    let (_, steps) = machine.start(&app).ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn a_version_file_for_a_missing_version_is_told_and_another_version_is_used() {
    let machine = Machine::with("python3", "3.11.7");
    let app = new_app(&[(".python-version", "3.12"), ("requirements.txt", "azure-functions\n")]);
    for steps in [2, 0] {
        let (prepared, done) = machine.start(&app).ready().await;
        assert_eq!(prepared.interpreter.unwrap().version, "3.11.7");
        assert_eq!(done.len(), steps, "{done:?}");
        let message = ".python-version asks for Python 3.12, which was not found; 3.11.7 is used";
        assert_eq!(prepared.notices[0].message, message);
        assert!(prepared.notices[0].fix.as_ref().unwrap().contains("3.12"), "{:?}", prepared.notices);
    }
    // When the version exists, the environment is created with it.
    machine.python("python3.12", "3.12.1");
    let (version, _) = machine.version(&app).await;
    assert_eq!(version, "3.12.1");
}

#[tokio::test]
async fn the_python_that_pip_names_is_chosen_once() {
    let machine = Machine::new();
    machine.0.write("pip-3.11", PIP_LINES);
    let app = new_app(&[("requirements.txt", "azure-functions\nnews>=2\n")]);
    let outcome = machine.start(&app).run().await;
    let prepared = outcome.result.unwrap();
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.0");
    assert_eq!(
        outcome.steps,
        [
            "Creating a virtual environment in .venv with Python 3.11.7",
            "Creating a virtual environment in .venv with Python 3.13.0",
            "Installing requirements.txt into .venv: first start",
        ]
    );
    let venv = app.path(".venv");
    let expected = format!(
        "the virtual environment {} has Python 3.11.7, but news>=2 needs Python >=3.13; it was created again",
        venv.display()
    );
    assert_eq!(prepared.notices[0].message, expected);
    assert!(prepared.interpreter_origin.unwrap().ends_with("; news>=2 needs Python >=3.13"));

    // pip fails with every version: it is tried with two.
    let app = new_app(&[("requirements.txt", "azure-functions\nnews>=2\n")]);
    machine.0.write("pip-3.13", PIP_LINES);
    let outcome = machine.start(&app).run().await;
    let error = outcome.result.unwrap_err();
    assert!(matches!(error, SetupError::CommandFailed { .. }), "{error}");
    assert_eq!(outcome.steps.len(), 2, "{:?}", outcome.steps);
}

#[tokio::test]
async fn an_environment_of_the_user_that_does_not_fit_is_told_and_kept() {
    let machine = Machine::new();
    let app = new_app(&[("requirements.txt", "azure-functions>=2\n")]);
    run(machine.0.path("python3").to_str().unwrap(), &["-m".as_ref(), "venv".as_ref(), &app.path(".venv")]);
    let (error, fix) = machine.start(&app).refused().await;
    let venv = app.path(".venv");
    let expected = format!(
        "the virtual environment {} has Python 3.11.7, but azure-functions>=2 in requirements.txt needs Python >=3.13",
        venv.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(fix, format!("rm -r \"{}\"   (then start again)", venv.display()));
    assert!(app.path(".venv/bin/python").exists());

    // It is used if it has the library.
    app.write(".venv/packages/azure/functions/__init__.py", "");
    let (prepared, steps) = machine.start(&app).ready().await;
    assert_eq!((steps.len(), prepared.interpreter.unwrap().version.as_str()), (0, "3.11.7"));
    assert_eq!(prepared.notices[0].message, expected);
    assert_eq!(prepared.notices[0].fix.as_ref().unwrap(), &fix);

    // The same with what pip reports.
    let other = new_app(&[("requirements.txt", "azure-functions\nnews>=2\n")]);
    run(machine.0.path("python3").to_str().unwrap(), &["-m".as_ref(), "venv".as_ref(), &other.path("venv")]);
    machine.0.write("pip-3.11", PIP_LINES);
    let (error, _) = machine.start(&other).refused().await;
    assert!(error.to_string().ends_with("has Python 3.11.7, but news>=2 needs Python >=3.13"), "{error}");
    assert!(other.path("venv/bin/python").exists());
}

#[tokio::test]
async fn our_environment_is_created_again_when_a_wish_changes() {
    let machine = Machine::new();
    let app = new_app(&[("requirements.txt", "azure-functions\n")]);
    machine.start(&app).ready().await;
    app.write("requirements.txt", "azure-functions>=2\n");
    let (told, _) = machine.start(&app).no_install().ready().await;
    assert!(told.notices[0].message.contains("needs Python >=3.13"), "{:?}", told.notices);
    assert_eq!(told.interpreter.unwrap().version, "3.11.7");

    let (prepared, steps) = machine.start(&app).ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.0");
    assert!(prepared.notices[0].message.ends_with("it was created again"), "{:?}", prepared.notices);
    assert_eq!(steps.len(), 2, "{steps:?}");

    // Without such a Python the old environment stays.
    app.write("pyproject.toml", "[project]\nrequires-python = '>=3.15'\n");
    let (error, _) = machine.start(&app).refused().await;
    assert!(matches!(error, SetupError::NoSuitablePython { .. }), "{error}");
    assert!(app.path(".venv/bin/python").exists());
}

#[tokio::test]
async fn compiled_packages_of_a_deployed_app_choose_the_version() {
    let machine = Machine::new();
    let packages = ".python_packages/lib/site-packages";
    let app = new_app(&[
        (&format!("{packages}/azure/functions/__init__.py"), ""),
        (&format!("{packages}/grpc/_cython.cpython-312-x86_64-linux-gnu.so"), ""),
        (&format!("{packages}/yaml/_yaml.cpython-312-x86_64-linux-gnu.so"), ""),
        (&format!("{packages}/old.cpython-310-x86_64-linux-gnu.so"), ""),
        (&format!("{packages}/_rust.abi3.so"), ""),
    ]);
    // The stubs import only from their own folder.
    let start = |machine: &Machine| machine.start(&app).variable("PYTHONPATH", app.path(packages));
    let (prepared, steps) = start(&machine).ready().await;
    assert_eq!((steps.len(), prepared.interpreter.unwrap().version.as_str()), (0, "3.12.1"));
    let origin = prepared.interpreter_origin.as_ref().unwrap();
    assert!(origin.ends_with("; the packages in .python_packages are compiled for Python 3.12"), "{origin}");
    assert!(prepared.notices.is_empty(), "{:?}", prepared.notices);

    let other = Machine::with("python3", "3.11.7");
    let (prepared, _) = start(&other).ready().await;
    let message =
        "the packages in .python_packages are compiled for Python 3.12, which was not found; 3.11.7 is used";
    assert_eq!(prepared.notices[0].message, message);
}

#[tokio::test]
async fn a_named_interpreter_that_does_not_fit_is_used_with_a_notice() {
    let machine = Machine::new();
    let app = new_app(&[("requirements.txt", "azure-functions>=2\n")]);
    let base = machine.0.path("python3");
    run(base.to_str().unwrap(), &["-m".as_ref(), "venv".as_ref(), &machine.0.path("named")]);
    machine.0.write("named/packages/azure/functions/__init__.py", "");
    let (prepared, _) = machine.start(&app).executable(machine.0.path("named/bin/python")).ready().await;
    assert!(prepared.notices[0].message.ends_with("needs Python >=3.13"), "{:?}", prepared.notices);
    assert!(
        prepared.interpreter_origin.unwrap().starts_with("languageWorkers__python__defaultExecutablePath")
    );
}

const PROJECT: &str = "[project]\nname = 'app'\nrequires-python = '>=3.12'\ndependencies = [\n  'azure-functions>=1.25', 'news'\n]\n";
const LOCK: &str = "[[package]]\nname = \"azure-functions\"\nversion = \"1.25.0\"\n";

#[tokio::test]
async fn the_dependencies_of_a_project_are_installed() {
    let machine = Machine::new();
    let app = new_app(&[("pyproject.toml", PROJECT)]);
    let (error, fix) = machine.start(&app).no_install().refused().await;
    assert!(matches!(error, SetupError::NotInstalled { .. }), "{error}");
    assert!(fix.ends_with("-m pip install \"azure-functions>=1.25\" news"), "{fix}");

    let (prepared, steps) = machine.start(&app).ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.0");
    assert_eq!(steps[1], "Installing the dependencies of pyproject.toml into .venv: first start");
    let install = "3.13 install --disable-pip-version-check --no-input azure-functions>=1.25 news\n";
    assert_eq!(machine.log(), install);

    app.write("pyproject.toml", &PROJECT.replace("news", "olds"));
    let (_, steps) = machine.start(&app).ready().await;
    assert_eq!(
        steps,
        ["Installing the dependencies of pyproject.toml into .venv: pyproject.toml or Python has changed"]
    );
    // A change of other members does not install.
    app.write("pyproject.toml", &format!("{}\n[tool.x]\ny = 1\n", PROJECT.replace("news", "olds")));
    let (_, steps) = machine.start(&app).ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn a_project_without_the_library_is_reported() {
    let machine = Machine::new();
    let app = new_app(&[("pyproject.toml", "[project]\nname = 'app'\n")]);
    let (error, _) = machine.start(&app).refused().await;
    assert!(error.to_string().ends_with("and there is no requirements.txt"), "{error}");
    app.write("pyproject.toml", "[project]\ndependencies = oops\n");
    let (error, _) = machine.start(&app).refused().await;
    assert!(error.to_string().contains("pyproject.toml is not valid: line 2"), "{error}");
    // It does not matter to an app with requirements.txt.
    app.write("requirements.txt", "azure-functions\n");
    let (prepared, _) = machine.start(&app).ready().await;
    assert!(prepared.notices[0].message.ends_with("; the file is ignored"), "{:?}", prepared.notices);
}

#[tokio::test]
async fn uv_installs_a_lock_file() {
    let machine = Machine::new();
    machine.uv();
    let app =
        new_app(&[("pyproject.toml", PROJECT), ("uv.lock", LOCK), ("requirements.txt", "azure-functions\n")]);
    let (prepared, steps) = machine.start(&app).ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "3.13.0");
    assert_eq!(steps[1], "Installing the packages of uv.lock into .venv: first start");
    let venv = app.path(".venv");
    let sync = format!(
        "uv sync --locked --inexact --python {0}/bin/python UV_PROJECT_ENVIRONMENT={0}\n",
        venv.display()
    );
    assert_eq!(machine.log(), sync);
    let (_, steps) = machine.start(&app).ready().await;
    assert_eq!(steps, [""; 0]);
    app.write("uv.lock", &LOCK.replace("1.25.0", "1.25.1"));
    let (_, steps) = machine.start(&app).ready().await;
    assert_eq!(steps, ["Installing the packages of uv.lock into .venv: uv.lock or Python has changed"]);
}

#[tokio::test]
async fn without_uv_pip_installs_the_versions_of_a_lock_file() {
    let machine = Machine::new();
    let app = new_app(&[("pyproject.toml", PROJECT), ("uv.lock", LOCK)]);
    let (prepared, _) = machine.start(&app).ready().await;
    assert!(
        prepared.notices[0].message.starts_with("uv is not installed, so pip installs"),
        "{:?}",
        prepared.notices
    );
    let constraints = app.path(".venv/.bindpost-constraints.txt");
    let expected = format!(" -c {} azure-functions>=1.25 news\n", constraints.display());
    assert!(machine.log().ends_with(&expected), "{}", machine.log());
    assert_eq!(fs::read_to_string(&constraints).unwrap(), "azure-functions==1.25.0\n");
    // Another version in the lock file is installed.
    app.write("uv.lock", &LOCK.replace("1.25.0", "1.25.1"));
    let (_, steps) = machine.start(&app).ready().await;
    assert_eq!(
        steps,
        [
            "Installing the dependencies of pyproject.toml into .venv: pyproject.toml, uv.lock or Python has changed"
        ]
    );

    // requirements.txt is used without a word: other tools wrote it for this case.
    let app =
        new_app(&[("pyproject.toml", PROJECT), ("uv.lock", LOCK), ("requirements.txt", "azure-functions\n")]);
    let (prepared, _) = machine.start(&app).ready().await;
    assert!(prepared.notices.is_empty(), "{:?}", prepared.notices);
    assert!(machine.log().trim_end().ends_with("requirements.txt"), "{}", machine.log());
}

#[tokio::test]
async fn uv_installs_into_an_environment_without_pip() {
    let machine = Machine::new();
    machine.uv();
    let app = new_app(&[("requirements.txt", "azure-functions\n")]);
    run(machine.0.path("python3").to_str().unwrap(), &["-m".as_ref(), "venv".as_ref(), &app.path(".venv")]);
    fs::remove_dir_all(app.path(".venv/packages/pip")).unwrap();
    // The stub of uv installs nothing here.
    let (error, _) = machine.start(&app).refused().await;
    assert!(matches!(error, SetupError::NotInstalled { .. }), "{error}");
    let venv = app.path(".venv");
    let install = format!(
        "uv pip install --python {}/bin/python -r {} UV_PROJECT_ENVIRONMENT=\n",
        venv.display(),
        app.path("requirements.txt").display()
    );
    assert_eq!(machine.log(), install);
}

/// The machine's real Python and pip.
#[tokio::test]
async fn a_real_project_is_installed_with_a_python_that_it_accepts() {
    let app = new_app(&[(
        "pyproject.toml",
        "[project]\nname = 'app'\nrequires-python = '>=3.9'\ndependencies = ['azure-functions==1.24.0']\n",
    )]);
    let (prepared, steps) = Preparation::of(WorkerRuntime::Python, &app).ready().await;
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert_eq!(prepared.interpreter.as_ref().unwrap().path, app.path(".venv/bin/python"));
    assert_eq!(variable(&prepared, "VIRTUAL_ENV").unwrap(), app.path(".venv").as_os_str());
    assert_eq!(
        prepared.interpreter_origin.unwrap(),
        ".venv of the app; pyproject.toml requires Python >=3.9"
    );
}
