//! [`BuiltApp`]: a Java app that a test compiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bindpost_azure_functions::setup::{
    JavaWorkerClasses, SetupOptions, SetupProgress, WorkerRuntime, prepare,
};
use serde_json::{Value, json};

use crate::packages;
use crate::scratch::Scratch;
use crate::served::Launch;

/// The sources of an app, and its functions.
#[derive(Default)]
pub(crate) struct BuiltApp {
    sources: Vec<(&'static str, &'static str)>,
    resources: Vec<(&'static str, &'static str)>,
    functions: Vec<(String, String)>,
    removed: Vec<&'static str>,
    library: Option<PathBuf>,
    is_shaded: bool,
    class_version: Option<u8>,
}

/// Returns a tool trigger with arguments that are not required.
pub(crate) fn tool(name: &str, arguments: &[&str]) -> Value {
    let property =
        |name: &&str| json!({"propertyName": name, "propertyType": "string", "description": "An argument."});
    let properties: Vec<Value> = arguments.iter().map(property).collect();
    json!({
        "type": "mcpToolTrigger", "direction": "in", "name": "call", "toolName": name, "description": "A tool.",
        "toolProperties": json!(properties).to_string(),
    })
}

pub(crate) fn mcp_property(name: &str) -> Value {
    json!({"type": "mcpToolProperty", "direction": "in", "name": name, "propertyName": name})
}

impl BuiltApp {
    pub(crate) fn new() -> BuiltApp {
        BuiltApp::default()
    }

    pub(crate) fn source(mut self, name: &'static str, text: &'static str) -> BuiltApp {
        self.sources.push((name, text));
        self
    }

    /// Adds a file to the jar.
    pub(crate) fn resource(mut self, name: &'static str, text: &'static str) -> BuiltApp {
        self.resources.push((name, text));
        self
    }

    pub(crate) fn function(mut self, name: &str, entry_point: &str, bindings: &[Value]) -> BuiltApp {
        let function = json!({"scriptFile": "../app.jar", "entryPoint": entry_point, "bindings": bindings});
        self.functions.push((format!("{name}/function.json"), function.to_string()));
        self
    }

    /// Compiles a class, but leaves it out of the jar.
    pub(crate) fn without_class(mut self, name: &'static str) -> BuiltApp {
        self.removed.push(name);
        self
    }

    /// Compiles against the published library, and puts it into the folder `lib`.
    pub(crate) fn with_library(mut self) -> BuiltApp {
        let folder = packages::maven("tests/apps/java").join("lib");
        let mut jars = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        self.library = jars.find(|jar| jar.to_string_lossy().contains("azure-functions-java-library"));
        self
    }

    /// Puts the declarations of the library into the jar.
    pub(crate) fn shaded(mut self) -> BuiltApp {
        self.is_shaded = true;
        self
    }

    /// Makes the class files those of another version of Java.
    pub(crate) fn class_version(mut self, version: u8) -> BuiltApp {
        self.class_version = Some(version);
        self
    }

    /// Builds the app.
    pub(crate) async fn launch(self) -> Launch {
        let worker = worker_classes().await;
        let (build, jdk) = (Scratch::new(), packages::jdks().remove(0));
        let classes = build.path().join("classes");
        fs::create_dir(&classes).unwrap();
        // The published library has other members in its annotations than the declarations of the worker.
        let class_path = self.library.iter().cloned().chain([worker.api(), worker.gson()]);
        let class_path = std::env::join_paths(class_path).unwrap();
        let mut javac = Command::new(jdk.join("bin/javac"));
        javac
            .args(["--release", "11", "-proc:none", "-nowarn", "-cp"])
            .arg(class_path)
            .arg("-d")
            .arg(&classes);
        for (name, text) in &self.sources {
            javac.arg(write(&build.path().join("sources"), name, text));
        }
        packages::run(&mut javac);
        for name in &self.removed {
            fs::remove_file(classes.join(format!("{name}.class"))).unwrap();
        }
        for (name, text) in &self.resources {
            write(&classes, name, text);
        }
        if self.is_shaded {
            packages::run(Command::new("cp").arg("-r").arg(worker.api().join("com")).arg(&classes));
        }
        if let Some(version) = self.class_version {
            set_class_version(&classes, version);
        }
        let launch = Launch::of_files(&[("host.json", r#"{"version": "2.0"}"#)]).java();
        let launch = self.functions.iter().fold(launch, |launch, (name, text)| launch.file(name, text));
        let jar = build.path().join("app.jar");
        packages::run(
            Command::new(jdk.join("bin/jar")).arg("-cf").arg(&jar).arg("-C").arg(&classes).arg("."),
        );
        let launch = launch.copy(&jar, "app.jar");
        match &self.library {
            Some(library) => launch.file("lib/readme.txt", "").copy(library, "lib/library.jar"),
            None => launch,
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn set_class_version(folder: &Path, version: u8) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_class_version(&path, version);
        } else if path.extension().is_some_and(|ending| ending == "class") {
            let mut class = fs::read(&path).unwrap();
            class[7] = version;
            fs::write(&path, class).unwrap();
        }
    }
}

/// Returns the classes of the built-in worker.
async fn worker_classes() -> JavaWorkerClasses {
    let empty = Scratch::new();
    let lookup = |name: &str| match name {
        "XDG_CACHE_HOME" => Some(packages::cache().into()),
        name => std::env::var_os(name),
    };
    let prepared = prepare(WorkerRuntime::Java, empty.path(), &SetupOptions::new(&lookup), &Quiet).await;
    prepared.unwrap().java_worker.unwrap()
}

struct Quiet;

impl SetupProgress for Quiet {
    fn started(&self, _step: &str) {}
    fn output(&self, _line: &str) {}
    fn done(&self, _step: &str, _took: std::time::Duration) {}
}
