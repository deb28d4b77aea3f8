//! [`FunctionSearch`]: where the functions of an app were searched, for the error of an app without any.

use std::fmt;
use std::fs;

use serde_json::Value;

use crate::app::{App, WorkerRuntime};
use crate::json;

/// The setting with another name for `function_app.py`.
const PYTHON_FILE: &str = "PYTHON_SCRIPT_FILE_NAME";

/// Where the functions of an app were searched, and where the author can put one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSearch {
    /// The places without a function, as a part of a sentence.
    places: String,
    fix: String,
}

impl FunctionSearch {
    /// Returns the places for the language of an app.
    pub(crate) fn of_app(app: &App) -> FunctionSearch {
        let (places, fix) = match &app.runtime {
            WorkerRuntime::Python => python(app),
            WorkerRuntime::Node => node(app),
            WorkerRuntime::Java => (
                String::new(),
                "build the app and pass the folder that the Maven plugin writes below target/azure-functions"
                    .to_owned(),
            ),
            WorkerRuntime::Custom | WorkerRuntime::Other(_) => (
                String::new(),
                "add a folder for each function, with a function.json that has a trigger such as mcpToolTrigger"
                    .to_owned(),
            ),
        };
        FunctionSearch { places, fix }
    }
}

/// Writes the places and the fix on separate lines.
impl fmt::Display for FunctionSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FunctionSearch { places, fix } = self;
        write!(f, "{places}no folder of the app has a function.json\n  fix: {fix}")
    }
}

fn python(app: &App) -> (String, String) {
    let file = app.settings.get(PYTHON_FILE).unwrap_or("function_app.py");
    match app.folder.join(file).is_file() {
        true => (
            format!("{file} declares none, and "),
            format!(
                "add a function with a decorator such as @app.mcp_tool_trigger to {file}; a blueprint needs \
                 app.register_functions(blueprint)"
            ),
        ),
        false => (
            format!("there is no {file}, and "),
            format!("put the functions into function_app.py, or set {PYTHON_FILE} to the name of their file"),
        ),
    }
}

fn node(app: &App) -> (String, String) {
    let register = "register a function with app.mcpTool or another method of `app` from @azure/functions";
    let main = match main_of_package(app) {
        Ok(Some(main)) => {
            let places = format!("no file that \"main\" of package.json names ({main}) registers one, and ");
            return (places, format!("{register} in such a file"));
        }
        Ok(None) => "package.json has no \"main\"",
        Err(()) => "there is no package.json",
    };
    match app.folder.join("index.js").is_file() {
        true => (
            format!("{main}, index.js registers none, and "),
            format!("{register} in index.js, or set \"main\" to the files that do"),
        ),
        false => (
            format!("{main}, there is no index.js, and "),
            "set \"main\" of package.json to the files that register functions, like \"src/functions/*.js\""
                .to_owned(),
        ),
    }
}

/// Returns `main` of package.json, or an error if there is no such file.
fn main_of_package(app: &App) -> Result<Option<String>, ()> {
    let text = fs::read_to_string(app.folder.join("package.json")).map_err(|_| ())?;
    let package = json::parse(&text).unwrap_or_default();
    let main = package.get("main").and_then(Value::as_str).filter(|main| !main.is_empty());
    Ok(main.map(str::to_owned))
}
