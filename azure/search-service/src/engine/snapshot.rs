//! A consistent state of an index for one request.

use std::collections::HashMap;
use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use tantivy::columnar::Column;
use tantivy::{DocAddress, Searcher};

use super::plan::IndexPlan;
use super::store::StoreView;
use crate::vectors::VectorView;

pub struct IndexSnapshot {
    pub plan: Arc<IndexPlan>,
    pub searcher: Searcher,
    pub documents: Arc<StoreView>,
    /// Vectors by the path of their field.
    pub vectors: HashMap<String, VectorView>,
    /// The last batch in the snapshot.
    pub batch: u64,
    /// The numbers of documents, by segment. Opening the column takes longer than reading it.
    numbers: Vec<Column<u64>>,
}

impl IndexSnapshot {
    pub fn new(
        plan: Arc<IndexPlan>,
        searcher: Searcher,
        documents: Arc<StoreView>,
        vectors: HashMap<String, VectorView>,
        batch: u64,
    ) -> Result<Self, ApiError> {
        let name = plan.columns.schema().get_field_name(plan.columns.number);
        let segments = searcher.segment_readers().iter();
        let numbers = segments.map(|segment| segment.fast_fields().u64(name)).collect::<Result<_, _>>();
        let numbers =
            numbers.map_err(|error| ApiError::internal("reading the numbers of documents", error))?;
        Ok(Self { plan, searcher, documents, vectors, batch, numbers })
    }

    /// Returns the number of a matching document in the store.
    pub fn number(&self, address: DocAddress) -> Option<u64> {
        self.numbers.get(address.segment_ord as usize)?.first(address.doc_id)
    }
}
