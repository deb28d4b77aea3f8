//! Reads `worker.config.json` of real workers.

use std::time::Duration;

use bindpost_azure_functions::app::{HostPlatform, ProcessOptions, Settings, WorkerConfig, WorkerRuntime};

use crate::folder::Folder;

const PYTHON: &str = r#"{
    "description": {
        "defaultRuntimeVersion": "3.11",
        "supportedOperatingSystems": ["LINUX", "OSX", "WINDOWS"],
        "supportedRuntimeVersions": ["3.10", "3.11"],
        "supportedArchitectures": ["X64", "X86", "Arm64"],
        "extensions": [".py"],
        "language": "python",
        "defaultExecutablePath": "python",
        "defaultWorkerPath": "%FUNCTIONS_WORKER_RUNTIME_VERSION%/{os}/{architecture}/worker.py",
        "workerIndexing": "true",
        "arguments": ["-X no_debug_ranges"]
    },
    "processOptions": {"initializationTimeout": "00:02:00", "environmentReloadTimeout": "00:01:00", "maxProcessCount": 4}
}"#;

const JAVA: &str = r#"{
    "description": {
        "language": "java",
        "extensions": [".jar"],
        "defaultExecutablePath": "%JAVA_HOME%/bin/java",
        "defaultWorkerPath": "azure-functions-java-worker.jar",
        "arguments": ["-XX:+TieredCompilation", "-Da={workerDirectoryPath}/x", "-jar", "%JAVA_OPTS%"]
    },
    "profiles": [{
        "profileName": "Java21",
        "conditions": [{"conditionType": "environment", "conditionName": "FUNCTIONS_WORKER_RUNTIME_VERSION", "conditionExpression": "^21$"}],
        "description": {"arguments": ["-jar"], "isDisabled": true}
    }]
}"#;

fn platform() -> HostPlatform {
    HostPlatform { os: "LINUX".to_owned(), architecture: "X64".to_owned() }
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())), [])
}

fn read(folder: &Folder, pairs: &[(&str, &str)]) -> Result<WorkerConfig, String> {
    WorkerConfig::read(folder.path(), &settings(pairs), None, &platform()).map_err(|error| error.to_string())
}

fn python() -> Folder {
    Folder::new().with("worker.config.json", PYTHON).with("3.11/LINUX/X64/worker.py", "")
}

fn java() -> Folder {
    Folder::new().with("worker.config.json", JAVA).with("azure-functions-java-worker.jar", "")
}

#[test]
fn the_python_worker_is_found_by_version_and_machine() {
    let folder = python();
    let worker = read(&folder, &[]).unwrap();
    assert_eq!((worker.language.as_str(), worker.executable.as_str()), ("python", "python"));
    assert_eq!(worker.worker_path, Some(folder.path().join("3.11/LINUX/X64/worker.py")));
    assert_eq!(worker.arguments, ["-X", "no_debug_ranges"]);
    assert_eq!(
        (worker.extensions, worker.runtime_version),
        (vec![".py".to_owned()], Some("3.11".to_owned()))
    );
    assert!(worker.worker_indexing && !worker.is_disabled);
    assert_eq!(
        worker.process,
        ProcessOptions {
            max_process_count: 4,
            initialization_timeout: Duration::from_secs(120),
            environment_reload_timeout: Duration::from_secs(60),
            ..ProcessOptions::default()
        }
    );
}

#[test]
fn unsupported_versions_and_machines_are_reported() {
    let folder = python();
    let told = read(&folder, &[("FUNCTIONS_WORKER_RUNTIME_VERSION", "2.7")]).unwrap_err();
    assert!(
        told.contains("description.supportedRuntimeVersions: 2.7 is not supported for language python"),
        "{told}"
    );
    let fix =
        "fix: run the app with one of 3.10, 3.11, or set FUNCTIONS_WORKER_RUNTIME_VERSION to one of them";
    assert!(told.contains(fix), "{told}");
    let told = read(&folder, &[("FUNCTIONS_WORKER_RUNTIME_VERSION", "3.10")]).unwrap_err();
    assert!(told.contains("3.10/LINUX/X64/worker.py does not exist"), "{told}");
    let moon = HostPlatform { os: "MOON".to_owned(), architecture: "Z".to_owned() };
    let told = WorkerConfig::read(folder.path(), &settings(&[]), None, &moon).unwrap_err().to_string();
    assert!(told.contains("MOON is not supported") && told.contains("Z is not supported"), "{told}");
}

#[test]
fn the_java_worker_gets_its_options_from_settings() {
    let folder = java();
    let worker = read(&folder, &[("JAVA_HOME", "/jdk"), ("JAVA_OPTS", "-Xmx1g  -Db=\"c d\"")]).unwrap();
    assert_eq!(worker.executable, "/jdk/bin/java");
    let directory = format!("-Da={}/x", folder.path().display());
    assert_eq!(worker.arguments, ["-XX:+TieredCompilation", &directory, "-jar", "-Xmx1g", "-Db=c d"]);
    assert!(!worker.worker_indexing && !worker.is_disabled);
    // Options that are not set are omitted. The program may still be on the path.
    let worker = read(&folder, &[]).unwrap();
    assert_eq!(worker.executable, "java");
    assert_eq!(worker.arguments, ["-XX:+TieredCompilation", &directory, "-jar"]);
}

#[test]
fn a_profile_applies_under_its_condition() {
    let worker = read(&java(), &[("FUNCTIONS_WORKER_RUNTIME_VERSION", "21")]).unwrap();
    assert_eq!(worker.arguments, ["-jar"]);
    assert!(worker.is_disabled);
}

#[test]
fn settings_name_and_change_the_worker_of_an_app() {
    let worker = python();
    let directory = worker.path().display().to_string();
    let app = Folder::app(&[]);
    let pairs = [
        ("languageWorkers__Python__workerDirectory", directory.as_str()),
        ("languageWorkers__python__defaultExecutablePath", "/venv/bin/python"),
        ("languageWorkers__python__arguments", "-u -O"),
    ];
    let app = app.open(&pairs).unwrap();
    assert_eq!(app.runtime, WorkerRuntime::Python);
    let machine = HostPlatform::current();
    let path = worker.path().join(format!("3.11/{}/{}/worker.py", machine.os, machine.architecture));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "").unwrap();
    let config = app.worker_config(&app.worker_folder().unwrap(), None).unwrap();
    assert_eq!(config.executable, "/venv/bin/python");
    assert_eq!(config.arguments, ["-X", "no_debug_ranges", "-u", "-O"]);
    assert_eq!(config.worker_path, Some(path));
}

#[test]
fn a_folder_of_workers_has_one_folder_for_each_language() {
    let app = Folder::app(&[(
        "workers/python/worker.config.json",
        r#"{"description": {"language": "python", "defaultExecutablePath": "p"}}"#,
    )]);
    let open = |directory: &str| {
        let app = app.open(&[("languageWorkers__workersDirectory", directory)]).unwrap();
        app.worker_config(&app.worker_folder().unwrap(), None)
    };
    let config = open("workers").unwrap();
    assert_eq!((config.directory, config.executable.as_str()), (app.path().join("workers/python"), "p"));
    let told = open("elsewhere").unwrap_err().to_string();
    assert!(
        told.contains("worker.config.json: does not exist, so this folder is not a worker\n  fix: "),
        "{told}"
    );
}

#[test]
fn the_version_in_the_path_is_that_of_the_interpreter_unless_a_setting_has_another() {
    let app = Folder::app(&[]);
    let worker = Folder::new().with("worker.config.json", PYTHON);
    let machine = HostPlatform::current();
    let script = |version: &str| format!("{version}/{}/{}/worker.py", machine.os, machine.architecture);
    let worker = worker.with(&script("3.10"), "").with(&script("3.11"), "");
    for (set, interpreter, expected) in [
        (None, Some("3.10.4"), "3.10"),
        (Some(""), Some("3.10.4"), "3.10"),
        (None, None, "3.11"),
        (Some("3.11"), Some("3.10.4"), "3.11"),
    ] {
        let set: Vec<(&str, &str)> =
            set.map(|version| ("functions_worker_runtime_version", version)).into_iter().collect();
        let config = app.open(&set).unwrap().worker_config(worker.path(), interpreter).unwrap();
        assert_eq!(config.worker_path, Some(worker.path().join(script(expected))));
        assert_eq!(config.runtime_version.as_deref(), Some(expected));
    }
    let told = app.open(&[]).unwrap().worker_config(worker.path(), Some("3.13.1")).unwrap_err().to_string();
    assert!(told.contains("3.13 is not supported for language python"), "{told}");
    assert_eq!(WorkerRuntime::Node.short_version("20.20.2"), "20");

    // Conditions of profiles use the same version.
    let app = Folder::app(&[]).without("function_app.py").with("pom.xml", "");
    let config = app.open(&[]).unwrap().worker_config(java().path(), Some("21.0.2")).unwrap();
    assert!(config.is_disabled);
}

#[test]
fn a_worker_of_another_language_is_rejected() {
    let app = Folder::app(&[]).open(&[]).unwrap();
    let worker = java();
    assert_eq!(app.worker_folder_in(worker.path()), worker.path());
    let told = app.worker_config(worker.path(), None).unwrap_err().to_string();
    let file = worker.path().join("worker.config.json").display().to_string();
    let says = "description.language: is java, but the language of the app is python\n  fix: pass the folder of a python \
                worker, or a folder that has python/worker.config.json";
    assert_eq!(told, format!("{file}: {says}"));
}

#[test]
fn mistakes_name_the_file_and_the_member() {
    let folder = Folder::new().with("worker.config.json", r#"{"description": {"arguments": {"a": 1}}, "processOptions": {"processCount": "x", "initializationTimeout": 5}}"#);
    let told = read(&folder, &[]).unwrap_err();
    let file = folder.path().join("worker.config.json").display().to_string();
    for member in [
        "description.language",
        "description.defaultExecutablePath",
        "description.arguments",
        "processOptions.processCount",
        "processOptions.initializationTimeout",
    ] {
        assert!(told.contains(&format!("{file}: {member}: ")), "{member} {told}");
    }
}
