//! A plan as text, Markdown and checks.

use std::fmt::Write as _;

use super::{ChangeAction, ResourceChange, SearchPlan};
use crate::code::checks::{CheckOutcome, CheckReport, CheckSuite, SuiteCheck};
use crate::code::folder::place;

/// Returns a plan for a terminal.
pub(super) fn plain(plan: &SearchPlan) -> String {
    let mut out = String::new();
    for change in shown(plan) {
        let _ =
            writeln!(out, "  {} {}  {}", sign(change), place(change.kind, &change.name), headline(change));
        for difference in &change.differences {
            let _ = writeln!(out, "        {}: {}", difference.path, difference.change);
            let _ = writeln!(out, "            {}: {}", effect(difference.effect), difference.why);
        }
        for note in &change.notes {
            let _ = writeln!(out, "        note: {note}");
        }
        if let Some(why) = &change.blocked {
            let _ = writeln!(out, "        not possible: {}", why.replace("\n  fix:", "\n            fix:"));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    if !plan.steps.is_empty() {
        out.push_str("Steps:\n");
        for (place, step) in plan.steps.iter().enumerate() {
            let _ = writeln!(out, "  {:2}. {step}", place + 1);
        }
        out.push('\n');
    }
    for note in &plan.notes {
        let _ = writeln!(out, "Note: {note}");
    }
    let _ = writeln!(out, "{}", closing(plan));
    out
}

pub(super) fn markdown(plan: &SearchPlan) -> String {
    let mut out = format!("## Search plan\n\n{}\n\n", closing(plan));
    if shown(plan).next().is_some() {
        out.push_str("| Definition | Change | Needs | Reason |\n| --- | --- | --- | --- |\n");
    }
    for change in shown(plan) {
        let name = format!("`{}`", place(change.kind, &change.name));
        let _ = writeln!(
            out,
            "| {name} | **{}** | | {} |",
            cell(&headline(change)),
            cell(&change.notes.join("; "))
        );
        for difference in &change.differences {
            let _ = writeln!(
                out,
                "| | `{}`: {} | {} | {} |",
                difference.path,
                cell(&difference.change),
                effect(difference.effect),
                cell(&difference.why)
            );
        }
        if let Some(why) = &change.blocked {
            let _ = writeln!(out, "| | **not possible** | | {} |", cell(why));
        }
    }
    for note in &plan.notes {
        let _ = write!(out, "\n> {}\n", cell(note));
    }
    out
}

pub(super) fn checks(plan: &SearchPlan) -> CheckReport {
    let checks = plan.changes.iter().map(|change| SuiteCheck {
        name: place(change.kind, &change.name),
        outcome: match &change.blocked {
            Some(why) => CheckOutcome::Failed(why.clone()),
            None => CheckOutcome::Passed,
        },
        details: match change.action {
            ChangeAction::Nothing => String::new(),
            _ => headline(change),
        },
    });
    CheckReport {
        title: "Search plan".to_owned(),
        suites: vec![CheckSuite { name: "plan".to_owned(), checks: checks.collect(), measures: Vec::new() }],
        notes: plan.notes.clone(),
    }
}

/// Returns the changes without those that need nothing.
fn shown(plan: &SearchPlan) -> impl Iterator<Item = &ResourceChange> {
    plan.changes.iter().filter(|change| change.action != ChangeAction::Nothing || change.blocked.is_some())
}

fn sign(change: &ResourceChange) -> char {
    match change.action {
        _ if change.blocked.is_some() => '!',
        ChangeAction::Create => '+',
        ChangeAction::Delete => '-',
        ChangeAction::Nothing | ChangeAction::Keep => ' ',
        ChangeAction::Rebuild | ChangeAction::RebuildWithDowntime => '±',
        ChangeAction::Update | ChangeAction::UpdateWithDowntime | ChangeAction::Impossible => '~',
    }
}

/// Returns what a change is, in some words.
fn headline(change: &ResourceChange) -> String {
    let documents =
        |count: u64| if count == 1 { "1 document".to_owned() } else { format!("{count} documents") };
    let new = change.new_name.as_deref().unwrap_or_default();
    match change.action {
        ChangeAction::Nothing => "as on the service".to_owned(),
        ChangeAction::Create => "create".to_owned(),
        ChangeAction::Update => "update in place".to_owned(),
        ChangeAction::UpdateWithDowntime => {
            "update in place; the index is offline for some seconds".to_owned()
        }
        ChangeAction::Rebuild => {
            let copied = documents(change.documents.unwrap_or(0));
            format!("rebuild as {new} behind its alias: copy {copied}")
        }
        ChangeAction::RebuildWithDowntime => {
            format!("rebuild as {new}: copy {}", documents(change.documents.unwrap_or(0)))
        }
        ChangeAction::Delete => "delete".to_owned(),
        ChangeAction::Keep => "not in the folder; kept (--prune deletes it)".to_owned(),
        ChangeAction::Impossible => "impossible".to_owned(),
    }
}

fn effect(effect: &str) -> &'static str {
    match effect {
        "downtime" => "some seconds offline",
        "rebuild" => "needs a new index",
        "impossible" => "impossible",
        _ => "in place",
    }
}

fn closing(plan: &SearchPlan) -> String {
    let summary = plan.summary;
    if plan.is_empty() {
        return "Nothing to do: the service is as the folder says.".to_owned();
    }
    let mut counts = vec![
        format!("{} to create", summary.create),
        format!("{} to update", summary.update),
        format!("{} to rebuild", summary.rebuild),
        format!("{} to delete", summary.delete),
    ];
    if summary.blocked > 0 {
        counts.push(format!("{} not possible", summary.blocked));
    }
    format!("Plan {}: {}.", plan.fingerprint, counts.join(", "))
}

/// Returns a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
