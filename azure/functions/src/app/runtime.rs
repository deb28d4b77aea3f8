//! [`WorkerRuntime`]: the language or program that runs the functions of an app.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::function_json::find_function_folders;
use super::host_json::HostConfig;
use super::read_object;
use super::settings::Settings;
use crate::json::member;
use crate::problem::Problem;

/// The setting that names the runtime.
const SETTING: &str = "FUNCTIONS_WORKER_RUNTIME";
/// The setting with another name for `function_app.py`.
const PYTHON_FILE: &str = "PYTHON_SCRIPT_FILE_NAME";
/// The fix when the runtime cannot be detected.
const SET_IT: &str = "set FUNCTIONS_WORKER_RUNTIME to python, node, java or custom, in the environment or in \
                      Values of local.settings.json";

/// The language or program that runs the functions of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerRuntime {
    Python,
    Node,
    Java,
    /// The program that `customHandler` of `host.json` names.
    Custom,
    /// Another language, whose worker the settings name.
    Other(String),
}

impl WorkerRuntime {
    /// Returns the name as it is written in `FUNCTIONS_WORKER_RUNTIME`.
    pub fn as_str(&self) -> &str {
        match self {
            WorkerRuntime::Python => "python",
            WorkerRuntime::Node => "node",
            WorkerRuntime::Java => "java",
            WorkerRuntime::Custom => "custom",
            WorkerRuntime::Other(name) => name,
        }
    }

    /// Reads the runtime from the settings, or detects it from the files of the app.
    pub(super) fn detect(
        folder: &Path,
        host: &HostConfig,
        settings: &Settings,
    ) -> Result<WorkerRuntime, Problem> {
        let runtime = match settings.get(SETTING).map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => WorkerRuntime::named(name, folder, host)?,
            None => WorkerRuntime::detect_from_files(folder, host, settings)?,
        };
        if runtime == WorkerRuntime::Custom && host.custom_handler.is_none() {
            let problem =
                Problem::new("is required because FUNCTIONS_WORKER_RUNTIME is custom").in_file("host.json");
            let fix = r#"write "customHandler": {"description": {"defaultExecutablePath": "my-handler"}}"#;
            return Err(problem.at("customHandler").fix(fix));
        }
        Ok(runtime)
    }

    fn named(name: &str, folder: &Path, host: &HostConfig) -> Result<WorkerRuntime, Problem> {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "python" => return Ok(WorkerRuntime::Python),
            "node" => return Ok(WorkerRuntime::Node),
            "java" => return Ok(WorkerRuntime::Java),
            "custom" => return Ok(WorkerRuntime::Custom),
            _ => {}
        }
        if host.language_workers.directory(&lower, folder).is_some() {
            return Ok(WorkerRuntime::Other(lower));
        }
        if lower == "dotnet" || lower == "dotnet-isolated" {
            return Err(dotnet(format!("{SETTING} is {name:?}")));
        }
        let problem = Problem::new(format!("{SETTING} is {name:?}, but bindpost has no worker for it"));
        Err(problem.fix(format!(
            "set it to python, node, java or custom, or set languageWorkers__{lower}__workerDirectory to \
             the folder of a worker"
        )))
    }

    fn detect_from_files(
        folder: &Path,
        host: &HostConfig,
        settings: &Settings,
    ) -> Result<WorkerRuntime, Problem> {
        // A custom handler names the program to run, so there is nothing to detect.
        if host.custom_handler.is_some() {
            return Ok(WorkerRuntime::Custom);
        }
        let has = |name: &str| folder.join(name).is_file();
        if has(settings.get(PYTHON_FILE).unwrap_or("function_app.py")) {
            return Ok(WorkerRuntime::Python);
        }
        match (has("requirements.txt"), has("package.json")) {
            (true, true) => {
                let problem = Problem::new(
                    "the app has both a requirements.txt and a package.json, so it may be Python or Node",
                );
                return Err(problem.fix(SET_IT));
            }
            (true, false) => return Ok(WorkerRuntime::Python),
            (false, true) => return Ok(WorkerRuntime::Node),
            (false, false) => {}
        }
        if let Some(found) = dotnet_file(folder) {
            return Err(dotnet(format!("the app has a {found}")));
        }
        match script_extension(folder).as_deref() {
            Some("jar") => return Ok(WorkerRuntime::Java),
            Some("py") => return Ok(WorkerRuntime::Python),
            Some("js" | "mjs" | "cjs") => return Ok(WorkerRuntime::Node),
            Some("dll") => return Err(dotnet("a function.json of the app names a .dll".to_owned())),
            _ => {}
        }
        if has("pom.xml") {
            return Ok(WorkerRuntime::Java);
        }
        Err(Problem::new(format!(
            "the language of the app is unknown: {SETTING} is not set, and there is no function_app.py, \
             requirements.txt, package.json, pom.xml or customHandler in host.json"
        ))
        .fix(SET_IT))
    }
}

fn dotnet(found: String) -> Problem {
    let problem = Problem::new(format!(
        "{found}: .NET apps are not supported. bindpost has no .NET worker, and a build step of the .NET SDK \
         generates the list of functions"
    ));
    problem.fix(
        "run it with `func start`, or pass an app written in Python, Node or Java, or with a custom handler",
    )
}

/// Returns the name of a file that only .NET apps have.
fn dotnet_file(folder: &Path) -> Option<String> {
    let names = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let ends = [".csproj", ".fsproj", ".vbproj", ".deps.json"];
    // The Azure tools put an extensions.csproj into apps of any language.
    let names = names.filter(|name| name != "extensions.csproj");
    names.filter(|name| ends.iter().any(|end| name.ends_with(end)) || name == "functions.metadata").min()
}

/// Returns the file extension of the first script file that a `function.json` of the app names.
fn script_extension(folder: &Path) -> Option<String> {
    find_function_folders(folder).into_iter().find_map(|(name, path)| {
        let object = read_object(&path.join("function.json"), &name).ok()??;
        let script = member(&object, "scriptFile").and_then(Value::as_str)?;
        Some(Path::new(script).extension()?.to_str()?.to_ascii_lowercase())
    })
}
