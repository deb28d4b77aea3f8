//! One moment of an index: everything that a request reads belongs together.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::{DocAddress, Searcher};

use super::plan::Plan;
use super::store::StoreView;
use crate::ApiError;
use crate::vectors::VectorView;

pub struct Snapshot {
    pub plan: Arc<Plan>,
    pub searcher: Searcher,
    pub documents: Arc<StoreView>,
    /// By the path of their field.
    pub vectors: HashMap<String, VectorView>,
    /// The last batch that is in it.
    pub batch: u64,
}

impl Snapshot {
    /// The number of a found document in the store.
    pub fn number(&self, address: DocAddress) -> Result<Option<u64>, ApiError> {
        let segment = self.searcher.segment_reader(address.segment_ord);
        let numbers =
            segment.fast_fields().u64(self.plan.columns.schema().get_field_name(self.plan.columns.number));
        let numbers = numbers.map_err(|error| ApiError::internal("reading found documents", error))?;
        Ok(numbers.first(address.doc_id))
    }
}
