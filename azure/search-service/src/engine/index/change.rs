//! The actions of a batch, applied to the store one by one.

use super::vector_fields::VectorFields;
use crate::documents::{self, Action, Document, Item, Outcome};
use crate::engine::plan::Plan;
use crate::engine::store::{Batch, StoreError};

/// A document that a batch has changed.
pub(super) struct Change {
    pub(super) number: u64,
    /// It was there before, perhaps from an earlier action of the same batch.
    pub(super) existed: bool,
    /// `None` when it was deleted.
    pub(super) document: Option<Document>,
}

/// Applies actions and remembers what they changed.
pub(super) struct Changes<'a> {
    plan: &'a Plan,
    vectors: &'a VectorFields,
    done: Vec<Change>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(plan: &'a Plan, vectors: &'a VectorFields, count: usize) -> Self {
        Self { plan, vectors, done: Vec::with_capacity(count) }
    }

    pub(super) fn done(self) -> Vec<Change> {
        self.done
    }

    pub(super) fn apply(&mut self, item: Item, batch: &mut Batch<'_>) -> Result<Outcome, StoreError> {
        let Item { key, action, .. } = item;
        let shape = &self.plan.shape;
        let (document, number) = match action {
            Err(reason) => return Ok(Outcome::refused(key, reason)),
            Ok(Action::Delete) => {
                if let Some(number) = batch.delete(&key)? {
                    self.vectors.store(number, None, batch)?;
                    self.done.push(Change { number, existed: true, document: None });
                }
                return Ok(Outcome::done(key));
            }
            Ok(Action::Upload(document)) => (Ok(document), batch.number(&key)?),
            Ok(Action::Merge(patch)) => match batch.get(&key)? {
                Some((number, stored)) => (documents::merge(&stored, &patch, shape), Some(number)),
                None => return Ok(Outcome::missing(key)),
            },
            Ok(Action::MergeOrUpload(patch)) => match batch.get(&key)? {
                Some((number, stored)) => (documents::merge(&stored, &patch, shape), Some(number)),
                None => (patch.upload(shape), None),
            },
        };
        let document = match document {
            Ok(document) => document,
            Err(reason) => return Ok(Outcome::refused(key, reason)),
        };
        let existed = number.is_some();
        let number = batch.put(&key, number, &document.json)?;
        self.vectors.store(number, Some(&document), batch)?;
        self.done.push(Change { number, existed, document: Some(document) });
        Ok(if existed { Outcome::done(key) } else { Outcome::created(key) })
    }
}
