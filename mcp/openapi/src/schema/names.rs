//! Names of definitions: safe in a reference, descriptive and unique.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::document::sources::{SourceLocation, SourceSet};

/// Maps locations in files to definitions and back.
#[derive(Default)]
pub(super) struct DefinitionNames {
    by_spot: HashMap<SourceLocation, String>,
    spots: BTreeMap<String, SourceLocation>,
}

impl DefinitionNames {
    /// Names all schemas under `definitions` and `components.schemas` of the given documents. Equal
    /// schemas of two documents, including the schemas they reference, are one definition.
    pub(super) fn of_roots(sources: &SourceSet) -> DefinitionNames {
        let mut names = DefinitionNames::default();
        let mut first: HashMap<String, Vec<SourceLocation>> = HashMap::new();
        for spot in sources.roots().iter().flat_map(|root| definitions_of(sources, *root)) {
            let last = spot.pointer.last().cloned().unwrap_or_default();
            first.entry(last).or_default().push(spot);
        }
        let same = same_definitions(sources, &first);
        for root in sources.roots() {
            for spot in definitions_of(sources, *root) {
                match same.get(&spot) {
                    Some(original) => {
                        let name = names.name_for(original);
                        names.by_spot.insert(spot, name);
                    }
                    None => {
                        names.name_for(&spot);
                    }
                }
            }
        }
        names
    }

    /// Returns the name of the definition at a location. Generates one if it has none yet.
    pub(super) fn name_for(&mut self, spot: &SourceLocation) -> String {
        if let Some(name) = self.by_spot.get(spot) {
            return name.clone();
        }
        let wanted = wanted_name(&spot.pointer);
        let mut name = wanted.clone();
        let mut number = 1;
        while self.spots.contains_key(&name) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        self.by_spot.insert(spot.clone(), name.clone());
        self.spots.insert(name.clone(), spot.clone());
        name
    }

    /// Generates a name for a definition that is in no file.
    pub(super) fn generate_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 1;
        while self.spots.contains_key(&name) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        self.spots.insert(name.clone(), SourceLocation { file: usize::MAX, pointer: Vec::new() });
        name
    }

    pub(super) fn spot(&self, name: &str) -> Option<&SourceLocation> {
        self.spots.get(name)
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.spots.keys().cloned().collect()
    }

    /// Returns the name in the document.
    pub(super) fn original(&self, name: &str) -> String {
        self.spots.get(name).and_then(|spot| spot.pointer.last()).cloned().unwrap_or_else(|| name.to_owned())
    }
}

/// Returns the locations of a file's named schemas.
pub(super) fn definitions_of(sources: &SourceSet, file: usize) -> Vec<SourceLocation> {
    let Some(source) = sources.file(file) else { return Vec::new() };
    let mut spots = Vec::new();
    for place in [&["definitions"][..], &["components", "schemas"][..]] {
        let found = place.iter().try_fold(&*source.value, |value, member| value.get(member));
        for name in found.and_then(Value::as_object).into_iter().flat_map(|members| members.keys()) {
            let pointer = place.iter().map(|part| (*part).to_owned()).chain([name.clone()]).collect();
            spots.push(SourceLocation { file, pointer });
        }
    }
    spots
}

/// Returns the definitions of later documents that equal one of an earlier document.
fn same_definitions(
    sources: &SourceSet,
    by_name: &HashMap<String, Vec<SourceLocation>>,
) -> HashMap<SourceLocation, SourceLocation> {
    let mut same = HashMap::new();
    for spots in by_name.values() {
        let Some((original, others)) = spots.split_first() else { continue };
        for other in others {
            if sources.value(other) == sources.value(original) {
                same.insert(other.clone(), original.clone());
            }
        }
    }
    // Equal text is the same definition only if the referenced definitions are equal.
    loop {
        let different: Vec<SourceLocation> = same
            .iter()
            .filter(|(spot, original)| {
                let mut names = HashSet::new();
                if let Some(value) = sources.value(spot) {
                    local_references(value, &mut names);
                }
                names.iter().any(|name| {
                    let mut here = (*spot).clone();
                    here.pointer.pop();
                    here.pointer.push(name.clone());
                    let mut there = (*original).clone();
                    there.pointer.pop();
                    there.pointer.push(name.clone());
                    same.get(&here) != Some(&there)
                        && (sources.value(&here).is_some() || sources.value(&there).is_some())
                })
            })
            .map(|(spot, _)| spot.clone())
            .collect();
        if different.is_empty() {
            return same;
        }
        for spot in different {
            same.remove(&spot);
        }
    }
}

fn local_references(value: &Value, names: &mut HashSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref")
                && reference.starts_with('#')
                && let Some((_, name)) = reference.rsplit_once('/')
            {
                names.insert(name.to_owned());
            }
            members.values().for_each(|value| local_references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| local_references(value, names)),
        _ => {}
    }
}

/// Returns the preferred name for a location: its last part, with the part before it if the
/// last is too generic.
fn wanted_name(pointer: &[String]) -> String {
    const GENERIC: [&str; 14] = [
        "definitions",
        "components",
        "schemas",
        "properties",
        "items",
        "schema",
        "content",
        "allOf",
        "anyOf",
        "oneOf",
        "responses",
        "parameters",
        "paths",
        "application/json",
    ];
    let is_named = pointer.len() == 2
        || (pointer.len() == 3 && pointer.first().is_some_and(|part| part == "components"));
    let telling: Vec<&String> = pointer.iter().filter(|part| !GENERIC.contains(&part.as_str())).collect();
    let parts = if is_named { pointer.last().into_iter().collect() } else { telling };
    let parts: Vec<String> =
        parts.iter().rev().take(3).rev().map(|part| safe(part)).filter(|part| !part.is_empty()).collect();
    let name = parts.join(".");
    if name.is_empty() { "Schema".to_owned() } else { name }
}

fn safe(part: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut name: String = part.chars().map(|c| if keep(c) { c } else { '_' }).collect();
    while name.contains("__") && !part.contains("__") {
        name = name.replace("__", "_");
    }
    name.trim_matches('_').chars().take(120).collect()
}
