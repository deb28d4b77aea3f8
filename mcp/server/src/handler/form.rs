//! [`FormSchema`]: the schema of an elicitation form, derived from a type.
//!
//! The protocol allows flat objects only: texts, numbers, booleans, and one or several of a list of texts.

use bindpost_mcp_protocol::Revision;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::handler::schema::{self, CompiledSchema, UnknownMembers};

/// The formats of texts that forms support.
const TEXT_FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The schema of a form, in the form for clients and in the form for validation.
#[derive(Debug)]
pub(crate) struct FormSchema {
    /// The schema that the client gets.
    pub(crate) requested: Value,
    /// The schema of the type, with everything that forms cannot express.
    pub(crate) check: CompiledSchema,
}

impl FormSchema {
    /// Derives the form of a type. The error names the field that a form cannot contain.
    pub(crate) fn derive<T: JsonSchema>(revision: Revision) -> Result<FormSchema, String> {
        let derived = schema::derive::<T>();
        let name = T::schema_name();
        let problem = |text: String| format!("{name} cannot be a form: {text}");
        let shown = schema::for_clients(&derived, UnknownMembers::Allowed);
        let Some(properties) = shown.get("properties").and_then(Value::as_object) else {
            return Err(problem("a form is a struct with named fields".to_owned()));
        };
        let mut fields = Map::new();
        for (field, property) in properties {
            let property = form_field(property, revision)
                .map_err(|reason| problem(format!("the field {field:?} {reason}")))?;
            fields.insert(field.clone(), property);
        }
        let mut requested = json!({"type": "object", "properties": fields});
        if let Some(required) = shown.get("required") {
            requested["required"] = required.clone();
        }
        let check = CompiledSchema::compile_derived(&derived, UnknownMembers::Rejected).map_err(problem)?;
        Ok(FormSchema { requested, check })
    }
}

/// Converts the schema of a field to the subset that forms support.
fn form_field(property: &Value, revision: Revision) -> Result<Value, String> {
    let copy = |names: &[&str], into: &mut Map<String, Value>| {
        for name in names {
            if let Some(value) = property.get(name) {
                into.insert((*name).to_owned(), value.clone());
            }
        }
    };
    let mut field = Map::new();
    copy(&["title", "description"], &mut field);
    if revision.has_form_defaults() || property["type"] == "boolean" {
        copy(&["default"], &mut field);
    }
    if let Some(choices) = FormChoices::read(property) {
        field.insert("type".to_owned(), json!("string"));
        choices.write_single(&mut field, revision);
        return Ok(Value::Object(field));
    }
    let Some(kind) = property.get("type").and_then(Value::as_str) else {
        return Err("has no single type; use a text, a number, a boolean or an enum without data".to_owned());
    };
    field.insert("type".to_owned(), json!(kind));
    match kind {
        "string" => {
            copy(&["minLength", "maxLength"], &mut field);
            if let Some(format) = property["format"].as_str().filter(|format| TEXT_FORMATS.contains(format)) {
                field.insert("format".to_owned(), json!(format));
            }
        }
        "integer" | "number" => copy(&["minimum", "maximum"], &mut field),
        "boolean" => {}
        "array" => {
            let choices = property.get("items").and_then(FormChoices::read);
            let Some(choices) = choices else {
                return Err("is a list; a form has lists only of the values of an enum".to_owned());
            };
            if !revision.has_multiple_choices() {
                return Err(format!("is a list, which forms have since 2025-11-25, not in {revision}"));
            }
            copy(&["minItems", "maxItems"], &mut field);
            field.insert("items".to_owned(), choices.items());
        }
        other => return Err(format!("is of type {other}; forms are flat")),
    }
    Ok(Value::Object(field))
}

/// The values of an enum, each with its title.
struct FormChoices(Vec<(String, Option<String>)>);

impl FormChoices {
    /// Reads the schema of an enum without data. Returns `None` for other types.
    fn read(schema: &Value) -> Option<FormChoices> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values
                .iter()
                .map(|value| Some((text(value)?, None)))
                .collect::<Option<_>>()
                .map(FormChoices);
        }
        if let Some(only) = schema.get("const") {
            let title = schema.get("title").or_else(|| schema.get("description")).and_then(text);
            return Some(FormChoices(vec![(text(only)?, title)]));
        }
        let alternatives = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        let read = alternatives.iter().map(|alternative| FormChoices::read(alternative).map(|it| it.0));
        read.collect::<Option<Vec<_>>>().map(|choices| FormChoices(choices.concat()))
    }

    fn is_titled(&self) -> bool {
        self.0.iter().any(|(_, title)| title.is_some())
    }

    fn values(&self) -> Vec<&str> {
        self.0.iter().map(|(value, _)| value.as_str()).collect()
    }

    fn titles(&self) -> Vec<&str> {
        self.0.iter().map(|(value, title)| title.as_deref().unwrap_or(value)).collect()
    }

    fn titled(&self) -> Value {
        self.values()
            .iter()
            .zip(self.titles())
            .map(|(value, title)| json!({"const": value, "title": title}))
            .collect()
    }

    /// Adds the keywords of a single choice.
    fn write_single(&self, field: &mut Map<String, Value>, revision: Revision) {
        if !self.is_titled() {
            field.insert("enum".to_owned(), json!(self.values()));
        } else if revision.has_multiple_choices() {
            field.insert("oneOf".to_owned(), self.titled());
        } else {
            field.insert("enum".to_owned(), json!(self.values()));
            field.insert("enumNames".to_owned(), json!(self.titles()));
        }
    }

    /// Returns the schema of the items of a multiple choice.
    fn items(&self) -> Value {
        match self.is_titled() {
            true => json!({"anyOf": self.titled()}),
            false => json!({"type": "string", "enum": self.values()}),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(dead_code, reason = "only the schemas of the types are used")]

    use super::*;

    #[derive(JsonSchema)]
    struct Booking {
        /// The name of the guest
        #[schemars(length(min = 1, max = 80))]
        name: String,
        #[schemars(email)]
        email: Option<String>,
        #[schemars(range(min = 1, max = 12))]
        guests: u8,
        #[schemars(regex(pattern = "^[A-Z]+$"))]
        code: Option<String>,
        seat: Seat,
        extras: Vec<Extra>,
        terms: bool,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Seat {
        /// By the window
        Window,
        /// Outside
        Terrace,
    }

    #[derive(JsonSchema)]
    enum Extra {
        Cake,
        Candles,
    }

    #[derive(JsonSchema)]
    struct Nested {
        seat: Vec<String>,
    }

    #[derive(JsonSchema)]
    struct Deep {
        inner: Nested,
    }

    #[test]
    fn a_form_has_only_the_keywords_of_forms() {
        let form = FormSchema::derive::<Booking>(Revision::V2025_11_25).unwrap();
        let expected = json!({"type": "object", "required": ["name", "guests", "seat", "extras", "terms"],
            "properties": {
            "name": {"type": "string", "description": "The name of the guest", "minLength": 1, "maxLength": 80},
            "email": {"type": "string", "format": "email"},
            "guests": {"type": "integer", "minimum": 1, "maximum": 12},
            "code": {"type": "string"},
            "seat": {"type": "string", "oneOf": [{"const": "window", "title": "By the window"},
                {"const": "terrace", "title": "Outside"}]},
            "extras": {"type": "array", "items": {"type": "string", "enum": ["Cake", "Candles"]}},
            "terms": {"type": "boolean"}}});
        assert_eq!(form.requested, expected);
        // What the form cannot say is validated all the same.
        let mut answer =
            json!({"name": "A", "guests": 2, "seat": "window", "extras": [], "terms": true, "code": "x"});
        assert!(form.check.check(&answer).unwrap_err().contains("/code"));
        answer["code"] = json!("X");
        form.check.check(&answer).unwrap();
    }

    #[test]
    fn older_revisions_get_names_of_enums_and_no_lists() {
        #[derive(JsonSchema)]
        struct Choice {
            seat: Seat,
        }
        let form = FormSchema::derive::<Choice>(Revision::V2025_06_18).unwrap();
        let expected = json!({"type": "string", "enum": ["window", "terrace"], "enumNames": ["By the window", "Outside"]});
        assert_eq!(form.requested["properties"]["seat"], expected);
        let refused = FormSchema::derive::<Booking>(Revision::V2025_06_18).unwrap_err();
        let expected = "Booking cannot be a form: the field \"extras\" is a list, which forms have since 2025-11-25, \
                        not in 2025-06-18";
        assert_eq!(refused, expected);
    }

    #[test]
    fn what_is_no_form_is_named() {
        let refused = |form: Result<FormSchema, String>| form.unwrap_err();
        let newest = Revision::V2026_07_28;
        let expected = "Deep cannot be a form: the field \"inner\" is of type object; forms are flat";
        assert_eq!(refused(FormSchema::derive::<Deep>(newest)), expected);
        let expected = "Nested cannot be a form: the field \"seat\" is a list; a form has lists only of the values of an enum";
        assert_eq!(refused(FormSchema::derive::<Nested>(newest)), expected);
        let expected = "string cannot be a form: a form is a struct with named fields";
        assert_eq!(refused(FormSchema::derive::<String>(newest)), expected);
    }
}
