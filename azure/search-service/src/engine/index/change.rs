//! Applies the actions of a batch to the store one by one.

use super::vector_fields::VectorFields;
use crate::documents::{self, BatchEntry, Document, DocumentAction, IndexingResult};
use crate::engine::plan::IndexPlan;
use crate::engine::store::{DocumentStoreError, StoreBatch};

/// A document that a batch has changed.
pub(super) struct ChangedDocument {
    pub(super) number: u64,
    /// The document existed before this action, possibly from an earlier action of the same batch.
    pub(super) existed: bool,
    /// `None` when it was deleted.
    pub(super) document: Option<Document>,
}

/// Applies actions and records the changed documents.
pub(super) struct BatchApplier<'a> {
    plan: &'a IndexPlan,
    vectors: &'a VectorFields,
    done: Vec<ChangedDocument>,
}

impl<'a> BatchApplier<'a> {
    pub(super) fn new(plan: &'a IndexPlan, vectors: &'a VectorFields, count: usize) -> Self {
        Self { plan, vectors, done: Vec::with_capacity(count) }
    }

    pub(super) fn into_changes(self) -> Vec<ChangedDocument> {
        self.done
    }

    pub(super) fn apply(
        &mut self,
        item: BatchEntry,
        batch: &mut StoreBatch<'_>,
    ) -> Result<IndexingResult, DocumentStoreError> {
        let BatchEntry { key, action, .. } = item;
        let shape = &self.plan.shape;
        let (document, number) = match action {
            Err(reason) => return Ok(IndexingResult::refused(key, reason)),
            Ok(DocumentAction::Delete) => {
                if let Some(number) = batch.delete(&key)? {
                    self.vectors.store(number, None, batch)?;
                    self.done.push(ChangedDocument { number, existed: true, document: None });
                }
                return Ok(IndexingResult::done(key));
            }
            Ok(DocumentAction::Upload(document)) => (Ok(document), batch.number(&key)?),
            Ok(DocumentAction::Merge(patch)) => match batch.get(&key)? {
                Some((number, stored)) => (documents::merge(&stored, &patch, shape), Some(number)),
                None => return Ok(IndexingResult::missing(key)),
            },
            Ok(DocumentAction::MergeOrUpload(patch)) => match batch.get(&key)? {
                Some((number, stored)) => (documents::merge(&stored, &patch, shape), Some(number)),
                None => (patch.to_document(shape), None),
            },
        };
        let document = match document {
            Ok(document) => document,
            Err(reason) => return Ok(IndexingResult::refused(key, reason)),
        };
        let existed = number.is_some();
        let number = batch.put(&key, number, &document.json)?;
        self.vectors.store(number, Some(&document), batch)?;
        self.done.push(ChangedDocument { number, existed, document: Some(document) });
        Ok(if existed { IndexingResult::done(key) } else { IndexingResult::created(key) })
    }
}
