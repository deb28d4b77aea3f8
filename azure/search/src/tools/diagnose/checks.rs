//! Checks an indexer and the definitions that it references, even if no run has failed yet.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::{IndexerParts, ReferencedDefinition};
use crate::tools::indexer_runs::status::{IndexerExecution, IndexerStatus};

/// Age of the last success above which there is a finding.
const OLD_DAYS: i64 = 7;

/// One finding about an indexer.
pub(super) struct IndexerFinding {
    weight: FindingSeverity,
    what: String,
    why: String,
    fix: String,
    more: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingSeverity {
    Error,
    Warning,
    Note,
}

impl IndexerFinding {
    pub(super) fn new(
        weight: FindingSeverity,
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> IndexerFinding {
        IndexerFinding { weight, what: what.into(), why: why.into(), fix: fix.into(), more: Map::new() }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> IndexerFinding {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn is_error(&self) -> bool {
        self.weight == FindingSeverity::Error
    }

    pub(super) fn into_json(self) -> Value {
        let weight = match self.weight {
            FindingSeverity::Error => "error",
            FindingSeverity::Warning => "warning",
            FindingSeverity::Note => "note",
        };
        let mut told = crate::tools::builder::into_members(
            json!({"severity": weight, "what": self.what, "why": self.why, "fix": self.fix}),
        );
        told.extend(self.more);
        Value::Object(told)
    }
}

/// Returns the findings that need no run.
pub(super) fn check(parties: &IndexerParts, status: &IndexerStatus) -> Vec<IndexerFinding> {
    let mut findings = Vec::new();
    check_reference(&parties.data_source, "data source", "createOrUpdateDataSource", &mut findings);
    check_reference(&parties.index, "target index", "createOrUpdateIndex", &mut findings);
    check_reference(&parties.skillset, "skillset", "callOperation Skillsets_CreateOrUpdate", &mut findings);
    if let ReferencedDefinition::There(index) = &parties.index {
        check_mappings(&parties.indexer, index, &mut findings);
        check_key(&parties.indexer, index, &mut findings);
    }
    outputs_without_skills(parties, &mut findings);
    check_schedule(&parties.indexer, status, &mut findings);
    check_runs(&parties.indexer, status, &mut findings);
    findings
}

fn check_reference(party: &ReferencedDefinition, kind: &str, tool: &str, findings: &mut Vec<IndexerFinding>) {
    match party {
        ReferencedDefinition::Missing(name) => findings.push(IndexerFinding::new(
            FindingSeverity::Error,
            format!("The {kind} '{name}' does not exist"),
            "the indexer references it, and every run needs it",
            format!("create it with {tool}, or correct the name with createOrUpdateIndexer"),
        )),
        ReferencedDefinition::Unknown(why) => findings.push(IndexerFinding::new(
            FindingSeverity::Note,
            format!("The {kind} could not be read"),
            why.clone(),
            "try again, or check the permissions of the key",
        )),
        ReferencedDefinition::None | ReferencedDefinition::There(_) => {}
    }
}

fn elements<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the target field of a mapping. The default is the name of the source field.
fn target(mapping: &Value) -> &str {
    text(mapping, "targetFieldName").or_else(|| text(mapping, "sourceFieldName")).unwrap_or_default()
}

fn check_mappings(indexer: &Value, index: &Value, findings: &mut Vec<IndexerFinding>) {
    let names: Vec<&str> = elements(index, "fields").filter_map(|field| text(field, "name")).collect();
    for list in ["fieldMappings", "outputFieldMappings"] {
        for mapping in elements(indexer, list) {
            let target = target(mapping);
            // Names of target fields are not case-sensitive.
            if !names.iter().any(|name| name.eq_ignore_ascii_case(target)) {
                let source = text(mapping, "sourceFieldName").unwrap_or_default();
                findings.push(IndexerFinding::new(
                    FindingSeverity::Error,
                    format!(
                        "{list}: '{source}' is mapped to the field '{target}', which does not exist in the index"
                    ),
                    format!("the top-level fields are: {}", names.join(", ")),
                    "correct the mapping with createOrUpdateIndexer, or add the field (see planIndexChange)",
                ));
            }
        }
    }
}

fn check_key(indexer: &Value, index: &Value, findings: &mut Vec<IndexerFinding>) {
    let is_key = |field: &&Value| field.get("key").and_then(Value::as_bool) == Some(true);
    let Some(key) = elements(index, "fields").find(is_key).and_then(|field| text(field, "name")) else {
        return;
    };
    let mapping =
        elements(indexer, "fieldMappings").find(|mapping| target(mapping).eq_ignore_ascii_case(key));
    match mapping {
        None => findings.push(IndexerFinding::new(
            FindingSeverity::Note,
            format!("No field mapping for the key field '{key}'"),
            "the key is then the member of the same name, or is generated from the URL of the file",
            format!(
                "if keys are missing, add to fieldMappings {{\"sourceFieldName\": \"…\", \"targetFieldName\": \
                 \"{key}\", \"mappingFunction\": {{\"name\": \"base64Encode\"}}}}"
            ),
        )),
        Some(mapping) => {
            let source = text(mapping, "sourceFieldName").unwrap_or_default();
            let is_address = source.starts_with("metadata_storage_") || source.contains("path") || source.contains("url");
            if is_address && mapping.get("mappingFunction").is_none_or(Value::is_null) {
                findings.push(IndexerFinding::new(
                    FindingSeverity::Warning,
                    format!("The key field '{key}' is mapped from '{source}' without encoding"),
                    "keys may contain only letters, digits, _, - and =; URLs contain other characters",
                    "add to this mapping \"mappingFunction\": {\"name\": \"base64Encode\"}",
                ));
            }
        }
    }
}

fn outputs_without_skills(parties: &IndexerParts, findings: &mut Vec<IndexerFinding>) {
    let outputs = elements(&parties.indexer, "outputFieldMappings").count();
    if outputs > 0 && matches!(parties.skillset, ReferencedDefinition::None) {
        findings.push(IndexerFinding::new(
            FindingSeverity::Warning,
            format!("{outputs} outputFieldMappings, but no skillset"),
            "they map the output of skills",
            "set skillsetName, or use fieldMappings",
        ));
    }
}

fn check_schedule(indexer: &Value, status: &IndexerStatus, findings: &mut Vec<IndexerFinding>) {
    if indexer.get("disabled").and_then(Value::as_bool) == Some(true) {
        findings.push(IndexerFinding::new(
            FindingSeverity::Error,
            "The indexer is disabled",
            "it is started neither by its schedule nor by runIndexer",
            "set \"disabled\": false with createOrUpdateIndexer",
        ));
        return;
    }
    if indexer.get("schedule").is_none_or(Value::is_null) && status.last().is_some() {
        findings.push(IndexerFinding::new(
            FindingSeverity::Note,
            "It has no schedule",
            "it runs only on request",
            "call runIndexer, or set a schedule such as {\"interval\": \"PT1H\"}",
        ));
    }
}

fn check_runs(indexer: &Value, status: &IndexerStatus, findings: &mut Vec<IndexerFinding>) {
    let Some(last) = status.last() else {
        findings.push(IndexerFinding::new(
            FindingSeverity::Warning,
            "It has never run",
            "its history contains no run",
            "call runIndexer",
        ));
        return;
    };
    let reason = last.message().unwrap_or("the service gives no reason").to_owned();
    if status.overall() == "error" {
        findings.push(IndexerFinding::new(
            FindingSeverity::Error,
            "The indexer as a whole is in error: no run can begin",
            reason.clone(),
            "correct the definitions it references, then call runIndexer to clear the state",
        ));
    } else if last.status() == "transientFailure" {
        findings.push(IndexerFinding::new(
            FindingSeverity::Error,
            "The last run failed",
            reason.clone(),
            limit_fix(indexer, &reason)
                .unwrap_or("correct the causes below, then use `retry` or call runIndexer"),
        ));
    } else if last.failed() > 0 {
        findings.push(IndexerFinding::new(
            FindingSeverity::Warning,
            format!("{} of {} items failed in a successful run", last.failed(), last.processed()),
            "maxFailedItems allows it",
            "correct the causes below, then use `retry`",
        ));
    }
    let lower = reason.to_lowercase();
    if ["quota", "storage limit", "no space"].iter().any(|word| lower.contains(word)) {
        findings.push(IndexerFinding::new(
            FindingSeverity::Error,
            "A quota of the service is used up",
            reason,
            "read search://servicestats, then delete unused indexes or choose a larger tier",
        ));
    }
    check_last_success(status, findings);
}

/// Returns the fix for a run that stopped because too many items failed.
fn limit_fix(indexer: &Value, reason: &str) -> Option<&'static str> {
    let most = indexer.pointer("/parameters/maxFailedItems").and_then(Value::as_i64);
    let is_limit = reason.contains("maxFailedItems") || reason.contains("failed items");
    (is_limit || most == Some(0)).then_some(
        "the run stopped at the limit of failed items: correct the causes below, or raise parameters.maxFailedItems and \
         maxFailedItemsPerBatch (-1 for any number) to index the rest",
    )
}

fn check_last_success(status: &IndexerStatus, findings: &mut Vec<IndexerFinding>) {
    let success = |run: &IndexerExecution<'_>| run.status() == "success";
    let last = status.last().filter(success).or_else(|| status.history().find(success));
    let time = last.and_then(|run| DateTime::parse_from_rfc3339(run.end().unwrap_or(run.start())).ok());
    match time {
        None => findings.push(IndexerFinding::new(
            FindingSeverity::Warning,
            "No run in its history was a success",
            "the history contains the last fifty runs",
            "see the other findings",
        )),
        Some(time) => {
            let days = Utc::now().signed_duration_since(time).num_days();
            if days >= OLD_DAYS {
                findings.push(IndexerFinding::new(
                    FindingSeverity::Warning,
                    format!("The last success was {days} days ago"),
                    format!("it ended at {}", time.to_rfc3339()),
                    "call runIndexer, or check the schedule",
                ));
            }
        }
    }
}
