//! [`JavaProject`]: the sources of an app. Maven or Gradle packages them, and the packaged app is run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::command::{CommandLine, quote_argument};
use super::super::program::{OperatingSystem, find_executable};
use super::super::{Setup, SetupError};

/// The maximum number of directory entries to check for changes.
const MOST_SOURCES: usize = 20_000;
/// A file beside the packaged apps whose modification time is that of our last build. A build leaves a jar as it is if
/// only its settings changed.
const BUILT: &str = ".bindpost-built";

/// A build tool, with its files and its commands.
#[derive(Debug)]
struct BuildTool {
    name: &'static str,
    /// The files that make a folder a project of this tool.
    projects: &'static [&'static str],
    /// Other files whose change needs a new build.
    settings: &'static [&'static str],
    /// The folder with the packaged apps.
    output: &'static str,
    /// The script that installs and runs the version of the tool that the project needs.
    wrapper: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The command for a user.
    by_hand: &'static str,
    /// The plugin that packages apps.
    plugin: &'static str,
}

const MAVEN: BuildTool = BuildTool {
    name: "Maven",
    projects: &["pom.xml"],
    settings: &["pom.xml"],
    output: "target/azure-functions",
    wrapper: "mvnw",
    program: "mvn",
    arguments: &["-q", "-B", "-DskipTests", "package"],
    by_hand: "mvn package",
    plugin: "goal package of azure-functions-maven-plugin",
};
const GRADLE: BuildTool = BuildTool {
    name: "Gradle",
    projects: &["build.gradle", "build.gradle.kts"],
    settings: &[
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
        "gradle.properties",
        "gradle/libs.versions.toml",
    ],
    output: "build/azure-functions",
    wrapper: "gradlew",
    program: "gradle",
    arguments: &["-q", "--console=plain", "azureFunctionsPackage"],
    by_hand: "gradle azureFunctionsPackage",
    plugin: "plugin com.microsoft.azure.azurefunctions",
};

/// A folder with the sources of an app.
pub(super) struct JavaProject {
    folder: PathBuf,
    tool: &'static BuildTool,
}

impl JavaProject {
    /// Returns the project in the app folder. A folder with `function.json` files is a packaged app.
    pub(super) fn detect(setup: &Setup<'_>) -> Option<JavaProject> {
        if setup.has_function_json() {
            return None;
        }
        let has = |tool: &&BuildTool| tool.projects.iter().any(|file| setup.app.join(file).is_file());
        let tool = [&MAVEN, &GRADLE].into_iter().find(has)?;
        Some(JavaProject { folder: setup.app.clone(), tool })
    }

    /// Returns the folder of the packaged app. Runs the build tool if there is none, or if the sources are newer.
    pub(super) async fn package(&self, setup: &mut Setup<'_>) -> Result<PathBuf, SetupError> {
        let found = self.packaged();
        let reason = match &found {
            None => "there is no packaged app",
            Some(app) if self.is_stale(app) => "sources are newer than the packaged app",
            Some(_) => return self.only(setup, found, String::new),
        };
        let by_hand = format!("{}   (in {})", self.tool.by_hand, self.folder.display());
        if !setup.options.install {
            if found.is_some() {
                setup.notice(format!("the packaged app is not up to date: {reason}"), by_hand.clone());
            }
            return self.only(setup, found, || by_hand);
        }
        let command = self.command(setup)?;
        if let Some(app) = &found {
            detach_jars(app);
            detach_jars(&app.join("lib"));
        }
        setup.step(&format!("Packaging the app with {}: {reason}", self.tool.name), &command).await?;
        let packaged = self.packaged();
        if packaged.is_some() {
            let note = self.folder.join(self.tool.output).join(BUILT);
            fs::write(&note, "").map_err(SetupError::file(&note, "written"))?;
        }
        self.only(setup, packaged, || {
            format!(
                "the build wrote no folder below {}: add the {} to it",
                self.tool.output, self.tool.plugin
            )
        })
    }

    /// Returns what to run, or what to build first.
    pub(super) fn packaging_fix(&self) -> String {
        match self.packaged() {
            Some(app) => format!("bindpost run {}", quote_argument(app)),
            None => format!(
                "{}   (in {}; then run the folder with a host.json below {})",
                self.tool.by_hand,
                self.folder.display(),
                self.tool.output
            ),
        }
    }

    /// Returns the packaged app, or the error that there is none. Tells if there are others.
    fn only(
        &self,
        setup: &mut Setup<'_>,
        found: Option<PathBuf>,
        fix: impl FnOnce() -> String,
    ) -> Result<PathBuf, SetupError> {
        let Some(app) = found else {
            return Err(SetupError::NotPackaged { folder: self.folder.clone(), fix: fix() });
        };
        let count = self.all_packaged().len();
        if count > 1 {
            let message = format!(
                "{} has {count} packaged apps; the newest one is used: {}",
                self.tool.output,
                app.file_name().unwrap_or_default().to_string_lossy()
            );
            setup.notice(
                message,
                format!("delete the others, or run one: bindpost run {}", quote_argument(&app)),
            );
        }
        Ok(app)
    }

    fn all_packaged(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.join(self.tool.output)).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|app| app.join("host.json").is_file()).collect();
        found.sort();
        found
    }

    /// Returns the newest packaged app.
    fn packaged(&self) -> Option<PathBuf> {
        self.all_packaged().into_iter().max_by_key(|app| newest_file(app, is_jar))
    }

    /// Returns whether a source is newer than the jar of the packaged app, and than our last build.
    fn is_stale(&self, app: &Path) -> bool {
        let built =
            newest_file(app, is_jar).max(modified_time(&self.folder.join(self.tool.output).join(BUILT)));
        let settings =
            self.tool.settings.iter().filter_map(|file| modified_time(&self.folder.join(file))).max();
        let sources = newest_in(&self.folder.join("src").join("main"));
        sources.max(settings) > built
    }

    /// Returns the command that packages the app: the wrapper of the project, or the tool on the PATH.
    fn command(&self, setup: &Setup<'_>) -> Result<CommandLine, SetupError> {
        let wrapper = self.folder.join(self.tool.wrapper);
        let command = if let Some(wrapper) = find_executable(&wrapper) {
            setup.command(&wrapper)
        } else if let (true, Some(shell)) = (wrapper.is_file(), setup.find_on_path("sh")) {
            // The script lost its mode, for example in an archive.
            setup.command(&shell).arg(&wrapper)
        } else if let Some(program) = setup.find_on_path(self.tool.program) {
            setup.command(&program)
        } else {
            let install = match OperatingSystem::current() {
                OperatingSystem::Linux => format!("sudo apt install {}", self.tool.name.to_lowercase()),
                OperatingSystem::Macos => format!("brew install {}", self.tool.name.to_lowercase()),
                OperatingSystem::Windows => format!("install {}", self.tool.name),
            };
            let fix = format!("{install}   (or add {} to the project; then start again)", self.tool.wrapper);
            return Err(SetupError::NotPackaged { folder: self.folder.clone(), fix });
        };
        Ok(command.args(self.tool.arguments))
    }
}

/// Replaces each jar of a folder by a copy. A worker that runs the app has the jars open and reads classes when it needs
/// them, and build tools write into the file that exists.
fn detach_jars(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let jar = entry.path();
        if entry.file_name().to_str().is_some_and(is_jar)
            && let Err(error) = detach(&jar)
        {
            tracing::debug!(target: "host", "cannot replace {} by a copy: {error}", jar.display());
        }
    }
}

fn detach(jar: &Path) -> io::Result<()> {
    let copy = jar.with_extension(format!("copy-{}", std::process::id()));
    let copied = fs::copy(jar, &copy)
        .and_then(|_| File::options().write(true).open(&copy)?.set_modified(fs::metadata(jar)?.modified()?))
        .and_then(|()| fs::rename(&copy, jar));
    if copied.is_err() {
        let _ = fs::remove_file(&copy);
    }
    copied
}

fn is_jar(name: &str) -> bool {
    name.ends_with(".jar")
}

fn modified_time(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|file| file.modified()).ok()
}

/// Returns the modification time of the newest file in a folder whose name is accepted.
fn newest_file(folder: &Path, accepts: impl Fn(&str) -> bool) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(&accepts));
    named.filter_map(|entry| modified_time(&entry.path())).max()
}

/// Returns the modification time of the newest file below a folder.
fn newest_in(folder: &Path) -> Option<SystemTime> {
    let (mut newest, mut seen) = (None, 0);
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_SOURCES {
                return newest;
            }
            // Links are not followed, because they may form a cycle.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => newest = newest.max(modified_time(&entry.path())),
                Err(_) => {}
            }
        }
    }
    newest
}
