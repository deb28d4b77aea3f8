//! One selected operation: what callers see of it, and what their arguments are checked against.

use std::sync::OnceLock;

use bindpost_mcp_server::{CompiledSchema, ToolHints};
use serde_json::{Map, Value, json};

use super::text;
use crate::document::Document;
use crate::operation::{Operation, Parameter, ParameterLocation};
use crate::paging;
use crate::request::{body_argument, is_reserved_header};
use crate::schema::SchemaPurpose;
use crate::selection::PathPattern;

/// Whether the user is asked before a call with these arguments.
pub type AsksIf = fn(&Map<String, Value>) -> bool;

/// A selected operation.
#[derive(Debug)]
pub(crate) struct OfferedOperation {
    pub(crate) operation: Operation,
    /// The name of its tool.
    pub(crate) name: String,
    pub(crate) hints: ToolHints,
    /// Whether the user is asked first, given the arguments; `None` if never.
    pub(crate) asks: Option<AsksIf>,
    /// Arguments that the operator gives, and the names of their parameters on the wire.
    pub(crate) fixed: Map<String, Value>,
    pub(crate) fixed_names: Vec<String>,
    /// The argument that takes the body.
    pub(crate) body: &'static str,
    /// The argument that takes the cursor, and the member of the answer that gives the next one.
    pub(crate) cursor: &'static str,
    pub(crate) next_cursor: &'static str,
    /// Whether its success is a list, so that an answer says whether there is more.
    pub(crate) is_list: bool,
    /// Whether an answer may be cut and asked for again, so that callers are told of cursors.
    may_be_cut: bool,
    /// Whether a parameter of its own asks for other pages, so that one page does not say that there is no more.
    pub(crate) pages: bool,
    pub(crate) path: PathPattern,
    check: OnceLock<Option<CompiledSchema>>,
}

/// Whether somebody who says this name means this parameter.
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
        let body = body_argument(&operation);
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
            cursor,
            next_cursor,
            is_list,
            may_be_cut,
            pages,
            path,
            check: OnceLock::new(),
        }
    }

    /// The name that callers read: the document's, unless that has something in it that nobody sees.
    pub(crate) fn display_id(&self) -> &str {
        let id = self.operation.id.as_str();
        if text::visible_text(id) == id { id } else { &self.name }
    }

    /// The parameters that callers may give.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        // How a message is written is not the model's business either.
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

    /// All schemas it has, as the document wrote them.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Value> {
        let body = self.operation.body.iter().map(|body| &body.schema);
        let responses = self.operation.responses.iter().filter_map(|response| response.schema.as_ref());
        self.parameters().map(|parameter| &parameter.schema).chain(body).chain(responses)
    }

    /// The schema of its arguments, with references to the document's definitions.
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
            let of = if self.is_list { "the answer before" } else { "a cut answer" };
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

    /// The same, whole.
    pub(crate) fn whole_input(&self, document: &Document) -> Value {
        let mut whole = document.whole_schema(&self.input(), SchemaPurpose::Input);
        text::clean(&mut whole);
        as_object(whole)
    }

    /// The schema of its structured content, with references to the document's definitions: an object, whatever the
    /// service answers. `None` if it answers no JSON.
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

    /// What the values of arguments are checked against: the whole schema, compiled by the first call. Names are
    /// checked apart from it.
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
                            "arguments are not checked: the schema does not compile"
                        );
                        None
                    }
                }
            })
            .as_ref()
    }
}

/// Clients want an object at the root, and nothing else.
pub(crate) fn as_object(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            members.insert("type".to_owned(), "object".into());
            schema
        }
        _ => json!({"type": "object"}),
    }
}
