//! `cargo xtask test`: everything CI runs, stopping at the first step that fails.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{cargo, run as start};
use crate::{compare, conformance, deny, dist, fuzz, interop, search_tour, table, tidy};

type Step = (&'static str, &'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("fmt", "cargo fmt --check", || start(&mut cargo(&["fmt", "--check"]))),
    ("clippy", "cargo clippy --workspace --all-targets -- -D warnings", || {
        start(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    // A fixed seed: the same commit gives the same verdict. Property tests explore when run without it.
    ("test", "PROPTEST_RNG_SEED=1 cargo test --workspace", || {
        start(cargo(&["test", "--workspace"]).env("PROPTEST_RNG_SEED", "1"))
    }),
    ("fuzz-replay", "cargo xtask fuzz --replay", || fuzz::run(&["--replay".to_owned()])),
    ("doc", "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --features bindpost/testing", || {
        let arguments = ["doc", "--workspace", "--no-deps", "--features", "bindpost/testing"];
        start(cargo(&arguments).env("RUSTDOCFLAGS", "-D warnings"))
    }),
    ("tidy", "cargo xtask tidy", || tidy::run(&[])),
    ("deny", "cargo xtask deny", deny::run),
    ("conformance", "cargo xtask conformance", || conformance::run(&[])),
    ("interop", "cargo xtask interop", interop::run),
    ("search-tour", "cargo xtask search-tour", search_tour::run),
    ("compare", "cargo xtask compare", || compare::run(&[])),
    ("dist", "cargo xtask test --only dist", dist::test),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let begin = Instant::now();
    let steps = choose(args)?;
    let mut done = Vec::new();
    let mut outcome = Ok(());
    for (name, command, step) in &steps {
        println!("\n━━ {name} ━━ {command}");
        let begin = Instant::now();
        outcome = step().with_context(|| format!("step {name} failed; run it alone with `{command}`"));
        let verdict = if outcome.is_ok() { "passed" } else { "FAILED" };
        done.push(vec![name.to_string(), verdict.into(), seconds(begin.elapsed())]);
        if outcome.is_err() {
            break;
        }
    }
    println!();
    table::print(&["step", "", "seconds"], &done);
    outcome?;
    println!("\nall {} steps passed in {} s", steps.len(), seconds(begin.elapsed()));
    Ok(())
}

/// The steps that `--only` names, or all, without those that `--skip` names.
fn choose(args: &[String]) -> Result<Vec<&'static Step>> {
    let (mut only, mut skip) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let list = match arg.as_str() {
            "--only" => &mut only,
            "--skip" => &mut skip,
            other => bail!("no such option: {other} (there are --only STEP,… and --skip STEP,…)"),
        };
        let names = args.next().with_context(|| format!("{arg} needs the name of a step"))?;
        for name in names.split(',') {
            let known: Vec<&str> = STEPS.iter().map(|(name, ..)| *name).collect();
            ensure!(known.contains(&name), "no such step: {name} (there are {})", known.join(", "));
            list.push(name);
        }
    }
    let wanted = |name: &str| (only.is_empty() || only.contains(&name)) && !skip.contains(&name);
    Ok(STEPS.iter().filter(|(name, ..)| wanted(name)).collect())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::choose;

    fn names(line: &str) -> anyhow::Result<Vec<&'static str>> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        Ok(choose(&args)?.into_iter().map(|(name, ..)| *name).collect())
    }

    #[test]
    fn chooses_steps_in_their_own_order() {
        assert_eq!(names("").unwrap().len(), 12);
        assert_eq!(names("--only tidy,fmt").unwrap(), ["fmt", "tidy"]);
        assert_eq!(
            names("--skip interop --skip search-tour,compare,conformance,deny,dist,doc,fuzz-replay").unwrap(),
            ["fmt", "clippy", "test", "tidy"]
        );
    }

    #[test]
    fn rejects_an_unknown_step() {
        assert!(names("--only lint").unwrap_err().to_string().contains("no such step: lint"));
        assert!(names("--only").is_err());
        assert!(names("--fast").is_err());
    }
}
