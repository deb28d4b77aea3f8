//! Stored documents, read again: for merging, and to build an index anew.

use super::Document;
use super::shape::DocumentShape;
use super::walk::DocumentCanonicalizer;

/// The document behind canonical JSON. Fields that the schema got after it was stored are filled in, so that `json` of
/// the result is canonical for the schema of today. Fields that the schema does not have are left out: an update that
/// failed after documents were written for it leaves some.
///
/// The error means that the store is damaged, or belongs to another schema.
pub fn read_document(stored: &[u8], shape: &DocumentShape) -> Result<Document, String> {
    check_document(stored, shape).map(|(document, _)| document)
}

/// The document, and what keeps it from being stored.
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
