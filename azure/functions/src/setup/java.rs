//! Prepares a Java app: packages a Maven or Gradle project, chooses a Java, and compiles our worker once.

mod choice;
mod class_version;
mod installation;
mod project;
pub(super) mod system_folders;
mod worker_cache;
mod worker_classes;

use std::path::PathBuf;

use self::class_version::JavaNeed;
use self::project::JavaProject;
use super::{Setup, SetupError};

pub use self::worker_classes::JavaWorkerClasses;

pub(super) async fn prepare(setup: &mut Setup<'_>) -> Result<(), SetupError> {
    if let Some(project) = JavaProject::detect(setup) {
        let packaged = project.package(setup).await?;
        setup.prepared.packaged = Some(packaged);
    }
    let app = setup.prepared.packaged.as_ref().unwrap_or(&setup.app);
    let need = JavaNeed::of_app(app);
    let java = choice::choose(setup, need.as_ref()).await?;
    if setup.options.built_in_worker {
        setup.prepared.java_worker = Some(worker_classes::provide(setup, &java).await?);
    }
    setup.prepared.interpreter_origin = Some(java.origin(need.as_ref()));
    setup.set_interpreter(java.path, java.version);
    Ok(())
}

/// Returns the Java that a program of an app runs on, if there is one.
pub(super) async fn find(setup: &mut Setup<'_>) -> Option<PathBuf> {
    choice::choose(setup, None).await.ok().map(|java| java.path)
}

/// Returns what to run or to build if the app folder is a project.
pub(super) fn packaging_fix(setup: &Setup<'_>) -> Option<String> {
    JavaProject::detect(setup).map(|project| project.packaging_fix())
}
