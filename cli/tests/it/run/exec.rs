//! `bindpost exec`, which starts programs that must end with the host.

use std::process::{Command, Stdio};

fn exec(parent: u32, program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindpost"));
    command.args(["exec", "--parent", &parent.to_string(), "--"]).args(program).stdin(Stdio::null());
    command
}

#[test]
fn replaces_itself_with_the_program() {
    let script = "echo $$ \"$1\"; echo oops >&2; exit 7";
    let child = exec(std::process::id(), &["sh", "-c", script, "sh", "--an argument"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bindpost runs");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{pid} --an argument\n"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "oops\n");
}

#[test]
fn a_missing_program_is_named() {
    let output = exec(std::process::id(), &["no-such-program"]).output().expect("bindpost runs");
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot start no-such-program"), "{stderr}");
}

/// Only Linux can end a program with its parent, so the parent is checked only there.
#[cfg(target_os = "linux")]
#[test]
fn fails_if_the_parent_has_ended() {
    let mut gone = Command::new("true").spawn().expect("true runs");
    gone.wait().expect("it ends");
    let output = exec(gone.id(), &["echo", "started"]).output().expect("bindpost runs");
    assert!(!output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the host has ended already"), "{stderr}");
}
