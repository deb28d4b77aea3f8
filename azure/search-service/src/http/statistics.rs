//! The shapes of statistics.

use serde_json::{Value, json};

use crate::resources::{Kind, Resources};

/// How large something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub documents: u64,
    pub storage_bytes: u64,
    pub vector_bytes: u64,
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, size| Self {
            documents: sum.documents + size.documents,
            storage_bytes: sum.storage_bytes + size.storage_bytes,
            vector_bytes: sum.vector_bytes + size.vector_bytes,
        })
    }
}

/// For `/indexes('x')/search.stats`.
pub fn of_index(size: Size) -> Value {
    json!({
        "documentCount": size.documents,
        "storageSize": size.storage_bytes,
        "vectorIndexSize": size.vector_bytes,
    })
}

/// For `/indexstats`: every index with its name.
pub fn of_indexes<'a>(indexes: impl IntoIterator<Item = (&'a str, Size)>) -> Value {
    let rows = indexes.into_iter().map(|(name, size)| {
        let mut row = of_index(size);
        row["name"] = name.into();
        row
    });
    json!({"value": rows.collect::<Vec<_>>()})
}

/// For `/servicestats`. There are no quotas here, so none is named but in the limits of one index.
pub fn of_service(resources: &Resources, total: Size) -> Value {
    let used = |usage: u64| json!({"usage": usage, "quota": null});
    let number = |kind| used(u64::try_from(resources.count(kind)).unwrap_or(u64::MAX));
    json!({
        "counters": {
            "aliasesCount": number(Kind::Alias),
            "documentCount": used(total.documents),
            "indexesCount": number(Kind::Index),
            "indexersCount": number(Kind::Indexer),
            "dataSourcesCount": number(Kind::DataSource),
            "storageSize": used(total.storage_bytes),
            "synonymMaps": number(Kind::SynonymMap),
            "skillsetCount": number(Kind::Skillset),
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
