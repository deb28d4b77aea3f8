//! Merges an `allOf` of plain objects into one object.

use serde_json::{Map, Value, json};

use super::normalise::SchemaNormaliser;
use super::{ANNOTATIONS, is_alias, referenced_definition};

/// The maximum number of members that merging copies in total. A real document needs about ten thousand.
const MAX_COPIED: usize = 2_000_000;

impl SchemaNormaliser {
    /// Returns a schema whose parts all apply. A definition that only extends another one is a subtype,
    /// not an alias.
    pub(super) fn all_of(
        &mut self,
        mut own: Map<String, Value>,
        parts: Vec<Value>,
        is_definition: bool,
    ) -> Value {
        let mut kept: Vec<Value> = Vec::new();
        for part in parts {
            match part {
                Value::Bool(true) => {}
                Value::Object(members) if members.keys().all(|key| ANNOTATIONS.contains(&key.as_str())) => {
                    for (key, value) in members {
                        own.entry(key).or_insert(value);
                    }
                }
                part if kept.contains(&part) => {}
                part => kept.push(part),
            }
        }
        let only_words = own.keys().all(|key| ANNOTATIONS.contains(&key.as_str()));
        if kept.is_empty() {
            return Value::Object(own);
        }
        if let [single] = kept.as_slice()
            && only_words
            && (!is_definition || !is_alias(single))
            && let Value::Object(members) = single
        {
            let mut members = members.clone();
            members.extend(own);
            return Value::Object(members);
        }
        if let Some(merged) = self.merge_parts(&own, &kept) {
            return Value::Object(merged);
        }
        own.insert("allOf".to_owned(), Value::Array(kept));
        Value::Object(own)
    }

    fn merge_parts(&mut self, own: &Map<String, Value>, parts: &[Value]) -> Option<Map<String, Value>> {
        if !is_plain(own) {
            return None;
        }
        let mut flat = Vec::new();
        for part in parts {
            flat.push(self.plain_part(part)?);
        }
        let mut merged = Map::new();
        let mut is_closed = own.get("additionalProperties") == Some(&Value::Bool(false));
        is_closed |= flat.iter().all(|part| part.get("additionalProperties") == Some(&Value::Bool(false)));
        let mut types: Vec<&Value> = Vec::new();
        for part in flat.iter().chain([own]) {
            types.extend(part.get("type"));
            for (key, value) in part {
                merge_keyword(&mut merged, key, value);
            }
        }
        if let Some(title) = own.get("title") {
            merged.insert("title".to_owned(), title.clone());
        } else {
            merged.remove("title");
        }
        let is_nullable = !types.is_empty() && types.iter().all(|kind| kind.is_array());
        merged
            .insert("type".to_owned(), if is_nullable { json!(["object", "null"]) } else { json!("object") });
        if is_closed {
            merged.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        self.copied += merged.get("properties").and_then(Value::as_object).map_or(0, Map::len);
        Some(merged)
    }

    /// Returns the members of a part, without its discriminator.
    fn plain_part(&mut self, part: &Value) -> Option<Map<String, Value>> {
        if self.copied > MAX_COPIED {
            return None;
        }
        let mut part = part.clone();
        for _ in 0..8 {
            if !is_alias(&part) {
                break;
            }
            let name = referenced_definition(&part)?.to_owned();
            part = self.normalised_definition(&name)?.clone();
        }
        let Value::Object(mut members) = part else { return None };
        if members.remove("discriminator").is_some() {
            members.remove("oneOf");
            members.remove("anyOf");
        }
        is_plain(&members).then_some(members)
    }
}

/// Returns whether a schema only lists the members of an object.
fn is_plain(members: &Map<String, Value>) -> bool {
    const OF_OBJECTS: [&str; 4] = ["properties", "required", "additionalProperties", "discriminator"];
    let known = |key: &str| OF_OBJECTS.contains(&key) || ANNOTATIONS.contains(&key);
    members.iter().all(|(key, value)| match key.as_str() {
        "type" => {
            value == "object" || *value == json!(["object", "null"]) || *value == json!(["null", "object"])
        }
        key => known(key),
    })
}

fn merge_keyword(merged: &mut Map<String, Value>, key: &str, value: &Value) {
    match (key, merged.get_mut(key), value) {
        ("properties", Some(Value::Object(known)), Value::Object(more)) => {
            for (name, property) in more {
                match known.get_mut(name) {
                    Some(base) => *base = overridden(base, property),
                    None => {
                        known.insert(name.clone(), property.clone());
                    }
                }
            }
        }
        ("required", Some(Value::Array(known)), Value::Array(more)) => {
            for name in more {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
        }
        // A part that forbids other members means the whole object, which its author could not see.
        ("additionalProperties", _, Value::Bool(false)) => {}
        ("additionalProperties", Some(_), _) => {}
        _ => {
            merged.insert(key.to_owned(), value.clone());
        }
    }
}

/// Merges two descriptions of a member. The later one wins, and keywords that only the earlier one has
/// are kept.
fn overridden(base: &Value, later: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (base, later) else { return later.clone() };
    let is_annotation = |key: &String| ANNOTATIONS.contains(&key.as_str());
    let only_words = after.keys().all(is_annotation);
    let is_simple = |members: &Map<String, Value>| {
        !["$ref", "allOf", "anyOf", "oneOf", "properties", "items"]
            .into_iter()
            .any(|key| members.contains_key(key))
    };
    let same_type = match (before.get("type"), after.get("type")) {
        (Some(before), Some(after)) => before == after,
        _ => true,
    };
    if only_words || (is_simple(before) && is_simple(after) && same_type) {
        let mut both = before.clone();
        both.extend(after.clone());
        return Value::Object(both);
    }
    let mut result = after.clone();
    for (key, value) in before.iter().filter(|(key, _)| is_annotation(key)) {
        result.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(result)
}
