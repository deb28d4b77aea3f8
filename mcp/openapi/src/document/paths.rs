//! Converts paths to operations.

use std::collections::HashSet;
use std::rc::Rc;

use http::Method;
use serde_json::{Map, Value, json};

use bindpost_mcp_server::ToolHints;

use super::content;
use super::read::OpenApiVersion;
use super::servers::DocumentBase;
use super::sources::{SourceLocation, reference_of};
use crate::operation::{Operation, Parameter, ParameterLocation, ParameterStyle};
use crate::schema::normalise::{SchemaNormaliser, SchemaPath};

const VERBS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// A location in a document and the value there.
#[derive(Clone)]
pub(super) struct DocumentNode {
    pub(super) spot: SourceLocation,
    file: Rc<Value>,
}

impl DocumentNode {
    /// Follows references from a location to a value that is not a reference.
    pub(super) fn resolve(
        schemas: &mut SchemaNormaliser,
        spot: SourceLocation,
    ) -> Result<DocumentNode, String> {
        let spot = schemas.sources.follow(spot)?;
        match schemas.sources.file(spot.file) {
            Some(source) => Ok(DocumentNode { file: Rc::clone(&source.value), spot }),
            None => Err("the file does not exist".to_owned()),
        }
    }

    pub(super) fn value(&self) -> &Value {
        let found = self.spot.pointer.iter().try_fold(&*self.file, |value, token| match value {
            Value::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
            value => value.get(token),
        });
        found.unwrap_or(&Value::Null)
    }

    pub(super) fn get(&self, member: &str) -> Option<&Value> {
        self.value().get(member)
    }

    pub(super) fn text(&self, member: &str) -> Option<String> {
        let text = self.get(member)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn is_true(&self, member: &str) -> bool {
        self.get(member) == Some(&Value::Bool(true))
    }

    /// Returns the location of a descendant, before references are followed.
    pub(super) fn below(&self, path: &[&str]) -> SourceLocation {
        let mut spot = self.spot.clone();
        spot.pointer.extend(path.iter().map(|token| (*token).to_owned()));
        spot
    }

    /// Returns the normalised schema of a member.
    pub(super) fn schema(&self, schemas: &mut SchemaNormaliser, member: &str) -> Option<Value> {
        let spot = self.below(&[member]);
        self.get(member).map(|value| schemas.normalise(value, &SchemaPath::new(&spot)))
    }
}

/// Returns the operations of one document, in its order.
pub(super) fn operations(
    schemas: &mut SchemaNormaliser,
    root: usize,
    version: OpenApiVersion,
    base: &DocumentBase,
    prefix: &str,
) -> Vec<Operation> {
    let order = schemas.sources.file(root).map(|source| source.order.clone()).unwrap_or_default();
    let mut operations = Vec::new();
    let mut seen = HashSet::new();
    for (path, keys) in order {
        let spot = SourceLocation { file: root, pointer: vec!["paths".to_owned(), path.clone()] };
        if !path.starts_with('/') {
            if !path.starts_with("x-") {
                schemas.warn(&spot, "the path is ignored, because it does not begin with `/`");
            }
            continue;
        }
        // A path that occurs twice in YAML is read once, with the last value.
        if !seen.insert(path.clone()) {
            continue;
        }
        let own_keys: Vec<String> = keys;
        let item = match DocumentNode::resolve(schemas, spot.clone()) {
            Ok(item) => item,
            Err(reason) => {
                schemas.warn(&spot, &format!("the path is ignored: {reason}"));
                continue;
            }
        };
        let Some(members) = item.value().as_object() else { continue };
        let is_elsewhere = item.spot != spot;
        let verbs: Vec<&str> = if is_elsewhere {
            VERBS.into_iter().filter(|verb| members.contains_key(*verb)).collect()
        } else {
            own_keys.iter().map(String::as_str).filter(|key| VERBS.contains(key)).collect()
        };
        let place =
            PathItem { path: format!("{prefix}{}{path}", base.prefix), item: &item, root, version, base };
        let mut done = HashSet::new();
        for verb in verbs.into_iter().filter(|verb| done.insert(*verb)) {
            let spot = item.below(&[verb]);
            match DocumentNode::resolve(schemas, spot.clone()) {
                Ok(operation) if operation.value().is_object() => {
                    operations.extend(place.operation(schemas, verb, &operation));
                }
                Ok(_) => schemas.warn(&spot, "the operation is ignored, because it is not an object"),
                Err(reason) => schemas.warn(&spot, &format!("the operation is ignored: {reason}")),
            }
        }
    }
    operations
}

struct PathItem<'a> {
    path: String,
    item: &'a DocumentNode,
    root: usize,
    version: OpenApiVersion,
    base: &'a DocumentBase,
}

impl PathItem<'_> {
    fn operation(&self, schemas: &mut SchemaNormaliser, verb: &str, at: &DocumentNode) -> Option<Operation> {
        let method = Method::from_bytes(verb.to_ascii_uppercase().as_bytes()).ok()?;
        let spots = self.parameter_spots(at);
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut forms: Vec<DocumentNode> = Vec::new();
        let mut body_at: Option<DocumentNode> = None;
        for spot in spots {
            let found = match DocumentNode::resolve(schemas, spot.clone()) {
                Ok(found) if found.value().is_object() => found,
                Ok(_) => continue,
                Err(reason) => {
                    let reference = reference_in(schemas, &spot);
                    schemas.warn(&spot, &format!("the parameter `{reference}` is ignored: {reason}"));
                    continue;
                }
            };
            match found.get("in").and_then(Value::as_str) {
                Some("body") => body_at = Some(found),
                Some("formData") => {
                    forms.retain(|form| form.get("name") != found.get("name"));
                    forms.push(found);
                }
                _ => {
                    let Some(parameter) = parameter(schemas, &found, self.version) else { continue };
                    // A parameter of the operation overrides one of its path.
                    parameters.retain(|known| known.name != parameter.name || known.place != parameter.place);
                    parameters.push(parameter);
                }
            }
        }
        self.check_path(schemas, at, &mut parameters);
        // An operation whose path cannot be filled cannot be called.
        if at.get("parameters").is_some() || self.item.get("parameters").is_some() {
            let unresolved = self
                .parameter_spots(at)
                .into_iter()
                .any(|spot| DocumentNode::resolve(schemas, spot).is_err());
            let missing = variables(&self.path).into_iter().any(|variable| {
                !parameters
                    .iter()
                    .any(|known| known.place == ParameterLocation::Path && known.name == variable)
            });
            if unresolved && missing {
                schemas.warn(
                    &at.spot,
                    "the operation is ignored, because a variable of its path is not described",
                );
                return None;
            }
        }
        imply_variables(&self.path, &mut parameters);
        name_arguments(&mut parameters);
        let root = schemas.sources.file(self.root).map(|source| Rc::clone(&source.value))?;
        let body = match self.version {
            OpenApiVersion::Swagger2 => content::swagger_body(schemas, at, &root, body_at.as_ref(), &forms),
            OpenApiVersion::OpenApi3 => content::request_body(schemas, at),
        };
        if at.get("servers").is_some() || self.item.get("servers").is_some() {
            schemas.warn(
                &at.spot,
                "servers of a single operation are not supported; calls go to the base address",
            );
        }
        let pageable = at.get("x-ms-pageable").filter(|pageable| pageable.is_object());
        let page = |member: &str| pageable.and_then(|found| found.get(member)?.as_str()).map(str::to_owned);
        Some(Operation {
            id: at.text("operationId").unwrap_or_else(|| generated_id(verb, &self.path)),
            hints: hints(&method, at.get("x-mcp-hints")),
            method,
            other_methods: Vec::new(),
            path: self.path.clone(),
            tags: texts(at.get("tags")),
            summary: at.text("summary").or_else(|| self.item.text("summary")),
            description: at.text("description").or_else(|| self.item.text("description")),
            deprecated: at.is_true("deprecated"),
            parameters,
            body,
            responses: content::responses(schemas, at, &root, self.version),
            scopes: scopes(at.get("security").or_else(|| root.get("security"))),
            items: pageable.map(|_| page("itemName").unwrap_or_else(|| "value".to_owned())),
            next_link: page("nextLinkName"),
        })
    }

    fn parameter_spots(&self, at: &DocumentNode) -> Vec<SourceLocation> {
        let mut spots = self.base.parameters.clone();
        for owner in [self.item, at] {
            let count = owner.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
            spots.extend((0..count).map(|index| owner.below(&["parameters", &index.to_string()])));
        }
        spots
    }

    /// Removes path parameters without a variable in the path.
    fn check_path(&self, schemas: &mut SchemaNormaliser, at: &DocumentNode, parameters: &mut Vec<Parameter>) {
        let variables = variables(&self.path);
        let hosts: Vec<&SourceLocation> = self.base.parameters.iter().collect();
        parameters.retain(|parameter| {
            let is_used = parameter.place != ParameterLocation::Path || variables.contains(&parameter.name);
            if !is_used && hosts.is_empty() {
                let problem =
                    format!("the path has no variable `{}`, so the parameter is ignored", parameter.name);
                schemas.warn(&at.spot, &problem);
            }
            is_used
        });
    }
}

fn reference_in(schemas: &SchemaNormaliser, spot: &SourceLocation) -> String {
    schemas.sources.value(spot).and_then(reference_of).unwrap_or_default().to_owned()
}

/// Returns the variables of a path.
fn variables(path: &str) -> Vec<String> {
    let mut variables = Vec::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        variables.push(name.to_owned());
        rest = after;
    }
    variables
}

/// Adds a string parameter for each variable that is not described.
fn imply_variables(path: &str, parameters: &mut Vec<Parameter>) {
    for name in variables(path) {
        if !parameters.iter().any(|known| known.place == ParameterLocation::Path && known.name == name) {
            parameters.push(Parameter {
                argument: String::new(),
                name,
                place: ParameterLocation::Path,
                required: true,
                description: None,
                schema: json!({"type": "string"}),
                style: ParameterStyle::Simple,
                explode: false,
                allow_reserved: false,
            });
        }
    }
}

fn parameter(
    schemas: &mut SchemaNormaliser,
    at: &DocumentNode,
    version: OpenApiVersion,
) -> Option<Parameter> {
    let Some(name) =
        at.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned)
    else {
        schemas.warn(&at.spot, "the parameter is ignored, because it has no name");
        return None;
    };
    let place = match at.get("in").and_then(Value::as_str) {
        Some("path") => ParameterLocation::Path,
        Some("query") => ParameterLocation::Query,
        Some("header") => ParameterLocation::Header,
        Some("cookie") => ParameterLocation::Cookie,
        other => {
            let problem = format!("the parameter `{name}` is ignored: its location {other:?} is unknown");
            schemas.warn(&at.spot, &problem);
            return None;
        }
    };
    // These headers are derived from the body, the responses and the credential.
    let is_ours =
        ["accept", "content-type", "authorization"].iter().any(|ours| name.eq_ignore_ascii_case(ours));
    if place == ParameterLocation::Header && is_ours {
        return None;
    }
    let (schema, style, explode) = match version {
        OpenApiVersion::Swagger2 => {
            let schema = schemas.normalise(&swagger_parameter_schema(at.value()), &SchemaPath::new(&at.spot));
            let (style, explode) =
                collection_format(at.get("collectionFormat").and_then(Value::as_str), place);
            (schema, style, explode)
        }
        OpenApiVersion::OpenApi3 => schema_and_style(schemas, at, place),
    };
    Some(Parameter {
        argument: String::new(),
        name,
        place,
        required: place == ParameterLocation::Path || at.is_true("required"),
        description: at.text("description"),
        schema,
        style,
        explode,
        allow_reserved: place == ParameterLocation::Query && at.is_true("allowReserved"),
    })
}

fn schema_and_style(
    schemas: &mut SchemaNormaliser,
    at: &DocumentNode,
    place: ParameterLocation,
) -> (Value, ParameterStyle, bool) {
    let default = if matches!(place, ParameterLocation::Query | ParameterLocation::Cookie) {
        ParameterStyle::Form
    } else {
        ParameterStyle::Simple
    };
    if let Some(media) =
        at.get("content").and_then(Value::as_object).and_then(|content| content.keys().next())
    {
        let media = media.clone();
        let is_json = media.contains("json") || media == "*/*";
        let found = DocumentNode::resolve(schemas, at.below(&["content", &media])).ok();
        let schema = found.and_then(|found| found.schema(schemas, "schema")).unwrap_or_else(|| json!({}));
        return (schema, if is_json { ParameterStyle::Json } else { default }, false);
    }
    let schema = at.schema(schemas, "schema").unwrap_or_else(|| json!({}));
    let style = match at.get("style").and_then(Value::as_str) {
        Some("simple") => ParameterStyle::Simple,
        Some("form") => ParameterStyle::Form,
        Some("label") => ParameterStyle::Label,
        Some("matrix") => ParameterStyle::Matrix,
        Some("spaceDelimited") => ParameterStyle::SpaceDelimited,
        Some("pipeDelimited") => ParameterStyle::PipeDelimited,
        Some("deepObject") => ParameterStyle::DeepObject,
        _ => default,
    };
    let explode = match at.get("explode") {
        Some(Value::Bool(explode)) => *explode,
        _ => matches!(style, ParameterStyle::Form | ParameterStyle::DeepObject),
    };
    (schema, style, explode)
}

/// Returns the schema in a Swagger parameter, without the members that describe the parameter itself.
pub(super) fn swagger_parameter_schema(parameter: &Value) -> Value {
    let mut members: Map<String, Value> = parameter.as_object().cloned().unwrap_or_default();
    for key in ["name", "in", "required", "description", "collectionFormat", "allowEmptyValue"] {
        members.remove(key);
    }
    // Some documents write `schema` where Swagger does not allow it.
    match members.remove("schema") {
        Some(schema @ Value::Object(_)) if !members.contains_key("type") => schema,
        _ => Value::Object(members),
    }
}

fn collection_format(format: Option<&str>, place: ParameterLocation) -> (ParameterStyle, bool) {
    match (format, place) {
        (Some("multi"), ParameterLocation::Query) => (ParameterStyle::Form, true),
        (Some("ssv"), _) => (ParameterStyle::SpaceDelimited, false),
        (Some("tsv"), _) => (ParameterStyle::TabDelimited, false),
        (Some("pipes"), _) => (ParameterStyle::PipeDelimited, false),
        (_, ParameterLocation::Query | ParameterLocation::Cookie) => (ParameterStyle::Form, false),
        _ => (ParameterStyle::Simple, false),
    }
}

/// Gives every parameter a unique argument name that is valid in JSON.
fn name_arguments(parameters: &mut [Parameter]) {
    let plain = |name: &str| {
        let name = name.strip_prefix('$').unwrap_or(name);
        let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name: String = name.chars().map(|c| if keep(c) { c } else { '_' }).collect();
        let name = name.trim_end_matches('_');
        if name.is_empty() { "parameter".to_owned() } else { name.to_owned() }
    };
    let wanted: Vec<String> = parameters.iter().map(|parameter| plain(&parameter.name)).collect();
    let mut taken = HashSet::new();
    for (parameter, wanted) in parameters.iter_mut().zip(wanted) {
        let place = match parameter.place {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
            ParameterLocation::Header => "header",
            ParameterLocation::Cookie => "cookie",
        };
        let mut name = wanted.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            name =
                if number == 1 { format!("{wanted}_{place}") } else { format!("{wanted}_{place}_{number}") };
            number += 1;
        }
        parameter.argument = name;
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn scopes(security: Option<&Value>) -> Vec<String> {
    let mut scopes = Vec::new();
    for requirement in security.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        for scope in requirement.values().flat_map(|scopes| texts(Some(scopes))) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
    }
    scopes
}

/// Returns the hints for a verb, unless the document overrides them.
fn hints(method: &Method, said: Option<&Value>) -> ToolHints {
    let read_only = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
    let destructive = matches!(*method, Method::PUT | Method::DELETE | Method::PATCH);
    let idempotent = read_only || matches!(*method, Method::PUT | Method::DELETE);
    let flag = |member: &str| said.and_then(|said| said.get(member)?.as_bool());
    let read_only = flag("readOnly").unwrap_or(read_only);
    let says_so = flag("readOnly") == Some(true);
    ToolHints {
        read_only,
        destructive: flag("destructive").unwrap_or(destructive && !read_only),
        idempotent: flag("idempotent").unwrap_or(idempotent || says_so),
        open_world: flag("openWorld").unwrap_or(true),
    }
}

/// Generates an id from the verb and the path.
fn generated_id(verb: &str, path: &str) -> String {
    let words: Vec<&str> =
        path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut id = verb.to_owned();
    for word in words {
        id.push('_');
        id.push_str(word);
    }
    id
}
