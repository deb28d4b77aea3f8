//! Whole schemas for one direction.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::keywords::{append_description, join_values};
use super::{DEFINITIONS, SchemaPurpose, is_alias, referenced_definition};
use crate::document::Document;

/// The maximum number of definitions that are searched for one name.
const MAX_HOPS: usize = 16;
/// The maximum number of values that become text in the schema of a response.
const MAX_VALUES: usize = 12;

impl Document {
    /// Returns a schema with all referenced definitions under `$defs`, including
    /// the subtypes of discriminators.
    ///
    /// [`SchemaPurpose::Input`] removes read-only members. [`SchemaPurpose::Output`] removes write-only
    /// members, requires no member, allows null everywhere below the top level, and accepts values,
    /// members and subtypes that the document does not define.
    pub fn whole_schema(&self, schema: &Value, purpose: SchemaPurpose) -> Value {
        SchemaProjection::new(self, Some(purpose)).whole(schema)
    }

    /// Returns a definition with all definitions it references, as in the document. `readOnly` and
    /// `writeOnly` mark the direction of members.
    pub fn definition(&self, name: &str) -> Option<Value> {
        let schema = self.definitions.get(name)?;
        Some(SchemaProjection::new(self, None).whole(schema))
    }

    /// Resolves references and returns the schema with the name of its definition.
    pub(crate) fn resolved<'a>(&'a self, schema: &'a Value) -> (&'a Value, Option<&'a str>) {
        let mut found = (schema, None);
        for _ in 0..MAX_HOPS {
            if !is_alias(found.0) {
                break;
            }
            let Some(name) = referenced_definition(found.0) else { break };
            let Some(definition) = self.definitions.get(name) else { break };
            found = (definition, Some(name));
        }
        found
    }
}

pub(super) struct SchemaProjection<'a> {
    document: &'a Document,
    /// The direction, or `None` for both.
    purpose: Option<SchemaPurpose>,
    reached: BTreeSet<String>,
    waiting: Vec<String>,
}

impl<'a> SchemaProjection<'a> {
    pub(super) fn new(document: &'a Document, purpose: Option<SchemaPurpose>) -> SchemaProjection<'a> {
        SchemaProjection { document, purpose, reached: BTreeSet::new(), waiting: Vec::new() }
    }

    fn whole(mut self, schema: &Value) -> Value {
        let (found, _) = self.document.resolved(schema);
        let mut whole = self.schema(found, true);
        if let (Some(members), Some(text)) = (whole.as_object_mut(), schema.get("description")) {
            members.insert("description".to_owned(), text.clone());
        }
        let mut definitions = Map::new();
        while let Some(name) = self.waiting.pop() {
            let schema = match self.document.definitions.get(&name) {
                Some(schema) => self.schema(schema, false),
                None => json!({}),
            };
            definitions.insert(name, schema);
        }
        match &mut whole {
            Value::Object(members) if !definitions.is_empty() => {
                members.insert("$defs".to_owned(), Value::Object(definitions));
            }
            Value::Bool(true) => whole = json!({}),
            Value::Bool(false) => whole = json!({"not": {}}),
            _ => {}
        }
        whole
    }

    fn is_for(&self, purpose: SchemaPurpose) -> bool {
        self.purpose == Some(purpose)
    }

    fn schema(&mut self, schema: &Value, is_top: bool) -> Value {
        let Value::Object(members) = schema else {
            return if self.is_for(SchemaPurpose::Output) { json!({}) } else { schema.clone() };
        };
        let hidden = self.hidden(schema);
        let mut result = Map::new();
        for (key, value) in members {
            self.keyword(key, value, &hidden, &mut result);
        }
        match self.purpose {
            Some(SchemaPurpose::Input) => self.loosen_choice(members, &mut result),
            Some(SchemaPurpose::Output) => self.loosen_output(members, &mut result, is_top),
            None => {}
        }
        Value::Object(result)
    }

    fn keyword(
        &mut self,
        key: &str,
        value: &Value,
        hidden: &HashSet<String>,
        result: &mut Map<String, Value>,
    ) {
        /// Keywords that are not enforced in responses.
        const DEMANDS: [&str; 27] = [
            "required",
            "enum",
            "const",
            "pattern",
            "format",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
            "uniqueItems",
            "dependentRequired",
            "dependentSchemas",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
        ];
        const OPEN_ONLY: [&str; 4] = ["unevaluatedProperties", "unevaluatedItems", "default", "examples"];
        let is_output = self.is_for(SchemaPurpose::Output);
        if is_output && (DEMANDS.contains(&key) || OPEN_ONLY.contains(&key)) {
            return;
        }
        let kept = match (key, value) {
            ("discriminator", _) => return,
            ("readOnly", _) if self.is_for(SchemaPurpose::Input) => return,
            ("readOnly" | "writeOnly", _) if is_output => return,
            ("$ref", Value::String(reference)) => {
                if let Some(name) = reference.strip_prefix(DEFINITIONS)
                    && self.reached.insert(name.to_owned())
                {
                    self.waiting.push(name.to_owned());
                }
                value.clone()
            }
            ("properties", Value::Object(parts)) => {
                let mut kept = Map::new();
                for (name, part) in parts {
                    if !hidden.contains(name) {
                        kept.insert(name.clone(), self.schema(part, false));
                    }
                }
                Value::Object(kept)
            }
            ("patternProperties" | "dependentSchemas", Value::Object(parts)) => Value::Object(
                parts.iter().map(|(name, part)| (name.clone(), self.schema(part, false))).collect(),
            ),
            ("required", Value::Array(names)) => {
                let kept: Vec<&Value> = names
                    .iter()
                    .filter(|name| !name.as_str().is_some_and(|name| hidden.contains(name)))
                    .collect();
                if kept.is_empty() {
                    return;
                }
                json!(kept)
            }
            ("items" | "additionalProperties", Value::Bool(_)) if is_output => return,
            ("allOf", Value::Array(parts)) => {
                Value::Array(parts.iter().map(|part| self.part(part, hidden)).collect())
            }
            ("prefixItems" | "anyOf" | "oneOf", Value::Array(parts)) => {
                Value::Array(parts.iter().map(|part| self.schema(part, false)).collect())
            }
            (
                "items"
                | "additionalProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                part,
            ) => self.schema(part, false),
            _ => value.clone(),
        };
        result.insert(key.to_owned(), kept);
    }

    /// Projects one of several parts that all apply. A member that one part hides is not required by any.
    fn part(&mut self, part: &Value, hidden: &HashSet<String>) -> Value {
        let mut part = self.schema(part, false);
        if let Some(Value::Array(names)) = part.get_mut("required") {
            names.retain(|name| !name.as_str().is_some_and(|name| hidden.contains(name)));
        }
        part
    }

    /// Returns the members that are hidden in this direction.
    fn hidden(&self, schema: &Value) -> HashSet<String> {
        let mut hidden = HashSet::new();
        let key = match self.purpose {
            Some(SchemaPurpose::Input) => "readOnly",
            Some(SchemaPurpose::Output) => "writeOnly",
            None => return hidden,
        };
        self.collect_hidden(schema, key, 0, &mut hidden);
        hidden
    }

    fn collect_hidden(&self, schema: &Value, key: &str, depth: usize, hidden: &mut HashSet<String>) {
        let is_marked = |part: &Value| part.get(key) == Some(&Value::Bool(true));
        for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if is_marked(part) || is_marked(self.document.resolved(part).0) {
                hidden.insert(name.clone());
            }
        }
        if depth < 4 {
            for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
                self.collect_hidden(self.document.resolved(part).0, key, depth + 1, hidden);
            }
        }
    }

    /// Replaces `oneOf` with `anyOf`, unless a discriminator makes the branches exclusive. Documents use
    /// `oneOf` for overlapping branches.
    fn loosen_choice(&self, members: &Map<String, Value>, result: &mut Map<String, Value>) {
        if members.contains_key("discriminator") {
            return;
        }
        let Some(choices) = result.remove("oneOf") else { return };
        match result.remove("anyOf") {
            None => {
                result.insert("anyOf".to_owned(), choices);
            }
            Some(others) => {
                let parts = result.entry("allOf").or_insert_with(|| json!([]));
                if let Value::Array(parts) = parts {
                    parts.push(json!({"anyOf": choices}));
                    parts.push(json!({"anyOf": others}));
                }
            }
        }
    }

    /// Loosens the schema to accept what services actually return.
    fn loosen_output(&self, members: &Map<String, Value>, result: &mut Map<String, Value>, is_top: bool) {
        let values = match (members.get("const"), members.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => Vec::new(),
        };
        if (1..=MAX_VALUES).contains(&values.len()) {
            append_description(result, &format!("Known: {}.", join_values(&values)));
        }
        let mut choices = Vec::new();
        for key in ["oneOf", "anyOf"] {
            if let Some(Value::Array(found)) = result.remove(key) {
                choices.push(found);
            }
        }
        if let [one] = choices.as_mut_slice() {
            let mut choices = std::mem::take(one);
            if members.contains_key("discriminator") {
                let kind = if is_top { json!("object") } else { json!(["object", "null"]) };
                choices.push(json!({"type": kind}));
            }
            // Branches may become equal when their requirements are removed.
            let mut distinct: Vec<Value> = Vec::new();
            for choice in choices {
                if !distinct.contains(&choice) {
                    distinct.push(choice);
                }
            }
            result.insert("anyOf".to_owned(), Value::Array(distinct));
        }
        if !is_top {
            match result.get_mut("type") {
                Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => {
                    kinds.push(json!("null"))
                }
                Some(kind @ Value::String(_)) if kind != "null" => *kind = json!([kind.clone(), "null"]),
                _ => {}
            }
        }
    }
}
