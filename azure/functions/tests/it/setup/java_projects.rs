//! Projects of Maven and Gradle: their packaged apps are run, and they are packaged when needed. Scripts act as the build
//! tools, because only the call of the tool is tested here. `scenarios` has an app that Maven packages.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::java::stub_java;
use super::{Folder, Preparation, SetupError, WorkerRuntime};

/// Writes a packaged app, as the build tools do.
const PACKAGE: &str = r#"
echo "$@" >> calls.txt
mkdir -p "$OUT/orders/Save"
echo '{}' > "$OUT/orders/host.json"
echo '{"scriptFile": "../orders.jar"}' > "$OUT/orders/Save/function.json"
echo "built" > "$OUT/orders/orders.jar"
"#;

fn script(output: &str) -> String {
    format!("OUT={output}/azure-functions{PACKAGE}")
}

fn project(file: &str) -> (Folder, Folder) {
    let (app, tools) = (Folder::new(), Folder::new());
    stub_java(&tools, "java", "17");
    app.write(file, "");
    app.write("src/main/java/Save.java", "");
    (app, tools)
}

fn start(app: &Folder, tools: &Folder) -> Preparation {
    let path = std::env::join_paths([&tools.0, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    Preparation::of(WorkerRuntime::Java, app).public_worker().variable("PATH", path)
}

/// Sets the modification time of a file, in seconds from now.
fn set_age(file: &Path, seconds: i64) {
    let now = SystemTime::now();
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { now - distance } else { now + distance };
    File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn a_project_is_packaged_once_and_again_when_its_sources_change() {
    let (app, tools) = project("pom.xml");
    app.stub("mvnw", &script("target"));
    for file in ["pom.xml", "src/main/java/Save.java"] {
        set_age(&app.path(file), -60);
    }
    let (prepared, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, ["Packaging the app with Maven: there is no packaged app"]);
    assert_eq!(prepared.packaged, Some(app.path("target/azure-functions/orders")));
    assert_eq!(app.read("calls.txt"), "-q -B -DskipTests package\n");
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, [""; 0]);

    set_age(&app.path("src/main/java/Save.java"), 1);
    let stale = "sources are newer than the packaged app";
    let (prepared, steps) = start(&app, &tools).no_install().ready().await;
    assert_eq!(steps, [""; 0]);
    assert_eq!(prepared.notices[0].message, format!("the packaged app is not up to date: {stale}"));
    assert!(prepared.notices[0].fix.as_deref().unwrap().starts_with("mvn package "));
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, [format!("Packaging the app with Maven: {stale}")]);
    set_age(&app.path("src/main/java/Save.java"), -60);

    // A build does not write a jar that would be the same. The time of the build counts too.
    set_age(&app.path("target/azure-functions/orders/orders.jar"), -120);
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, [""; 0]);
    // A deleted output is built again.
    fs::remove_dir_all(app.path("target")).unwrap();
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps.len(), 1);
}

#[tokio::test]
async fn a_build_does_not_change_the_jars_that_a_worker_has_open() {
    let (app, tools) = project("pom.xml");
    app.stub("mvnw", &script("target"));
    start(&app, &tools).ready().await;
    let jar = app.path("target/azure-functions/orders/orders.jar");
    fs::write(&jar, "of the running worker").unwrap();
    let modified = fs::metadata(&jar).unwrap().modified().unwrap();
    let mut open = File::open(&jar).unwrap();
    set_age(&app.path("src/main/java/Save.java"), 1);

    // After a failed build, the sources are still newer than the jar.
    app.stub("mvnw", "exit 1");
    start(&app, &tools).refused().await;
    assert_eq!(fs::read_to_string(&jar).unwrap(), "of the running worker");
    assert_eq!(fs::metadata(&jar).unwrap().modified().unwrap(), modified);
    app.stub("mvnw", &script("target"));
    start(&app, &tools).ready().await;
    assert_eq!(fs::read_to_string(&jar).unwrap(), "built\n");
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "of the running worker");
    assert_eq!(fs::read_dir(jar.parent().unwrap()).unwrap().count(), 3, "no copy is left");
}

#[tokio::test]
async fn the_wrapper_of_the_project_comes_before_the_tool_on_the_path() {
    for (file, wrapper, program, output, arguments) in [
        ("pom.xml", "mvnw", "mvn", "target", "-q -B -DskipTests package"),
        ("build.gradle", "gradlew", "gradle", "build", "-q --console=plain azureFunctionsPackage"),
        ("build.gradle.kts", "gradlew", "gradle", "build", "-q --console=plain azureFunctionsPackage"),
    ] {
        let (app, tools) = project(file);
        tools.stub(program, &format!("echo {program} >> calls.txt; {}", script(output)));
        start(&app, &tools).ready().await;
        assert_eq!(app.read("calls.txt"), format!("{program}\n{arguments}\n"));
        fs::remove_dir_all(app.path(output)).unwrap();
        fs::remove_file(app.path("calls.txt")).unwrap();
        // A wrapper that is not executable is run too.
        app.write(wrapper, &script(output));
        let (prepared, _) = start(&app, &tools).ready().await;
        assert_eq!(app.read("calls.txt"), format!("{arguments}\n"));
        assert_eq!(prepared.packaged, Some(app.path(&format!("{output}/azure-functions/orders"))));
    }
}

#[tokio::test]
async fn a_project_that_cannot_be_packaged_is_rejected() {
    let (app, tools) = project("pom.xml");
    let only_tools = || start(&app, &tools).variable("PATH", &tools.0);
    let (error, fix) = only_tools().refused().await;
    assert!(matches!(error, SetupError::NotPackaged { .. }), "{error}");
    assert!(fix.contains("maven") && fix.contains("mvnw"), "{fix}");
    let (error, fix) = only_tools().no_install().refused().await;
    assert!(matches!(error, SetupError::NotPackaged { .. }), "{error}");
    assert!(fix.starts_with("mvn package "), "{fix}");

    app.stub("mvnw", "echo '[ERROR] Save.java:[3,5] cannot find symbol'; exit 1");
    let (error, _) = start(&app, &tools).refused().await;
    assert!(error.to_string().contains("cannot find symbol"), "{error}");
    // The build succeeds, but it does not have the plugin.
    app.stub("mvnw", "");
    let (error, fix) = start(&app, &tools).refused().await;
    assert!(matches!(error, SetupError::NotPackaged { .. }), "{error}");
    assert!(fix.contains("azure-functions-maven-plugin"), "{fix}");
}

#[tokio::test]
async fn the_newest_of_several_packaged_apps_is_used() {
    let (app, tools) = project("pom.xml");
    app.stub("mvnw", "exit 1");
    for (name, age) in [("new", -10), ("old", -20)] {
        app.write(&format!("target/azure-functions/{name}/host.json"), "{}");
        let jar = app.write(&format!("target/azure-functions/{name}/orders.jar"), "");
        set_age(&jar, age);
    }
    for file in ["pom.xml", "src/main/java/Save.java"] {
        set_age(&app.path(file), -60);
    }
    let (prepared, _) = start(&app, &tools).ready().await;
    assert_eq!(prepared.packaged, Some(app.path("target/azure-functions/new")));
    let notice = &prepared.notices[0];
    assert_eq!(notice.message, "target/azure-functions has 2 packaged apps; the newest one is used: new");
}

#[tokio::test]
async fn a_packaged_app_is_no_project() {
    let (app, tools) = project("pom.xml");
    app.write("Save/function.json", "{}");
    let (prepared, steps) = start(&app, &tools).ready().await;
    assert!(prepared.packaged.is_none() && steps.is_empty());
}
