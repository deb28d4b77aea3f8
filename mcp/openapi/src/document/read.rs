//! Combines all given files into one [`Document`].

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::servers::{self, DocumentBase};
use super::sources::{SourceLocation, SourceSet};
use crate::document::{Document, DocumentError};
use crate::operation::Operation;
use crate::schema::normalise::SchemaNormaliser;

/// The versions of the format that are read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    Swagger2,
    OpenApi3,
}

pub(super) fn document(sources: SourceSet) -> Result<Document, DocumentError> {
    let roots: Vec<usize> = sources.roots().to_vec();
    let versions = roots.iter().map(|root| version_of(&sources, *root)).collect::<Result<Vec<_>, _>>()?;
    let mut schemas = SchemaNormaliser::new(sources);
    let mut document = Document::default();
    let bases: Vec<DocumentBase> = roots
        .iter()
        .zip(&versions)
        .map(|(root, version)| servers::base(&mut schemas, *root, *version))
        .collect();
    // Documents of one service may have different base paths. Each operation then includes its own.
    let is_shared = bases.windows(2).all(|pair| matches!(pair, [one, other] if one.path == other.path));
    for ((root, version), base) in roots.iter().zip(&versions).zip(&bases) {
        describe_service(&mut document, &schemas, *root);
        for server in &base.servers {
            let server = if is_shared { server.clone() } else { servers::origin(server) };
            if !server.is_empty() && !document.servers.contains(&server) {
                document.servers.push(server);
            }
        }
        let prefix = if is_shared { "" } else { base.path.as_str() };
        let operations = super::paths::operations(&mut schemas, *root, *version, base, prefix);
        document.operations.extend(operations);
    }
    document.servers.sort_by_key(|server| !server.contains("://"));
    drop_duplicates(&mut document.operations, &mut schemas, &roots);
    schemas.define_all();
    schemas.expand_discriminators();
    let circles = schemas.cut_cycles();
    for schema in document.operations.iter_mut().flat_map(schemas_of) {
        schemas.finish(schema);
    }
    document.definitions = schemas.take_definitions();
    super::files::describe_files(&mut document);
    document.warnings = schemas.take_warnings();
    document.warnings.extend(circles);
    Ok(document)
}

fn version_of(sources: &SourceSet, root: usize) -> Result<OpenApiVersion, DocumentError> {
    let Some(source) = sources.file(root) else {
        return Err(DocumentError::invalid("the document", "it could not be read", "give a file"));
    };
    let text = |member: &str| match source.value.get(member) {
        Some(Value::String(version)) => Some(version.clone()),
        Some(Value::Number(version)) => Some(version.to_string()),
        _ => None,
    };
    match (text("swagger"), text("openapi")) {
        (Some(version), _) if version.starts_with('2') => Ok(OpenApiVersion::Swagger2),
        (_, Some(version)) if version.starts_with('3') => Ok(OpenApiVersion::OpenApi3),
        (Some(version), _) | (_, Some(version)) => Err(DocumentError::invalid(
            source.name.clone(),
            format!("its version {version} is unknown"),
            "convert it to Swagger 2.0, OpenAPI 3.0 or 3.1",
        )),
        (None, None) => Err(DocumentError::invalid(
            source.name.clone(),
            "it has neither `openapi` nor `swagger`",
            "give an OpenAPI or Swagger document",
        )),
    }
}

/// Sets the title, version and description from the first document.
fn describe_service(document: &mut Document, schemas: &SchemaNormaliser, root: usize) {
    let Some(info) = schemas.sources.file(root).and_then(|source| source.value.get("info")) else { return };
    let text = |member: &str| match info.get(member) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    if document.title.is_empty() {
        document.title = text("title").unwrap_or_default();
    }
    if document.version.is_empty() {
        document.version = text("version").unwrap_or_default();
    }
    if document.description.is_none() {
        document.description = text("description").or_else(|| text("summary"));
    }
}

/// Keeps the first of several operations with the same verb and path, and makes ids unique.
fn drop_duplicates(operations: &mut Vec<Operation>, schemas: &mut SchemaNormaliser, roots: &[usize]) {
    let root = SourceLocation {
        file: roots.first().copied().unwrap_or_default(),
        pointer: vec!["paths".to_owned()],
    };
    let mut seen = HashSet::new();
    operations.retain(|operation| {
        let is_new = seen.insert(format!("{} {}", operation.method, operation.path));
        if !is_new {
            let problem = format!(
                "`{} {}` is described twice; the first description is used",
                operation.method, operation.path
            );
            schemas.warn(&root, &problem);
        }
        is_new
    });
    let mut ids: HashSet<String> = operations.iter().map(|operation| operation.id.clone()).collect();
    let mut used: HashSet<String> = HashSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for operation in operations {
        if used.insert(operation.id.clone()) {
            continue;
        }
        let count = counts.entry(operation.id.clone()).or_insert(1);
        loop {
            *count += 1;
            let id = format!("{}_{count}", operation.id);
            if ids.insert(id.clone()) {
                let problem =
                    format!("the operation id `{}` is used twice; one is renamed to `{id}`", operation.id);
                schemas.warn(&root, &problem);
                used.insert(id.clone());
                operation.id = id;
                break;
            }
        }
    }
}

fn schemas_of(operation: &mut Operation) -> impl Iterator<Item = &mut Value> {
    let parameters = operation.parameters.iter_mut().map(|parameter| &mut parameter.schema);
    let body = operation.body.iter_mut().map(|body| &mut body.schema);
    let responses = operation.responses.iter_mut().filter_map(|response| response.schema.as_mut());
    parameters.chain(body).chain(responses)
}
