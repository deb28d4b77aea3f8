//! Java: where it is found, which versions are supported, and sources that were not packaged.

use super::{Folder, Preparation, SetupError, WorkerRuntime};

fn java(app: &Folder) -> Preparation {
    Preparation::of(WorkerRuntime::Java, app)
}

fn stub_java(tools: &Folder, name: &str, version: &str) {
    tools.stub(
        name,
        &format!("echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; echo 'openjdk version \"{version}\"' >&2"),
    );
}

#[tokio::test]
async fn java_home_comes_before_the_path() {
    let (app, tools) = (Folder::new(), Folder::new());
    stub_java(&tools, "java", "17.0.15");
    stub_java(&tools, "home/bin/java", "21");
    let (prepared, _) = java(&app).variable("PATH", &tools.0).ready().await;
    let found = prepared.interpreter.unwrap();
    assert_eq!((found.path, found.version.as_str()), (tools.path("java"), "17.0.15"));

    let with_home = |home| java(&app).variable("PATH", &tools.0).variable("JAVA_HOME", tools.path(home));
    let (prepared, _) = with_home("home").ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "21");
    assert!(prepared.notices.is_empty());
    let (prepared, _) = with_home("nowhere").ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "17.0.15");
    assert!(prepared.notices[0].message.starts_with("JAVA_HOME is "), "{:?}", prepared.notices);
}

#[tokio::test]
async fn a_missing_or_old_java_is_rejected() {
    let (app, tools) = (Folder::new(), Folder::new());
    let (error, fix) = java(&app).variable("PATH", "").variable("JAVA_HOME", "/opt/none").refused().await;
    let expected = "Java was not found: looked for /opt/none/bin/java (JAVA_HOME) and java on the PATH";
    assert_eq!(error.to_string(), expected);
    assert!(fix.contains("install"), "{fix}");
    stub_java(&tools, "java", "1.8.0_392");
    let (error, _) = java(&app).variable("PATH", &tools.0).refused().await;
    assert!(matches!(&error, SetupError::TooOld { version, .. } if version == "1.8.0_392"), "{error}");
}

#[tokio::test]
async fn sources_report_the_packaged_app_or_how_to_build_it() {
    let (app, tools) = (Folder::new(), Folder::new());
    stub_java(&tools, "java", "17");
    let start = || java(&app).variable("PATH", &tools.0);
    app.write("pom.xml", "<project/>");
    let (error, fix) = start().refused().await;
    assert!(matches!(error, SetupError::NotPackaged { .. }), "{error}");
    assert!(fix.starts_with("mvn package "), "{fix}");

    app.write("target/azure-functions/orders/host.json", "{}");
    let (_, fix) = start().refused().await;
    assert_eq!(fix, format!("bindpost run \"{}\"", app.path("target/azure-functions/orders").display()));

    app.write("Save/function.json", "{}");
    start().ready().await;
}
