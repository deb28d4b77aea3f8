//! Chooses the Java of an app.
//!
//! The first of these that the app's classes run on is taken: the setting, `JAVA_HOME`, `java` on the PATH, the
//! installations in the usual folders of the system, beginning with the oldest one that is new enough.

use std::path::PathBuf;

use super::super::program::{OperatingSystem, RequiredProgram, find_executable};
use super::super::{Setup, SetupError};
use super::class_version::JavaNeed;
use super::installation::{JavaInstallation, needed_major};
use super::system_folders;

/// The setting that names the program.
const EXECUTABLE_SETTING: &str = "languageWorkers__java__defaultExecutablePath";

/// Returns the Java to use.
pub(super) async fn choose(
    setup: &mut Setup<'_>,
    need: Option<&JavaNeed>,
) -> Result<JavaInstallation, SetupError> {
    if let Some(named) = setup.named_executable(RequiredProgram::Java) {
        let java = JavaInstallation::probe(setup, named?, EXECUTABLE_SETTING.to_owned()).await?;
        return if java.meets(need) { Ok(java) } else { Err(unsuitable(need, &[java])) };
    }
    let (mut found, mut refused) = (Vec::new(), None);
    let home = setup.variable("JAVA_HOME").map(PathBuf::from);
    let in_home = home.as_ref().and_then(|home| find_executable(&home.join("bin").join("java")));
    if let (Some(home), None) = (&home, &in_home) {
        let message = format!("JAVA_HOME is {}, which contains no Java", home.display());
        setup.notice(message, "correct or unset JAVA_HOME".to_owned());
    }
    let on_path = setup.find_on_path("java");
    let usual = [(in_home, "JAVA_HOME"), (on_path, "PATH")];
    for (path, source) in usual.into_iter().filter_map(|(path, source)| Some((path?, source))) {
        let place = format!("{} ({source})", path.display());
        match JavaInstallation::probe(setup, path, place).await {
            Ok(java) if java.meets(need) => {
                tell_older(setup, &found, &java, need);
                return Ok(java);
            }
            Ok(java) => found.push(java),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let mut others = installed(setup).await;
    others.sort_by_key(JavaInstallation::major);
    if let Some(java) = others.iter().find(|java| java.meets(need)) {
        tell_older(setup, &found, java, need);
        return Ok(java.clone());
    }
    found.extend(others);
    match refused {
        _ if !found.is_empty() => Err(unsuitable(need, &found)),
        Some(error) => Err(error),
        None => {
            let home =
                home.map(|home| format!("{} (JAVA_HOME) and ", home.join("bin").join("java").display()));
            let looked_for = format!("{}java on the PATH", home.unwrap_or_default());
            Err(RequiredProgram::Java.missing(looked_for))
        }
    }
}

/// Returns the installations in the usual folders. Those that do not run are left out.
pub(super) async fn installed(setup: &Setup<'_>) -> Vec<JavaInstallation> {
    let mut found: Vec<JavaInstallation> = Vec::new();
    for path in system_folders::find_all(setup) {
        let place = path.display().to_string();
        let Ok(java) = JavaInstallation::probe(setup, path, place).await else { continue };
        // A folder may be a link to another one.
        if !found.iter().any(|known| known.home().is_some() && known.home() == java.home()) {
            found.push(java);
        }
    }
    found
}

/// Tells that a newer Java is used than the one that the user would expect.
fn tell_older(
    setup: &mut Setup<'_>,
    older: &[JavaInstallation],
    used: &JavaInstallation,
    need: Option<&JavaNeed>,
) {
    let Some(first) = older.first() else { return };
    let reason = need.map_or_else(|| "bindpost needs Java 11".to_owned(), |need| need.reason.clone());
    let message = format!("{} is Java {}, but {reason}; {} is used", first.place, first.version, used.place);
    setup.notice(message, format!("set JAVA_HOME to a JDK {} or later", needed_major(need)));
}

fn unsuitable(need: Option<&JavaNeed>, found: &[JavaInstallation]) -> SetupError {
    let major = needed_major(need);
    SetupError::NoSuitableJava {
        reason: match need {
            Some(need) if need.major == major => need.reason.clone(),
            _ => format!("bindpost needs Java {major}"),
        },
        found: found.iter().map(|java| format!("{} ({})", java.version, java.path.display())).collect(),
        fix: install_fix(major),
    }
}

/// Returns how to install a JDK of this version.
fn install_fix(major: u32) -> String {
    match OperatingSystem::current() {
        OperatingSystem::Linux => format!(
            "install the package openjdk-{major}-jdk-headless or temurin-{major}-jdk of the distribution, or set JAVA_HOME \
             to a JDK {major} or later"
        ),
        OperatingSystem::Macos => format!("brew install --cask temurin@{major}"),
        OperatingSystem::Windows => {
            format!("winget install EclipseAdoptium.Temurin.{major}.JDK   (then open a new terminal)")
        }
    }
}
