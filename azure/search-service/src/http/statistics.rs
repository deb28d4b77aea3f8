//! The JSON formats of statistics.

use serde_json::{Value, json};

use crate::resources::{ResourceKind, ResourceRegistry};

/// The size of an index, or of all indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexSize {
    pub documents: u64,
    pub storage_bytes: u64,
    pub vector_bytes: u64,
}

impl std::iter::Sum for IndexSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, size| Self {
            documents: sum.documents + size.documents,
            storage_bytes: sum.storage_bytes + size.storage_bytes,
            vector_bytes: sum.vector_bytes + size.vector_bytes,
        })
    }
}

/// Returns the body for `/indexes('x')/search.stats`.
pub fn index_statistics(size: IndexSize) -> Value {
    json!({
        "documentCount": size.documents,
        "storageSize": size.storage_bytes,
        "vectorIndexSize": size.vector_bytes,
    })
}

/// Returns the body for `/indexstats`, with all indexes by name.
pub fn all_index_statistics<'a>(indexes: impl IntoIterator<Item = (&'a str, IndexSize)>) -> Value {
    let rows = indexes.into_iter().map(|(name, size)| {
        let mut row = index_statistics(size);
        row["name"] = name.into();
        row
    });
    json!({"value": rows.collect::<Vec<_>>()})
}

/// Returns the body for `/servicestats`. This service has no quotas, only limits of one index.
pub fn service_statistics(resources: &ResourceRegistry, total: IndexSize) -> Value {
    let used = |usage: u64| json!({"usage": usage, "quota": null});
    let number = |kind| used(u64::try_from(resources.count(kind)).unwrap_or(u64::MAX));
    json!({
        "counters": {
            "aliasesCount": number(ResourceKind::Alias),
            "documentCount": used(total.documents),
            "indexesCount": number(ResourceKind::Index),
            "indexersCount": number(ResourceKind::Indexer),
            "dataSourcesCount": number(ResourceKind::DataSource),
            "storageSize": used(total.storage_bytes),
            "synonymMaps": number(ResourceKind::SynonymMap),
            "skillsetCount": number(ResourceKind::Skillset),
            "vectorIndexSize": used(total.vector_bytes),
        },
        "limits": {
            "maxFieldsPerIndex": 1000,
            "maxFieldNestingDepthPerIndex": 10,
            "maxComplexCollectionFieldsPerIndex": 40,
            "maxComplexObjectsInCollectionsPerDocument": 3000,
            "maxStoragePerIndex": null,
        },
    })
}
