//! Prepares a self-hosted app: the program that `host.json` names, its packages and its build.
//!
//! The folder shows the language, not the setting `FUNCTIONS_WORKER_RUNTIME`: `python` and the files that list packages,
//! package.json, the jar or the DLL among the arguments.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::command::quote_argument;
use super::program::{OperatingSystem, RequiredProgram, find_executable};
use super::{PreparedApp, Setup, SetupError, SetupNotice, SetupOptions, SetupProgress, java, node, python};

/// The depth below `bin` in which the output of a .NET build is searched.
const DOTNET_DEPTH: usize = 5;
/// The files that list the packages of a Python app.
const PYTHON_FILES: [&str; 3] = ["uv.lock", "pyproject.toml", "requirements.txt"];

/// The command of a self-hosted app, as `host.json` has it.
#[derive(Clone, Debug)]
pub struct ServerCommand<'a> {
    pub program: &'a str,
    pub arguments: Vec<&'a str>,
    /// The working directory.
    pub directory: PathBuf,
}

/// A self-hosted app whose program can be started.
#[derive(Clone, Debug, Default)]
pub struct PreparedServer {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Variables to set for its process, in addition to those it inherits.
    pub environment: Vec<(String, OsString)>,
    /// Where the interpreter comes from, and why it was chosen. `None` if there was no choice.
    pub interpreter_origin: Option<String>,
    /// Problems to report to the user that do not prevent the start.
    pub notices: Vec<SetupNotice>,
    /// The files of the app that the command names. A change of them is a change of the app.
    pub files: Vec<PathBuf>,
}

/// The language of a program, by its file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerLanguage {
    Python,
    Node,
    /// A program of Node that runs a script of package.json.
    NodeScript,
    Java,
    Dotnet,
    /// uv installs packages by itself.
    Uv,
    /// Any other program: `uvicorn`, or a program of the app.
    Other,
}

impl ServerLanguage {
    fn of_program(program: &str) -> ServerLanguage {
        let name = file_name(program).to_ascii_lowercase();
        let name = [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        match name {
            "py" => ServerLanguage::Python,
            "node" => ServerLanguage::Node,
            "npm" | "npx" | "pnpm" | "yarn" => ServerLanguage::NodeScript,
            "java" => ServerLanguage::Java,
            "dotnet" => ServerLanguage::Dotnet,
            "uv" | "uvx" => ServerLanguage::Uv,
            _ => match name.strip_prefix("python") {
                Some(version) if version.chars().all(|c| c.is_ascii_digit() || c == '.') => {
                    ServerLanguage::Python
                }
                _ => ServerLanguage::Other,
            },
        }
    }

    /// Returns how to install the program.
    fn fix(self) -> String {
        let platform = OperatingSystem::current();
        match self {
            ServerLanguage::Python => RequiredProgram::Python.fix(platform).to_owned(),
            ServerLanguage::Node => RequiredProgram::Node.fix(platform).to_owned(),
            ServerLanguage::NodeScript => RequiredProgram::Npm.fix(platform).to_owned(),
            ServerLanguage::Java => RequiredProgram::Java.fix(platform).to_owned(),
            ServerLanguage::Dotnet => {
                "install the .NET runtime: https://dotnet.microsoft.com/download".to_owned()
            }
            ServerLanguage::Uv => "install uv: https://docs.astral.sh/uv/".to_owned(),
            ServerLanguage::Other => {
                "install it, or write the path of the program, relative to host.json".to_owned()
            }
        }
    }
}

/// Prepares the self-hosted app in the folder `app` for its start. Installs and builds like [`prepare`](super::prepare).
pub async fn prepare_server(
    app: &Path,
    command: &ServerCommand<'_>,
    options: &SetupOptions<'_>,
    progress: &dyn SetupProgress,
) -> Result<PreparedServer, SetupError> {
    let app = std::path::absolute(app).map_err(SetupError::file(app, "found"))?;
    let mut setup = Setup { app, options, progress, needs_library: false, prepared: PreparedApp::default() };
    let language = ServerLanguage::of_program(command.program);
    let file = entry_file(language, &command.arguments);
    let has = |setup: &Setup<'_>, name: &str| setup.app.join(name).is_file();
    let lists_python = PYTHON_FILES.iter().any(|name| has(&setup, name));
    if language == ServerLanguage::Python || (language == ServerLanguage::Other && lists_python) {
        python::prepare(&mut setup).await?;
        if setup.variable("PYTHONUNBUFFERED").is_none() {
            // Otherwise lines that the server prints arrive when it ends.
            setup.prepared.environment.push(("PYTHONUNBUFFERED".to_owned(), "1".into()));
        }
    }
    if matches!(language, ServerLanguage::Node | ServerLanguage::NodeScript | ServerLanguage::Other) {
        let script = (language == ServerLanguage::NodeScript).then(|| script_name(&command.arguments));
        node::prepare_server(&mut setup, file, script.flatten()).await?;
    }
    let file = check_file(&setup, language, file, &command.directory)?;
    let program = find_program(&mut setup, language, command.program).await?;
    let files = file.into_iter().chain(program.starts_with(&setup.app).then(|| program.clone()));
    let files = files.filter(|file| !is_installed(&setup.app, file)).collect();
    let PreparedApp { environment, interpreter_origin, notices, .. } = setup.prepared;
    Ok(PreparedServer { program, environment, interpreter_origin, notices, files })
}

/// Returns whether a file belongs to installed packages, not to the app itself.
fn is_installed(app: &Path, file: &Path) -> bool {
    let below = file.strip_prefix(app).unwrap_or(file);
    below.components().any(|part| part.as_os_str() == "node_modules" || part.as_os_str() == ".venv")
}

/// Returns the file that the program runs, if the arguments name one.
fn entry_file<'a>(language: ServerLanguage, arguments: &[&'a str]) -> Option<&'a str> {
    let ends = |endings: &'static [&'static str]| {
        let mut words = arguments.iter().copied().take_while(|word| !["-m", "-c", "-e"].contains(word));
        words.find(|word| !word.starts_with('-') && endings.iter().any(|ending| word.ends_with(ending)))
    };
    match language {
        ServerLanguage::Python => ends(&[".py"]),
        ServerLanguage::Node => ends(&[".js", ".mjs", ".cjs", ".ts", ".mts"]),
        ServerLanguage::Dotnet => ends(&[".dll"]),
        ServerLanguage::Java => {
            let jar = arguments.iter().position(|word| *word == "-jar")?;
            arguments.get(jar + 1).copied()
        }
        ServerLanguage::NodeScript | ServerLanguage::Uv | ServerLanguage::Other => None,
    }
}

/// Returns the script that `npm run start` or `npm start` runs.
fn script_name<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut words = arguments.iter().copied().filter(|word| !word.starts_with('-'));
    words.find(|word| !["run", "run-script"].contains(word))
}

/// Returns the path of the file that the program runs. Rejects a file that does not exist, with the build that creates it.
fn check_file(
    setup: &Setup<'_>,
    language: ServerLanguage,
    file: Option<&str>,
    directory: &Path,
) -> Result<Option<PathBuf>, SetupError> {
    let Some(file) = file else { return Ok(None) };
    let path = directory.join(file);
    if path.is_file() {
        return Ok(Some(path));
    }
    let not_built = ": the app is not built";
    let (reason, fix) = match (language, java::packaging_fix(setup)) {
        (ServerLanguage::Java, Some(fix)) => (not_built, fix),
        (ServerLanguage::Dotnet, _) if has_dotnet_project(&setup.app) => {
            let fix = match built_folder(&setup.app.join("bin"), file, DOTNET_DEPTH) {
                Some(folder) => format!("bindpost run {}", quote_argument(folder)),
                None => format!(
                    "dotnet publish -c Release   (in {}; then bindpost run the folder that it names)",
                    setup.app.display()
                ),
            };
            (not_built, fix)
        }
        _ => ("", "write the name of a file of the app".to_owned()),
    };
    Err(SetupError::NoServerFile { file: file.to_owned(), reason, fix })
}

fn has_dotnet_project(app: &Path) -> bool {
    let entries = fs::read_dir(app).into_iter().flatten().flatten();
    let mut endings = entries.map(|entry| entry.path());
    endings
        .any(|path| path.extension().is_some_and(|end| end == "csproj" || end == "fsproj" || end == "vbproj"))
}

/// Returns the folder of a .NET build that has the file and a host.json. Published folders come first.
fn built_folder(folder: &Path, file: &str, depth: usize) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut left = vec![(folder.to_owned(), depth)];
    while let Some((folder, depth)) = left.pop() {
        if folder.join(file).is_file() && folder.join("host.json").is_file() {
            folders.push(folder.clone());
        }
        if depth > 0 {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            left.extend(
                entries.map(|entry| entry.path()).filter(|path| path.is_dir()).map(|path| (path, depth - 1)),
            );
        }
    }
    folders.sort_by_key(|folder| (!folder.ends_with("publish"), folder.clone()));
    folders.into_iter().next()
}

/// Finds the program: relative to the app, by its absolute path, or by its name.
async fn find_program(
    setup: &mut Setup<'_>,
    language: ServerLanguage,
    program: &str,
) -> Result<PathBuf, SetupError> {
    let path = Path::new(program);
    let in_app = setup.app.join(path);
    if let Some(found) = find_executable(&in_app) {
        return Ok(found);
    }
    if in_app.is_file() {
        let fix = format!("chmod +x {}", quote_argument(&in_app));
        return Err(SetupError::NotExecutable { path: in_app, fix });
    }
    let name = file_name(program);
    let missing = |looked_for: String| {
        let fix = match program.contains('%') {
            true => "set the setting whose name is between the percent signs".to_owned(),
            false => language.fix(),
        };
        SetupError::NoServerProgram { program: program.to_owned(), looked_for, fix }
    };
    if path.has_root() {
        let by_name = find_by_name(setup, language, name).await;
        let found = by_name.ok_or_else(|| missing(format!("this file and {name} on the PATH")))?;
        let message = format!(
            "host.json: customHandler.description.defaultExecutablePath: {program} does not exist here; {} is used",
            found.display()
        );
        setup.notice(message, None);
        return Ok(found);
    }
    if path.components().count() > 1 {
        return Err(missing(in_app.display().to_string()));
    }
    find_by_name(setup, language, name)
        .await
        .ok_or_else(|| missing(format!("{} and {name} on the PATH", in_app.display())))
}

/// Finds a program by its name: the interpreter that was prepared, or on the PATH.
async fn find_by_name(setup: &mut Setup<'_>, language: ServerLanguage, name: &str) -> Option<PathBuf> {
    if let (ServerLanguage::Python, Some(python)) = (language, &setup.prepared.interpreter) {
        return Some(python.path.clone());
    }
    // The programs of a virtual environment come first.
    let path = setup.prepared.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.clone()).or_else(|| setup.variable("PATH")).unwrap_or_default();
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| find_executable(&folder.join(name)));
    match language {
        ServerLanguage::Java if found.is_none() => java::find(setup).await,
        _ => found,
    }
}

/// Returns the last part of a path of any system.
fn file_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_tells_the_language() {
        for (program, language) in [
            ("python", ServerLanguage::Python),
            ("/usr/bin/python3.12", ServerLanguage::Python),
            ("C:\\Python\\Python.exe", ServerLanguage::Python),
            ("pythonista", ServerLanguage::Other),
            ("node", ServerLanguage::Node),
            ("npm.cmd", ServerLanguage::NodeScript),
            ("/usr/lib/jvm/msft-17-x64/bin/java", ServerLanguage::Java),
            ("dotnet", ServerLanguage::Dotnet),
            ("uv", ServerLanguage::Uv),
            ("bin/server", ServerLanguage::Other),
        ] {
            assert_eq!(ServerLanguage::of_program(program), language, "{program}");
        }
    }

    #[test]
    fn the_file_that_runs_is_found_among_the_arguments() {
        let file = |program: &str, arguments: &[&'static str]| {
            entry_file(ServerLanguage::of_program(program), arguments)
        };
        assert_eq!(file("python", &["-u", "server.py", "other.py"]), Some("server.py"));
        assert_eq!(file("python", &["-m", "server", "a.py"]), None);
        assert_eq!(file("node", &["--enable-source-maps", "dist/index.js"]), Some("dist/index.js"));
        assert_eq!(file("java", &["-Xmx1g", "-jar", "app.jar"]), Some("app.jar"));
        assert_eq!(file("java", &["-cp", "a.jar", "Main"]), None);
        assert_eq!(file("dotnet", &["Server.dll"]), Some("Server.dll"));
        assert_eq!(script_name(&["run", "start"]), Some("start"));
        assert_eq!(script_name(&["--silent", "start"]), Some("start"));
    }
}
