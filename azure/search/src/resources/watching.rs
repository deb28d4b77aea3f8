//! Polls the indexers whose status resources have subscribers, and notifies them of changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_server::{Server, UriTemplate};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::service::client::odata_key;
use crate::shared::SearchServerState;

/// Poll interval of a subscribed indexer.
const EVERY: Duration = Duration::from_secs(4);
/// Interval at which the list of subscriptions is read, which is cheap. The first poll follows a
/// subscription this soon.
const SOON: Duration = Duration::from_millis(50);

/// The polling task. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "subscribers are no longer notified once this is dropped"]
pub struct IndexerWatch(JoinHandle<()>);

impl Drop for IndexerWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts to poll the indexers with subscribers. Without subscriptions no request is sent to the
/// service. Must be called within a tokio runtime.
pub fn watch_indexers(server: &Server, shared: &Arc<SearchServerState>) -> IndexerWatch {
    IndexerWatch(tokio::spawn(poll_watched_indexers(server.clone(), shared.clone())))
}

/// The last polled state of an indexer, and its time.
struct ObservedState {
    at: Instant,
    state: Value,
}

async fn poll_watched_indexers(server: Server, shared: Arc<SearchServerState>) {
    let mut seen: HashMap<String, ObservedState> = HashMap::new();
    // The start of each subscription. Runs since then are reported even by the first poll.
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

/// Returns the name of the indexer in a status URI.
fn indexer_of(uri: &str) -> Option<String> {
    let template = UriTemplate::parse("search://indexers/{name}/status").ok()?;
    template.matches(uri)?.into_iter().next().map(|(_, name)| name)
}

/// Returns whether the last run began or ended after this time. Differing clocks may cause one
/// superfluous notification.
fn happened_after(state: &Value, time: DateTime<Utc>) -> bool {
    let times = ["/1/startTime", "/1/endTime"].into_iter().filter_map(|place| state.pointer(place)?.as_str());
    times.filter_map(|text| DateTime::parse_from_rfc3339(text).ok()).any(|at| at > time)
}

/// Returns the relevant part of an indexer's state, or `None` if it cannot be read now.
async fn state_of(shared: &SearchServerState, name: &str) -> Option<Value> {
    match shared.client.get(format!("indexers{}/search.status", odata_key(name))).send().await {
        Ok(answer) => Some(json!([answer.body.get("status"), answer.body.get("lastResult")])),
        Err(failure) if failure.status == Some(404) => Some(Value::Null),
        Err(failure) => {
            tracing::debug!(indexer = name, failure = %failure.to_json(), "cannot read the indexer's status");
            None
        }
    }
}
