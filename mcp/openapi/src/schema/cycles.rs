//! Circular definitions without content: each references the other, with no member or item in between.
//!
//! A validator would not terminate on them, so they are cut. Cycles through members are recursion and stay.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::referenced_definition;

/// Cuts the cycles and returns the names of the definitions where it did.
pub(super) fn cut_cycles(definitions: &mut BTreeMap<String, Value>) -> Vec<String> {
    let edges: HashMap<String, Vec<String>> = definitions
        .iter()
        .map(|(name, schema)| {
            let mut targets = Vec::new();
            collect_in_place_references(schema, &mut targets);
            (name.clone(), targets)
        })
        .collect();
    let mut cuts = Vec::new();
    let mut finished: HashSet<&str> = HashSet::new();
    for start in definitions.keys() {
        // The walk uses its own stack, because a document may contain chains of any length.
        let Some((start, _)) = edges.get_key_value(start) else { continue };
        let mut path: Vec<(&str, usize)> = vec![(start.as_str(), 0)];
        let mut on_path: HashSet<&str> = HashSet::from([start.as_str()]);
        while let Some((name, next)) = path.last_mut() {
            let name = *name;
            let target = edges.get(name).and_then(|targets| targets.get(*next));
            *next += 1;
            match target {
                None => {
                    path.pop();
                    on_path.remove(name);
                    finished.insert(name);
                }
                Some(target) if on_path.contains(target.as_str()) => {
                    cuts.push((name.to_owned(), target.clone()))
                }
                Some(target) if finished.contains(target.as_str()) => {}
                Some(target) => {
                    on_path.insert(target);
                    path.push((target, 0));
                }
            }
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (name, target) in cuts {
        if let Some(schema) = definitions.get_mut(&name) {
            remove(schema, &target);
            names.push(name);
        }
    }
    names.dedup();
    names
}

const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// Collects the definitions that apply to the same value.
fn collect_in_place_references(schema: &Value, targets: &mut Vec<String>) {
    if let Some(name) = referenced_definition(schema) {
        targets.push(name.to_owned());
    }
    for part in IN_PLACE_LISTS.into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten() {
        collect_in_place_references(part, targets);
    }
    for part in IN_PLACE.into_iter().filter_map(|key| schema.get(key)) {
        collect_in_place_references(part, targets);
    }
    for part in
        schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|parts| parts.values())
    {
        collect_in_place_references(part, targets);
    }
}

fn remove(schema: &mut Value, target: &str) {
    if referenced_definition(schema) == Some(target)
        && let Value::Object(members) = schema
    {
        members.remove("$ref");
    }
    for key in IN_PLACE_LISTS {
        let Some(Value::Array(parts)) = schema.get_mut(key) else { continue };
        // In a choice, the branch that references the choice itself adds nothing.
        if key != "allOf" {
            parts.retain(|part| referenced_definition(part) != Some(target));
        }
        parts.iter_mut().for_each(|part| remove(part, target));
        if parts.is_empty() {
            parts.push(json!({}));
        }
    }
    for key in IN_PLACE {
        if let Some(part) = schema.get_mut(key) {
            remove(part, target);
        }
    }
    if let Some(Value::Object(parts)) = schema.get_mut("dependentSchemas") {
        parts.iter_mut().for_each(|(_, part)| remove(part, target));
    }
}
