//! Resources: schemas of the document, and operations that need only a path.

use std::collections::HashSet;

use bindpost_mcp_protocol::ResourceContents;
use bindpost_mcp_server::{
    CallParts, Entry, ProtocolError, ResourceEntry, Signature, TemplateEntry, ToolError, UriTemplate,
};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::bridge::offered::OfferedOperation;
use crate::bridge::{Bridge, text};
use crate::operation::ParameterLocation;
use crate::reply::{self, CallFailure, DecodedBody, FailureKind};

/// The maximum number of names in a completion.
const MOST_NAMES: usize = 100;

/// The maximum number of operations that are resources. The catalog compares each template with every
/// other one, so a longer list would be slow. Tools reach all operations.
const MOST_READABLE: usize = 1_000;

/// Returns the resources and templates of the selected operations, and the schemas they use.
pub(crate) fn entries(bridge: &Bridge) -> Vec<Entry> {
    let mut entries = vec![schemas(bridge).into()];
    let mut shapes = HashSet::new();
    for (at, offered) in bridge.state().offered.iter().enumerate() {
        entries.extend(resource_entry(bridge, at, offered, &mut shapes));
        if entries.len() > MOST_READABLE {
            tracing::warn!(
                most = MOST_READABLE,
                "too many operations: the remaining ones are not served as resources"
            );
            break;
        }
    }
    entries
}

/// Returns the template `openapi-schema://{definition}`: a definition or the schemas of
/// an operation, in full.
fn schemas(bridge: &Bridge) -> TemplateEntry {
    let template = format!("{}-schema://{{definition}}", bridge.state().scheme);
    let (reading, completing) = (bridge.clone(), bridge.clone());
    let read = move |parts: CallParts| {
        let bridge = reading.clone();
        async move {
            let name = parts.context.variable("definition").unwrap_or_default().to_owned();
            let uri = parts.context.uri().unwrap_or_default().to_owned();
            match schema(&bridge, &name) {
                Some(schema) => {
                    let contents = ResourceContents::text(&uri, schema.to_string());
                    Ok(contents.with_mime_type("application/schema+json"))
                }
                None => Err(ToolError::from(ProtocolError::UnknownResource(uri))),
            }
        }
    };
    TemplateEntry::with_signature(template, "schema", Signature::new(), read)
        .description("The whole JSON Schema of a definition, or of an operation's arguments and response")
        .mime_type("application/schema+json")
        .complete("definition", move |typed| {
            let shared = completing.state();
            let typed = typed.to_lowercase();
            let names = shared.definitions().iter().map(String::as_str);
            let operations = shared.offered.iter().map(|offered| offered.name.as_str());
            let fits = |name: &&str| name.to_lowercase().starts_with(&typed);
            names.chain(operations).filter(fits).take(MOST_NAMES).map(str::to_owned).collect()
        })
}

fn schema(bridge: &Bridge, name: &str) -> Option<Value> {
    let shared = bridge.state();
    shared.definition(name).or_else(|| {
        let offered = shared.find(name)?;
        let document = &shared.document;
        Some(json!({"inputSchema": offered.whole_input(document), "outputSchema": offered.whole_output(document)}))
    })
}

/// Returns a resource or template for a GET operation that needs only its path and no confirmation.
fn resource_entry(
    bridge: &Bridge,
    at: usize,
    offered: &OfferedOperation,
    shapes: &mut HashSet<String>,
) -> Option<Entry> {
    let operation = &offered.operation;
    let asks = offered.asks.is_some() && bridge.state().confirms;
    let needs_more = asks
        || offered
            .parameters()
            .any(|parameter| parameter.place != ParameterLocation::Path && parameter.required);
    if operation.method != Method::GET || !offered.hints.read_only || needs_more || operation.body.is_some() {
        return None;
    }
    let mut path = operation.path.clone();
    let mut shape = path.clone();
    let mut variables = Vec::new();
    for parameter in
        operation.parameters.iter().filter(|parameter| parameter.place == ParameterLocation::Path)
    {
        let written = format!("{{{}}}", parameter.name);
        let (variable, in_shape) = match offered.fixed.get(&parameter.argument) {
            // Values that the operator fixed must not be visible to callers.
            Some(_) => ("-".to_owned(), "-"),
            None => (format!("{{{}}}", parameter.argument), "{}"),
        };
        path = path.replace(&written, &variable);
        shape = shape.replace(&written, in_shape);
        if variable.starts_with('{') {
            variables.push((parameter.argument.clone(), parameter.schema.clone()));
        }
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let uri = format!("{}://{slash}{path}", bridge.state().scheme);
    // An address with invisible characters is not served, because readers could not recognise it.
    if text::visible_text(&uri) != uri {
        return None;
    }
    // Two templates of the same shape are ambiguous, and a query in a path is not a template.
    let template = UriTemplate::parse(&uri).ok()?;
    if template.variables().count() != variables.len() || path.contains('?') || !shapes.insert(shape) {
        return None;
    }
    let is_template = !variables.is_empty();
    let bridge = bridge.clone();
    let scopes = if bridge.state().enforces_scopes { operation.scopes.clone() } else { Vec::new() };
    let name = offered.name.clone();
    let description = text::describe(operation);
    let read = move |parts: CallParts| {
        let bridge = bridge.clone();
        let given: Map<String, Value> = variables
            .iter()
            .filter_map(|(name, schema)| {
                let value = parts.context.variable(name)?;
                Some((name.clone(), typed_value(value, schema)))
            })
            .collect();
        async move { read(&bridge, at, given, &parts).await }
    };
    Some(match is_template {
        true => TemplateEntry::with_signature(uri, name, Signature::new(), read)
            .description(description)
            .scopes(scopes)
            .into(),
        false => ResourceEntry::with_signature(uri, name, Signature::new(), read)
            .description(description)
            .scopes(scopes)
            .into(),
    })
}

/// Converts the value of a variable to the type in its schema.
fn typed_value(value: &str, schema: &Value) -> Value {
    let wants = |kind: &str| match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    };
    let is_plain = ["integer", "number", "boolean"].into_iter().any(wants) && !wants("string");
    let parsed = is_plain.then(|| serde_json::from_str(value).ok()).flatten();
    parsed.filter(|value: &Value| value.is_number() || value.is_boolean()).unwrap_or_else(|| value.into())
}

/// Returns the response unchanged, with its media type.
async fn read(
    bridge: &Bridge,
    at: usize,
    arguments: Map<String, Value>,
    parts: &CallParts,
) -> Result<ResourceContents, ToolError> {
    let shared = bridge.state();
    let uri = parts.context.uri().unwrap_or_default();
    let unknown = || ToolError::from(ProtocolError::UnknownResource(uri.to_owned()));
    let offered = shared.offered.get(at).ok_or_else(unknown)?;
    let incoming = match shared.read(offered, arguments, &parts.context).await {
        Ok(incoming) => incoming,
        // Nothing was sent. The resource does not exist or is not served.
        Err(failure) if failure.kind == FailureKind::InvalidRequest => return Err(unknown()),
        Err(failure) => return Err(failure.into_protocol_error().into()),
    };
    let (status, headers, body) = (incoming.status, &incoming.headers, &incoming.body);
    if status == StatusCode::NOT_FOUND || status == StatusCode::GONE {
        return Err(unknown());
    }
    if !status.is_success() {
        return Err(CallFailure::from_response(status, headers, body)
            .masked(&incoming)
            .into_protocol_error()
            .into());
    }
    let answer = DecodedBody::read(headers, body, reply::expected(offered, status));
    let answer = answer.map_err(|message| {
        CallFailure::unreadable(message, status, headers).masked(&incoming).into_protocol_error()
    })?;
    let contents = match answer {
        DecodedBody::Empty => ResourceContents::text(uri, ""),
        DecodedBody::Json(mut value) => {
            let text = match shared.conceals.is_some() || !shared.hidden.is_empty() {
                true => {
                    shared.conceal(offered, &mut value);
                    shared.hide(&mut value);
                    value.to_string()
                }
                // The text is returned exactly as the service formatted it.
                false => {
                    String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).into_owned()
                }
            };
            let media = reply::media_type(headers);
            let media = if media.contains("json") { media } else { "application/json".to_owned() };
            ResourceContents::text(uri, text).with_mime_type(media)
        }
        DecodedBody::Text { text, media } => ResourceContents::text(uri, text).with_mime_type(media),
        DecodedBody::Binary { bytes, media } => ResourceContents::blob(uri, bytes).with_mime_type(media),
    };
    Ok(contents)
}
