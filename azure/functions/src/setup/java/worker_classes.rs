//! [`JavaWorkerClasses`]: our Java worker, compiled by the JDK of the machine.
//!
//! The program contains the sources. They are compiled once, and the classes are kept in the user's cache folder. A
//! program that was built with the classes contains them too, and needs no compiler.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::super::command::CommandLine;
use super::super::program::{OperatingSystem, RequiredProgram, find_executable};
use super::super::stamp::InstallStamp;
use super::super::{Setup, SetupError};
use super::choice;
use super::installation::JavaInstallation;
use super::worker_cache::WorkerCache;
use crate::worker::{BundledFile, JAVA_CLASSES, JAVA_SOURCES, PrivateFolder};

/// The parts of the worker, which are compiled and loaded separately.
const PARTS: [&str; 3] = ["worker", "api", "gson"];
/// The oldest version of Java that runs the worker.
const RELEASE: &str = "11";
/// The first digits of the hash of the sources, for the name of the folder.
const DIGITS: usize = 16;

/// The classes of our Java worker, on disk.
#[derive(Clone, Debug)]
pub struct JavaWorkerClasses {
    folder: PathBuf,
    /// The folder that is deleted with this value. `None` if the classes are kept for the next start.
    private: Option<Arc<PrivateFolder>>,
}

impl JavaWorkerClasses {
    /// The class path of the worker.
    pub fn worker(&self) -> PathBuf {
        self.folder.join("worker")
    }

    /// The declarations that apps need, which are not in their jars.
    pub fn api(&self) -> PathBuf {
        self.folder.join("api")
    }

    /// A small replacement of Gson, for apps that need Gson and do not have it.
    pub fn gson(&self) -> PathBuf {
        self.folder.join("gson")
    }

    fn in_private(private: PrivateFolder) -> Self {
        Self { folder: private.path().to_path_buf(), private: Some(Arc::new(private)) }
    }

    /// Returns the folder that is deleted with this value.
    pub(crate) fn private_folder(&self) -> Option<Arc<PrivateFolder>> {
        self.private.clone()
    }
}

/// Returns the classes: those in this program, those of an earlier start, or else new ones.
pub(super) async fn provide(
    setup: &mut Setup<'_>,
    java: &JavaInstallation,
) -> Result<JavaWorkerClasses, SetupError> {
    if !JAVA_CLASSES.is_empty() {
        let private = private_folder()?;
        write_files(private.path(), JAVA_CLASSES)?;
        return Ok(JavaWorkerClasses::in_private(private));
    }
    let cache = match WorkerCache::open(setup) {
        Ok(cache) => cache,
        Err(error) => {
            let message =
                format!("the Java worker is compiled at every start, because it cannot be kept: {error}");
            setup.notice(
                message,
                "set XDG_CACHE_HOME to a folder that only this user can write to".to_owned(),
            );
            let private = private_folder()?;
            compile(setup, java, private.path()).await?;
            return Ok(JavaWorkerClasses::in_private(private));
        }
    };
    let name = cached_name();
    if let Some(folder) = cache.find(&name) {
        return Ok(JavaWorkerClasses { folder, private: None });
    }
    let draft = cache.draft().map_err(cannot_write)?;
    compile(setup, java, draft.path()).await?;
    let folder = cache.keep(&draft, &name).map_err(SetupError::file(draft.path(), "renamed"))?;
    Ok(JavaWorkerClasses { folder, private: None })
}

/// Returns the name of the folder for these sources.
fn cached_name() -> String {
    let parts = JAVA_SOURCES.iter().flat_map(|(name, content)| [name.as_bytes(), content]);
    let hash = InstallStamp::from_parts(parts).to_string();
    format!("{}-{RELEASE}", hash.get(..DIGITS).unwrap_or(&hash))
}

/// Compiles the sources into subfolders of `output`.
async fn compile(setup: &Setup<'_>, java: &JavaInstallation, output: &Path) -> Result<(), SetupError> {
    let compiler = JavaCompiler::find(setup, java).await?;
    let sources = private_folder()?;
    write_files(sources.path(), JAVA_SOURCES)?;
    let step = "Compiling the Java worker of bindpost, once";
    setup.progress.started(step);
    let begin = Instant::now();
    let [worker, api, gson] = PARTS.map(|part| {
        let output = output.join(part);
        let command = compiler.command(setup, sources.path(), part, &output);
        async move { command?.run(setup.options.time_limit, &mut |line| setup.progress.output(line)).await }
    });
    tokio::try_join!(worker, api, gson)?;
    setup.progress.done(step, begin.elapsed());
    Ok(())
}

/// A program that compiles Java.
enum JavaCompiler {
    /// `javac`.
    Program(PathBuf),
    /// The module of the compiler, run by this `java`.
    Module(PathBuf),
}

impl JavaCompiler {
    /// Finds a compiler: that of the Java in use, or that of another JDK of the machine.
    async fn find(setup: &Setup<'_>, java: &JavaInstallation) -> Result<Self, SetupError> {
        if let Some(javac) = java.javac() {
            return Ok(Self::Program(javac));
        }
        if java.has_compiler_module(setup).await {
            return Ok(Self::Module(java.path.clone()));
        }
        let home = setup.variable("JAVA_HOME").map(|home| PathBuf::from(home).join("bin").join("javac"));
        let in_home = home.as_deref().and_then(find_executable);
        if let Some(javac) = in_home.or_else(|| setup.find_on_path("javac")) {
            return Ok(Self::Program(javac));
        }
        let (oldest, _) = RequiredProgram::Java.minimum_version();
        let others = choice::installed(setup).await;
        let jdk = others
            .iter()
            .rev()
            .filter(|other| other.major() >= oldest.major)
            .find_map(JavaInstallation::javac);
        jdk.map(Self::Program).ok_or_else(|| SetupError::NoJavaCompiler {
            java: java.path.clone(),
            version: java.version.clone(),
            fix: install_fix(java.major()),
        })
    }

    /// Returns the command that compiles one part. Its classes are written to `output`.
    fn command(
        &self,
        setup: &Setup<'_>,
        sources: &Path,
        part: &str,
        output: &Path,
    ) -> Result<CommandLine, SetupError> {
        // The command line of some systems is too short for all names.
        let list = sources.join(format!("{part}.txt"));
        let prefix = format!("{part}/");
        let names = JAVA_SOURCES.iter().map(|(name, _)| *name).filter(|name| name.starts_with(&prefix));
        fs::create_dir_all(output).map_err(SetupError::file(output, "created"))?;
        fs::write(&list, names.collect::<Vec<_>>().join("\n")).map_err(SetupError::file(&list, "written"))?;
        let command = match self {
            // A compiler that runs so briefly is faster without the optimizing compiler of the virtual machine.
            Self::Program(javac) => CommandLine::new(javac, sources).arg("-J-XX:TieredStopAtLevel=1"),
            Self::Module(java) => CommandLine::new(java, sources).args(&[
                "-XX:TieredStopAtLevel=1",
                "-m",
                "jdk.compiler/com.sun.tools.javac.Main",
            ]),
        };
        let command = command.path(setup.variable("PATH"));
        let command =
            command.args(&["--release", RELEASE, "-encoding", "UTF-8", "-proc:none", "-nowarn", "-d"]);
        Ok(command.arg(output).arg(format!("@{part}.txt")))
    }
}

/// Returns how to install a compiler.
fn install_fix(major: u32) -> String {
    let install = match OperatingSystem::current() {
        OperatingSystem::Linux => {
            format!(
                "sudo apt install openjdk-{major}-jdk-headless   (Debian, Ubuntu; any JDK from version 11 on)"
            )
        }
        OperatingSystem::Macos => "brew install --cask temurin".to_owned(),
        OperatingSystem::Windows => "winget install EclipseAdoptium.Temurin.21.JDK".to_owned(),
    };
    format!("{install}, or use the public worker with --workers DIR")
}

fn private_folder() -> Result<PrivateFolder, SetupError> {
    PrivateFolder::create().map_err(cannot_write)
}

fn cannot_write(source: io::Error) -> SetupError {
    SetupError::File { path: std::env::temp_dir(), action: "written", source }
}

fn write_files(folder: &Path, files: &[BundledFile]) -> Result<(), SetupError> {
    for (name, content) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, content))
            .map_err(SetupError::file(&path, "written"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_worker_is_in_the_program() {
        for part in PARTS {
            let prefix = format!("{part}/");
            assert!(JAVA_SOURCES.iter().any(|(name, _)| name.starts_with(&prefix)), "{part}");
        }
        let is_of_a_part = |name: &str| PARTS.iter().any(|part| name.starts_with(&format!("{part}/")));
        assert!(JAVA_SOURCES.iter().all(|(name, _)| is_of_a_part(name) && name.ends_with(".java")));
        assert!(JAVA_SOURCES.iter().any(|(name, _)| *name == "worker/bindpost/worker/Main.java"));
        assert_eq!(cached_name().len(), DIGITS + 3);
    }
}
