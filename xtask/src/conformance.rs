//! `cargo xtask conformance`: runs the official suite against `examples/conformance`, on our own listener and
//! in an axum app.
//!
//! It runs these sets without expected failures: the requirements of a revision, with the extensions and
//! pending scenarios that the suite includes; the skills extension, which no requirements include; and the
//! last release of the suite for revisions with a handshake only.

mod results;
mod server;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::results::{CheckStatus, ConformanceCheck};
use self::server::{ConformanceServer, ServerHost};
use crate::{node, table, workspace};

/// One run of one release of the suite, with our requirements in addition to "no failure".
struct ConformanceSet {
    name: &'static str,
    release: &'static str,
    /// The options that select the whole set, and those that select one scenario of it.
    whole: &'static [&'static str],
    single: &'static [&'static str],
    /// The command of the suite that lists the scenarios of this set.
    list: &'static [&'static str],
    /// The scenarios of a set that no option of the suite selects. They run one after the other.
    scenarios: &'static [&'static str],
    /// The minimum number of passed checks. Fewer mean that scenarios are missing.
    passed: usize,
    /// Whether warnings and skipped checks are failures.
    strict: bool,
}

const SKILLS: &[&str] =
    &["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];

static SETS: [ConformanceSet; 5] = [
    ConformanceSet {
        name: "2026-07-28",
        release: "0.2.0-alpha.12",
        whole: &["--requirements", "2026-07-28"],
        single: &["--spec-version", "2026-07-28", "--force"],
        list: &["list", "--requirements", "2026-07-28"],
        scenarios: &[],
        passed: 196,
        strict: true,
    },
    ConformanceSet {
        name: "2025-11-25",
        release: "0.2.0-alpha.12",
        whole: &["--requirements", "2025-11-25"],
        single: &["--spec-version", "2025-11-25", "--force"],
        list: &["list", "--requirements", "2025-11-25"],
        scenarios: &[],
        passed: 84,
        strict: false,
    },
    ConformanceSet {
        name: "skills-2026-07-28",
        release: "0.2.0-alpha.12",
        whole: &[],
        single: &["--spec-version", "2026-07-28", "--force"],
        list: &[],
        scenarios: SKILLS,
        passed: 45,
        strict: true,
    },
    ConformanceSet {
        name: "skills-2025-11-25",
        release: "0.2.0-alpha.12",
        whole: &[],
        single: &["--spec-version", "2025-11-25", "--force"],
        list: &[],
        scenarios: SKILLS,
        // The two checks of cache members are skipped, because this revision has none.
        passed: 43,
        strict: false,
    },
    ConformanceSet {
        name: "0.1.16",
        release: "0.1.16",
        whole: &["--suite", "all"],
        single: &[],
        list: &["list", "--server"],
        scenarios: &[],
        passed: 1,
        strict: false,
    },
];

/// The suite always skips this scenario, because its harness needs a rewrite.
const ALWAYS_SKIPPED: &str = "tasks-status-notifications";

/// The timeout of a set, which takes seconds. The suite has a limit of 30 s per scenario, its older release
/// has none.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = ConformanceOptions::parse(args)?;
    let node = node::node()?;
    let sets = options.sets(&node)?;
    let folder = workspace::target().join("conformance/results");
    let (mut rows, mut complaints) = (Vec::new(), Vec::new());
    let mut run_sets = |host: &str, url: &str| -> Result<Vec<String>> {
        let mut complaints = Vec::new();
        for set in &sets {
            println!("conformance: {} (suite {}) at {url}, served by {host}", set.name, set.release);
            let folder = folder.join(host).join(set.name);
            let (checks, status) = set.run(&node, url, options.scenario.as_deref(), &folder)?;
            print_noteworthy(&checks);
            complaints.extend(set.complaints(&checks, status, options.scenario.is_none()));
            let count = |status| results::count(&checks, status).to_string();
            let counts =
                [CheckStatus::Success, CheckStatus::Failure, CheckStatus::Warning, CheckStatus::Skipped]
                    .map(count);
            rows.push([host.to_owned(), set.name.to_owned()].into_iter().chain(counts).collect());
        }
        Ok(complaints)
    };
    match &options.url {
        Some(url) => complaints.extend(run_sets("another server", url)?),
        None => {
            for host in ServerHost::ALL {
                let server = ConformanceServer::start(host)?;
                let found = run_sets(host.name(), server.url())?;
                complaints.extend(
                    found.into_iter().chain(server.stop()).map(|it| format!("{}: {it}", host.name())),
                );
            }
        }
    }

    println!();
    table::print(&["host", "set", "passed", "failed", "warnings", "skipped"], &rows);
    if options.keep {
        println!("\nresults are kept in {}", folder.display());
    } else {
        fs::remove_dir_all(&folder).with_context(|| format!("could not remove {}", folder.display()))?;
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    Ok(())
}

impl ConformanceSet {
    /// Runs the whole set or one scenario.
    fn run(
        &self,
        node: &Path,
        url: &str,
        scenario: Option<&str>,
        folder: &Path,
    ) -> Result<(Vec<ConformanceCheck>, ExitStatus)> {
        if scenario.is_some() || self.scenarios.is_empty() {
            let (checks, status, log) = self.run_suite(node, url, scenario, folder)?;
            if scenario.is_some() {
                println!("{log}");
            }
            return Ok((checks, status));
        }
        let mut checks = Vec::new();
        let mut status = ExitStatus::default();
        for scenario in self.scenarios {
            let (more, next, _) = self.run_suite(node, url, Some(scenario), &folder.join(scenario))?;
            checks.extend(more);
            status = if status.success() { next } else { status };
        }
        Ok((checks, status))
    }

    /// Runs the suite, and reads the results and the log it wrote.
    fn run_suite(
        &self,
        node: &Path,
        url: &str,
        scenario: Option<&str>,
        folder: &Path,
    ) -> Result<(Vec<ConformanceCheck>, ExitStatus, String)> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let log = folder.with_extension("log");
        let mut suite = self.suite(node)?;
        suite.args(["server", "--url", url, "--output-dir"]).arg(folder);
        match scenario {
            None => suite.args(self.whole),
            Some(scenario) => suite.args(["--scenario", scenario]).args(self.single),
        };
        let output = File::create(&log)?;
        let status = wait(suite.stdout(output.try_clone()?).stderr(output))?;
        let log = fs::read_to_string(&log)?;
        let checks = results::read(folder, &log)?;
        Ok((checks, status, log))
    }

    /// Returns the problems of these checks.
    fn complaints(&self, checks: &[ConformanceCheck], status: ExitStatus, whole: bool) -> Vec<String> {
        let count = |status| results::count(checks, status);
        let mut complaints = Vec::new();
        let mut complain = |text: String| complaints.push(format!("{}: {text}", self.name));
        if count(CheckStatus::Failure) > 0 {
            complain(format!("{} checks failed", count(CheckStatus::Failure)));
        } else if !status.success() {
            complain(format!(
                "the suite reported no failure, but exited with {status}; see its log with --keep"
            ));
        }
        if whole && count(CheckStatus::Success) < self.passed {
            complain(format!("{} checks passed, at least {} must", count(CheckStatus::Success), self.passed));
        }
        if self.strict && count(CheckStatus::Warning) > 0 {
            complain(format!("{} checks warned", count(CheckStatus::Warning)));
        }
        let skipped = checks
            .iter()
            .filter(|c| c.status == CheckStatus::Skipped && c.scenario != ALWAYS_SKIPPED)
            .count();
        if self.strict && skipped > 0 {
            complain(format!("{skipped} checks were skipped"));
        }
        complaints
    }

    fn suite(&self, node: &Path) -> Result<Command> {
        let package = "@modelcontextprotocol/conformance";
        let folder = node::install(
            &format!("conformance-{}", self.release),
            &[&format!("{package}@{}", self.release)],
        )?;
        let mut command = Command::new(node);
        command.arg(folder.join("node_modules").join(package).join("dist/index.js"));
        Ok(command)
    }

    fn has_scenario(&self, node: &Path, scenario: &str) -> Result<bool> {
        if !self.scenarios.is_empty() {
            return Ok(self.scenarios.contains(&scenario));
        }
        let list = workspace::output(self.suite(node)?.args(self.list))?;
        Ok(list.split_whitespace().any(|word| word == scenario))
    }
}

/// The options of the command line.
#[derive(Default)]
struct ConformanceOptions {
    set: Option<String>,
    scenario: Option<String>,
    url: Option<String>,
    keep: bool,
}

impl ConformanceOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().cloned().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--set" => options.set = Some(value()?),
                "--scenario" => options.scenario = Some(value()?),
                "--url" => options.url = Some(value()?),
                "--keep" => options.keep = true,
                other => bail!("no such option: {other} (there are --set, --scenario, --url and --keep)"),
            }
        }
        let names: Vec<&str> = SETS.iter().map(|set| set.name).collect();
        if let Some(set) = options.set.as_deref() {
            ensure!(names.contains(&set), "no such set: {set} (there are {})", names.join(", "));
        }
        Ok(options)
    }

    /// Returns the requested set, otherwise the sets that have the scenario, otherwise all.
    fn sets(&self, node: &Path) -> Result<Vec<&'static ConformanceSet>> {
        let mut sets: Vec<&ConformanceSet> =
            SETS.iter().filter(|s| self.set.as_deref().is_none_or(|set| set == s.name)).collect();
        if let (None, Some(scenario)) = (&self.set, &self.scenario) {
            let has = sets.iter().map(|set| set.has_scenario(node, scenario)).collect::<Result<Vec<_>>>()?;
            // Scenarios of no set run with the newest revision.
            let outside = !has.contains(&true);
            sets = sets.into_iter().zip(has).filter(|(_, has)| *has).map(|(set, _)| set).collect();
            if outside {
                sets.push(&SETS[0]);
            }
        }
        Ok(sets)
    }
}

/// Prints all checks that are neither passed nor informational, with the suite's reason.
fn print_noteworthy(checks: &[ConformanceCheck]) {
    for check in checks {
        let word = match check.status {
            CheckStatus::Failure => "FAILED",
            CheckStatus::Warning => "WARNED",
            CheckStatus::Skipped => "skipped",
            CheckStatus::Success | CheckStatus::Info => continue,
        };
        println!("  {word:<8}{} / {}: {}", check.scenario, check.id, check.description);
        for line in check.message.lines().filter(|line| *line != check.description) {
            // Some messages contain whole images. With --keep they stay complete in the results.
            let short: String = line.chars().take(600).collect();
            println!("          {short}{}", if short.len() < line.len() { "…" } else { "" });
        }
    }
}

fn wait(suite: &mut Command) -> Result<ExitStatus> {
    let begin = Instant::now();
    let mut child = suite.spawn().context("could not start the suite")?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("the suite did not finish within {} s; the server may hang", PATIENCE.as_secs());
        }
        sleep(Duration::from_millis(50));
    }
}
