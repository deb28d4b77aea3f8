//! A document as read: its operations and its definitions.

mod content;
mod files;
mod paths;
mod read;
mod servers;
pub(crate) mod sources;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::operation::Operation;
use sources::SourceSet;

/// What one or several OpenAPI or Swagger files say, in one shape.
///
/// ```
/// use bindpost_mcp_openapi::{Document, Purpose};
///
/// let document = Document::parse(
///     "
/// openapi: 3.1.0
/// info: {title: Library, version: '1'}
/// paths:
///   /books/{id}:
///     get:
///       operationId: getBook
///       parameters: [{name: id, in: path, required: true, schema: {type: string}}]
///       responses:
///         200: {content: {application/json: {schema: {$ref: '#/components/schemas/Book'}}}}
/// components: {schemas: {Book: {type: object, properties: {title: {type: string}}}}}
/// ",
///     "library.yaml",
/// )?;
///
/// let operation = document.operation("getBook").expect("the document has it");
/// assert!(operation.hints.read_only);
/// let answer = operation.success().and_then(|response| response.schema.as_ref()).expect("a schema");
/// let whole = document.whole(answer, Purpose::Output);
/// assert_eq!(whole["properties"]["title"]["type"][0], "string");
/// # Ok::<(), bindpost_mcp_openapi::DocumentError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The service's name.
    pub title: String,
    /// The version of its interface.
    pub version: String,
    /// What it is.
    pub description: Option<String>,
    /// Where it is, if the document says so: absolute addresses first.
    pub servers: Vec<String>,
    /// Its operations, in the order of the document.
    pub operations: Vec<Operation>,
    /// Its named schemas. They refer to each other by `#/$defs/NAME`.
    ///
    /// One that stands for its subtypes has them in `oneOf`, beside `discriminator`; see [`Document::subtypes`].
    pub definitions: BTreeMap<String, Value>,
    /// What was passed over, and why: a reference that leads nowhere, a pattern that no engine takes.
    pub warnings: Vec<String>,
}

/// What a document may reach and how much of it is read.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Folders that references may lead to, besides the folders of the given files.
    pub roots: Vec<PathBuf>,
    /// The largest file that is read, in bytes.
    pub max_file_bytes: u64,
    /// The most files that are read, given and referenced.
    pub max_files: usize,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions { roots: Vec::new(), max_file_bytes: 64 * 1024 * 1024, max_files: 256 }
    }
}

impl Document {
    /// Reads files, or every document of a folder, as one document.
    ///
    /// Relative references lead to other files only below the folders of what was given and [`LoadOptions::roots`];
    /// nothing is ever fetched from a network. What cannot be resolved is left open and becomes a warning.
    pub fn load(paths: &[PathBuf], options: &LoadOptions) -> Result<Document, DocumentError> {
        let mut sources = SourceSet::new(options.clone());
        for path in paths {
            sources.add_path(path)?;
        }
        if sources.roots().is_empty() {
            let place = paths.first().map_or_else(|| "no file".to_owned(), |path| path.display().to_string());
            return Err(DocumentError::invalid(
                place,
                "there is no OpenAPI or Swagger document",
                "give a JSON or YAML file that has `openapi` or `swagger`, or a folder with one",
            ));
        }
        read::document(sources)
    }

    /// Reads one text, JSON or YAML. Its references cannot leave it; `name` is what messages call it.
    pub fn parse(text: &str, name: &str) -> Result<Document, DocumentError> {
        let mut sources = SourceSet::new(LoadOptions::default());
        sources.add_text(text, name)?;
        read::document(sources)
    }

    /// The operation of that id.
    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.id == id)
    }
}

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// What is wrong, where, and how to fix it.
    #[error("{place}: {problem}\n  fix: {fix}")]
    #[allow(missing_docs, reason = "the message says it")]
    Invalid { place: String, problem: String, fix: String },
}

impl DocumentError {
    pub(crate) fn invalid(
        place: impl Into<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> DocumentError {
        DocumentError::Invalid { place: place.into(), problem: problem.into(), fix: fix.into() }
    }
}
