//! Describes a function that no OpenAPI document describes, by its route, its methods and its docstring.

use bindpost_mcp_openapi::{
    BodyFormat, Operation, Parameter, ParameterLocation, ParameterStyle, RequestBody,
};
use bindpost_mcp_server::ToolHints;
use http::Method;
use serde_json::{Map, Value, json};

use super::docstring::{DocumentedParameter, FunctionDoc};
use crate::routes::FunctionRoute;
use crate::routes::constraint::RouteConstraint;
use crate::routes::template::RouteParameter;

/// The property of a function's metadata with its docstring. The worker for Python sends it.
const DOCSTRING: &str = "docstring";

/// A description of a function as an operation.
#[derive(Debug)]
pub(super) struct SynthesizedOperation {
    pub(super) operation: Operation,
    /// Whether the function has a description of its own.
    pub(super) is_described: bool,
}

/// Describes a function. Returns the reason if this is not possible.
pub(super) fn describe_route(route: &FunctionRoute) -> Result<SynthesizedOperation, String> {
    let path = route.template.operation_path();
    let path = path.ok_or("its route has braces, which a description of it cannot have")?;
    let function = &route.function;
    let doc =
        function.source.properties.get(DOCSTRING).map(|text| FunctionDoc::parse(text)).unwrap_or_default();
    let mut methods = methods_of(&route.methods);
    if methods.is_empty() {
        return Err("it has no method with which a tool can call it".to_owned());
    }
    let mut arguments = ArgumentNames::default();
    let mut parameters: Vec<Parameter> = route
        .template
        .parameters()
        .map(|parameter| path_parameter(parameter, arguments.unique(&parameter.name), &doc))
        .collect();
    let is_binding =
        |name: &str| name == "context" || function.source.bindings.iter().any(|info| info.name == name);
    let is_path = |name: &str| route.template.parameters().any(|known| known.name.eq_ignore_ascii_case(name));
    let documented: Vec<&DocumentedParameter> =
        doc.parameters.iter().filter(|known| !is_binding(&known.name) && !is_path(&known.name)).collect();
    match documented.is_empty() {
        true => parameters.push(any_query(arguments.unique("query"))),
        false => parameters
            .extend(documented.iter().map(|known| query_parameter(known, arguments.unique(&known.name)))),
    }
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let description = match doc.description.is_empty() {
        true => format!("{} {path}", names.join(", ")),
        false => doc.description.clone(),
    };
    let hints = hints_of(&methods);
    let takes_body =
        methods.iter().any(|method| matches!(*method, Method::POST | Method::PUT | Method::PATCH));
    let method = methods.remove(0);
    let operation = Operation {
        id: function.name.clone(),
        method,
        other_methods: methods,
        path,
        tags: Vec::new(),
        summary: None,
        description: Some(description),
        deprecated: false,
        parameters,
        body: takes_body.then(any_body),
        responses: Vec::new(),
        scopes: Vec::new(),
        hints,
        items: None,
        next_link: None,
    };
    Ok(SynthesizedOperation { operation, is_described: !doc.description.is_empty() })
}

/// Returns the methods that a tool offers. A function without methods answers all, and a tool offers the usual ones.
fn methods_of(methods: &[Method]) -> Vec<Method> {
    if methods.is_empty() {
        return vec![Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    }
    methods.iter().filter(|method| !matches!(**method, Method::CONNECT | Method::TRACE)).cloned().collect()
}

fn hints_of(methods: &[Method]) -> ToolHints {
    let all = |known: &[Method]| methods.iter().all(|method| known.contains(method));
    let read_only = all(&[Method::GET, Method::HEAD, Method::OPTIONS]);
    ToolHints {
        read_only,
        destructive: methods
            .iter()
            .any(|method| matches!(*method, Method::PUT | Method::PATCH | Method::DELETE)),
        idempotent: read_only
            || all(&[Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE]),
        open_world: true,
    }
}

fn path_parameter(parameter: &RouteParameter, argument: String, doc: &FunctionDoc) -> Parameter {
    let mut schema = schema_of(&parameter.constraints);
    if let Some(default) = &parameter.default {
        let is_text = schema.get("type").is_none_or(|kind| kind == "string");
        let typed = serde_json::from_str(default).ok().filter(|_| !is_text);
        schema.insert("default".to_owned(), typed.unwrap_or_else(|| Value::String(default.clone())));
    }
    let mut notes: Vec<String> = Vec::new();
    let documented = doc.parameters.iter().find(|known| known.name.eq_ignore_ascii_case(&parameter.name));
    notes.extend(documented.map(|known| known.description.clone()).filter(|words| !words.is_empty()));
    if parameter.is_rest {
        notes.push("The rest of the path, with slashes between its segments.".to_owned());
    }
    notes.extend(parameter.constraints.iter().filter_map(regex_note));
    Parameter {
        name: parameter.name.clone(),
        argument,
        place: ParameterLocation::Path,
        required: !parameter.may_be_missing(),
        description: (!notes.is_empty()).then(|| notes.join(" ")),
        schema: Value::Object(schema),
        style: if parameter.is_rest { ParameterStyle::Segments } else { ParameterStyle::Simple },
        explode: false,
        allow_reserved: false,
    }
}

/// Returns the schema of the values that satisfy constraints.
fn schema_of(constraints: &[RouteConstraint]) -> Map<String, Value> {
    let mut schema = Map::new();
    for constraint in constraints {
        let keywords: Vec<(&str, Value)> = match constraint {
            RouteConstraint::Int | RouteConstraint::Long => vec![("type", "integer".into())],
            RouteConstraint::Decimal | RouteConstraint::Double | RouteConstraint::Float => {
                vec![("type", "number".into())]
            }
            RouteConstraint::Bool => vec![("type", "boolean".into())],
            RouteConstraint::Guid => vec![("format", "uuid".into())],
            RouteConstraint::DateTime => vec![("format", "date-time".into())],
            RouteConstraint::Alpha => vec![("pattern", "^[A-Za-z]*$".into())],
            RouteConstraint::Required => vec![("minLength", 1.into())],
            RouteConstraint::MinLength(least) => vec![("minLength", (*least).into())],
            RouteConstraint::MaxLength(most) => vec![("maxLength", (*most).into())],
            RouteConstraint::Length(least, most) => {
                vec![("minLength", (*least).into()), ("maxLength", (*most).into())]
            }
            RouteConstraint::Min(least) => vec![("type", "integer".into()), ("minimum", (*least).into())],
            RouteConstraint::Max(most) => vec![("type", "integer".into()), ("maximum", (*most).into())],
            RouteConstraint::Range(least, most) => {
                vec![("type", "integer".into()), ("minimum", (*least).into()), ("maximum", (*most).into())]
            }
            RouteConstraint::Regex(regex) if is_same_in_any_case(regex.as_str()) => {
                vec![("pattern", regex.as_str().into())]
            }
            RouteConstraint::Regex(_) => Vec::new(),
        };
        for (keyword, value) in keywords {
            schema.entry(keyword).or_insert(value);
        }
    }
    schema.entry("type").or_insert_with(|| "string".into());
    schema
}

/// Returns whether a regular expression has no letters, so that it is the same in any case. Routes ignore case, and the
/// keyword `pattern` does not.
fn is_same_in_any_case(expression: &str) -> bool {
    let mut is_escaped = false;
    expression.chars().all(|sign| {
        let is_letter = sign.is_alphabetic() && !is_escaped;
        is_escaped = sign == '\\' && !is_escaped;
        !is_letter
    })
}

fn regex_note(constraint: &RouteConstraint) -> Option<String> {
    match constraint {
        RouteConstraint::Regex(regex) if !is_same_in_any_case(regex.as_str()) => {
            Some(format!("It matches the regular expression {} in any case.", regex.as_str()))
        }
        _ => None,
    }
}

fn query_parameter(known: &DocumentedParameter, argument: String) -> Parameter {
    Parameter {
        name: known.name.clone(),
        argument,
        place: ParameterLocation::Query,
        required: known.is_required,
        description: Some(known.description.clone()).filter(|words| !words.is_empty()),
        schema: json!({"type": known.kind.unwrap_or("string")}),
        style: ParameterStyle::Form,
        explode: true,
        allow_reserved: false,
    }
}

/// Returns the parameter for a query of which nothing is known.
fn any_query(argument: String) -> Parameter {
    Parameter {
        name: "query".to_owned(),
        argument,
        place: ParameterLocation::Query,
        required: false,
        description: Some("The parameters of the query.".to_owned()),
        schema: json!({"type": "object", "additionalProperties": {"type": "string"}}),
        style: ParameterStyle::Form,
        explode: true,
        allow_reserved: false,
    }
}

fn any_body() -> RequestBody {
    RequestBody {
        required: false,
        description: Some("The body of the request, as JSON.".to_owned()),
        media: BodyFormat::Json,
        content_type: "application/json".to_owned(),
        schema: json!({}),
    }
}

/// The names of arguments that are taken.
#[derive(Default)]
struct ArgumentNames(Vec<String>);

impl ArgumentNames {
    /// Returns a name that is valid for clients and that no other argument has.
    fn unique(&mut self, name: &str) -> String {
        let keep = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.');
        let plain: String = name.chars().map(|sign| if keep(sign) { sign } else { '_' }).collect();
        let mut found = plain.clone();
        let mut number = 1;
        while self.0.contains(&found) {
            number += 1;
            found = format!("{plain}_{number}");
        }
        self.0.push(found.clone());
        found
    }
}
