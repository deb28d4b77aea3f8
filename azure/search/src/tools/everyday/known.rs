//! A cache of index properties that searches need: vector fields and suggesters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::service::failure::Kind;
use crate::shared::SearchServerState;
use crate::tools::reading::ServiceReader;

/// Lifetime of a cache entry.
const FRESH: Duration = Duration::from_secs(30);
/// Maximum number of cached indexes.
const MAX_INDEXES: usize = 1_000;

/// Cached properties of an index.
#[derive(Debug, Default)]
pub(super) struct IndexFacts {
    /// The names of vector fields at the root.
    pub(super) vectors: Vec<String>,
    /// The names of its suggesters. The service allows one.
    pub(super) suggesters: Vec<String>,
}

/// Time of the read, and the properties. `None` if the key cannot read the definition.
type Read = (Instant, Option<Arc<IndexFacts>>);

/// A cache of the properties of all indexes.
#[derive(Debug, Default)]
pub(crate) struct IndexCache(Mutex<HashMap<String, Read>>);

impl IndexCache {
    /// Returns the properties of an index, or of the index of an alias. Returns `None` if its
    /// definition cannot be read: it does not exist, or the key is a query key.
    pub(super) async fn index(&self, shared: &SearchServerState, name: &str) -> Option<Arc<IndexFacts>> {
        if let Some((read, facts)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            && read.elapsed() < FRESH
        {
            return facts.clone();
        }
        let facts = match ServiceReader::new(shared, None).index(name).await {
            Ok(index) => Some(Arc::new(IndexFacts::from_definition(&index.json))),
            // The key will be the same in the next search.
            Err(failure) if failure.kind == Kind::Unauthorized => None,
            Err(_) => return None,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_INDEXES {
            known.retain(|_, (read, _)| read.elapsed() < FRESH);
        }
        if known.len() < MAX_INDEXES {
            known.insert(name.to_owned(), (Instant::now(), facts.clone()));
        }
        facts
    }
}

impl IndexFacts {
    fn from_definition(definition: &Value) -> IndexFacts {
        let list = |name: &str| definition.get(name).and_then(Value::as_array).into_iter().flatten();
        let name_of = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
        let holds_vectors = |field: &&Value| field.get("dimensions").is_some_and(Value::is_number);
        IndexFacts {
            vectors: list("fields").filter(holds_vectors).filter_map(name_of).collect(),
            suggesters: list("suggesters").filter_map(name_of).collect(),
        }
    }
}
