//! The keywords of a schema: kept, translated, or dropped if validators do not support them.

use std::collections::HashSet;

use serde_json::{Map, Number, Value, json};

use super::normalise::{SchemaNormaliser, SchemaPath};
use super::{ANNOTATIONS, reference_to};

/// The maximum length of a list of known values in a description.
const MAX_VALUES_SHOWN: usize = 2_000;
/// The maximum length of an example.
const MAX_EXAMPLE: usize = 80;

impl SchemaNormaliser {
    /// Adds the annotations of a value.
    pub(super) fn annotations(&mut self, members: &Map<String, Value>, schema: &mut Map<String, Value>) {
        for key in ANNOTATIONS {
            let Some(value) = members.get(key) else { continue };
            let fits = match key {
                "title" | "description" => value.as_str().is_some_and(|text| !text.trim().is_empty()),
                "deprecated" | "readOnly" | "writeOnly" => *value == Value::Bool(true),
                "default" => true,
                _ => false,
            };
            if fits {
                schema.insert(key.to_owned(), value.clone());
            }
        }
        let example = members.get("example").or_else(|| members.get("examples")?.as_array()?.first());
        let is_short = |value: &Value| match value {
            Value::String(text) => !text.is_empty() && text.len() <= MAX_EXAMPLE,
            Value::Number(_) => true,
            _ => false,
        };
        if let Some(example) = example.filter(|example| is_short(example)) {
            schema.insert("examples".to_owned(), json!([example]));
        }
    }

    /// Adds all keywords except `$ref`, `allOf` and `nullable`.
    pub(super) fn keywords(
        &mut self,
        members: &Map<String, Value>,
        schema: &mut Map<String, Value>,
        trail: &SchemaPath<'_>,
    ) {
        self.annotations(members, schema);
        self.kind(members, schema, trail);
        self.values(members, schema);
        bounds(members, schema);
        for key in ["format", "contentEncoding", "contentMediaType"] {
            if let Some(Value::String(text)) = members.get(key) {
                schema.entry(key).or_insert_with(|| Value::String(text.clone()));
            }
        }
        if let Some(Value::String(pattern)) = members.get("pattern")
            && self.is_valid_pattern(pattern, trail)
        {
            schema.insert("pattern".to_owned(), Value::String(pattern.clone()));
        }
        if let Some(Value::Array(names)) = members.get("required") {
            let mut required: Vec<&Value> = Vec::new();
            for name in names.iter().filter(|name| name.is_string()) {
                if !required.contains(&name) {
                    required.push(name);
                }
            }
            if !required.is_empty() {
                schema.insert("required".to_owned(), json!(required));
            }
        }
        self.items(members, schema, trail);
        self.members(members, schema, trail);
        self.choices(members, schema, trail);
        self.discriminator(members, schema, trail);
    }

    fn kind(
        &mut self,
        members: &Map<String, Value>,
        schema: &mut Map<String, Value>,
        trail: &SchemaPath<'_>,
    ) {
        const KINDS: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
        let known = |kind: &str| KINDS.contains(&kind);
        match members.get("type") {
            Some(Value::String(kind)) if known(kind) => {
                schema.insert("type".to_owned(), json!(kind));
            }
            Some(Value::String(kind)) if kind == "file" => {
                schema.insert("type".to_owned(), json!("string"));
                schema.insert("format".to_owned(), json!("binary"));
            }
            Some(Value::Array(kinds)) => {
                let mut kept: Vec<&str> = Vec::new();
                for kind in kinds.iter().filter_map(Value::as_str).filter(|kind| known(kind)) {
                    if !kept.contains(&kind) {
                        kept.push(kind);
                    }
                }
                match kept.as_slice() {
                    [] => {}
                    [kind] => {
                        schema.insert("type".to_owned(), json!(kind));
                    }
                    kinds => {
                        schema.insert("type".to_owned(), json!(kinds));
                    }
                }
            }
            Some(other) => {
                let problem = format!(
                    "the type {other} is unknown, so any type is accepted; write one of {}",
                    KINDS.join(", ")
                );
                self.warn(&trail.spot(), &problem);
            }
            None => {}
        }
    }

    /// Adds `enum` and `const`. An extensible list becomes text.
    fn values(&mut self, members: &Map<String, Value>, schema: &mut Map<String, Value>) {
        if let Some(value) = members.get("const") {
            schema.insert("const".to_owned(), value.clone());
        }
        let mut values: Vec<Value> = Vec::new();
        let mut known = HashSet::new();
        let mut add = |value: &Value| {
            if known.insert(value.to_string()) {
                values.push(value.clone());
            }
        };
        members.get("enum").and_then(Value::as_array).into_iter().flatten().for_each(&mut add);
        let described = members.get("x-ms-enum");
        let detailed = described.and_then(|described| described.get("values")).and_then(Value::as_array);
        detailed.into_iter().flatten().filter_map(|value| value.get("value")).for_each(&mut add);
        let extensible = members.get("x-extensible-enum").and_then(Value::as_array);
        extensible.into_iter().flatten().for_each(&mut add);
        if values.is_empty() {
            return;
        }
        let may_grow = extensible.is_some()
            || described.is_some_and(|described| described.get("modelAsString") == Some(&Value::Bool(true)));
        if !may_grow {
            schema.insert("enum".to_owned(), Value::Array(values));
            return;
        }
        let words = format!("One of: {}; others possible.", join_values(&values));
        append_description(schema, &words);
    }

    fn items(
        &mut self,
        members: &Map<String, Value>,
        schema: &mut Map<String, Value>,
        trail: &SchemaPath<'_>,
    ) {
        let mut prefix = members.get("prefixItems").and_then(Value::as_array);
        let mut rest = members.get("items");
        if let Some(Value::Array(items)) = rest {
            prefix = Some(items);
            rest = members.get("additionalItems");
        }
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            let within = trail.down("items");
            let items: Vec<Value> = prefix
                .iter()
                .enumerate()
                .map(|(index, item)| self.normalise(item, &within.down(&index.to_string())))
                .collect();
            schema.insert("prefixItems".to_owned(), Value::Array(items));
        }
        for (key, value) in [
            ("items", rest),
            ("contains", members.get("contains")),
            ("unevaluatedItems", members.get("unevaluatedItems")),
        ] {
            if let Some(value @ (Value::Object(_) | Value::Bool(_))) = value {
                let item = self.normalise(value, &trail.down(key));
                schema.insert(key.to_owned(), item);
            }
        }
    }

    fn members(
        &mut self,
        members: &Map<String, Value>,
        schema: &mut Map<String, Value>,
        trail: &SchemaPath<'_>,
    ) {
        for key in ["properties", "dependentSchemas", "patternProperties"] {
            let Some(Value::Object(parts)) = members.get(key) else { continue };
            let within = trail.down(key);
            let mut kept = Map::new();
            for (name, part) in parts {
                if key == "patternProperties" && !self.is_valid_pattern(name, &within) {
                    continue;
                }
                kept.insert(name.clone(), self.normalise(part, &within.down(name)));
            }
            if !kept.is_empty() {
                schema.insert(key.to_owned(), Value::Object(kept));
            }
        }
        for key in ["additionalProperties", "unevaluatedProperties", "propertyNames"] {
            match members.get(key) {
                // Schemas are open by default, but for a map this keyword is the type of its values.
                Some(value @ (Value::Object(_) | Value::Bool(_))) => {
                    let part = self.normalise(value, &trail.down(key));
                    schema.insert(key.to_owned(), part);
                }
                _ => continue,
            }
        }
        if let Some(Value::Object(names)) = members.get("dependentRequired") {
            let is_list =
                |value: &&Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
            let kept: Map<String, Value> = names
                .iter()
                .filter(|(_, value)| is_list(value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            schema.insert("dependentRequired".to_owned(), Value::Object(kept));
        }
    }

    fn choices(
        &mut self,
        members: &Map<String, Value>,
        schema: &mut Map<String, Value>,
        trail: &SchemaPath<'_>,
    ) {
        for key in ["anyOf", "oneOf"] {
            let Some(Value::Array(parts)) = members.get(key) else { continue };
            let within = trail.down(key);
            let choices: Vec<Value> = parts
                .iter()
                .enumerate()
                .map(|(index, part)| self.normalise(part, &within.down(&index.to_string())))
                .collect();
            if !choices.is_empty() {
                schema.insert(key.to_owned(), Value::Array(choices));
            }
        }
        for key in ["not", "if", "then", "else"] {
            if let Some(value @ (Value::Object(_) | Value::Bool(_))) = members.get(key) {
                let part = self.normalise(value, &trail.down(key));
                schema.insert(key.to_owned(), part);
            }
        }
    }

    /// Returns the discriminator in a common form: `propertyName`, and `mapping`
    /// from values to definitions.
    fn discriminator(
        &mut self,
        members: &Map<String, Value>,
        schema: &mut Map<String, Value>,
        trail: &SchemaPath<'_>,
    ) {
        let (property, mapping) = match members.get("discriminator") {
            Some(Value::String(property)) => (property, None),
            Some(Value::Object(found)) => match found.get("propertyName") {
                Some(Value::String(property)) => (property, found.get("mapping").and_then(Value::as_object)),
                _ => return,
            },
            _ => return,
        };
        let mut targets = Map::new();
        for (value, target) in mapping.into_iter().flatten() {
            let Some(target) = target.as_str() else { continue };
            // A mapping contains references to schemas or their names.
            let is_name =
                !target.contains(['/', '#']) && !target.ends_with(".json") && !target.ends_with(".yaml");
            let reference =
                if is_name { format!("#/components/schemas/{target}") } else { target.to_owned() };
            if let Some(name) = self.definition_of_reference(&reference, trail) {
                targets.insert(value.clone(), reference_to(&name));
            }
        }
        schema.insert("discriminator".to_owned(), json!({"propertyName": property, "mapping": targets}));
    }

    /// Returns whether validators support a pattern. Adds a warning if not.
    fn is_valid_pattern(&mut self, pattern: &str, trail: &SchemaPath<'_>) -> bool {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let compiles = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .offline()
            .build(&json!({"pattern": pattern}))
            .is_ok();
        self.patterns.insert(pattern.to_owned(), compiles);
        if !compiles {
            self.warn(
                &trail.spot(),
                &format!(
                    "the pattern `{pattern}` is not a regular expression of JSON Schema, so it is not checked"
                ),
            );
        }
        compiles
    }
}

/// Adds bounds of numbers and lengths. Draft 4 has flags where later drafts have bounds.
fn bounds(members: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let number = |key: &str| members.get(key).filter(|value| value.is_number());
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let is_exclusive = members.get(exclusive) == Some(&Value::Bool(true));
        if let Some(value) = number(bound) {
            schema.insert(if is_exclusive { exclusive } else { bound }.to_owned(), value.clone());
        }
        if let Some(value) = number(exclusive) {
            schema.insert(exclusive.to_owned(), value.clone());
        }
    }
    if let Some(value) = number("multipleOf").filter(|value| value.as_f64().is_some_and(|value| value > 0.0))
    {
        schema.insert("multipleOf".to_owned(), value.clone());
    }
    for key in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    ] {
        if let Some(count) = members.get(key).and_then(count) {
            schema.insert(key.to_owned(), Value::Number(count));
        }
    }
    if members.get("uniqueItems") == Some(&Value::Bool(true)) {
        schema.insert("uniqueItems".to_owned(), Value::Bool(true));
    }
}

fn count(value: &Value) -> Option<Number> {
    if let Some(count) = value.as_u64() {
        return Some(count.into());
    }
    let count = value.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0 && *count < 9e15)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within range"
    )]
    Some(Number::from(count as u64))
}

/// Joins as many values as fit.
pub(super) fn join_values(values: &[Value]) -> String {
    let mut text = String::new();
    for value in values {
        let word = match value {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        if text.len() + word.len() > MAX_VALUES_SHOWN {
            text.push_str(", ...");
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&word);
    }
    text
}

/// Appends a sentence to a description.
pub(super) fn append_description(schema: &mut Map<String, Value>, words: &str) {
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) => format!("{} {words}", text.trim_end()),
        None => words.to_owned(),
    };
    schema.insert("description".to_owned(), Value::String(text));
}
