//! The results that the suite wrote: per scenario a folder `server-<scenario>-<time>` with a `checks.json`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// One check of the suite.
#[derive(Debug, PartialEq)]
pub(super) struct ConformanceCheck {
    pub(super) scenario: String,
    pub(super) id: String,
    pub(super) status: CheckStatus,
    pub(super) description: String,
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CheckStatus {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

pub(super) fn count(checks: &[ConformanceCheck], status: CheckStatus) -> usize {
    checks.iter().filter(|check| check.status == status).count()
}

/// Reads all checks of a run, in the order of the suite. For scenarios without checks the log
/// has the reason.
pub(super) fn read(folder: &Path, log: &str) -> Result<Vec<ConformanceCheck>> {
    let mut scenarios = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (scenario, time) =
            split_folder_name(&name).with_context(|| format!("unexpected result folder {name}"))?;
        scenarios.push((time.to_owned(), scenario.to_owned(), path));
    }
    ensure!(!scenarios.is_empty(), "the suite wrote no results; its output:\n{}", log.trim_end());
    scenarios.sort();

    let mut checks = Vec::new();
    for (_, scenario, path) in scenarios {
        let file = path.join("checks.json");
        if file.exists() {
            let text = fs::read_to_string(&file)?;
            checks.extend(
                parse(&scenario, &text).with_context(|| format!("could not parse {}", file.display()))?,
            );
        } else {
            checks.push(without_checks(&scenario, log));
        }
    }
    Ok(checks)
}

/// Splits `server-tools-list-2026-11-15T20-08-26-218Z` into the scenario `tools-list` and its time.
fn split_folder_name(name: &str) -> Option<(&str, &str)> {
    const TIME: &str = "2026-11-15T20-08-26-218Z";
    let name = name.strip_prefix("server-")?;
    let (scenario, time) = name.split_at_checked(name.len().checked_sub(TIME.len() + 1)?)?;
    Some((scenario, time.strip_prefix('-')?))
}

fn parse(scenario: &str, text: &str) -> Result<Vec<ConformanceCheck>> {
    let checks: Vec<Value> = serde_json::from_str(text)?;
    checks.iter().map(|check| parse_check(scenario, check)).collect()
}

fn parse_check(scenario: &str, check: &Value) -> Result<ConformanceCheck> {
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let status = match check["status"].as_str() {
        Some("SUCCESS") => CheckStatus::Success,
        Some("FAILURE") => CheckStatus::Failure,
        Some("WARNING") => CheckStatus::Warning,
        Some("SKIPPED") => CheckStatus::Skipped,
        Some("INFO") => CheckStatus::Info,
        other => bail!("unknown status {other:?}"),
    };
    // A check without a message has its evidence in the details.
    let message = match (text("errorMessage"), &check["details"]) {
        (message, Value::Null) => message,
        (message, _) if !message.is_empty() => message,
        (_, details) => details.to_string(),
    };
    Ok(ConformanceCheck {
        scenario: scenario.into(),
        id: text("id"),
        status,
        description: text("description"),
        message,
    })
}

/// Returns a check for a scenario without results. A scenario that threw, or that does not apply to this
/// revision, leaves an empty folder and a line in the log.
fn without_checks(scenario: &str, log: &str) -> ConformanceCheck {
    let line = |start: String| log.lines().find(|line| line.starts_with(&start)).map(str::to_owned);
    let (status, message) = match line(format!("SKIPPED: scenario '{scenario}'")) {
        Some(skipped) => (CheckStatus::Skipped, skipped),
        None => (
            CheckStatus::Failure,
            line(format!("Failed to run scenario {scenario}:"))
                .unwrap_or_else(|| "no checks.json, no reason".into()),
        ),
    };
    ConformanceCheck {
        scenario: scenario.into(),
        id: scenario.into(),
        status,
        description: "left no checks".into(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckStatus, parse, split_folder_name, without_checks};

    #[test]
    fn reads_the_scenario_from_a_folder_name() {
        let name = "server-json-schema-2020-12-2026-11-15T20-08-27-173Z";
        assert_eq!(split_folder_name(name), Some(("json-schema-2020-12", "2026-11-15T20-08-27-173Z")));
        assert_eq!(split_folder_name("server-x"), None);
        assert_eq!(split_folder_name(".DS_Store"), None);
    }

    #[test]
    fn reads_checks_and_their_reasons() {
        let checks = parse(
            "ping",
            r#"[{"id": "ping", "name": "Ping", "description": "Answers", "status": "SUCCESS", "details": {"n": 1}},
                {"id": "late", "name": "Late", "description": "Is quick", "status": "WARNING", "errorMessage": "slow"},
                {"id": "odd", "name": "Odd", "description": "Is even", "status": "FAILURE", "details": {"n": 3}}]"#,
        )
        .unwrap();
        let seen: Vec<_> = checks.iter().map(|c| (c.id.as_str(), c.status, c.message.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("ping", CheckStatus::Success, r#"{"n":1}"#),
                ("late", CheckStatus::Warning, "slow"),
                ("odd", CheckStatus::Failure, r#"{"n":3}"#)
            ]
        );
    }

    #[test]
    fn refuses_a_status_it_does_not_know() {
        assert!(parse("ping", r#"[{"id": "ping", "status": "MAYBE"}]"#).is_err());
    }

    #[test]
    fn a_scenario_that_threw_has_failed() {
        let log =
            "=== Running scenario: ping ===\nFailed to run scenario ping: TypeError: fetch failed\n    at x";
        let check = without_checks("ping", log);
        assert_eq!(check.status, CheckStatus::Failure);
        assert_eq!(check.message, "Failed to run scenario ping: TypeError: fetch failed");
    }

    #[test]
    fn a_scenario_of_another_revision_is_skipped() {
        let log = "SKIPPED: scenario 'server-stateless' is not applicable at spec version 2025-11-25.";
        assert_eq!(without_checks("server-stateless", log).status, CheckStatus::Skipped);
    }
}
