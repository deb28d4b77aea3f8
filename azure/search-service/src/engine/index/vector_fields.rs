//! The vector fields of an index. Vectors have their own table in the store, so they are loaded without
//! their documents.

use std::collections::HashMap;
use std::sync::Arc;

use bindpost_azure_search_model::ApiError;

use super::change::ChangedDocument;
use crate::documents::{Document, FieldValue};
use crate::engine::plan::IndexPlan;
use crate::engine::store::{DocumentStoreError, StoreBatch, StoreView};
use crate::vectors::{self, VectorSet, VectorView};

pub(super) struct VectorFields {
    fields: Vec<IndexedVectorField>,
}

struct IndexedVectorField {
    path: String,
    /// The position among the leaves of the schema.
    leaf: usize,
    /// The key of the field's vectors in the store. It does not change when other fields are added.
    place: u32,
    set: Arc<VectorSet>,
}

impl VectorFields {
    pub(super) fn load(plan: &IndexPlan, view: &StoreView) -> Result<Self, ApiError> {
        let mut fields = Vec::new();
        for (leaf, field) in plan.leaves.iter().enumerate().filter(|(_, field)| field.vector.is_some()) {
            let settings = field.vector.as_ref().and_then(|vector| plan.vector_search.settings(vector));
            let Some(settings) = settings else { continue };
            let set = VectorSet::new(settings);
            let place = path_hash(&field.path);
            let mut batch = set.batch();
            let mut vector = Vec::new();
            view.for_each_vector(place, |number, bytes| {
                vector.clear();
                if vectors::decode_into(bytes, &mut vector) {
                    // The length was checked when the vector was written.
                    let _ = batch.insert(number, &vector);
                }
            })?;
            set.apply(batch);
            fields.push(IndexedVectorField { path: field.path.clone(), leaf, place, set: Arc::new(set) });
        }
        Ok(Self { fields })
    }

    pub(super) fn sets(&self) -> Vec<Arc<VectorSet>> {
        self.fields.iter().map(|field| Arc::clone(&field.set)).collect()
    }

    pub(super) fn views(&self) -> HashMap<String, VectorView> {
        self.fields.iter().map(|field| (field.path.clone(), field.set.view())).collect()
    }

    pub(super) fn store(
        &self,
        number: u64,
        document: Option<&Document>,
        batch: &mut StoreBatch<'_>,
    ) -> Result<(), DocumentStoreError> {
        for field in &self.fields {
            match document.and_then(|document| field.vector(document)) {
                Some(vector) => batch.put_vector(field.place, number, &vectors::encode(vector))?,
                None => batch.delete_vector(field.place, number)?,
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, changes: &[ChangedDocument]) {
        for field in &self.fields {
            let mut batch = field.set.batch();
            for change in changes {
                match change.document.as_ref().and_then(|document| field.vector(document)) {
                    Some(vector) => {
                        let _ = batch.insert(change.number, vector);
                    }
                    None if change.existed => batch.remove(change.number),
                    None => {}
                }
            }
            field.set.apply(batch);
        }
    }
}

impl IndexedVectorField {
    fn vector<'a>(&self, document: &'a Document) -> Option<&'a [f32]> {
        document.values.iter().find_map(|(leaf, value)| match value {
            FieldValue::Vector(vector) if *leaf == self.leaf => Some(vector.as_slice()),
            _ => None,
        })
    }
}

/// Hashes a path with FNV-1a, which gives the same result in every version of the program.
fn path_hash(path: &str) -> u32 {
    path.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
