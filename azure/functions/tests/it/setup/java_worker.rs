//! Our Java worker: compiled once by a JDK of the machine, and kept.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bindpost_azure_functions::setup::JavaWorkerClasses;

use super::{Folder, Outcome, Preparation, SetupError, WorkerRuntime};
use crate::packages;

const STEP: &str = "Compiling the Java worker of bindpost, once";

fn java(app: &Folder, java: &Path, cache: &Path) -> Preparation {
    Preparation::of(WorkerRuntime::Java, app).executable(java).variable("XDG_CACHE_HOME", cache)
}

fn is_complete(worker: &JavaWorkerClasses) -> bool {
    worker.worker().join("bindpost/worker/Main.class").is_file()
        && worker.api().join("com/microsoft/azure/functions/ExecutionContext.class").is_file()
        && worker.gson().join("com/google/gson/Gson.class").is_file()
}

#[tokio::test]
async fn every_jdk_compiles_the_worker_once() {
    for jdk in packages::jdks() {
        let (app, cache) = (Folder::new(), Folder::new());
        let start = || java(&app, &jdk.join("bin/java"), &cache.path("not yet/there"));
        let (prepared, steps) = start().ready().await;
        assert_eq!(steps, [STEP], "{}", jdk.display());
        let first = prepared.java_worker.unwrap();
        assert!(is_complete(&first) && first.worker().starts_with(&cache.0), "{first:?}");
        assert_eq!(prepared.notices, []);
        let (prepared, steps) = start().ready().await;
        assert_eq!(steps, [""; 0], "{}", jdk.display());
        assert_eq!(prepared.java_worker.unwrap().worker(), first.worker());
    }
}

#[tokio::test]
async fn starts_at_the_same_time_share_one_folder() {
    let jdk = packages::jdks().remove(0);
    let (app, cache) = (Folder::new(), Folder::new());
    let start = || java(&app, &jdk.join("bin/java"), &cache.0).ready();
    let ((one, _), (other, _)) = tokio::join!(start(), start());
    let (one, other) = (one.java_worker.unwrap(), other.java_worker.unwrap());
    assert!(is_complete(&one) && one.worker() == other.worker());
    assert_eq!(fs::read_dir(cache.path("bindpost/java-worker")).unwrap().count(), 1);
}

/// A JRE, or a program that hides its compiler: it has no folder with `javac`.
fn without_javac(tools: &Folder, jdk: &Path, has_module: bool) -> std::path::PathBuf {
    let java = jdk.join("bin/java");
    let java = java.display();
    let modules =
        if has_module { format!("exec {java} --list-modules") } else { "echo java.base@17".to_owned() };
    tools.stub(
        "java",
        &format!(
            "case $1 in -Xshow*) echo 'openjdk version \"17.0.1\"' >&2;; --list-modules) {modules};; *) exec {java} \"$@\";; esac"
        ),
    )
}

#[tokio::test]
async fn a_java_without_javac_uses_its_module_or_another_jdk() {
    let jdk = packages::jdks().remove(0);
    let (app, tools) = (Folder::new(), Folder::new());
    for has_module in [true, false] {
        let cache = Folder::new();
        let java = java(&app, &without_javac(&tools, &jdk, has_module), &cache.0).variable("PATH", "");
        let java = if has_module { java } else { java.java_folder(jdk.parent().unwrap().to_owned()) };
        let (prepared, steps) = java.ready().await;
        assert_eq!(steps, [STEP]);
        assert!(is_complete(&prepared.java_worker.unwrap()));
    }
    let cache = Folder::new();
    let java = java(&app, &without_javac(&tools, &jdk, false), &cache.0).variable("PATH", "");
    let (error, fix) = java.refused().await;
    assert!(matches!(&error, SetupError::NoJavaCompiler { version, .. } if version == "17.0.1"), "{error}");
    assert!(fix.contains("jdk") && fix.contains("--workers DIR"), "{fix}");
}

#[tokio::test]
async fn without_a_safe_cache_the_worker_is_compiled_for_one_start() {
    let jdk = packages::jdks().remove(0);
    let (app, cache) = (Folder::new(), Folder::new());
    fs::create_dir(cache.path("bindpost")).unwrap();
    fs::set_permissions(cache.path("bindpost"), fs::Permissions::from_mode(0o777)).unwrap();
    let start = java(&app, &jdk.join("bin/java"), &cache.0);
    let (prepared, steps) = start.ready().await;
    assert_eq!(steps, [STEP]);
    let worker = prepared.java_worker.unwrap();
    let folder = worker.worker();
    assert!(is_complete(&worker) && !folder.starts_with(&cache.0));
    assert!(prepared.notices[0].message.contains("other users can write to "), "{:?}", prepared.notices);
    drop(worker);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_failed_compilation_leaves_nothing() {
    let (app, tools, cache) = (Folder::new(), Folder::new(), Folder::new());
    tools.stub("jdk/bin/java", "exit 1");
    tools.stub("jdk/bin/javac", "echo 'error: release version 11 not supported'; exit 2");
    tools.write("jdk/release", "JAVA_VERSION=\"21.0.2\"\n");
    let Outcome { result, steps, started, .. } =
        java(&app, &tools.path("jdk/bin/java"), &cache.0).run().await;
    let error = result.unwrap_err().to_string();
    assert!(error.contains("release version 11 not supported"), "{error}");
    assert_eq!((started, steps), (vec![STEP.to_owned()], Vec::new()));
    assert_eq!(fs::read_dir(cache.path("bindpost/java-worker")).unwrap().count(), 0);
}
