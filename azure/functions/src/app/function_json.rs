//! `function.json`: describes the function in a folder of an app.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::runtime::{POWERSHELL, WorkerRuntime};
use super::settings::Settings;
use super::{App, read_object};
use crate::function::{Function, FunctionRejection, FunctionSource, SkippedFunction};
use crate::json::{ConfigReader, ProblemCollector};
use crate::problem::Problem;

const FILE: &str = "function.json";

/// The functions that `function.json` files describe, those that were skipped, and the problems
/// of the others.
#[derive(Debug, Default)]
pub struct FunctionFolders {
    pub functions: Vec<Function>,
    pub skipped: Vec<SkippedFunction>,
    pub problems: Vec<Problem>,
}

/// Reads the function folders of an app, in the order of their names.
pub(super) fn read(app: &App) -> FunctionFolders {
    let mut found = FunctionFolders::default();
    let folders = find_function_folders(&app.folder);
    if folders.is_empty() && app.runtime == WorkerRuntime::Java && app.folder.join("pom.xml").is_file() {
        let problem = Problem::new("the folder contains the sources of a Java app, but no functions");
        found
            .problems
            .push(problem.fix("run `mvn package`, then pass the folder target/azure-functions/<app name>"));
    }
    for (name, folder) in folders {
        let in_file = |problem: Problem| problem.of_function(&name).in_file(format!("{name}/{FILE}"));
        match read_function(app, &name, &folder) {
            Ok(mut function) => {
                function.warnings = function.warnings.into_iter().map(in_file).collect();
                found.functions.push(function);
            }
            Err(FunctionRejection::Skipped(skipped)) => found.skipped.push(skipped),
            Err(FunctionRejection::Problems(problems)) => {
                found.problems.extend(problems.into_iter().map(in_file));
            }
        }
    }
    found
}

/// Returns the folders with a `function.json`, sorted by name.
pub(super) fn find_function_folders(app: &Path) -> Vec<(String, PathBuf)> {
    let named = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path));
    let paths = fs::read_dir(app).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<_> = paths.filter(|path| path.join(FILE).is_file()).filter_map(named).collect();
    folders.sort();
    folders
}

/// Returns the setting that disables a function, if any. Some systems do not allow dots in
/// names of variables.
pub(super) fn disabling_setting(function: &str, settings: &Settings) -> Option<String> {
    let names = [format!("AzureWebJobs.{function}.Disabled"), format!("AzureWebJobs_{function}_Disabled")];
    names.into_iter().find(|name| settings.is_on(name))
}

fn read_function(app: &App, name: &str, folder: &Path) -> Result<Function, FunctionRejection> {
    let refuse = |problem: Problem| FunctionRejection::Problems(vec![problem]);
    let object = read_object(&folder.join(FILE), FILE).map_err(refuse)?.unwrap_or_default();
    let notes = ProblemCollector::default();
    let members = ConfigReader::new(&object, "", &notes);
    if let Some(reason) = reason_to_skip(name, &members, &app.settings) {
        return Err(FunctionRejection::Skipped(SkippedFunction { name: name.to_owned(), reason }));
    }
    check_name(name).map_err(refuse)?;
    let Some(Value::Array(bindings)) = members.value("bindings") else {
        let fix = r#"write "bindings": [{"type": "mcpToolTrigger", …}]"#;
        members.report_problem("bindings", "must be an array of objects", Some(fix));
        return Err(FunctionRejection::Problems(notes.into_problems()));
    };
    let source = FunctionSource {
        directory: folder.display().to_string(),
        script_file: script_file(app, folder, &members).unwrap_or_default(),
        entry_point: members.text("entryPoint").unwrap_or_default(),
        language: app.runtime.as_str().to_owned(),
        ..FunctionSource::default()
    };
    if app.runtime == WorkerRuntime::Java && source.entry_point.is_empty() {
        members.report_problem("entryPoint", "is required", Some("write it as package.Class.method"));
    }
    let function = Function::from_bindings(name, name, source, bindings, &app.settings.lookup());
    match (notes.into_problems(), function) {
        // The problems of a skipped function are not reported.
        (_, Err(FunctionRejection::Skipped(skipped))) => Err(FunctionRejection::Skipped(skipped)),
        (problems, function) if problems.is_empty() => function,
        (mut problems, Err(FunctionRejection::Problems(more))) => {
            problems.extend(more);
            Err(FunctionRejection::Problems(problems))
        }
        (problems, _) => Err(FunctionRejection::Problems(problems)),
    }
}

fn reason_to_skip(name: &str, members: &ConfigReader<'_>, settings: &Settings) -> Option<String> {
    if let Some(setting) = disabling_setting(name, settings) {
        return Some(format!("it is disabled by the setting {setting}"));
    }
    let disabled = match members.value("disabled") {
        // A string is `true` or the name of a setting.
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true") || settings.is_on(text),
        Some(_) => members.flag("disabled").unwrap_or(false),
        None => false,
    };
    if disabled || members.flag("excluded").unwrap_or(false) {
        return Some(format!("it is disabled in {name}/{FILE}"));
    }
    let source = members.text("configurationSource")?;
    source
        .eq_ignore_ascii_case("attributes")
        .then(|| "it is compiled .NET code, which bindpost does not run".to_owned())
}

fn check_name(name: &str) -> Result<(), Problem> {
    let letter_first = name.starts_with(|char: char| char.is_ascii_alphabetic());
    let rest = name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'));
    if letter_first && rest && name.len() <= 128 && !name.eq_ignore_ascii_case("host") {
        return Ok(());
    }
    let problem = Problem::new(format!("'{name}' is not a valid function name."));
    let fix = "rename the folder: start with a letter, then use letters, digits, _ and -, at most 128 \
               characters, and not the name host";
    Err(problem.fix(fix))
}

/// Returns the absolute path of the script file. `scriptFile` is relative to the function's folder. In Java
/// apps it is for example `../app.jar`.
fn script_file(app: &App, folder: &Path, members: &ConfigReader<'_>) -> Option<String> {
    if app.runtime == WorkerRuntime::Custom {
        return None;
    }
    if let Some(text) = members.text("scriptFile").filter(|text| !text.trim().is_empty()) {
        let path = normalize_path(&folder.join(&text));
        if path.is_file() {
            return Some(path.display().to_string());
        }
        let fix = match app.runtime {
            WorkerRuntime::Java => {
                "run `mvn package`. The path is relative to the function's folder, for example ../app.jar"
            }
            _ => "the path is relative to the function's folder",
        };
        members.report_problem("scriptFile", format!("{} does not exist", path.display()), Some(fix));
        return None;
    }
    let usual: &[&str] = match &app.runtime {
        WorkerRuntime::Python => &["__init__.py", "main.py"],
        WorkerRuntime::Node => &["index.js", "index.mjs", "index.cjs", "run.js"],
        WorkerRuntime::Other(name) if name == POWERSHELL => &["run.ps1", "run.psm1"],
        _ => &[],
    };
    let path = usual.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    // A worker for another language may not need a script file.
    if path.is_none() && !matches!(app.runtime, WorkerRuntime::Other(_)) {
        members.report_problem("scriptFile", "is required", Some("name the file with the function's code"));
    }
    path.map(|path| path.display().to_string())
}

/// Returns the path without `.` and `..`.
fn normalize_path(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(tidy.pop()),
            other => tidy.push(other),
        }
    }
    tidy
}
