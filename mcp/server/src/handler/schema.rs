//! JSON Schemas of arguments and results: derivation from types, compilation, validation, error messages.

mod local_time;
mod pattern;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::handler::nearest::{describe_unknown, nearest};
use pattern::CostlyPatterns;

/// The maximum size of a schema.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// The maximum number of violations in one error message.
const MAX_NAMED: usize = 50;
const MAX_VALUE_SHOWN: usize = 80;

/// Returns the schema of a type. Referenced schemas are inlined, except recursive ones.
pub(crate) fn derive<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Returns the schema of the serialised form of a type.
pub(crate) fn derive_output<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    let mut schema = schema.to_value();
    for_each_schema(&mut schema, &mut |members| {
        drop_width(members);
        local_time::drop_format(members);
    });
    schema
}

fn drop_width(members: &mut Map<String, Value>) {
    if members.get("format").and_then(Value::as_str).is_some_and(|f| NUMBER_FORMATS.contains(&f)) {
        members.remove("format");
    }
}

/// Formats for the width of Rust's number types, which JSON does not have.
const NUMBER_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128",
    "uint", "float", "double",
];

/// Whether objects may have members that a derived schema does not describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownMembers {
    Allowed,
    Rejected,
}

/// Returns a derived schema in the form for clients: optional members do not allow null, and numbers
/// have no width.
pub(crate) fn for_clients(schema: &Value, unknown: UnknownMembers) -> Value {
    let mut schema = schema.clone();
    if unknown == UnknownMembers::Rejected {
        forbid_unknown_members(&mut schema, false);
    }
    for_each_schema(&mut schema, &mut |members| {
        drop_width(members);
        local_time::rename_format(members);
        let required = required_of(members);
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            for (name, property) in properties {
                if !required.contains(name) {
                    drop_null(property);
                }
            }
        }
    });
    schema
}

/// Returns a derived schema in the form for validation: numbers must fit their width.
fn for_checking(schema: &Value, unknown: UnknownMembers) -> Value {
    let mut schema = schema.clone();
    for_each_schema(&mut schema, &mut keep_width);
    if unknown == UnknownMembers::Rejected {
        forbid_unknown_members(&mut schema, false);
    }
    schema
}

/// Forbids members that the schema does not describe. A part of a composition does not describe all
/// members, so it is not closed by itself.
fn forbid_unknown_members(schema: &mut Value, is_part: bool) {
    const SAYS_SO: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
    const COMPOSES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
    let Value::Object(members) = schema else { return };
    let has = |keyword: &str| members.contains_key(keyword);
    let says_so = SAYS_SO.into_iter().any(has);
    let describes = has("properties");
    let composes = COMPOSES.into_iter().any(has) || has("$ref") || has("not");
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| forbid_unknown_members(schema, false));
            }
            // Alternatives are closed one by one, unless they are parts beside other properties.
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| forbid_unknown_members(schema, is_part || describes));
            }
            ("prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| forbid_unknown_members(schema, false));
            }
            ("items" | "additionalProperties" | "contains", schema) => forbid_unknown_members(schema, false),
            _ => {}
        }
    }
    if is_part || says_so || !describes {
        return;
    }
    let keyword = if composes { "unevaluatedProperties" } else { "additionalProperties" };
    members.insert(keyword.to_owned(), json!(false));
}

/// Returns the minimum and maximum of a number of this width.
fn width_of(format: &str) -> Option<(Value, Value)> {
    Some(match format {
        "int8" => (json!(i8::MIN), json!(i8::MAX)),
        "int16" => (json!(i16::MIN), json!(i16::MAX)),
        "int32" => (json!(i32::MIN), json!(i32::MAX)),
        "int64" | "int" => (json!(i64::MIN), json!(i64::MAX)),
        "uint8" => (json!(0), json!(u8::MAX)),
        "uint16" => (json!(0), json!(u16::MAX)),
        "uint32" => (json!(0), json!(u32::MAX)),
        "uint64" | "uint" => (json!(0), json!(u64::MAX)),
        "float" => (json!(f32::MIN), json!(f32::MAX)),
        _ => return None,
    })
}

/// Limits `minimum` and `maximum` of a number to its width.
fn keep_width(members: &mut Map<String, Value>) {
    let Some((least, most)) = members.get("format").and_then(Value::as_str).and_then(width_of) else {
        return;
    };
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    if members.get("minimum").is_none_or(|minimum| number(minimum) < number(&least)) {
        members.insert("minimum".to_owned(), least);
    }
    if members.get("maximum").is_none_or(|maximum| number(maximum) > number(&most)) {
        members.insert("maximum".to_owned(), most);
    }
}

/// Adjusts the references of a schema that becomes a part of another one, at this JSON pointer.
pub(crate) fn move_references(schema: &mut Value, place: &str) {
    for_each_schema(schema, &mut |members| {
        if let Some(Value::String(reference)) = members.get_mut("$ref")
            && let Some(rest) = reference.strip_prefix('#')
        {
            *reference = format!("#{place}{rest}");
        }
    });
}

/// Calls `change` with every schema below and including this one, innermost first.
fn for_each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| for_each_schema(schema, change));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| for_each_schema(schema, change));
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains", schema) => {
                for_each_schema(schema, change);
            }
            _ => {}
        }
    }
    change(members);
}

fn required_of(members: &Map<String, Value>) -> Vec<String> {
    let names = members.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns whether a schema allows null.
pub(crate) fn allows_null(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return *schema == json!(true) };
    match members.get("type") {
        Some(Value::String(one)) => one == "null",
        Some(Value::Array(several)) => several.iter().any(|one| one == "null"),
        _ => match members.get("anyOf").and_then(Value::as_array) {
            Some(choices) => choices.iter().any(allows_null),
            None => {
                !["oneOf", "allOf", "enum", "const", "$ref"].iter().any(|word| members.contains_key(*word))
            }
        },
    }
}

/// Removes null from the allowed values, if the schema allows other values too.
fn drop_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            members.insert("type".to_owned(), one);
        }
        if let Some(Value::Array(values)) = members.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
    }
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
        if choices.len() == 1
            && let Some(Value::Object(only)) = choices.pop()
        {
            members.remove("anyOf");
            for (keyword, value) in only {
                members.entry(keyword).or_insert(value);
            }
        }
    }
}

/// A compiled JSON Schema with readable validation errors.
///
/// ```
/// use bindpost_mcp_server::CompiledSchema;
///
/// let schema = serde_json::json!({"properties": {"size": {"type": "integer"}}});
/// let schema = CompiledSchema::compile(&schema).unwrap();
/// let explained = schema.check(&serde_json::json!({"size": "large"})).unwrap_err();
/// assert_eq!(explained, "- /size: \"large\" is not of type \"integer\"");
/// ```
#[derive(Debug)]
pub struct CompiledSchema {
    validator: Validator,
    source: Value,
    has_local_times: bool,
    /// The patterns that need a budget of steps. `None` for nearly all schemas.
    costly: Option<CostlyPatterns>,
}

impl CompiledSchema {
    /// Compiles the schema of a handler's own types. It validates formats too.
    pub(crate) fn compile_derived(schema: &Value, unknown: UnknownMembers) -> Result<CompiledSchema, String> {
        CompiledSchema::compile_as(&for_checking(schema, unknown), true)
    }

    /// Compiles a schema. The default dialect is 2020-12. External references are rejected and never
    /// fetched. Patterns are matched in linear time. Patterns with look-around or back-references have a
    /// budget of steps for each check, and a value that needs more is invalid.
    pub fn compile(schema: &Value) -> Result<CompiledSchema, String> {
        CompiledSchema::compile_as(schema, false)
    }

    fn compile_as(schema: &Value, checks_formats: bool) -> Result<CompiledSchema, String> {
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
        let has_local_times = checks_formats && local_time::is_described_by(schema);
        let options = || {
            let options = jsonschema::options().with_draft(draft).offline();
            let options = match has_local_times {
                true => options
                    .with_format("partial-time", local_time::is_time)
                    .with_format("partial-date-time", local_time::is_date_time),
                false => options,
            };
            options.should_validate_formats(checks_formats)
        };
        // The linear-time engine supports nearly all patterns. This fails for a pattern that it
        // does not support.
        if let Ok(validator) = options().with_pattern_options(PatternOptions::regex()).build(schema) {
            let source = schema.clone();
            return Ok(CompiledSchema { validator, source, has_local_times, costly: None });
        }
        let costly = CostlyPatterns::find_in_schema(schema);
        let tries = PatternOptions::fancy_regex().backtrack_limit(pattern::MOST_TRIES);
        let options = options().with_pattern_options(tries);
        let options = match &costly {
            Some(costly) => options.with_keyword("pattern", costly.keyword()),
            None => options,
        };
        options
            .build(schema)
            .map(|validator| CompiledSchema { validator, source: schema.clone(), has_local_times, costly })
            .map_err(|error| format!("{}: {error}", error.instance_path()))
    }

    /// Converts a value to the form that the types behind the schema decode: a time without a zone may be
    /// written in UTC. Call it before `check`.
    pub(crate) fn normalize(&self, value: &mut Value) {
        if self.has_local_times {
            local_time::drop_utc(&self.source, &self.source, value, 0);
        }
    }

    /// Validates a value. The error has one line for each violation, with its path.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if self.within_budget(value, || self.validator.is_valid(value))? {
            return Ok(());
        }
        let mut lines = Vec::new();
        let errors: Vec<ValidationError<'_>> =
            self.within_budget(value, || self.validator.iter_errors(value).collect())?;
        let is_choice = |error: &ValidationError<'_>| {
            let kind = error.kind();
            matches!(kind, ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::AnyOf { .. })
        };
        // If no alternative matches, the known members are undefined, so unknown ones are not reported.
        let is_idle = |error: &ValidationError<'_>| {
            matches!(error.kind(), ValidationErrorKind::UnevaluatedProperties { .. })
                && errors
                    .iter()
                    .any(|other| is_choice(other) && other.instance_path() == error.instance_path())
        };
        for error in errors.iter().filter(|error| !is_idle(error)) {
            self.explain(error, &mut lines);
        }
        let more = lines.len().saturating_sub(MAX_NAMED);
        lines.truncate(MAX_NAMED);
        if more > 0 {
            lines.push(format!("- and {more} more"));
        }
        Err(lines.join("\n"))
    }

    /// Runs the validator. Returns an error if a pattern needs too many steps.
    fn within_budget<T>(&self, value: &Value, run: impl FnOnce() -> T) -> Result<T, String> {
        let Some(costly) = &self.costly else { return Ok(run()) };
        let refused = |exhausted: pattern::UndecidedMatch| {
            let (place, text) = exhausted.explain(value);
            let place = if place.is_empty() { place } else { format!("{place}: ") };
            Err(format!("- {place}{text}"))
        };
        costly.begin(value);
        if let Some(exhausted) = costly.take_undecided() {
            return refused(exhausted);
        }
        let done = run();
        costly.take_undecided().map_or(Ok(done), refused)
    }

    /// Adds the lines for one violation: where it is, what is wrong, and what would be valid.
    fn explain(&self, error: &ValidationError<'_>, lines: &mut Vec<String>) {
        let instance = error.instance();
        let text = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => self.unknown(error, unexpected, true),
            // Other parts of the schema describe more members than those beside it.
            ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                self.unknown(error, unexpected, false)
            }
            ValidationErrorKind::Format { format } if local_time::expectation(format).is_some() => {
                format!("{instance} is not {}", local_time::expectation(format).unwrap_or_default())
            }
            ValidationErrorKind::Enum { options } => {
                format!("{instance} is not one of {}", join_values(options.as_array().into_iter().flatten()))
            }
            ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
                // The intended alternative has the same type and the same constants. Null is never intended.
                let path = error.instance_path();
                let is_another = |error: &ValidationError<'_>| match error.kind() {
                    ValidationErrorKind::Type { .. } => error.instance_path() == path,
                    ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => true,
                    _ => false,
                };
                let meant = context.iter().filter(|errors| !errors.iter().any(is_another));
                if let Some(errors) = meant.min_by_key(|errors| errors.len()) {
                    return errors.iter().for_each(|error| self.explain(error, lines));
                }
                let choices = || context.iter().flatten().filter(|error| !constants_of(error).is_empty());
                let Some(first) = choices().next() else {
                    return lines.push(violation_line(error.instance_path(), &error.to_string()));
                };
                let constants = choices().flat_map(constants_of);
                let text = format!("{} is not one of {}", first.instance(), join_values(constants));
                return lines.push(violation_line(first.instance_path(), &text));
            }
            _ => error.to_string(),
        };
        lines.push(violation_line(error.instance_path(), &text));
    }

    /// Returns the message for unknown members. `all` means that the members beside them are the
    /// only valid ones.
    fn unknown(&self, error: &ValidationError<'_>, unexpected: &[String], all: bool) -> String {
        let known = self.names_beside(error);
        let unknown = |name: &String| match nearest(name, &known) {
            None if !all => format!("{name:?} is unknown here"),
            None if known.is_empty() => format!("{name:?} is unknown; no members are allowed here"),
            _ => describe_unknown(name, &known),
        };
        unexpected.iter().map(unknown).collect::<Vec<_>>().join("; ")
    }

    /// Returns the names of the properties that the schema describes beside an unknown one.
    fn names_beside(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let path = error.schema_path().to_string();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.source.pointer(parent).and_then(|schema| schema.get("properties"));
        properties.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

/// Formats one violation with its path.
fn violation_line(path: &jsonschema::paths::Location, text: &str) -> String {
    let path = path.to_string();
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("- {place}{}", shorten(text))
}

/// Returns the constants that would have been valid.
fn constants_of<'a>(error: &'a ValidationError<'_>) -> Vec<&'a Value> {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => vec![expected_value],
        ValidationErrorKind::Enum { options } => options.as_array().into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}

fn join_values<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let values: Vec<String> =
        values.into_iter().filter(|value| !value.is_null()).map(Value::to_string).collect();
    values.join(", ")
}

/// Shortens a long error message in the middle, because it can contain the invalid value.
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
        let schema = CompiledSchema::compile(&json!({"type": "object", "required": ["b", "c"],
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
    fn rejects_external_references_and_unknown_dialects() {
        for (schema, why) in [
            (json!({"$ref": "https://example.com/schema"}), "example.com"),
            (json!({"$ref": "file:///etc/passwd"}), "passwd"),
            (json!({"$schema": "https://example.com/my-dialect"}), "unknown JSON Schema dialect"),
            (json!({"type": 7}), "type"),
            (json!({"$ref": "#/$defs/missing"}), "missing"),
        ] {
            let error = CompiledSchema::compile(&schema).unwrap_err();
            assert!(error.contains(why), "{schema}: {error}");
        }
    }

    #[test]
    fn a_long_value_is_shortened_and_a_costly_pattern_ends() {
        let schema = CompiledSchema::compile(&json!({"type": "number"})).unwrap();
        assert!(schema.check(&json!("x".repeat(100_000))).unwrap_err().len() < 1000);
        let schema = CompiledSchema::compile(&json!({"pattern": "^(a+)+(?=b)$"})).unwrap();
        assert!(schema.check(&json!("a".repeat(5_000))).is_err());
    }
}
