//! Prepares a Java app: finds Java, and rejects sources that were not packaged.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::quote_argument;
use super::program::{RequiredProgram, VERSION_LIMIT, find_executable};
use super::{Setup, SetupError};

/// A build tool: its project files, its output folder for packaged apps, and its package command.
struct BuildTool {
    projects: &'static [&'static str],
    output: &'static str,
    package: &'static str,
}

const BUILD_TOOLS: [BuildTool; 2] = [
    BuildTool { projects: &["pom.xml"], output: "target/azure-functions", package: "mvn package" },
    BuildTool {
        projects: &["build.gradle", "build.gradle.kts"],
        output: "build/azure-functions",
        package: "gradle azureFunctionsPackage",
    },
];

pub(super) async fn prepare(setup: &mut Setup<'_>) -> Result<(), SetupError> {
    refuse_sources(setup)?;
    let path = find(setup)?;
    let output = setup
        .command(&path)
        .arg("-version")
        .run(VERSION_LIMIT, &mut |_| {})
        .await
        .map_err(|error| RequiredProgram::Java.does_not_run(&path, &error))?;
    let version =
        output.iter().find_map(|line| version_in(line)).unwrap_or("of an unknown version").to_owned();
    RequiredProgram::Java.check_version(&path, &version)?;
    setup.set_interpreter(path, version);
    Ok(())
}

fn find(setup: &mut Setup<'_>) -> Result<PathBuf, SetupError> {
    if let Some(named) = setup.named_executable(RequiredProgram::Java) {
        return named;
    }
    let home = setup.variable("JAVA_HOME").map(PathBuf::from);
    let in_home = home.as_ref().map(|home| home.join("bin").join("java"));
    if let Some(path) = in_home.as_deref().and_then(find_executable) {
        return Ok(path);
    }
    let Some(path) = setup.find_on_path("java") else {
        let home = in_home.map(|path| format!("{} (JAVA_HOME) and ", path.display()));
        return Err(RequiredProgram::Java.missing(format!("{}java on the PATH", home.unwrap_or_default())));
    };
    if let Some(home) = home {
        let message = format!("JAVA_HOME is {}, which contains no Java", home.display());
        setup.notice(
            format!("{message}; {} is used", path.display()),
            "correct or unset JAVA_HOME".to_owned(),
        );
    }
    Ok(path)
}

/// Returns the version in a line such as `openjdk version "17.0.15" 2025-04-15`.
fn version_in(line: &str) -> Option<&str> {
    line.split_once("version \"")?.1.split('"').next()
}

/// Rejects a project folder without function.json files. Packaging creates them.
fn refuse_sources(setup: &Setup<'_>) -> Result<(), SetupError> {
    if setup.has_function_json() {
        return Ok(());
    }
    for tool in &BUILD_TOOLS {
        if !tool.projects.iter().any(|project| setup.app.join(project).is_file()) {
            continue;
        }
        let fix = match packaged_app(&setup.app.join(tool.output)) {
            Some(app) => format!("bindpost run {}", quote_argument(app)),
            None => format!("{}   (in {}; then start again)", tool.package, setup.app.display()),
        };
        return Err(SetupError::NotPackaged { folder: setup.app.clone(), fix });
    }
    Ok(())
}

/// Returns the first folder with a host.json, by name.
fn packaged_app(output: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(output).ok()?;
    entries.flatten().map(|entry| entry.path()).filter(|folder| folder.join("host.json").is_file()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_old_and_new_formats() {
        assert_eq!(version_in("openjdk version \"17.0.15\" 2025-04-15"), Some("17.0.15"));
        assert_eq!(version_in("java version \"1.8.0_392\""), Some("1.8.0_392"));
        assert_eq!(version_in("Picked up JAVA_TOOL_OPTIONS: -Xmx1g"), None);
    }
}
