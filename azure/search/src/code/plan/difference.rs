//! The differences between a definition of the service and the one of the folder, both in the form of the
//! folder.

use serde_json::{Map, Value};

use super::PlanDifference;
use crate::code::canonical::comparable;
use crate::code::kinds::CodeKind;
use crate::tools::builder::shortened;
use crate::tools::index_change::compare::{ChangeEffect, compare};

/// Maximum length of a value in a difference, in characters.
const LONGEST: usize = 80;

/// Returns all differences, with what each of them needs.
pub(crate) fn differences(kind: CodeKind, live: &Value, wanted: &Value) -> Vec<PlanDifference> {
    let (live, wanted) = (comparable(kind, live), comparable(kind, wanted));
    if kind == CodeKind::Index {
        let changes =
            compare(&live, &wanted).into_iter().filter(|change| change.effect != ChangeEffect::None);
        return changes
            .map(|change| PlanDifference {
                path: change.path,
                change: change.change,
                effect: effect_name(change.effect),
                why: change.why.to_owned(),
            })
            .collect();
    }
    let mut found = Vec::new();
    members(kind, "", &live, &wanted, &mut found);
    found
}

fn effect_name(effect: ChangeEffect) -> &'static str {
    match effect {
        ChangeEffect::None | ChangeEffect::Update => "inPlace",
        ChangeEffect::Downtime => "downtime",
        ChangeEffect::Rebuild => "rebuild",
        ChangeEffect::Impossible => "impossible",
    }
}

fn members(kind: CodeKind, path: &str, live: &Value, wanted: &Value, found: &mut Vec<PlanDifference>) {
    let empty = Map::new();
    let (old, new) = (live.as_object().unwrap_or(&empty), wanted.as_object().unwrap_or(&empty));
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    for name in names.filter(|name| *name != "name") {
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => value(kind, &path, old, new, found),
            (None, Some(new)) => push(kind, &path, format!("added: {}", short(new)), found),
            (Some(_), None) if is_chosen_by_service(kind, &path) => {}
            (Some(old), None) => push(kind, &path, format!("removed: {}", short(old)), found),
            (None, None) => {}
        }
    }
}

/// Whether a service fills in this member if a definition does not have it.
fn is_chosen_by_service(kind: CodeKind, path: &str) -> bool {
    match kind {
        // The members of skills have defaults, which differ between skills.
        CodeKind::Skillset => path.starts_with("skills/"),
        CodeKind::Indexer => {
            path.starts_with("schedule/")
                || path.starts_with("parameters/") && !path.contains("configuration/")
        }
        CodeKind::KnowledgeSource | CodeKind::KnowledgeBase => path.contains('/'),
        _ => false,
    }
}

fn value(kind: CodeKind, path: &str, old: &Value, new: &Value, found: &mut Vec<PlanDifference>) {
    match (old, new) {
        (Value::Object(_), Value::Object(_)) => members(kind, path, old, new, found),
        (Value::Array(old), Value::Array(new)) if are_rules(old, new) => rules(kind, path, old, new, found),
        (Value::Array(old), Value::Array(new)) if has_names(old) && has_names(new) => {
            elements(kind, path, old, new, found);
        }
        (Value::Number(old), Value::Number(new)) if old.as_f64() == new.as_f64() => {}
        (Value::Array(old), Value::Array(new))
            if old.len() == new.len() && old.iter().all(Value::is_object) =>
        {
            for (place, (old, new)) in old.iter().zip(new).enumerate() {
                value(kind, &format!("{path}/{place}"), old, new, found);
            }
        }
        (old, new) if old == new => {}
        (old, new) => push(kind, path, format!("{} → {}", short(old), short(new)), found),
    }
}

fn are_rules(old: &[Value], new: &[Value]) -> bool {
    old.iter().chain(new).all(Value::is_string)
}

/// Compares lists of texts, such as rules of synonyms, by their elements.
fn rules(kind: CodeKind, path: &str, old: &[Value], new: &[Value], found: &mut Vec<PlanDifference>) {
    let before = found.len();
    for rule in new.iter().filter(|rule| !old.contains(rule)) {
        push(kind, path, format!("added: {}", short(rule)), found);
    }
    for rule in old.iter().filter(|rule| !new.contains(rule)) {
        push(kind, path, format!("removed: {}", short(rule)), found);
    }
    if found.len() == before && old != new {
        push(kind, path, "order changed".to_owned(), found);
    }
}

fn has_names(elements: &[Value]) -> bool {
    let mut names: Vec<&str> = elements.iter().filter_map(|element| element.get("name")?.as_str()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    count == elements.len() && names.len() == count && count > 0
}

/// Compares lists of named elements, such as fields or skills, by their names.
fn elements(kind: CodeKind, path: &str, old: &[Value], new: &[Value], found: &mut Vec<PlanDifference>) {
    let name = |element: &Value| element.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    for after in new {
        let path = format!("{path}/{}", name(after));
        match old.iter().find(|before| name(before) == name(after)) {
            Some(before) => members(kind, &path, before, after, found),
            None => push(kind, &path, "added".to_owned(), found),
        }
    }
    for before in old.iter().filter(|before| !new.iter().any(|after| name(after) == name(before))) {
        push(kind, &format!("{path}/{}", name(before)), "removed".to_owned(), found);
    }
    // Skills and other elements run in their order.
    let (before, after): (Vec<String>, Vec<String>) =
        (old.iter().map(name).collect(), new.iter().map(name).collect());
    if before.len() == after.len() && before != after && before.iter().all(|name| after.contains(name)) {
        push(kind, path, "order changed".to_owned(), found);
    }
}

/// Adds a difference with the reason why it is possible in place.
fn push(kind: CodeKind, path: &str, change: String, found: &mut Vec<PlanDifference>) {
    let why = match kind {
        CodeKind::SynonymMap => "synonyms are applied at query time",
        CodeKind::Alias => "searches use the new index at once",
        CodeKind::Indexer if path.starts_with("schedule") || path == "disabled" => {
            "it applies to the next run"
        }
        CodeKind::DataSource | CodeKind::Skillset | CodeKind::Indexer => {
            "documents that are indexed already keep their content until the indexer is reset"
        }
        _ => "it is replaced as a whole",
    };
    found.push(PlanDifference { path: path.to_owned(), change, effect: "inPlace", why: why.to_owned() });
}

fn short(value: &Value) -> String {
    match value {
        Value::String(text) => shortened(text, LONGEST),
        other => shortened(&other.to_string(), LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(kind: CodeKind, live: Value, wanted: Value) -> Vec<String> {
        differences(kind, &live, &wanted)
            .into_iter()
            .map(|difference| format!("{}: {}", difference.path, difference.change))
            .collect()
    }

    #[test]
    fn rules_are_compared_one_by_one() {
        let found = paths(
            CodeKind::SynonymMap,
            json!({"name": "w", "format": "solr", "synonyms": ["a, b", "c, d"]}),
            json!({"name": "w", "synonyms": ["a, b", "e, f"]}),
        );
        assert_eq!(found, ["synonyms: added: e, f", "synonyms: removed: c, d"]);
    }

    #[test]
    fn defaults_that_a_service_fills_in_are_no_difference() {
        let live = json!({"name": "s", "skills": [{"@odata.type": "x", "name": "one", "context": "/document",
            "categories": ["Person"], "inputs": [{"name": "text", "source": "/document/content"}]}]});
        let mut wanted = json!({"name": "s", "skills": [{"@odata.type": "x", "name": "one",
            "inputs": [{"name": "text", "source": "/document/content"}]}]});
        assert!(paths(CodeKind::Skillset, live.clone(), wanted.clone()).is_empty());

        wanted["skills"][0]["inputs"][0]["source"] = "/document/title".into();
        assert_eq!(
            paths(CodeKind::Skillset, live, wanted),
            ["skills/one/inputs/text/source: /document/content → /document/title"]
        );
    }

    #[test]
    fn members_that_a_file_no_longer_has_are_removed() {
        let live = json!({"name": "i", "schedule": {"interval": "PT1H"}, "disabled": false});
        let found = paths(CodeKind::Indexer, live, json!({"name": "i"}));
        assert_eq!(found, ["schedule: removed: {\"interval\":\"PT1H\"}"]);
    }

    #[test]
    fn secrets_are_never_compared_or_shown() {
        let live = json!({"name": "d", "type": "azureblob", "credentials": {"connectionString": null}});
        let wanted = json!({"name": "d", "type": "azuresql", "credentials": {"connectionString": "${A}"}});
        let found = differences(CodeKind::DataSource, &live, &wanted);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].change.as_str()), ("type", "azureblob → azuresql"));
    }
}
