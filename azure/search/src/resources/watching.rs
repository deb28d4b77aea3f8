//! Looks after the indexers whose state somebody has subscribed to, and says when it changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_server::{Server, UriTemplate};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::client::odata_key;
use crate::shared::SearchServerState;

/// How often an indexer is looked at while somebody watches it.
const EVERY: Duration = Duration::from_secs(4);
/// How soon after a subscription the first look comes; looking at who watches costs nothing.
const SOON: Duration = Duration::from_millis(50);

/// Looks after indexers until it is dropped.
#[derive(Debug)]
#[must_use = "nobody is told of changes once this is dropped"]
pub struct IndexerWatch(JoinHandle<()>);

impl Drop for IndexerWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts to look after the indexers whose state somebody has subscribed to. Without subscriptions the service is asked
/// nothing. Must be called within a tokio runtime.
pub fn watch_indexers(server: &Server, shared: &Arc<SearchServerState>) -> IndexerWatch {
    IndexerWatch(tokio::spawn(poll_watched_indexers(server.clone(), shared.clone())))
}

/// What was seen of an indexer, and when.
struct ObservedState {
    at: Instant,
    state: Value,
}

async fn poll_watched_indexers(server: Server, shared: Arc<SearchServerState>) {
    let mut seen: HashMap<String, ObservedState> = HashMap::new();
    // When each was first found to be watched: runs since then are news, even to the first look.
    let mut since: HashMap<String, DateTime<Utc>> = HashMap::new();
    loop {
        tokio::time::sleep(SOON).await;
        let watched = server.watched_resources();
        seen.retain(|uri, _| watched.contains(uri));
        since.retain(|uri, _| watched.contains(uri));
        for uri in &watched {
            if !since.contains_key(uri) {
                since.insert(uri.clone(), Utc::now() - SOON);
            }
        }
        for uri in watched {
            let Some(name) = indexer_of(&uri) else { continue };
            if seen.get(&uri).is_some_and(|seen| seen.at.elapsed() < EVERY) {
                continue;
            }
            let Some(state) = state_of(&shared, &name).await else { continue };
            let before = seen.insert(uri.clone(), ObservedState { at: Instant::now(), state: state.clone() });
            let is_news = match before {
                Some(before) => before.state != state,
                None => since.get(&uri).is_some_and(|since| happened_after(&state, *since)),
            };
            if is_news {
                server.resource_updated(&uri);
            }
        }
    }
}

/// The indexer whose state a URI means.
fn indexer_of(uri: &str) -> Option<String> {
    let template = UriTemplate::parse("search://indexers/{name}/status").ok()?;
    template.matches(uri)?.into_iter().next().map(|(_, name)| name)
}

/// Whether the last run of a state began or ended after this time. A clock that goes wrong tells once too often.
fn happened_after(state: &Value, time: DateTime<Utc>) -> bool {
    let times = ["/1/startTime", "/1/endTime"].into_iter().filter_map(|place| state.pointer(place)?.as_str());
    times.filter_map(|text| DateTime::parse_from_rfc3339(text).ok()).any(|at| at > time)
}

/// What of an indexer's state makes a difference; `None` if it cannot be known now.
async fn state_of(shared: &SearchServerState, name: &str) -> Option<Value> {
    match shared.client.get(format!("indexers{}/search.status", odata_key(name))).send().await {
        Ok(answer) => Some(json!([answer.body.get("status"), answer.body.get("lastResult")])),
        Err(failure) if failure.status == Some(404) => Some(Value::Null),
        Err(failure) => {
            tracing::debug!(indexer = name, failure = %failure.to_json(), "its state cannot be read");
            None
        }
    }
}
