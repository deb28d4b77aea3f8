//! The folders in which systems, version managers and editors install Java.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::Setup;
use super::super::program::{OperatingSystem, find_executable};

/// Folders of the user, below the home folder.
const OF_USER: [&str; 4] =
    [".sdkman/candidates/java", ".jdks", ".asdf/installs/java", "Library/Java/JavaVirtualMachines"];

/// Returns the folders whose subfolders are installations of Java.
pub(in super::super) fn of_system() -> Vec<PathBuf> {
    let folders: &[&str] = match OperatingSystem::current() {
        OperatingSystem::Linux => &["/usr/lib/jvm", "/usr/java", "/opt/java", "/usr/local/openjdk", "/opt"],
        OperatingSystem::Macos => {
            &["/Library/Java/JavaVirtualMachines", "/opt/homebrew/opt", "/usr/local/opt"]
        }
        OperatingSystem::Windows => &[
            r"C:\Program Files\Java",
            r"C:\Program Files\Eclipse Adoptium",
            r"C:\Program Files\Microsoft",
            r"C:\Program Files\Zulu",
            r"C:\Program Files\Amazon Corretto",
        ],
    };
    folders.iter().map(PathBuf::from).collect()
}

/// Returns the programs `java` of all installations, sorted by path.
pub(super) fn find_all(setup: &Setup<'_>) -> Vec<PathBuf> {
    let home = setup.variable("HOME").map(PathBuf::from);
    let of_user = home.iter().flat_map(|home| OF_USER.iter().map(|folder| home.join(folder)));
    let mut found = Vec::new();
    for folder in setup.options.java_folders.iter().cloned().chain(of_user) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        found.extend(entries.flatten().filter_map(|entry| java_in(&entry.path())));
    }
    found.sort();
    found
}

/// Returns the program `java` of an installation. macOS has it in a bundle, and Homebrew in a folder of its own.
fn java_in(installation: &Path) -> Option<PathBuf> {
    ["", "Contents/Home", "libexec/openjdk.jdk/Contents/Home"]
        .iter()
        .find_map(|inner| find_executable(&installation.join(inner).join("bin").join("java")))
}
