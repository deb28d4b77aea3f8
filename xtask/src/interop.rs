//! `cargo xtask interop`: real clients, each from its package, against `examples/conformance`.
//!
//! A client is a program in `interop/` that prints one line per check: `ok`, `skip` or `FAIL`. This file installs
//! the packages below `target/interop`, starts the clients one after another and adds up their lines.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{self, cargo};
use crate::{node, table};

/// One conversation: which package, in which of its modes, over which transport.
struct Client {
    name: &'static str,
    package: Package,
    args: &'static [&'static str],
    transport: Transport,
}

#[derive(Clone, Copy)]
enum Package {
    Npm,
    Python1,
    Python2,
    Rmcp,
}

enum Transport {
    Http,
    Stdio,
}

use Package::{Npm, Python1, Python2, Rmcp};

static CLIENTS: [Client; 16] = [
    http("npm client, 2025-11-25", Npm, &["client.mjs", "legacy"]),
    http("npm client, 2026-07-28", Npm, &["client.mjs", "auto"]),
    http("npm sdk, 2025-11-25", Npm, &["sdk-http.mjs"]),
    stdio("npm sdk, 2025-11-25, stdio", Npm, &["sdk-stdio.mjs"]),
    http("inspector, 2025-11-25", Npm, &["inspector.mjs", "legacy"]),
    http("inspector, 2026-07-28", Npm, &["inspector.mjs", "modern"]),
    http("mcp-remote, 2025-11-25", Npm, &["mcp-remote.mjs", "legacy"]),
    http("mcp-remote, 2026-07-28", Npm, &["mcp-remote.mjs", "auto"]),
    http("python 1, 2025-11-25", Python1, &["client_1.py"]),
    http("python 2, 2025-11-25", Python2, &["client_2.py", "legacy", "http"]),
    http("python 2, 2026-07-28", Python2, &["client_2.py", "auto", "http"]),
    stdio("python 2, 2026-07-28, stdio", Python2, &["client_2.py", "auto", "stdio"]),
    http("rmcp, 2025-11-25", Rmcp, &["initialize", "http"]),
    http("rmcp, 2026-07-28", Rmcp, &["discover", "http"]),
    stdio("rmcp, 2025-11-25, stdio", Rmcp, &["initialize", "stdio"]),
    stdio("rmcp, 2026-07-28, stdio", Rmcp, &["discover", "stdio"]),
];

const fn http(name: &'static str, package: Package, args: &'static [&'static str]) -> Client {
    Client { name, package, args, transport: Transport::Http }
}

const fn stdio(name: &'static str, package: Package, args: &'static [&'static str]) -> Client {
    Client { name, package, args, transport: Transport::Stdio }
}

/// The columns of the table. Where a check does not apply, a client leaves it out.
const CHECKS: [&str; 10] =
    ["connect", "list", "call", "progress", "elicitation", "read", "prompt", "cancel", "hang-up", "cut"];

/// Clients give up by themselves after 60 s; this is for those that hang on their way out.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn run() -> Result<()> {
    let folder = workspace::target().join("interop");
    fs::create_dir_all(&folder)?;
    workspace::run(&mut cargo(&["build", "--package", "conformance"]))?;
    let programs = Programs::install(&folder)?;
    let server = Server::start(folder.join("server.log"))?;

    let mut reports = Vec::new();
    for client in &CLIENTS {
        println!("\n{}", client.name);
        let before = server.log()?.len();
        let report = client.run(&programs, &server, &folder)?;
        if report.count(Verdict::Failed) > 0 {
            println!("-- the client's log:\n{}", report.log.trim_end());
            println!("-- the server's log:\n{}", server.log()?.get(before..).unwrap_or_default().trim_end());
        }
        reports.push(report);
    }

    let row = |report: &Report| {
        let cells = CHECKS.iter().map(|check| report.verdict(check).map_or("-", Verdict::word).to_owned());
        std::iter::once(report.client.to_owned()).chain(cells).collect()
    };
    println!();
    table::print(&[&["client"], &CHECKS[..]].concat(), &reports.iter().map(row).collect::<Vec<_>>());
    let count = |verdict| reports.iter().map(|report| report.count(verdict)).sum::<usize>();
    let failed = count(Verdict::Failed);
    println!("\n{} passed, {failed} failed, {} skipped", count(Verdict::Passed), count(Verdict::Skipped));
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

impl Client {
    /// Runs the client to its end; what it printed is shown and understood.
    fn run(&self, programs: &Programs, server: &Server, folder: &Path) -> Result<Report> {
        let proxy = Proxy::start(server.address()?)?;
        let mut command = programs.command(self.package);
        command.args(self.args);
        match self.transport {
            Transport::Http => command.args([&server.url, &proxy.url]),
            Transport::Stdio => command.arg(Server::program()),
        };
        let (lines, log) = (folder.join("client.out"), folder.join("client.log"));
        let status = wait(command.stdout(File::create(&lines)?).stderr(File::create(&log)?))?;

        let mut report = Report { client: self.name, checks: Vec::new(), log: read(&log)? };
        for line in read(&lines)?.lines() {
            println!("  {line}");
            report.checks.extend(parse(line));
        }
        // A client may only claim to have survived what really happened to it.
        let claims = ["hang-up", "cut"].map(|check| report.verdict(check) == Some(Verdict::Passed));
        let [claims_hang_up, claims_cut] = claims;
        if claims_cut && !proxy.seen.cut.load(Ordering::SeqCst) {
            report.fail("cut", "the proxy saw no progress notification, so it cut nothing");
        }
        let resumed = claims.into_iter().map(usize::from).sum();
        if claims_hang_up && proxy.seen.resumed.load(Ordering::SeqCst) < resumed {
            report.fail("hang-up", "the proxy saw no request with Last-Event-ID for it");
        }
        let in_order = status.is_some_and(|status| status.success()) && !report.checks.is_empty();
        if !in_order && report.count(Verdict::Failed) == 0 {
            report.fail("end", &status.map_or("it did not end and was killed".into(), |it| it.to_string()));
        }
        Ok(report)
    }
}

/// What a client said.
struct Report {
    client: &'static str,
    checks: Vec<(String, Verdict)>,
    log: String,
}

impl Report {
    fn verdict(&self, check: &str) -> Option<Verdict> {
        self.checks.iter().find(|(name, _)| name == check).map(|(_, verdict)| *verdict)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|(_, seen)| *seen == verdict).count()
    }

    /// Takes back what the client said of this check.
    fn fail(&mut self, check: &str, why: &str) {
        println!("  FAIL {check}: {why}");
        self.checks.retain(|(name, _)| name != check);
        self.checks.push((check.to_owned(), Verdict::Failed));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Passed,
    Skipped,
    Failed,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Skipped => "skip",
            Self::Failed => "FAIL",
        }
    }
}

/// `skip cancel: it cannot` is the verdict on `cancel`; other lines are for the reader only.
fn parse(line: &str) -> Option<(String, Verdict)> {
    let (word, rest) = line.split_once(' ')?;
    let all = [Verdict::Passed, Verdict::Skipped, Verdict::Failed];
    let verdict = all.into_iter().find(|verdict| verdict.word() == word)?;
    Some((rest.split(':').next().unwrap_or(rest).to_owned(), verdict))
}

/// Waits for the end, but not forever: no status means that it had to be killed.
fn wait(command: &mut Command) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).spawn().context("could not start the client")?;
    while begin.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Where the installed packages are.
struct Programs {
    node: PathBuf,
    npm: PathBuf,
    python1: PathBuf,
    python2: PathBuf,
    rmcp: PathBuf,
}

impl Programs {
    fn install(folder: &Path) -> Result<Self> {
        Ok(Self {
            node: node::node()?,
            npm: install_npm(&folder.join("node"))?,
            python1: install_python(&folder.join("python-1"), &sources().join("python/requirements-1.txt"))?,
            python2: install_python(&folder.join("python-2"), &sources().join("python/requirements-2.txt"))?,
            rmcp: build_rmcp(&folder.join("rmcp-target"))?,
        })
    }

    fn command(&self, package: Package) -> Command {
        let (program, current) = match package {
            Npm => (&self.node, self.npm.clone()),
            Python1 => (&self.python1, sources().join("python")),
            Python2 => (&self.python2, sources().join("python")),
            Rmcp => (&self.rmcp, sources()),
        };
        let mut command = Command::new(program);
        command.current_dir(current);
        command
    }
}

fn sources() -> PathBuf {
    workspace::root().join("interop")
}

/// Node looks for packages beside the script it runs, so the scripts are copied to where the packages are.
fn install_npm(folder: &Path) -> Result<PathBuf> {
    let manifest = fs::read_to_string(sources().join("node/package.json"))?;
    once(folder, &manifest, || {
        fs::write(folder.join("package.json"), &manifest)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]);
        workspace::run(npm.current_dir(folder)).context("npm is needed (it comes with Node)")
    })?;
    for entry in fs::read_dir(sources().join("node"))? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs") {
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    Ok(folder.to_owned())
}

fn install_python(folder: &Path, requirements: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    once(folder, &fs::read_to_string(requirements)?, || {
        workspace::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        workspace::run(pip.arg(requirements))
    })?;
    Ok(python)
}

fn build_rmcp(folder: &Path) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--locked", "--manifest-path", "interop/rmcp/Cargo.toml"]);
    workspace::run(build.env("CARGO_TARGET_DIR", folder))?;
    Ok(folder.join("debug/interop-rmcp"))
}

/// Installs into an empty folder, unless a stamp says that the same versions are there.
fn once(folder: &Path, versions: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == versions) {
        return Ok(());
    }
    println!("installing into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    install()?;
    Ok(fs::write(stamp, versions)?)
}

/// `examples/conformance` on HTTP; it ends when this value goes away.
struct Server {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Server {
    fn program() -> PathBuf {
        workspace::target().join("debug/conformance")
    }

    fn start(log: PathBuf) -> Result<Self> {
        let mut command = Command::new(Self::program());
        // A failure is explained by what the server saw, so it should say what it sees.
        command.env("RUST_LOG", "info").env("NO_COLOR", "1");
        command.args(["--port", "0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let child = command.spawn().context("could not start examples/conformance")?;
        let mut server = Self { child, url: String::new(), log };
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(100));
            let log = server.log()?;
            if let Some(url) = log.lines().find_map(|line| line.strip_prefix("listening on ")) {
                server.url = url.to_owned();
                return Ok(server);
            }
        }
        bail!("examples/conformance does not say where it listens:\n{}", server.log()?);
    }

    fn address(&self) -> Result<SocketAddr> {
        let address = self.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        address.and_then(|address| address.parse().ok()).with_context(|| format!("{} is not ours", self.url))
    }

    fn log(&self) -> Result<String> {
        read(&self.log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and then the clients have complained.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A log may end in the middle of a character, when its writer was killed.
fn read(log: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())
}

/// Passes bytes on to the server and back. Once, after a progress notification, it drops the connection.
struct Proxy {
    url: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    cut: AtomicBool,
    /// Requests that resume a stream.
    resumed: AtomicUsize,
}

impl Proxy {
    fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let proxy = Self { url: format!("http://{}/mcp", listener.local_addr()?), seen: Arc::default() };
        let seen = Arc::clone(&proxy.seen);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                // A broken connection is what this proxy is for; there is nobody to report it to.
                thread::spawn(move || forward(client, server, seen));
            }
        });
        Ok(proxy)
    }
}

fn forward(client: TcpStream, server: SocketAddr, seen: Arc<Seen>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let (requests, to_server) = (client.try_clone()?, server.try_clone()?);
    let also_seen = Arc::clone(&seen);
    thread::spawn(move || {
        pass_on(requests, to_server, |bytes| {
            let resumes = mentions(&bytes.to_ascii_lowercase(), b"last-event-id:");
            also_seen.resumed.fetch_add(resumes.into(), Ordering::SeqCst);
            false
        });
    });
    // An event that is split between two reads is not seen; then the next one is cut after.
    pass_on(server, client, |bytes| {
        mentions(bytes, b"notifications/progress") && !seen.cut.swap(true, Ordering::SeqCst)
    });
    Ok(())
}

/// Copies until an end, or until `stop` says so after a read; then both connections are of no more use.
fn pass_on(mut from: TcpStream, mut to: TcpStream, stop: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        if to.write_all(bytes).is_err() || stop(bytes) {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn mentions(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::Ordering;

    use super::{Proxy, Verdict, parse};

    #[test]
    fn reads_the_lines_of_a_client() {
        assert_eq!(parse("ok list"), Some(("list".into(), Verdict::Passed)));
        assert_eq!(parse("skip cancel: it cannot: never"), Some(("cancel".into(), Verdict::Skipped)));
        assert_eq!(parse("FAIL cut: lost"), Some(("cut".into(), Verdict::Failed)));
        assert_eq!(parse("warning: old"), None);
    }

    #[test]
    fn cuts_once_and_after_the_event() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap()).unwrap();
        let address = proxy.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut client = TcpStream::connect(&address).unwrap();
            let (mut connection, _) = server.accept().unwrap();
            connection.write_all(b"notifications/progress").unwrap();
            let mut answer = vec![0; 22];
            client.read_exact(&mut answer).unwrap();
            // The server learns of the cut only by writing, so the second write may or may not fail.
            let _ = connection.write_all(b" and more");
            drop(connection);
            client.read_to_end(&mut answer).unwrap();
            answers.push(String::from_utf8(answer).unwrap());
        }
        assert_eq!(answers, ["notifications/progress", "notifications/progress and more"]);
        assert!(proxy.seen.cut.load(Ordering::SeqCst));
    }
}
