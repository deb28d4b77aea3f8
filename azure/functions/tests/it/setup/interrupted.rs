//! Installs that take too long or are cancelled: their program is stopped, and the next start installs again.

use std::time::{Duration, Instant};

use super::{Folder, Preparation, SetupError, WorkerRuntime, until_exists};

/// Returns an app, and tools whose npm installs half and then hangs the first time, in a child whose id it
/// writes.
fn hanging() -> (Folder, Folder) {
    let (app, tools) = (Folder::new(), Folder::new());
    app.write("package.json", r#"{"dependencies":{"@azure/functions":"^4","other":"1"}}"#);
    app.write("index.js", "");
    tools.stub("node", "echo v20.0.0");
    let script = r#"PATH=/usr/bin:/bin
mkdir -p node_modules/@azure/functions && echo '{}' > node_modules/@azure/functions/package.json
[ -e pid ] && exit 0
echo "half way"
sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 60'
exit 1"#;
    tools.stub("npm", script);
    (app, tools)
}

fn start(app: &Folder, tools: &Folder) -> Preparation {
    Preparation::of(WorkerRuntime::Node, app).variable("PATH", &tools.0)
}

/// Waits until the process of the stub has exited, or is a zombie that the runtime has not yet reaped.
async fn is_gone(app: &Folder) -> bool {
    let id = app.read("pid").trim().to_owned();
    assert!(!id.is_empty());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", &id]).output().unwrap();
        let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
        if state.is_empty() || state.starts_with('Z') {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn an_install_that_takes_too_long_is_stopped_and_repeated() {
    let (app, tools) = hanging();
    let (error, fix) = start(&app, &tools).time_limit(Duration::from_millis(1500)).refused().await;
    let SetupError::TimedOut { output, .. } = &error else { panic!("{error}") };
    assert_eq!(output, &["half way"]);
    assert!(fix.contains("npm install") || fix.contains("npm\" install"), "{fix}");
    assert!(is_gone(&app).await);
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, ["Installing packages with npm: the last install was not completed"]);
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, [""; 0]);
}

#[tokio::test]
async fn a_cancelled_preparation_stops_its_program() {
    let (app, tools) = hanging();
    let pid = app.path("pid");
    tokio::select! {
        _ = start(&app, &tools).run() => panic!("the stub hangs"),
        () = until_exists(&pid) => {}
    }
    assert!(is_gone(&app).await);
    let (_, steps) = start(&app, &tools).ready().await;
    assert_eq!(steps, ["Installing packages with npm: the last install was not completed"]);
}
