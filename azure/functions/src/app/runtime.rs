//! [`WorkerRuntime`]: the language or program that runs the functions of an app.

use std::path::Path;

use serde_json::Value;

use super::custom_handler::ConfigurationProfile;
use super::dotnet_output;
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

/// The name of .NET apps that are programs of their own.
pub(super) const DOTNET_ISOLATED: &str = "dotnet-isolated";
pub(crate) const POWERSHELL: &str = "powershell";

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

    /// Returns the version of the language as the platform writes it: `3.11` for Python 3.11.7, `20` for Node 20.1.0.
    pub fn short_version(&self, version: &str) -> String {
        let parts = if *self == WorkerRuntime::Python { 2 } else { 1 };
        version.split('.').take(parts).collect::<Vec<_>>().join(".")
    }

    /// Returns why the runtime is experimental, if it is.
    pub(crate) fn experimental_note(&self) -> Option<&'static str> {
        match self {
            WorkerRuntime::Other(name) if name == DOTNET_ISOLATED => Some(
                ".NET apps are experimental: bindpost follows the documented protocol, but was not tried with .NET",
            ),
            WorkerRuntime::Other(name) if name == POWERSHELL => Some(
                "PowerShell apps are experimental: bindpost follows the source of its worker, but was not tried with it",
            ),
            _ => None,
        }
    }

    /// Reads the runtime from the settings, or detects it from the files of the app.
    pub(super) fn detect(
        folder: &Path,
        host: &HostConfig,
        settings: &Settings,
    ) -> Result<WorkerRuntime, Problem> {
        if host.profile == ConfigurationProfile::SelfHosted {
            // The setting may still name the language in which the server is written.
            return match &host.custom_handler {
                Some(_) => Ok(WorkerRuntime::Custom),
                None => Err(no_handler("configurationProfile says that the app is a server of its own")),
            };
        }
        let runtime = match settings.get(SETTING).map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => WorkerRuntime::named(name, folder, host)?,
            None => WorkerRuntime::detect_from_files(folder, host, settings)?,
        };
        if runtime == WorkerRuntime::Custom && host.custom_handler.is_none() {
            return Err(no_handler("FUNCTIONS_WORKER_RUNTIME is custom"));
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
        if host.language_workers.directory(&lower, folder).is_some() || dotnet_output::is_app(&lower, folder)
        {
            return Ok(WorkerRuntime::Other(lower));
        }
        if lower == "dotnet" || lower == DOTNET_ISOLATED {
            return Err(dotnet_output::problem(folder, format!("{SETTING} is {name:?}")));
        }
        let problem = Problem::new(format!("{SETTING} is {name:?}, but bindpost has no worker for it"));
        let place = match lower.as_str() {
            POWERSHELL => ". Azure Functions Core Tools has it in the folder workers/powershell",
            _ => "",
        };
        Err(problem.fix(format!(
            "set it to python, node, java or custom, or set languageWorkers__{lower}__workerDirectory to \
             the folder of a worker{place}"
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
        if dotnet_output::is_app(DOTNET_ISOLATED, folder) {
            return Ok(WorkerRuntime::Other(DOTNET_ISOLATED.to_owned()));
        }
        if let Some(found) = dotnet_output::project_file(folder) {
            return Err(dotnet_output::problem(folder, format!("the app has a {found}")));
        }
        match script_extension(folder).as_deref() {
            Some("jar") => return Ok(WorkerRuntime::Java),
            Some("py") => return Ok(WorkerRuntime::Python),
            Some("js" | "mjs" | "cjs") => return Ok(WorkerRuntime::Node),
            Some("dll") => {
                let found = "a function.json of the app names a .dll".to_owned();
                return Err(dotnet_output::problem(folder, found));
            }
            _ => {}
        }
        if ["pom.xml", "build.gradle", "build.gradle.kts"].into_iter().any(has) {
            return Ok(WorkerRuntime::Java);
        }
        Err(Problem::new(format!(
            "the language of the app is unknown: {SETTING} is not set, and there is no function_app.py, \
             requirements.txt, package.json, pom.xml, build.gradle or customHandler in host.json"
        ))
        .fix(SET_IT))
    }
}

fn no_handler(why: &str) -> Problem {
    let problem = Problem::new(format!("is required because {why}")).in_file("host.json");
    let fix = r#"write "customHandler": {"description": {"defaultExecutablePath": "my-handler"}}"#;
    problem.at("customHandler").fix(fix)
}

/// Returns the file extension of the first script file that a `function.json` of the app names.
fn script_extension(folder: &Path) -> Option<String> {
    find_function_folders(folder).into_iter().find_map(|(name, path)| {
        let object = read_object(&path.join("function.json"), &name).ok()??;
        let script = member(&object, "scriptFile").and_then(Value::as_str)?;
        Some(Path::new(script).extension()?.to_str()?.to_ascii_lowercase())
    })
}
