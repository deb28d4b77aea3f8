//! The output folder of a .NET app. An isolated app is its own worker: its build writes a `worker.config.json` beside
//! `host.json`.

use std::fs;
use std::path::{Path, PathBuf};

use super::read_object;
use super::runtime::DOTNET_ISOLATED;
use crate::json::member;
use crate::problem::Problem;

const WORKER_FILE: &str = "worker.config.json";

/// Returns whether a folder is the output folder of an isolated .NET app.
pub(super) fn is_app(runtime: &str, folder: &Path) -> bool {
    runtime == DOTNET_ISOLATED && is_output(folder)
}

fn is_output(folder: &Path) -> bool {
    let config = read_object(&folder.join(WORKER_FILE), WORKER_FILE).ok().flatten();
    let language =
        config.as_ref().and_then(|config| member(config, "description")?.get("language")?.as_str());
    language.is_some_and(|language| language.eq_ignore_ascii_case(DOTNET_ISOLATED))
}

/// Returns the problem of a .NET app that cannot be run in this folder. `found` is why it is a .NET app.
pub(super) fn problem(folder: &Path, found: String) -> Problem {
    if let Some(output) = newest_output(folder) {
        let problem = Problem::new(format!("{found}: the functions of a .NET app are in its output folder"));
        return problem.fix(format!("bindpost run {}", output.display()));
    }
    let is_isolated = project_file(folder)
        .and_then(|name| fs::read_to_string(folder.join(name)).ok())
        .is_some_and(|text| text.contains("Microsoft.Azure.Functions.Worker"));
    let problem = Problem::new(match is_isolated {
        true => format!("{found}: it must be built before its functions can be run"),
        false => format!(
            "{found}: .NET apps are supported only if they are isolated, that is, use the package \
             Microsoft.Azure.Functions.Worker. An app in the process of the host needs the platform's own host"
        ),
    });
    problem.fix(match is_isolated {
        true => "dotnet build   (then pass the folder below bin that has a worker.config.json)",
        false => "run it with `func start`, or migrate it to the isolated worker model",
    })
}

/// Returns the name of a file that only .NET apps have.
pub(super) fn project_file(folder: &Path) -> Option<String> {
    let names = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let ends = [".csproj", ".fsproj", ".vbproj", ".deps.json"];
    // The Azure tools put an extensions.csproj into apps of any language.
    let names = names.filter(|name| name != "extensions.csproj");
    names.filter(|name| ends.iter().any(|end| name.ends_with(end)) || name == "functions.metadata").min()
}

/// Returns the newest output folder: `bin/<configuration>/<framework>`, or its `publish`.
fn newest_output(folder: &Path) -> Option<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let frameworks = below(&folder.join("bin")).into_iter().flat_map(|configuration| below(&configuration));
    let outputs =
        frameworks.flat_map(|output| [output.join("publish"), output]).filter(|output| is_output(output));
    outputs.max_by_key(|output| output.join(WORKER_FILE).metadata().and_then(|file| file.modified()).ok())
}
