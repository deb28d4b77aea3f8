//! Java: where it is found, and which version an app needs.

use super::{Folder, Preparation, SetupError, WorkerRuntime};

/// Prepares an app for a public worker, so that nothing is compiled.
fn java(app: &Folder) -> Preparation {
    Preparation::of(WorkerRuntime::Java, app).public_worker()
}

pub(super) fn stub_java(tools: &Folder, name: &str, version: &str) {
    tools.stub(
        name,
        &format!("echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; echo 'openjdk version \"{version}\"' >&2"),
    );
}

/// Makes an app need Java 17.
fn needs_17(app: &Folder) -> String {
    app.write("lib/azure-functions-java-mcp-1.0.1.jar", "");
    "lib/azure-functions-java-mcp-1.0.1.jar needs Java 17".to_owned()
}

#[tokio::test]
async fn java_home_comes_before_the_path() {
    let (app, tools) = (Folder::new(), Folder::new());
    stub_java(&tools, "java", "17.0.15");
    stub_java(&tools, "home/bin/java", "21");
    let (prepared, _) = java(&app).variable("PATH", &tools.0).ready().await;
    let found = prepared.interpreter.unwrap();
    assert_eq!((found.path, found.version.as_str()), (tools.path("java"), "17.0.15"));
    let origin = format!("{} (PATH)", tools.path("java").display());
    assert_eq!(prepared.interpreter_origin, Some(origin));

    let with_home = |home| java(&app).variable("PATH", &tools.0).variable("JAVA_HOME", tools.path(home));
    let (prepared, _) = with_home("home").ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "21");
    assert!(prepared.notices.is_empty() && prepared.interpreter_origin.unwrap().ends_with("(JAVA_HOME)"));
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
    let (error, fix) = java(&app).variable("PATH", &tools.0).refused().await;
    let path = tools.path("java");
    let expected =
        format!("no suitable Java was found: bindpost needs Java 11; found 1.8.0_392 ({})", path.display());
    assert_eq!(error.to_string(), expected);
    assert!(fix.contains("11"), "{fix}");
}

#[tokio::test]
async fn a_newer_java_of_the_machine_is_used_if_the_app_needs_it() {
    let (app, tools) = (Folder::new(), Folder::new());
    let reason = needs_17(&app);
    stub_java(&tools, "java", "11.0.24");
    stub_java(&tools, "home/bin/java", "11.0.2");
    for (folder, version) in [("25", "25.0.1"), ("11", "11.0.24"), ("21", "21.0.2"), ("17", "17.0.15")] {
        stub_java(&tools, &format!("jvm/{folder}/bin/java"), version);
    }
    let start = || java(&app).variable("PATH", &tools.0).java_folder(tools.path("jvm"));
    let (prepared, _) = start().ready().await;
    let found = prepared.interpreter.unwrap();
    assert_eq!((found.path, found.version.as_str()), (tools.path("jvm/17/bin/java"), "17.0.15"));
    assert_eq!(
        prepared.interpreter_origin,
        Some(format!("{}; {reason}", tools.path("jvm/17/bin/java").display()))
    );
    let [notice] = prepared.notices.as_slice() else { panic!("{:?}", prepared.notices) };
    let (old, new) = (tools.path("java"), tools.path("jvm/17/bin/java"));
    let expected =
        format!("{} (PATH) is Java 11.0.24, but {reason}; {} is used", old.display(), new.display());
    assert_eq!(notice.message, expected);

    // The one on the PATH fits, and the one in JAVA_HOME does not.
    stub_java(&tools, "path/java", "21");
    let start = || start().variable("JAVA_HOME", tools.path("home"));
    let (prepared, _) = start().variable("PATH", tools.path("path")).ready().await;
    assert_eq!(prepared.interpreter.unwrap().path, tools.path("path/java"));
    assert!(
        prepared.notices[0].message.contains("(JAVA_HOME) is Java 11.0.2, but "),
        "{:?}",
        prepared.notices
    );

    // The program that the settings name is used, or rejected.
    let (error, _) = start().executable(tools.path("java")).refused().await;
    assert!(matches!(&error, SetupError::NoSuitableJava { reason: told, .. } if *told == reason), "{error}");
    let (prepared, _) = start().executable(tools.path("jvm/25/bin/java")).ready().await;
    assert_eq!(prepared.interpreter.unwrap().version, "25.0.1");
}

#[tokio::test]
async fn the_release_file_of_an_installation_is_read_without_running_it() {
    let (app, tools) = (Folder::new(), Folder::new());
    tools.stub("jdk/bin/java", "exit 1");
    tools.write("jdk/release", "JAVA_VERSION=\"21.0.2\"\nMODULES=\"java.base\"\n");
    std::os::unix::fs::symlink(tools.path("jdk/bin/java"), tools.path("java")).unwrap();
    let (prepared, _) = java(&app).variable("PATH", &tools.0).ready().await;
    let found = prepared.interpreter.unwrap();
    assert_eq!((found.path, found.version.as_str()), (tools.path("java"), "21.0.2"));
}
