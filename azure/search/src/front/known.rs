//! What searches know about the indexes they ask: which fields hold vectors, and the suggester.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Kind;
use crate::reading::ServiceReader;
use crate::shared::SearchServerState;

/// How long what was read of an index counts.
const FRESH: Duration = Duration::from_secs(30);
/// As many indexes as are remembered.
const MOST: usize = 1_000;

/// What is known of an index.
#[derive(Debug, Default)]
pub(super) struct IndexFacts {
    /// The names of fields at the root that hold vectors.
    pub(super) vectors: Vec<String>,
    /// The names of its suggesters; the service allows one.
    pub(super) suggesters: Vec<String>,
}

/// When it was read, and what; `None` if it must not be.
type Read = (Instant, Option<Arc<IndexFacts>>);

/// What is known of all indexes, for a while.
#[derive(Debug, Default)]
pub(crate) struct IndexCache(Mutex<HashMap<String, Read>>);

impl IndexCache {
    /// What is known of an index, or of the one an alias stands for; `None` if its definition cannot be read: there is
    /// none, or the key is one for queries only.
    pub(super) async fn index(&self, shared: &SearchServerState, name: &str) -> Option<Arc<IndexFacts>> {
        if let Some((read, facts)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            && read.elapsed() < FRESH
        {
            return facts.clone();
        }
        let facts = match ServiceReader::new(shared, None).index(name).await {
            Ok(index) => Some(Arc::new(IndexFacts::from_definition(&index.json))),
            // The key will not be another one by the next search.
            Err(failure) if failure.kind == Kind::Unauthorized => None,
            Err(_) => return None,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (read, _)| read.elapsed() < FRESH);
        }
        if known.len() < MOST {
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
