//! Documents from published packages. They are downloaded on first use and cached for the next run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The maximum number of attempts to reach a registry.
const TRIES: u32 = 3;

/// An npm package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The files and folders to unpack. Some packages have hundreds of megabytes.
    pub(crate) parts: &'static [&'static str],
}

impl Package {
    /// Returns the folder with its parts.
    pub(crate) fn folder(&self) -> PathBuf {
        let plain = format!("{}-{}", self.name, self.version).replace(['@', '/'], "_");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi").join(plain);
        fs::create_dir_all(&folder).unwrap();
        // Concurrent tests download it only once.
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        let unpacked = folder.join("package");
        if !unpacked.exists() {
            self.fetch(&folder);
        }
        unpacked
    }

    fn fetch(&self, folder: &Path) {
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", "--ignore-scripts", "--pack-destination", "."]);
        let packed = run(pack.arg(format!("{}@{}", self.name, self.version)).current_dir(folder));
        let packed = folder.join(packed.lines().last().unwrap_or_default().trim());
        // The package is unpacked to a temporary folder and then moved, so the final
        // folder is always complete.
        let partly = folder.join("partly");
        fs::create_dir_all(&partly).unwrap();
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(&packed).arg("-C").arg(&partly);
        run(unpack.args(self.parts.iter().map(|part| format!("package/{part}"))));
        fs::rename(partly.join("package"), folder.join("package")).unwrap();
        fs::remove_file(packed).unwrap();
    }
}

/// Returns the output of a successful command.
fn run(command: &mut Command) -> String {
    let mut said = String::new();
    for after in 0..TRIES {
        std::thread::sleep(Duration::from_secs(2 * u64::from(after)));
        let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("{command:?} failed {TRIES} times: {said}")
}
