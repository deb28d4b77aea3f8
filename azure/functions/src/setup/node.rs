//! Prepares a Node app: Node itself, the packages of package.json, and the build of TypeScript sources.

mod build;
mod entry_files;
mod manifest;
mod packages;

use std::path::PathBuf;

use self::build::EntryPattern;
use self::manifest::PackageJson;
use super::program::{RequiredProgram, VERSION_LIMIT};
use super::{Setup, SetupError};

pub(super) async fn prepare(setup: &mut Setup<'_>) -> Result<(), SetupError> {
    let node = find(setup).await?;
    let Some(manifest) = PackageJson::read(&setup.app)? else {
        if !setup.has_function_json() {
            let fix =
                format!("npm init -y && npm install {}   (in {})", packages::PACKAGE, setup.app.display());
            setup.notice("the app has no package.json", fix);
        }
        return Ok(());
    };
    let manager = packages::PackageManager::detect(setup, &node);
    packages::install(setup, &manager, &manifest).await?;
    let entry = EntryPattern { pattern: manifest.main(), named_by: "\"main\" of package.json" };
    build::build(setup, &manager, &manifest, entry).await
}

/// Prepares a self-hosted app. `file` is the file that Node runs, `script` the script of package.json that npm runs.
pub(super) async fn prepare_server(
    setup: &mut Setup<'_>,
    file: Option<&str>,
    script: Option<&str>,
) -> Result<(), SetupError> {
    let Some(manifest) = PackageJson::read(&setup.app)? else { return Ok(()) };
    let node = find(setup).await?;
    let manager = packages::PackageManager::detect(setup, &node);
    packages::install(setup, &manager, &manifest).await?;
    let of_script = || Some((manifest.file_of_script(script?)?, "the script in package.json"));
    let entry = file.map(|file| (file, "\"arguments\" of host.json")).or_else(of_script);
    match entry {
        Some((pattern, named_by)) => {
            build::build(setup, &manager, &manifest, EntryPattern { pattern, named_by }).await
        }
        None => Ok(()),
    }
}

async fn find(setup: &mut Setup<'_>) -> Result<PathBuf, SetupError> {
    let path = match setup.named_executable(RequiredProgram::Node) {
        Some(named) => {
            let path = named?;
            // npm and its scripts find node on the PATH.
            if let Some(value) = path.parent().and_then(|folder| setup.prepend_to_path(folder)) {
                setup.prepared.environment.push(("PATH".to_owned(), value));
            }
            path
        }
        None => setup
            .find_on_path("node")
            .ok_or_else(|| RequiredProgram::Node.missing("node on the PATH".to_owned()))?,
    };
    let output = setup
        .command(&path)
        .arg("--version")
        .run(VERSION_LIMIT, &mut |_| {})
        .await
        .map_err(|error| RequiredProgram::Node.does_not_run(&path, &error))?;
    let version =
        output.last().map(|line| line.trim().trim_start_matches('v').to_owned()).unwrap_or_default();
    RequiredProgram::Node.check_version(&path, &version)?;
    setup.set_interpreter(path.clone(), version);
    Ok(path)
}
