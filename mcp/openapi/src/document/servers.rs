//! The server addresses of a document and the base of its paths.

use serde_json::Value;

use super::read::OpenApiVersion;
use super::sources::SourceLocation;
use crate::schema::normalise::SchemaNormaliser;

/// The base of the paths in one document.
#[derive(Debug, Default)]
pub(super) struct DocumentBase {
    pub(super) servers: Vec<String>,
    /// The path of the first server.
    pub(super) path: String,
    /// The prefix of every path, with variables: the part of `x-ms-parameterized-host` after the host.
    pub(super) prefix: String,
    /// The parameters for the variables of the prefix.
    pub(super) parameters: Vec<SourceLocation>,
}

pub(super) fn base(schemas: &mut SchemaNormaliser, root: usize, version: OpenApiVersion) -> DocumentBase {
    let Some(file) = schemas.sources.file(root).map(|source| source.value.clone()) else {
        return DocumentBase::default();
    };
    let mut base = DocumentBase::default();
    match version {
        OpenApiVersion::Swagger2 => {
            let path = file.get("basePath").and_then(Value::as_str).unwrap_or_default().trim_end_matches('/');
            let host = file.get("host").and_then(Value::as_str).unwrap_or_default();
            let schemes: Vec<&str> = file
                .get("schemes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let mut schemes: Vec<&str> =
                schemes.into_iter().filter(|scheme| matches!(*scheme, "http" | "https")).collect();
            // Prefer https, so that credentials are encrypted in transit.
            schemes.sort_by_key(|scheme| *scheme != "https");
            if schemes.is_empty() {
                schemes.push("https");
            }
            if !host.is_empty() && !host.contains(['{', '/', ' ']) {
                base.servers.extend(schemes.iter().map(|scheme| format!("{scheme}://{host}{path}")));
            } else if !path.is_empty() {
                base.servers.push(path.to_owned());
            }
        }
        OpenApiVersion::OpenApi3 => {
            let servers = file.get("servers").and_then(Value::as_array);
            base.servers.extend(servers.into_iter().flatten().filter_map(server));
        }
    }
    base.path = base.servers.first().map(|server| path_of(server)).unwrap_or_default();
    if let Some(host) = file.get("x-ms-parameterized-host") {
        let template = host.get("hostTemplate").and_then(Value::as_str).unwrap_or_default();
        let rest = template.split_once("://").map_or(template, |(_, rest)| rest);
        base.prefix = rest
            .find('/')
            .and_then(|start| rest.get(start..))
            .unwrap_or_default()
            .trim_end_matches('/')
            .to_owned();
        let parameters = host.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
        for index in 0..parameters {
            let pointer = ["x-ms-parameterized-host".to_owned(), "parameters".to_owned(), index.to_string()];
            base.parameters.push(SourceLocation { file: root, pointer: pointer.to_vec() });
        }
    }
    base
}

/// Returns the address of a server, with its variables replaced by their defaults.
fn server(server: &Value) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.trim().to_owned();
    for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten() {
        let value = match variable.get("default") {
            Some(Value::String(value)) => value.clone(),
            Some(Value::Number(value)) => value.to_string(),
            _ => continue,
        };
        url = url.replace(&format!("{{{name}}}"), &value);
    }
    let url = url.trim_end_matches('/');
    (!url.contains(['{', '}']) && !url.is_empty()).then(|| url.to_owned())
}

/// Returns the path of an address.
fn path_of(server: &str) -> String {
    match server.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|start| rest.get(start..)).unwrap_or_default().to_owned(),
        None => server.to_owned(),
    }
}

/// Returns an address without its path, or an empty text if it has only a path.
pub(super) fn origin(server: &str) -> String {
    match server.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()),
        None => String::new(),
    }
}
