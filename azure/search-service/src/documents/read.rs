//! Reads stored documents, for merging and for rebuilding an index.

use super::Document;
use super::shape::DocumentShape;
use super::walk::DocumentCanonicalizer;

/// Reads a document from canonical JSON. Fields that were added to the schema later are filled in, so
/// that `json` of the result is canonical for the current schema. Fields that are not in the schema are
/// dropped. They can be left over from an index update that failed after documents were written.
///
/// An error means that the store is damaged, or belongs to another schema.
pub fn read_document(stored: &[u8], shape: &DocumentShape) -> Result<Document, String> {
    check_document(stored, shape).map(|(document, _)| document)
}

/// Reads a document. Also returns the reason why it must not be stored, if any.
pub(super) fn check_document(
    json: &[u8],
    shape: &DocumentShape,
) -> Result<(Document, Option<String>), String> {
    let text = std::str::from_utf8(json).map_err(|_| "The document is not UTF-8.".to_owned())?;
    let mut walk = DocumentCanonicalizer::for_stored();
    walk.open(text, &shape.root)?;
    let mut json = Vec::with_capacity(text.len() + 16);
    walk.write(&shape.root, true, &mut json)?;
    let key = walk.key.ok_or("The document has no key.")?;
    Ok((Document { key, json, values: walk.values }, walk.problem))
}
