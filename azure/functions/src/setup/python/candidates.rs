//! Finds the interpreters of a machine: on the PATH, of pyenv, of uv, and of the launcher `py` on Windows.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::Setup;
use super::super::program::{VERSION_LIMIT, find_executable};

/// The names of interpreters on the PATH, in order of preference.
const NAMES: [&str; 8] =
    ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9"];
/// The maximum number of interpreters to query. Each takes tens of milliseconds.
const MAX_CANDIDATES: usize = 64;

/// Returns the paths of programs that may be interpreters, each once.
pub(super) async fn find_all(setup: &Setup<'_>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf| {
        if found.len() < MAX_CANDIDATES && !found.contains(&path) {
            found.push(path);
        }
    };
    let path = setup.variable("PATH").unwrap_or_default();
    // Programs run in the app folder, where a relative entry of the PATH would refer to another folder.
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    for name in NAMES {
        folders.iter().filter_map(|folder| find_executable(&folder.join(name))).for_each(&mut add);
    }
    pyenv_versions(setup).into_iter().for_each(&mut add);
    uv_versions(setup).await.into_iter().for_each(&mut add);
    launcher_versions(setup).await.into_iter().for_each(&mut add);
    found
}

/// Returns the interpreters that pyenv has installed.
fn pyenv_versions(setup: &Setup<'_>) -> Vec<PathBuf> {
    let home = |name: &str| setup.variable(name).map(PathBuf::from);
    let root = if cfg!(windows) {
        home("PYENV").or_else(|| Some(home("USERPROFILE")?.join(".pyenv").join("pyenv-win")))
    } else {
        home("PYENV_ROOT").or_else(|| Some(home("HOME")?.join(".pyenv")))
    };
    // Folders of other implementations, and virtual environments, have names.
    let is_version = |name: &str| name.starts_with(|c: char| c.is_ascii_digit());
    root.map(|root| interpreters_below(&root.join("versions"), is_version)).unwrap_or_default()
}

/// Returns the interpreters that uv has installed.
async fn uv_versions(setup: &Setup<'_>) -> Vec<PathBuf> {
    let Some(uv) = setup.find_on_path("uv") else { return Vec::new() };
    // `uv python list` would run all interpreters of the PATH, which are known.
    let command = setup.command(&uv).args(&["python", "dir", "--color", "never"]);
    let Ok(output) = command.run(VERSION_LIMIT, &mut |_| {}).await else { return Vec::new() };
    let folder = output.last().map(|line| PathBuf::from(line.trim())).filter(|folder| folder.is_absolute());
    let is_version = |name: &str| name.starts_with("cpython-3");
    folder.map(|folder| interpreters_below(&folder, is_version)).unwrap_or_default()
}

/// Returns the interpreters that the launcher of Windows lists.
async fn launcher_versions(setup: &Setup<'_>) -> Vec<PathBuf> {
    if !cfg!(windows) {
        return Vec::new();
    }
    let Some(launcher) = setup.find_on_path("py") else { return Vec::new() };
    let output =
        setup.command(&launcher).arg("-0p").run(VERSION_LIMIT, &mut |_| {}).await.unwrap_or_default();
    output.iter().filter_map(|line| listed_path(line)).map(PathBuf::from).collect()
}

/// Returns the path in a line such as ` -V:3.13 *        C:\Python313\python.exe`.
fn listed_path(line: &str) -> Option<&str> {
    let line = line.trim();
    let (_, path) = line.starts_with('-').then(|| line.split_once(char::is_whitespace))??;
    let path = path.trim_start().trim_start_matches('*').trim_start();
    path.to_ascii_lowercase().ends_with(".exe").then_some(path)
}

/// Returns the interpreter of each folder below `folder` whose name is accepted, the last name first.
fn interpreters_below(folder: &Path, is_version: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_version(name)).collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    let python = |name: &String| {
        let folder = folder.join(name);
        let places =
            [folder.join("bin").join("python3"), folder.join("bin").join("python"), folder.join("python")];
        places.iter().find_map(|place| find_executable(place))
    };
    names.iter().filter_map(python).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_windows_launcher_are_parsed() {
        let python = r"C:\Program Files\Python313\python.exe";
        assert_eq!(listed_path(&format!(" -V:3.13 *        {python}")), Some(python));
        assert_eq!(listed_path(&format!(" -3.9-64          {python}")), Some(python));
        assert_eq!(listed_path("Installed Pythons found by py Launcher for Windows"), None);
        assert_eq!(listed_path(" -V:3.13"), None);
    }
}
