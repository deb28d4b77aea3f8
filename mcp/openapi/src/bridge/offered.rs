//! A selected operation: its schemas and the validation of its arguments.

use std::sync::OnceLock;

use bindpost_mcp_server::{CompiledSchema, ToolHints};
use serde_json::{Map, Value, json};

use super::text;
use crate::document::Document;
use crate::operation::{Operation, Parameter, ParameterLocation};
use crate::paging;
use crate::request::{body_argument, is_reserved_header, method_argument};
use crate::schema::SchemaPurpose;
use crate::selection::PathPattern;

/// Decides whether the user is asked for confirmation before a call with these arguments.
pub type AsksIf = fn(&Map<String, Value>) -> bool;

/// A selected operation.
#[derive(Debug)]
pub(crate) struct OfferedOperation {
    pub(crate) operation: Operation,
    /// The name of the tool.
    pub(crate) name: String,
    pub(crate) hints: ToolHints,
    /// Whether the user is asked for confirmation, depending on the arguments. `None` means never.
    pub(crate) asks: Option<AsksIf>,
    /// The arguments that the operator fixed, and the names of their parameters on the wire.
    pub(crate) fixed: Map<String, Value>,
    pub(crate) fixed_names: Vec<String>,
    /// The name of the argument for the body.
    pub(crate) body: &'static str,
    /// The name of the argument for the method, if calls choose it.
    pub(crate) method: Option<&'static str>,
    /// The name of the argument for the cursor, and of the member of the response with the next one.
    pub(crate) cursor: &'static str,
    pub(crate) next_cursor: &'static str,
    /// Whether the success response is a list. The response then has `hasMore`.
    pub(crate) is_list: bool,
    /// Whether a response may be cut and continued. The arguments then include a cursor.
    may_be_cut: bool,
    /// Whether one of its parameters selects a page. The end of one page is then not the end of the list.
    pub(crate) pages: bool,
    pub(crate) path: PathPattern,
    check: OnceLock<Option<CompiledSchema>>,
}

/// Returns whether a name refers to this parameter.
pub(crate) fn is_named(parameter: &Parameter, name: &str) -> bool {
    parameter.argument == name || parameter.name.eq_ignore_ascii_case(name)
}

impl OfferedOperation {
    pub(crate) fn new(
        document: &Document,
        operation: Operation,
        name: String,
        hints: ToolHints,
        asks: Option<AsksIf>,
        fixed: &[(String, Value)],
    ) -> OfferedOperation {
        let has = |name: &str| operation.parameters.iter().any(|parameter| parameter.argument == name);
        let (body, method) = (body_argument(&operation), method_argument(&operation));
        // An operation with cursors of its own keeps their names.
        let (cursor, next_cursor) = match has("cursor") || has("nextCursor") {
            true => ("answerCursor", "nextAnswerCursor"),
            false => ("cursor", "nextCursor"),
        };
        let (mut given, mut fixed_names) = (Map::new(), Vec::new());
        for parameter in &operation.parameters {
            if let Some((_, value)) = fixed.iter().rev().find(|(name, _)| is_named(parameter, name)) {
                given.insert(parameter.argument.clone(), value.clone());
                fixed_names.push(parameter.name.clone());
            }
        }
        let is_list = hints.read_only && paging::is_list(document, &operation);
        let may_be_cut = is_list || hints.read_only && paging::may_be_cut(document, &operation);
        let pages = operation.parameters.iter().any(paging::is_page_parameter);
        let fixed_path = |name: &str| {
            let parameters =
                operation.parameters.iter().filter(|parameter| parameter.place == ParameterLocation::Path);
            let parameter = parameters.into_iter().find(|parameter| parameter.name == name)?;
            match given.get(&parameter.argument)? {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            }
        };
        let path = PathPattern::with_values(&operation.path, fixed_path);
        OfferedOperation {
            operation,
            name,
            hints,
            asks,
            fixed: given,
            fixed_names,
            body,
            method,
            cursor,
            next_cursor,
            is_list,
            may_be_cut,
            pages,
            path,
            check: OnceLock::new(),
        }
    }

    /// Returns the id for display. It is the document's id, unless that contains invisible characters.
    pub(crate) fn display_id(&self) -> &str {
        let id = self.operation.id.as_str();
        if text::visible_text(id) == id { id } else { &self.name }
    }

    /// Returns the parameters that callers may set.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        // Headers about the message format are set by this server, not by the model.
        let is_ours = |parameter: &Parameter| {
            let name = &parameter.name;
            let is_written = ["accept", "content-type"].iter().any(|ours| name.eq_ignore_ascii_case(ours));
            parameter.place == ParameterLocation::Header && (is_written || is_reserved_header(name))
        };
        self.operation
            .parameters
            .iter()
            .filter(move |parameter| !self.fixed.contains_key(&parameter.argument) && !is_ours(parameter))
    }

    /// Returns all schemas of the operation, as written in the document.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Value> {
        let body = self.operation.body.iter().map(|body| &body.schema);
        let responses = self.operation.responses.iter().filter_map(|response| response.schema.as_ref());
        self.parameters().map(|parameter| &parameter.schema).chain(body).chain(responses)
    }

    /// Returns the schema of the arguments, with references to the document's definitions.
    pub(crate) fn input(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let described = |schema: &Value, description: Option<&String>| match (schema, description) {
            (Value::Object(members), Some(description)) => {
                let mut members = members.clone();
                members.insert("description".to_owned(), description.as_str().into());
                Value::Object(members)
            }
            (Value::Null, Some(description)) => json!({"description": description}),
            (Value::Null, None) => json!({}),
            _ => schema.clone(),
        };
        if let Some(method) = self.method {
            let methods: Vec<&str> = self.operation.methods().map(http::Method::as_str).collect();
            properties.insert(method.to_owned(), json!({"type": "string", "enum": methods}));
            required.push(method);
        }
        for parameter in self.parameters() {
            let schema = described(&parameter.schema, parameter.description.as_ref());
            properties.insert(parameter.argument.clone(), schema);
            if parameter.required {
                required.push(parameter.argument.as_str());
            }
        }
        if let Some(body) = &self.operation.body {
            properties.insert(self.body.to_owned(), described(&body.schema, body.description.as_ref()));
            if body.required {
                required.push(self.body);
            }
        }
        if self.may_be_cut {
            let of = if self.is_list { "the previous page" } else { "a cut result" };
            let description = format!("{} of {of}", self.next_cursor);
            let cursor = json!({"type": "string", "description": description});
            properties.insert(self.cursor.to_owned(), cursor);
        }
        let mut input = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        input
    }

    /// Returns the schema of the arguments with all definitions included.
    pub(crate) fn whole_input(&self, document: &Document) -> Value {
        let mut whole = document.whole_schema(&self.input(), SchemaPurpose::Input);
        text::clean(&mut whole);
        as_object(whole)
    }

    /// Returns the schema of the structured content, with references to the document's definitions. It is
    /// always an object. Returns `None` if the operation has no JSON response.
    pub(crate) fn output(&self, document: &Document) -> Option<Value> {
        let success = self.operation.success()?;
        let schema = success.schema.as_ref()?;
        if !success.is_json() {
            return None;
        }
        let is = |kind: &str| paging::is_of_type(document, schema, kind);
        let cut = json!({self.next_cursor: {"type": "string"}, "hasMore": {"type": "boolean"}});
        if is("array") {
            let mut wrapped = json!({"type": "object", "properties": {"items": schema}});
            if let (Value::Object(properties), Value::Object(cut)) = (&mut wrapped["properties"], cut) {
                properties.extend(cut);
            }
            return Some(wrapped);
        }
        if ["string", "number", "integer", "boolean"].into_iter().any(is) {
            return Some(json!({"type": "object", "properties": {"value": schema}}));
        }
        Some(schema.clone()).filter(|schema| schema.as_object().is_some_and(|members| !members.is_empty()))
    }

    pub(crate) fn whole_output(&self, document: &Document) -> Option<Value> {
        let mut whole = document.whole_schema(&self.output(document)?, SchemaPurpose::Output);
        text::clean(&mut whole);
        Some(as_object(whole))
    }

    /// Returns the validator for the arguments: the whole schema, compiled by the first call. Names of
    /// arguments are checked separately.
    pub(crate) fn argument_validator(&self, document: &Document) -> Option<&CompiledSchema> {
        self.check
            .get_or_init(|| {
                let schema = document.whole_schema(&self.input(), SchemaPurpose::Input);
                match CompiledSchema::compile(&schema) {
                    Ok(check) => Some(check),
                    Err(error) => {
                        let operation = &self.operation.id;
                        tracing::warn!(
                            operation,
                            error,
                            "arguments are not validated, because the schema cannot be compiled"
                        );
                        None
                    }
                }
            })
            .as_ref()
    }
}

/// Wraps a schema as an object, because clients require an object at the root.
pub(crate) fn as_object(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            members.insert("type".to_owned(), "object".into());
            schema
        }
        _ => json!({"type": "object"}),
    }
}
