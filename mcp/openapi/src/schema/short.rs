//! Short schemas, for a model's context.

use serde_json::{Map, Value, json};

use super::{SchemaPurpose, is_alias, referenced_definition};
use crate::document::Document;

/// The maximum size of a short schema, as JSON.
const MAX_BYTES: usize = 1_500;
/// The maximum length of a member's description.
const MAX_WORDS: usize = 100;
/// The maximum number of nested single choices that are followed.
const MAX_HOPS: usize = 8;
/// The maximum number of values that are shown.
const MAX_VALUES: usize = 8;

impl Document {
    /// Returns a short form: the members at the top level with their types, and the addresses of the
    /// schemas below.
    ///
    /// `scheme` is the URI scheme of the resources that contain whole definitions: `SCHEME-schema://NAME`.
    pub fn short_schema(&self, schema: &Value, purpose: SchemaPurpose, scheme: &str) -> Value {
        let (found, name) = self.resolved(schema);
        let short = SchemaShortener { document: self, purpose, scheme };
        // The detail is reduced until the schema fits.
        let mut result = Value::Null;
        for words in [MAX_WORDS, 48, 0] {
            result = short.top(found, name, words, false);
            if result.to_string().len() <= MAX_BYTES {
                return result;
            }
        }
        let bare = short.top(found, name, 0, true);
        if bare.to_string().len() <= MAX_BYTES {
            return bare;
        }
        short.keep_required_first(result, name)
    }
}

struct SchemaShortener<'a> {
    document: &'a Document,
    purpose: SchemaPurpose,
    scheme: &'a str,
}

impl SchemaShortener<'_> {
    /// Returns the top level of a schema. `bare` keeps only types.
    fn top(&self, schema: &Value, name: Option<&str>, words: usize, bare: bool) -> Value {
        let Some(properties) = self.properties(schema) else {
            return self.below(schema, name, 0, true);
        };
        let mut members = Map::new();
        for (key, property) in properties {
            members.insert(key.clone(), self.member(property, words, bare));
        }
        let mut result = Map::new();
        result.insert("type".to_owned(), json!("object"));
        if let Some(name) = name {
            result.insert("description".to_owned(), json!(format!("{name}: see {}", self.address(name))));
        }
        if self.purpose == SchemaPurpose::Input
            && let Some(Value::Array(required)) = schema.get("required")
        {
            let kept: Vec<&Value> = required
                .iter()
                .filter(|name| name.as_str().is_some_and(|name| members.contains_key(name)))
                .collect();
            if !kept.is_empty() {
                result.insert("required".to_owned(), json!(kept));
            }
        }
        result.insert("properties".to_owned(), Value::Object(members));
        Value::Object(result)
    }

    /// Returns the members of a plain object for this direction.
    fn properties<'b>(&self, schema: &'b Value) -> Option<Vec<(&'b String, &'b Value)>>
    where
        Self: 'b,
    {
        let hidden = if self.purpose == SchemaPurpose::Input { "readOnly" } else { "writeOnly" };
        let is_hidden = |part: &Value| {
            let is_marked = |part: &Value| part.get(hidden) == Some(&Value::Bool(true));
            is_marked(part) || is_marked(self.document.resolved(part).0)
        };
        let is_choice = schema.get("discriminator").is_some();
        let properties = schema.get("properties").and_then(Value::as_object).filter(|_| !is_choice)?;
        Some(properties.iter().filter(|(_, part)| !is_hidden(part)).collect())
    }

    fn member(&self, schema: &Value, words: usize, bare: bool) -> Value {
        let mut result = self.below(schema, None, 0, false);
        let Value::Object(members) = &mut result else { return result };
        if bare {
            members.retain(|key, _| key == "type");
            return result;
        }
        let (found, _) = self.document.resolved(schema);
        let text = schema.get("description").or_else(|| found.get("description")).and_then(Value::as_str);
        if words > 0
            && let Some(text) = text.map(|text| first_sentence(text, words)).filter(|text| !text.is_empty())
        {
            let text = match members.get("description").and_then(Value::as_str) {
                Some(more) => format!("{text} {more}"),
                None => text,
            };
            members.insert("description".to_owned(), json!(text));
        }
        result
    }

    /// Returns a schema reduced to its type. An object gets the address of its whole schema.
    fn below(&self, schema: &Value, name: Option<&str>, depth: usize, is_top: bool) -> Value {
        let (found, resolved) = self.document.resolved(schema);
        let name = name.or(resolved);
        let may_be_null = self.purpose == SchemaPurpose::Output && !is_top;
        let mut result = Map::new();
        let choices = ["oneOf", "anyOf"].into_iter().find_map(|key| found.get(key)?.as_array());
        let kind = found.get("type").cloned();
        let is_object = kind.as_ref().is_some_and(|kind| has_kind(kind, "object"))
            || found.get("properties").is_some()
            || found.get("discriminator").is_some();
        if let Some(choices) = choices
            && kind.is_none()
            && found.get("discriminator").is_none()
            && depth < MAX_HOPS
        {
            // Usually this is one schema and null.
            let real: Vec<&Value> =
                choices.iter().filter(|choice| choice.get("type") != Some(&json!("null"))).collect();
            if let [single] = real.as_slice()
                && !std::ptr::eq(*single, schema)
                && (is_alias(single) || single.get("type").is_some())
            {
                let mut inner = self.below(single, name, depth + 1, is_top);
                if real.len() < choices.len()
                    && let Some(kind) = inner.get_mut("type")
                {
                    *kind = with_null(kind);
                }
                return inner;
            }
        }
        if is_object {
            result.insert(
                "type".to_owned(),
                if may_be_null { json!(["object", "null"]) } else { kind.unwrap_or_else(|| json!("object")) },
            );
            if let Some(text) = self.pointer(found, name) {
                result.insert("description".to_owned(), json!(text));
            }
            return Value::Object(result);
        }
        if let Some(kind) = &kind {
            result.insert("type".to_owned(), if may_be_null { with_null(kind) } else { kind.clone() });
        }
        if kind.as_ref().is_some_and(|kind| has_kind(kind, "array")) {
            let items = found.get("items").filter(|items| items.is_object());
            if let Some(items) = items {
                // Lists of lists end here. Only the whole schema contains their items.
                let (inner, inner_name) = self.document.resolved(items);
                let is_list = inner.get("type").is_some_and(|kind| has_kind(kind, "array"));
                let shown = if is_list {
                    json!({"type": "array"})
                } else {
                    self.below(items, inner_name, depth + 1, false)
                };
                result.insert("items".to_owned(), shown);
            }
        } else if self.purpose == SchemaPurpose::Input
            && let Some(values) = found.get("enum").and_then(Value::as_array)
            && values.len() <= MAX_VALUES
        {
            result.insert("enum".to_owned(), json!(values));
        } else if kind.is_none()
            && let Some(name) = name
        {
            result.insert("description".to_owned(), json!(format!("{name}: see {}", self.address(name))));
        }
        Value::Object(result)
    }

    fn pointer(&self, schema: &Value, name: Option<&str>) -> Option<String> {
        if let Some(name) = name {
            return Some(format!("{name}: see {}", self.address(name)));
        }
        let names: Vec<&str> = match self.properties(schema) {
            Some(properties) => properties.into_iter().map(|(name, _)| name.as_str()).collect(),
            None => ["oneOf", "anyOf"]
                .into_iter()
                .filter_map(|key| schema.get(key)?.as_array())
                .flatten()
                .filter_map(referenced_definition)
                .collect(),
        };
        (!names.is_empty()).then(|| first_sentence(&format!("With {}", names.join(", ")), MAX_WORDS))
    }

    /// Keeps the required members first, then as many others as fit.
    fn keep_required_first(&self, full: Value, name: Option<&str>) -> Value {
        let required = full.get("required").cloned().unwrap_or_else(|| json!([]));
        let see = name.map_or_else(String::new, |name| format!("; see {}", self.address(name)));
        let Value::Object(mut result) = full else { return full };
        let Some(Value::Object(properties)) = result.remove("properties") else {
            return Value::Object(result);
        };
        let is_required =
            |key: &String| required.as_array().is_some_and(|names| names.iter().any(|name| name == key));
        let mut kept = Map::new();
        let mut bytes = 120 + see.len();
        let (first, then): (Vec<_>, Vec<_>) = properties.into_iter().partition(|(key, _)| is_required(key));
        let all = first.len() + then.len();
        for (key, property) in first.into_iter().chain(then) {
            let property = match property.get("type") {
                Some(kind) => json!({"type": kind}),
                None => json!({}),
            };
            // A required member is named twice.
            let name = json!(key).to_string().len() + 1;
            bytes += name + property.to_string().len() + 1 + if is_required(&key) { name } else { 0 };
            if bytes > MAX_BYTES {
                break;
            }
            kept.insert(key, property);
        }
        if let Some(Value::Array(names)) = result.get_mut("required") {
            names.retain(|name| name.as_str().is_some_and(|name| kept.contains_key(name)));
        }
        let left = all - kept.len();
        result.insert("description".to_owned(), json!(format!("{left} more members{see}")));
        result.insert("properties".to_owned(), Value::Object(kept));
        Value::Object(result)
    }

    fn address(&self, name: &str) -> String {
        format!("{}-schema://{name}", self.scheme)
    }
}

fn has_kind(kind: &Value, wanted: &str) -> bool {
    kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
}

fn with_null(kind: &Value) -> Value {
    match kind {
        Value::String(kind) if kind != "null" => json!([kind, "null"]),
        Value::Array(kinds) if !kinds.iter().any(|kind| kind == "null") => {
            let mut kinds = kinds.clone();
            kinds.push(json!("null"));
            Value::Array(kinds)
        }
        kind => kind.clone(),
    }
}

/// Returns the first sentence of a text, or as many of its words as fit.
fn first_sentence(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let sentence = line.find(". ").and_then(|end| line.get(..=end)).unwrap_or(line);
    if sentence.len() <= most {
        return sentence.to_owned();
    }
    let mut end = most.saturating_sub(3);
    while !sentence.is_char_boundary(end) {
        end -= 1;
    }
    let cut = sentence.get(..end).unwrap_or_default();
    let cut = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    format!("{cut}...")
}
