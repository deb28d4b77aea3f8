//! Processes the blobs of a run: skips unchanged blobs, then parses, maps and indexes the others in batches.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::time::Instant;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::field::IndexSchema;
use serde_json::{Map, Value};

use super::{IndexerJob, IndexerRun};
use crate::indexers::RedbState;
use crate::indexers::mapping::{BlobItem, FieldMapper};
use crate::indexers::parse::{self, ParsedItem};
use crate::indexers::skills::tree::{EnrichmentNode, estimated_bytes};
use crate::indexers::source::{Blob, BlobContainer, DeletionPolicy};
use crate::indexers::state::{BlobState, StateError};
use crate::indexers::status::IndexerLimits;

/// Why a run ends before its last blob.
pub(super) enum RunStopReason {
    /// The definition must be changed.
    Definition(ApiError),
    /// The next run may succeed.
    Message(String),
    /// There is no error. The next run continues from here.
    Early(String),
}

pub(super) struct IndexerPass<'a> {
    store: &'a RedbState,
    pub(super) job: &'a IndexerJob,
    pub(super) run: &'a IndexerRun,
    pub(super) source: &'a BlobContainer,
    limits: &'a IndexerLimits,
    key_field: &'a str,
    mapper: FieldMapper<'a>,
    /// Actions that wait for a full batch.
    pending: Vec<PendingAction>,
    /// Their approximate size in bytes.
    pending_bytes: usize,
    /// Blobs with pending actions, oldest first. The last one may still be in progress.
    pub(super) open: Vec<OpenBlob>,
    pub(super) failed_in_batch: u64,
    /// Hashes of the keys that this run wrote. They are kept only if documents of missing blobs are deleted.
    written: HashSet<u64>,
    /// Whether the state of blobs is written. False while single documents are processed again.
    keeps_state: bool,
}

struct PendingAction {
    action: Map<String, Value>,
    key: String,
    blob: usize,
    deletes: bool,
}

pub(super) struct OpenBlob {
    name: String,
    state: BlobState,
    before: Option<BlobState>,
    finished: bool,
    pub(super) failed: bool,
}

/// The maximum number of recorded keys per blob, unless deletions need all keys.
const KEPT_KEYS: usize = 10_000;
/// A batch of this size is sent before it has its full number of items.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

impl<'a> IndexerPass<'a> {
    pub(super) fn new(
        store: &'a RedbState,
        job: &'a IndexerJob,
        run: &'a IndexerRun,
        source: &'a BlobContainer,
        schema: &'a IndexSchema,
        limits: &'a IndexerLimits,
    ) -> Result<Self, RunStopReason> {
        Ok(Self {
            store,
            job,
            run,
            source,
            limits,
            key_field: &schema.key().name,
            mapper: FieldMapper::new(&job.indexer, schema).map_err(RunStopReason::Definition)?,
            pending: Vec::new(),
            pending_bytes: 0,
            open: Vec::new(),
            failed_in_batch: 0,
            written: HashSet::new(),
            keeps_state: true,
        })
    }

    /// Processes all new and changed blobs, then deletes the documents of missing blobs.
    pub(super) fn process_all(&mut self) -> Result<(), RunStopReason> {
        let ended = self.process_changed();
        if let Err(RunStopReason::Early(_)) = ended {
            self.keep_finished(true)?;
        }
        ended?;
        if self.job.source.deletion == DeletionPolicy::Missing {
            self.remove_missing()?;
        }
        Ok(())
    }

    fn process_changed(&mut self) -> Result<(), RunStopReason> {
        for blob in self.source.blobs() {
            self.check()?;
            if !self.job.indexer.parsing.includes(&blob.name) {
                continue;
            }
            let known = self.store.blob(&self.job.indexer.name, &blob.name).map_err(lost)?;
            let same = |known: &BlobState| known.modified == blob.modified && known.size == blob.size;
            if !known.as_ref().is_some_and(same) {
                self.process_blob(&blob, known, None)?;
            }
        }
        self.flush()
    }

    /// Processes single documents, or all documents of single blobs, again.
    pub(super) fn process_again(
        &mut self,
        keys: &BTreeSet<String>,
        blobs: &BTreeSet<String>,
    ) -> Result<(), RunStopReason> {
        self.keeps_state = false;
        for blob in self.source.blobs() {
            self.check()?;
            if !self.job.indexer.parsing.includes(&blob.name) {
                continue;
            }
            if blobs.contains(&blob.name) || blobs.contains(&self.source.address(&blob.name)) {
                self.process_blob(&blob, None, None)?;
                continue;
            }
            let known = self.store.blob(&self.job.indexer.name, &blob.name).map_err(lost)?;
            let holds =
                |known: &BlobState| !known.all_keys || known.keys.iter().any(|key| keys.contains(key));
            if known.as_ref().is_some_and(holds) {
                self.process_blob(&blob, known, Some(keys))?;
            }
        }
        self.flush()
    }

    fn process_blob(
        &mut self,
        blob: &Blob,
        before: Option<BlobState>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<(), RunStopReason> {
        let state = BlobState { modified: blob.modified, size: blob.size, keys: Vec::new(), all_keys: true };
        self.open.push(OpenBlob { name: blob.name.clone(), state, before, finished: false, failed: false });
        let metadata = parse::blob_metadata(self.source, blob);
        match parse::parse_blob(self.source, blob, &self.job.indexer.parsing, self.limits) {
            Err(failure) => self.record_unreadable(blob, failure)?,
            Ok(items) => {
                for item in items {
                    self.check()?;
                    match item {
                        Ok(item) => self.process_item(blob, &metadata, item, only)?,
                        Err(failure) => {
                            let last = failure.last;
                            self.record_unreadable(blob, failure)?;
                            if last {
                                break;
                            }
                        }
                    }
                }
            }
        }
        if let Some(open) = self.open.last_mut() {
            open.finished = true;
        }
        // Blobs without documents must not accumulate either.
        if self.open.len() >= self.job.indexer.batch_size { self.flush() } else { Ok(()) }
    }

    fn process_item(
        &mut self,
        blob: &Blob,
        metadata: &Map<String, Value>,
        item: ParsedItem,
        only: Option<&BTreeSet<String>>,
    ) -> Result<(), RunStopReason> {
        let ParsedItem { fields, number, warnings } = item;
        let deletes = match &self.job.source.deletion {
            DeletionPolicy::Marked { column, marker } => fields
                .get(column)
                .or_else(|| metadata.get(column))
                .is_some_and(|value| is_marker(value, marker)),
            _ => false,
        };
        for warning in warnings {
            self.warn(blob, warning, self.extraction());
        }
        let tree = self.job.skillset.as_ref().filter(|_| !deletes).map(|skillset| {
            let mut tree = EnrichmentNode::document(&fields, metadata);
            for warning in skillset.enrich(&mut tree) {
                let name = format!("Enrichment.{}", warning.skill);
                self.warn(blob, warning.message, name);
            }
            tree
        });
        let mut document = match self.mapper.map(BlobItem { fields, metadata, number }, tree.as_ref()) {
            Ok(document) => document,
            Err(message) => {
                let place = number
                    .map_or_else(|| blob.name.clone(), |number| format!("{}, item {number}", blob.name));
                return self.fail_item(
                    self.source.address(&blob.name),
                    message,
                    400,
                    "FieldMapping".to_owned(),
                    Some(place),
                );
            }
        };
        let Some(Value::String(key)) = document.get(self.key_field) else { return Ok(()) };
        let key = key.clone();
        if only.is_some_and(|only| !only.contains(&key)) {
            return Ok(());
        }
        if deletes {
            document.retain(|name, _| name == self.key_field);
        }
        document.insert(
            "@search.action".to_owned(),
            Value::from(if deletes { "delete" } else { "mergeOrUpload" }),
        );
        let blob = self.open.len().saturating_sub(1);
        self.pending_bytes += document.values().map(estimated_bytes).sum::<usize>();
        self.pending.push(PendingAction { action: document, key, blob, deletes });
        let full = self.pending.len() >= self.job.indexer.batch_size || self.pending_bytes >= BATCH_BYTES;
        if full { self.flush() } else { Ok(()) }
    }

    /// Sends the pending actions and records the state of finished blobs.
    pub(super) fn flush(&mut self) -> Result<(), RunStopReason> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let keeps_all = self.job.source.deletion == DeletionPolicy::Missing;
        let mut facts = Vec::with_capacity(pending.len());
        let mut actions = Vec::with_capacity(pending.len());
        for PendingAction { action, key, blob, deletes } in pending {
            actions.push(action);
            facts.push((key, blob, deletes));
        }
        let too_many = self.apply(actions, |pass, at, ok| {
            let Some((key, blob, deletes)) = facts.get_mut(at) else { return };
            let Some(open) = pass.open.get_mut(*blob) else { return };
            open.failed |= !ok;
            if !ok || *deletes {
                return;
            }
            if keeps_all {
                pass.written.insert(hash(key));
            }
            if keeps_all || open.state.keys.len() < KEPT_KEYS {
                open.state.keys.push(std::mem::take(key));
            } else {
                open.state.all_keys = false;
            }
        })?;
        self.failed_in_batch = 0;
        self.keep_finished(too_many.is_some())?;
        too_many.map_or(Ok(()), |message| Err(RunStopReason::Message(message)))
    }

    /// Applies actions. Returns the final message of the run if too many actions failed.
    fn apply(
        &mut self,
        actions: Vec<Map<String, Value>>,
        mut done: impl FnMut(&mut Self, usize, bool),
    ) -> Result<Option<String>, RunStopReason> {
        let mut too_many = None;
        if actions.is_empty() {
            return Ok(too_many);
        }
        let sent = actions.len();
        let outcomes =
            self.job.target.apply(actions).map_err(|error| RunStopReason::Message(error.message))?;
        if outcomes.len() != sent {
            return Err(RunStopReason::Message(
                "The index did not return a result for each document.".to_owned(),
            ));
        }
        for (at, outcome) in outcomes.into_iter().enumerate() {
            self.run.add_processed(1);
            if !outcome.ok {
                let message = outcome.message.unwrap_or_else(|| "The document was rejected.".to_owned());
                let name = format!("Indexing.{}", self.job.indexer.target_index);
                too_many = self.record_failure(outcome.key, message, outcome.status, name, None).or(too_many);
            }
            done(self, at, outcome.ok);
        }
        Ok(too_many)
    }

    fn keep_finished(&mut self, stopping: bool) -> Result<(), RunStopReason> {
        let unfinished = self.open.iter().position(|open| !open.finished).unwrap_or(self.open.len());
        // A blob with pending actions is not finished, even if it was read to its end.
        let split = self.pending.first().map_or(unfinished, |waiting| waiting.blob.min(unfinished));
        let finished: Vec<OpenBlob> = self.open.drain(..split).collect();
        if !self.keeps_state {
            return Ok(());
        }
        let mut changes = Vec::new();
        for open in finished {
            // A run that ends because of failures processes the same blobs again.
            if stopping && open.failed {
                continue;
            }
            if self.job.source.deletion == DeletionPolicy::Missing
                && !open.failed
                && let Some(before) = &open.before
            {
                self.remove(&before.keys)?;
            }
            let mut state = open.state;
            if open.failed
                && let Some(before) = open.before
            {
                // Documents of items that failed now may still be in the index.
                let known: HashSet<&String> = state.keys.iter().collect();
                let old: Vec<String> = before.keys.into_iter().filter(|key| !known.contains(key)).collect();
                state.keys.extend(old);
            }
            changes.push((open.name, Some(state)));
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.store.save(&self.job.indexer.name, changes).map_err(lost)
    }

    fn remove_missing(&mut self) -> Result<(), RunStopReason> {
        let indexer = &self.job.indexer.name;
        for name in self.store.blob_names(indexer).map_err(lost)? {
            self.check()?;
            if self.source.exists(&name) {
                continue;
            }
            if let Some(state) = self.store.blob(indexer, &name).map_err(lost)? {
                self.remove(&state.keys)?;
                if !state.all_keys {
                    let message = format!(
                        "Blob '{name}' was deleted, but not all of its document keys were recorded. Some documents may remain."
                    );
                    self.run.add_warning(Some(self.source.address(&name)), message, None, None);
                }
            }
            self.store.save(indexer, vec![(name, None)]).map_err(lost)?;
        }
        Ok(())
    }

    /// Deletes documents, except those that this run wrote from other blobs.
    fn remove(&mut self, keys: &[String]) -> Result<(), RunStopReason> {
        let stale: Vec<&String> = keys.iter().filter(|key| !self.written.contains(&hash(key))).collect();
        for batch in stale.chunks(self.job.indexer.batch_size) {
            let actions = batch.iter().map(|key| {
                let action = [("@search.action", "delete"), (self.key_field, key.as_str())];
                action.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
            });
            let actions = actions.collect();
            if let Some(message) = self.apply(actions, |_, _, _| {})? {
                return Err(RunStopReason::Message(message));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), RunStopReason> {
        if self.run.cancelled.load(Ordering::Acquire) {
            return Err(RunStopReason::Early("The run was cancelled.".to_owned()));
        }
        if Instant::now() >= self.run.deadline {
            let message = "The run reached its time limit. The next run continues from here.";
            return Err(RunStopReason::Early(message.to_owned()));
        }
        Ok(())
    }
}

fn is_marker(value: &Value, marker: &str) -> bool {
    match value {
        Value::String(text) => text == marker,
        Value::Bool(value) => marker.eq_ignore_ascii_case(if *value { "true" } else { "false" }),
        Value::Number(number) => number.to_string() == marker,
        _ => false,
    }
}

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn lost(error: StateError) -> RunStopReason {
    RunStopReason::Message(ApiError::internal("writing the state of an indexer", error).message)
}
