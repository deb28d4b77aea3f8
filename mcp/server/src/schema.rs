//! Argument schemas: compile once, validate, explain.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The largest schema that is compiled, and how many of its violations are named in one answer.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
const MAX_NAMED: usize = 50;
const MAX_VALUE_SHOWN: usize = 80;

/// A compiled JSON Schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
}

impl Schema {
    /// Compiles a schema: 2020-12 unless it names another dialect. References outside it are refused,
    /// never fetched.
    pub(crate) fn compile(schema: &Value) -> Result<Schema, String> {
        if schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err(format!("the schema is larger than {MAX_SCHEMA_BYTES} bytes"));
        }
        let draft = match schema.get("$schema").and_then(Value::as_str) {
            None => Draft::Draft202012,
            Some(dialect) => match dialect.trim_end_matches('#') {
                "https://json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
                "https://json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
                "http://json-schema.org/draft-07/schema" => Draft::Draft7,
                "http://json-schema.org/draft-06/schema" => Draft::Draft6,
                "http://json-schema.org/draft-04/schema" => Draft::Draft4,
                other => return Err(format!("unknown JSON Schema dialect {other:?}")),
            },
        };
        jsonschema::options()
            .with_draft(draft)
            .offline()
            // A pattern must not take exponential time on an argument made for it.
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(10_000))
            .build(schema)
            .map(|validator| Schema { validator })
            .map_err(|error| format!("{}: {error}", error.instance_path()))
    }

    /// Every violation with its path, one line each; `Ok` if there is none.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let mut lines = Vec::new();
        let mut more = 0;
        for error in self.validator.iter_errors(value) {
            if lines.len() == MAX_NAMED {
                more += 1;
                continue;
            }
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
            lines.push(format!("- {place}{}", shorten(&error.to_string())));
        }
        if more > 0 {
            lines.push(format!("- and {more} more"));
        }
        Err(lines.join("\n"))
    }
}

/// An error repeats what it is about; a long one is cut in the middle.
pub(crate) fn shorten(message: &str) -> String {
    let count = message.chars().count();
    if count <= 4 * MAX_VALUE_SHOWN {
        return message.to_owned();
    }
    let head: String = message.chars().take(2 * MAX_VALUE_SHOWN).collect();
    let tail: String = message.chars().skip(count - 2 * MAX_VALUE_SHOWN).collect();
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_every_violation_with_its_path() {
        let schema = Schema::compile(&json!({"type": "object", "required": ["b", "c"],
            "properties": {"a": {"type": "number"}, "l": {"items": {"minimum": 1}}}}))
        .unwrap();
        let explained = schema.check(&json!({"a": "x", "l": [1, 0]})).unwrap_err();
        assert_eq!(
            explained.lines().collect::<std::collections::BTreeSet<_>>(),
            [
                "- \"b\" is a required property",
                "- \"c\" is a required property",
                "- /a: \"x\" is not of type \"number\"",
                "- /l/1: 0 is less than the minimum of 1",
            ]
            .into()
        );
    }

    #[test]
    fn refuses_what_it_would_have_to_fetch_or_does_not_know() {
        for (schema, why) in [
            (json!({"$ref": "https://example.com/schema"}), "example.com"),
            (json!({"$ref": "file:///etc/passwd"}), "passwd"),
            (json!({"$schema": "https://example.com/my-dialect"}), "unknown JSON Schema dialect"),
            (json!({"type": 7}), "type"),
            (json!({"$ref": "#/$defs/missing"}), "missing"),
        ] {
            let error = Schema::compile(&schema).unwrap_err();
            assert!(error.contains(why), "{schema}: {error}");
        }
    }

    #[test]
    fn a_long_value_is_cut_and_a_hostile_pattern_ends() {
        let schema = Schema::compile(&json!({"type": "number"})).unwrap();
        assert!(schema.check(&json!("x".repeat(100_000))).unwrap_err().len() < 1000);
        let schema = Schema::compile(&json!({"pattern": "^(a+)+(?=b)$"})).unwrap();
        assert!(schema.check(&json!("a".repeat(5_000))).is_err());
    }
}
