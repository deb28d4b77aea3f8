//! A parsed document: its operations and its definitions.

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

/// The content of one or several OpenAPI or Swagger files, in a common form for all versions.
///
/// ```
/// use bindpost_mcp_openapi::{Document, SchemaPurpose};
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
/// let whole = document.whole_schema(answer, SchemaPurpose::Output);
/// assert_eq!(whole["properties"]["title"]["type"][0], "string");
/// # Ok::<(), bindpost_mcp_openapi::DocumentError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The name of the service.
    pub title: String,
    /// The version of its interface.
    pub version: String,
    /// The description of the service.
    pub description: Option<String>,
    /// The addresses of the service, if the document has any. Absolute addresses come first.
    pub servers: Vec<String>,
    /// The operations, in the order of the document.
    pub operations: Vec<Operation>,
    /// The named schemas. They reference each other with `#/$defs/NAME`.
    ///
    /// A definition with subtypes lists them in `oneOf`, next
    /// to `discriminator`. See [`Document::subtypes`].
    pub definitions: BTreeMap<String, Value>,
    /// Problems that were ignored, such as unresolved references and unsupported patterns.
    pub warnings: Vec<String>,
}

/// Limits on the files that a document may reference.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Folders that may contain referenced files, besides the folders of the given files.
    pub roots: Vec<PathBuf>,
    /// The maximum size of a file, in bytes.
    pub max_file_bytes: u64,
    /// The maximum number of files, given and referenced together.
    pub max_files: usize,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions { roots: Vec::new(), max_file_bytes: 64 * 1024 * 1024, max_files: 256 }
    }
}

impl Document {
    /// Loads files, or every document in a folder, as one document.
    ///
    /// Relative references may lead to other files only below the folders of the given files and
    /// [`LoadOptions::roots`]. Nothing is fetched from a network. A reference that cannot be resolved
    /// accepts any value and adds a warning.
    pub fn load(paths: &[PathBuf], options: &LoadOptions) -> Result<Document, DocumentError> {
        let mut sources = SourceSet::new(options.clone());
        for path in paths {
            sources.add_path(path)?;
        }
        if sources.roots().is_empty() {
            let place = paths.first().map_or_else(|| "no file".to_owned(), |path| path.display().to_string());
            return Err(DocumentError::invalid(
                place,
                "no OpenAPI or Swagger document was found",
                "give a JSON or YAML file that has `openapi` or `swagger`, or a folder with one",
            ));
        }
        read::document(sources)
    }

    /// Parses one text, JSON or YAML. Its references cannot lead to other files. `name` identifies the
    /// text in messages.
    pub fn parse(text: &str, name: &str) -> Result<Document, DocumentError> {
        let mut sources = SourceSet::new(LoadOptions::default());
        sources.add_text(text, name)?;
        read::document(sources)
    }

    /// Returns the operation with this id.
    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.id == id)
    }
}

/// The reason why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The location of the problem, the problem and its fix.
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
