//! The shared parts of all targets: an entry point for libFuzzer, and an ordinary `main`
//! that replays files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The timeout of one input. An input takes milliseconds, and less than this even on a busy machine in a
/// debug build.
const PATIENCE: Duration = Duration::from_secs(60);

/// Turns `fn run(data: &[u8])` into a program: a fuzzer if cargo-fuzz builds it, otherwise [`replay`].
#[macro_export]
macro_rules! target {
    ($run:ident) => {
        #[cfg(fuzzing)]
        ::libfuzzer_sys::fuzz_target!(|data: &[u8]| $run(data));

        #[cfg(not(fuzzing))]
        fn main() -> ::std::process::ExitCode {
            $crate::replay(env!("CARGO_BIN_NAME"), $run)
        }
    };
}

/// Returns the longest prefix of an input that is valid UTF-8.
pub fn text(data: &[u8]) -> &str {
    data.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Runs the files and folders of the command line, and fails if one of them fails.
pub fn replay(target: &str, run: fn(&[u8])) -> ExitCode {
    let mut files = Vec::new();
    for path in std::env::args_os().skip(1) {
        if let Err(error) = collect(Path::new(&path), &mut files) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if files.is_empty() {
        eprintln!("{target} has nothing to replay: pass files, or folders of files");
        return ExitCode::FAILURE;
    }
    let mut failed = 0;
    for file in &files {
        if let Err(reason) = replay_file(file, run) {
            eprintln!("FAILED: {}: {reason}", file.display());
            failed += 1;
        }
    }
    println!("{target}: {} inputs, {failed} failed", files.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Collects all files below a path, sorted by name.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries: Result<Vec<_>, _> =
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries?;
    entries.sort();
    entries.iter().try_for_each(|entry| collect(entry, files))
}

/// Replays a file in its own thread, named after the file, so that a panic or a stack overflow names it.
/// The stack has the size of a server thread's stack.
fn replay_file(file: &Path, run: fn(&[u8])) -> Result<(), String> {
    let data = fs::read(file).map_err(|error| error.to_string())?;
    let (done, end) = mpsc::channel();
    let thread = thread::Builder::new().name(file.display().to_string()).spawn(move || {
        run(&data);
        let _ = done.send(());
    });
    thread.map_err(|error| error.to_string())?;
    match end.recv_timeout(PATIENCE) {
        Ok(()) => Ok(()),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("panicked".to_owned()),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("not finished after {} s", PATIENCE.as_secs())),
    }
}
