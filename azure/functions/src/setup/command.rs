//! Runs a program with a time limit. Its output is passed on line by line, and the last lines are
//! kept for errors.
//!
//! No shell is involved. Dropping the future kills the program. On Unix this includes its child processes:
//! npm and pip start children, which would continue to write into a folder that is about to be deleted.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::SetupError;

const LONGEST_LINE: usize = 4096;
/// The number of lines that errors keep. npm tells the reason of a failure before a hundred lines of usage.
const LAST_LINES: usize = 200;
/// How long output is read after a program has exited. A process that it started may keep the pipe open.
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// A program with its arguments, working directory and environment.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    path: Option<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

impl CommandLine {
    pub(super) fn new(program: &Path, folder: &Path) -> Self {
        Self {
            program: program.to_path_buf(),
            arguments: Vec::new(),
            folder: folder.to_path_buf(),
            path: None,
            environment: Vec::new(),
        }
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_os_string());
        self
    }

    pub(super) fn args(self, arguments: &[&str]) -> Self {
        arguments.iter().fold(self, Self::arg)
    }

    /// Sets the PATH of the program. With `None`, the program has no PATH, even if this process has one.
    pub(super) fn path(mut self, path: Option<OsString>) -> Self {
        self.path = path;
        self
    }

    pub(super) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name, value.as_ref().to_os_string()));
        self
    }

    /// Runs the program and returns its last lines. Calls `each` for every line as it is read.
    pub(super) async fn run(
        &self,
        limit: Duration,
        each: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Vec<String>, SetupError> {
        let mut child =
            self.start().map_err(|source| SetupError::NotStarted { command: self.to_string(), source })?;
        // Declared after the child and therefore dropped before it. Until the child is dropped, its id
        // is not reused.
        let mut group = ProcessGroup::from_child(&child);
        let mut last = VecDeque::with_capacity(LAST_LINES);
        let mut keep = |line: String| {
            each(&line);
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(line);
        };
        let ended = timeout(limit, forward_output(&mut child, &mut keep)).await;
        if ended.is_ok() {
            group.release();
        }
        let output = Vec::from(last);
        match ended {
            Ok(Ok(status)) if status.success() => Ok(output),
            Ok(Ok(status)) => Err(SetupError::CommandFailed {
                command: self.to_string(),
                status: status.to_string(),
                output,
            }),
            Ok(Err(source)) => Err(SetupError::NotStarted { command: self.to_string(), source }),
            // Returning drops the child, which kills the process.
            Err(_) => Err(SetupError::TimedOut { command: self.to_string(), limit, output }),
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        match &self.path {
            Some(path) => command.env("PATH", path),
            None => command.env_remove("PATH"),
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.spawn()
    }
}

/// The process group of a program. It is killed when this is dropped.
struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ProcessGroup {
    fn from_child(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// Releases the group. Its leader has exited, so its id may be reused.
    fn release(&mut self) {
        self.leader = None;
    }
}

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // This fails only if all processes have exited.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    fn from_child(_: &Child) -> Self {
        Self {}
    }

    fn release(&mut self) {}
}

/// Formats the command line as it would be typed in a terminal.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote_argument(self.program.as_os_str()))?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quote_argument(argument)))
    }
}

/// Returns one argument of a command line, quoted if it contains special characters.
pub(super) fn quote_argument(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./\\:@%+=,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.into_owned() } else { format!("\"{word}\"") }
}

/// Passes on the lines of a program until it has exited.
async fn forward_output(
    child: &mut Child,
    keep: &mut (dyn FnMut(String) + Send),
) -> std::io::Result<ExitStatus> {
    let mut stdout = LineReader::new(child.stdout.take());
    let mut stderr = LineReader::new(child.stderr.take());
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        if let (Some((status, _)), true) = (ended, stdout.is_at_end() && stderr.is_at_end()) {
            return Ok(status);
        }
        let give_up = ended.map_or_else(Instant::now, |(_, at)| at + AFTER_EXIT);
        tokio::select! {
            line = stdout.next(), if !stdout.is_at_end() => line.into_iter().for_each(&mut *keep),
            line = stderr.next(), if !stderr.is_at_end() => line.into_iter().for_each(&mut *keep),
            status = child.wait(), if ended.is_none() => ended = Some((status?, Instant::now())),
            () = sleep_until(give_up), if ended.is_some() => {
                stdout.source = None;
                stderr.source = None;
            }
        }
    }
}

/// Reads lines from a pipe. A carriage return also ends a line, because progress bars use it.
struct LineReader<R> {
    source: Option<BufReader<R>>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(source: Option<R>) -> Self {
        Self { source: source.map(BufReader::new), line: Vec::new() }
    }

    fn is_at_end(&self) -> bool {
        self.source.is_none()
    }

    /// Returns the next line that is not empty. Cancel safe: a partial line is kept in `self`.
    async fn next(&mut self) -> Option<String> {
        while let Some(source) = &mut self.source {
            let bytes = match source.fill_buf().await {
                Ok(bytes) if !bytes.is_empty() => bytes,
                _ => {
                    self.source = None;
                    return self.take_line();
                }
            };
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            let used = end.map_or(bytes.len(), |end| end + 1);
            source.consume(used);
            if end.is_some()
                && let Some(line) = self.take_line()
            {
                return Some(line);
            }
        }
        None
    }

    fn take_line(&mut self) -> Option<String> {
        let mut line = printable(&String::from_utf8_lossy(&std::mem::take(&mut self.line)));
        // Replacement characters are longer than the bytes they replace.
        while line.len() > LONGEST_LINE {
            line.pop();
        }
        (!line.trim().is_empty()).then_some(line)
    }
}

/// Removes colours, cursor movements and other control characters, because the text is printed to a terminal.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            // A control sequence ends with its first character from @ to ~.
            let _ = chars.by_ref().find(|c| matches!(c, '@'..='~'));
        } else if c == '\t' || !c.is_control() {
            shown.push(c);
        }
    }
    shown.truncate(shown.trim_end().len());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> CommandLine {
        CommandLine::new(Path::new("/bin/sh"), Path::new("/")).args(&["-c", script])
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn lines_are_capped_and_free_of_control_characters() {
        let script = r"printf 'one\r\n\033[31mred\033[0m\007 \377\n'; head -c 10000 /dev/zero | tr '\0' x; printf '\nend'";
        let lines = shell(script)
            .path(Some("/usr/bin:/bin".into()))
            .run(Duration::from_secs(10), &mut |_| {})
            .await
            .unwrap();
        assert_eq!(lines.first().unwrap(), "one");
        assert_eq!(lines.get(1).unwrap(), "red \u{fffd}");
        assert_eq!(lines.get(2).unwrap().len(), LONGEST_LINE);
        assert_eq!(lines.get(3).unwrap(), "end");
        assert_eq!(lines.len(), 4);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_background_process_does_not_delay_the_result() {
        let begin = Instant::now();
        let lines = shell("echo first; sleep 20 & exit 0")
            .path(Some("/usr/bin:/bin".into()))
            .run(Duration::from_secs(15), &mut |_| {})
            .await
            .unwrap();
        assert_eq!(lines, ["first"]);
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn arguments_with_spaces_are_quoted() {
        let command = CommandLine::new(Path::new("/a b/python"), Path::new("/")).args(&["-m", "pip", ">x"]);
        assert_eq!(command.to_string(), "\"/a b/python\" -m pip \">x\"");
    }
}
