//! [`JavaInstallation`]: a Java of the machine, with its version and its compiler.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::program::{ProgramVersion, RequiredProgram, VERSION_LIMIT, find_executable};
use super::super::{Setup, SetupError};
use super::class_version::JavaNeed;

/// A Java of the machine: a JDK, or a JRE without a compiler.
#[derive(Clone, Debug)]
pub(super) struct JavaInstallation {
    /// The program `java`.
    pub(super) path: PathBuf,
    /// The version, such as `17.0.15`.
    pub(super) version: String,
    /// Where it was found.
    pub(super) place: String,
    /// The folder of the installation. `None` if it is not known.
    home: Option<PathBuf>,
    /// Whether the installation has the module of the compiler. `None` if it is not known.
    has_compiler_module: Option<bool>,
}

impl JavaInstallation {
    /// Finds the version of a `java`. The file `release` of the installation has it. Without such a file, as with the
    /// shims of version managers, `java` is run.
    pub(super) async fn probe(setup: &Setup<'_>, path: PathBuf, place: String) -> Result<Self, SetupError> {
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let home = real.ancestors().nth(2).map(Path::to_path_buf);
        if let Some((home, release)) = home.and_then(|home| Some((home.clone(), ReleaseFile::read(&home)?))) {
            let (version, has_compiler_module) = (release.version, release.has_compiler_module);
            return Ok(Self { path, version, place, home: Some(home), has_compiler_module });
        }
        let output = setup
            .command(&path)
            .args(&["-XshowSettings:properties", "-version"])
            .run(VERSION_LIMIT, &mut |_| {})
            .await
            .map_err(|error| RequiredProgram::Java.does_not_run(&path, &error))?;
        let version = output.iter().find_map(|line| version_in(line)).unwrap_or("of an unknown version");
        let home = output.iter().find_map(|line| home_in(line)).map(PathBuf::from);
        Ok(Self { version: version.to_owned(), path, place, home, has_compiler_module: None })
    }

    /// Returns the major version. A version that cannot be parsed may be newer than all others.
    pub(super) fn major(&self) -> u32 {
        ProgramVersion::parse(&self.version).map_or(u32::MAX, |version| version.major)
    }

    /// Returns whether the app and our worker run on this Java.
    pub(super) fn meets(&self, need: Option<&JavaNeed>) -> bool {
        self.major() >= needed_major(need)
    }

    /// Returns the folder of the installation.
    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the program `javac`.
    pub(super) fn javac(&self) -> Option<PathBuf> {
        find_executable(&self.home.as_ref()?.join("bin").join("javac"))
    }

    /// Returns whether this Java can compile without the program `javac`.
    pub(super) async fn has_compiler_module(&self, setup: &Setup<'_>) -> bool {
        if let Some(known) = self.has_compiler_module {
            return known;
        }
        let modules = setup.command(&self.path).arg("--list-modules").run(VERSION_LIMIT, &mut |_| {}).await;
        modules.is_ok_and(|lines| lines.iter().any(|line| is_compiler_module(line)))
    }

    /// Returns where this Java comes from, and why it was chosen, for the start screen.
    pub(super) fn origin(&self, need: Option<&JavaNeed>) -> String {
        match need {
            Some(need) => format!("{}; {}", self.place, need.reason),
            None => self.place.clone(),
        }
    }
}

/// Returns the major version that an app and our worker need.
pub(super) fn needed_major(need: Option<&JavaNeed>) -> u32 {
    let (oldest, _) = RequiredProgram::Java.minimum_version();
    need.map_or(0, |need| need.major).max(oldest.major)
}

/// The file `release` of an installation.
struct ReleaseFile {
    version: String,
    has_compiler_module: Option<bool>,
}

impl ReleaseFile {
    fn read(home: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(home.join("release")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let quoted = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            Some(quoted.trim().trim_matches('"'))
        };
        let has_compiler = |modules: &str| modules.split(' ').any(is_compiler_module);
        Some(Self {
            version: value("JAVA_VERSION").filter(|version| !version.is_empty())?.to_owned(),
            has_compiler_module: value("MODULES").map(has_compiler),
        })
    }
}

/// Returns whether this is `jdk.compiler`, which `java --list-modules` prints with a version.
fn is_compiler_module(name: &str) -> bool {
    name.split('@').next() == Some("jdk.compiler")
}

/// Returns the version in a line such as `openjdk version "17.0.15" 2025-04-15`.
fn version_in(line: &str) -> Option<&str> {
    line.split_once("version \"")?.1.split('"').next()
}

/// Returns the folder in a line such as `    java.home = /usr/lib/jvm/java-17-openjdk-amd64`.
fn home_in(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("java.home = ").map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_old_and_new_formats() {
        assert_eq!(version_in("openjdk version \"17.0.15\" 2025-04-15"), Some("17.0.15"));
        assert_eq!(version_in("java version \"1.8.0_392\""), Some("1.8.0_392"));
        assert_eq!(version_in("Picked up JAVA_TOOL_OPTIONS: -Xmx1g"), None);
        assert_eq!(home_in("    java.home = /usr/lib/jvm/a b"), Some("/usr/lib/jvm/a b"));
    }

    #[test]
    fn the_release_file_tells_the_version_and_the_modules() {
        let jdk = ReleaseFile::parse(
            "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\nMODULES=\"java.base jdk.compiler\"\n",
        );
        let jdk = jdk.unwrap();
        assert_eq!((jdk.version.as_str(), jdk.has_compiler_module), ("17.0.15", Some(true)));
        let jre = ReleaseFile::parse("JAVA_VERSION=\"21.0.2\"\nMODULES=\"java.base java.compiler\"").unwrap();
        assert_eq!(jre.has_compiler_module, Some(false));
        assert_eq!(ReleaseFile::parse("JAVA_VERSION=\"1.8.0_392\"").unwrap().has_compiler_module, None);
        assert!(ReleaseFile::parse("JAVA_VERSION=\"\"").is_none() && ReleaseFile::parse("").is_none());
    }
}
