//! `.bindpost`, the folder with the keys, the blobs and the timers of an app.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The name of the folder.
const STATE_FOLDER: &str = ".bindpost";
/// The folders into which build tools write packaged apps, and the project files of these tools.
const OUTPUTS: [(&str, &[&str]); 2] = [
    ("target/azure-functions", &["pom.xml"]),
    ("build/azure-functions", &["build.gradle", "build.gradle.kts"]),
];

/// Returns the state folder of the app in this folder. A packaged app of a Java project keeps its state in the project,
/// because the build tool deletes its output.
pub(crate) fn of_app(app: &Path) -> PathBuf {
    project_of(app).unwrap_or(app).join(STATE_FOLDER)
}

/// Returns the project whose build tool wrote the packaged app in this folder.
fn project_of(app: &Path) -> Option<&Path> {
    let output = app.parent()?;
    OUTPUTS.iter().find_map(|(folder, files)| {
        let project = output.ancestors().nth(2).filter(|project| output == project.join(folder))?;
        files.iter().any(|file| project.join(file).is_file()).then_some(project)
    })
}

/// Makes git ignore the folder, because keys and blobs are no source code. A file that exists stays as it is.
pub(crate) fn ignore_in_git(folder: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::worker::PrivateFolder;

    #[test]
    fn a_packaged_app_keeps_its_state_in_its_project() {
        let folder = PrivateFolder::create().unwrap();
        let root = folder.path();
        for (file, output) in
            [("a/pom.xml", "target"), ("b/build.gradle", "build"), ("c/build.gradle.kts", "build")]
        {
            let project = root.join(file).parent().unwrap().to_owned();
            let app = project.join(output).join("azure-functions/orders");
            fs::create_dir_all(&app).unwrap();
            assert_eq!(of_app(&app), app.join(".bindpost"), "there is no project");
            fs::write(root.join(file), "").unwrap();
            assert_eq!(of_app(&app), project.join(".bindpost"));
            assert_eq!(of_app(&project), project.join(".bindpost"));
            let other = project.join(output).join("other/orders");
            assert_eq!(of_app(&other), other.join(".bindpost"));
        }
    }
}
