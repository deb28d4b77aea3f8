//! The way of blobs through a run: skipped when known, parsed, mapped, handed over in batches.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Map, Value};

use super::{Job, Run};
use crate::ApiError;
use crate::definition::field::Schema;
use crate::indexers::RedbState;
use crate::indexers::mapping::{Mapper, Piece};
use crate::indexers::parse::{self, Item};
use crate::indexers::skills::tree::{Node, weight};
use crate::indexers::source::{Blob, Deletion, Source};
use crate::indexers::state::{BlobState, StateError};
use crate::indexers::status::Limits;

/// Why a run ends before its last blob.
pub(super) enum Stop {
    /// Only a new definition helps.
    Definition(ApiError),
    /// The next run may fare better.
    Message(String),
    /// Nothing is wrong; the next run goes on from here.
    Early(String),
}

pub(super) struct Pass<'a> {
    store: &'a RedbState,
    pub(super) job: &'a Job,
    pub(super) run: &'a Run,
    pub(super) source: &'a Source,
    limits: &'a Limits,
    key_field: &'a str,
    mapper: Mapper<'a>,
    /// Actions that wait for their batch to be full.
    pending: Vec<Pending>,
    /// About how many bytes they take.
    pending_bytes: usize,
    /// Blobs with actions that wait, oldest first; the last may still be read.
    pub(super) open: Vec<Open>,
    pub(super) failed_in_batch: u64,
    /// Hashes of keys that this run wrote; kept only where documents of missing blobs are deleted.
    written: HashSet<u64>,
    /// The state of blobs is written; not while single documents are taken again.
    keeps_state: bool,
}

struct Pending {
    action: Map<String, Value>,
    key: String,
    blob: usize,
    deletes: bool,
}

pub(super) struct Open {
    name: String,
    state: BlobState,
    before: Option<BlobState>,
    finished: bool,
    pub(super) failed: bool,
}

/// Of blobs with more documents only the first keys are kept, unless deletions need them all.
const KEPT_KEYS: usize = 10_000;
/// A batch of long texts is handed over before it has all its items.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

impl<'a> Pass<'a> {
    pub(super) fn new(
        store: &'a RedbState,
        job: &'a Job,
        run: &'a Run,
        source: &'a Source,
        schema: &'a Schema,
        limits: &'a Limits,
    ) -> Result<Self, Stop> {
        Ok(Self {
            store,
            job,
            run,
            source,
            limits,
            key_field: &schema.key().name,
            mapper: Mapper::new(&job.indexer, schema).map_err(Stop::Definition)?,
            pending: Vec::new(),
            pending_bytes: 0,
            open: Vec::new(),
            failed_in_batch: 0,
            written: HashSet::new(),
            keeps_state: true,
        })
    }

    /// Takes all blobs that are new or changed, then removes documents of those that are gone.
    pub(super) fn all(&mut self) -> Result<(), Stop> {
        let ended = self.changed();
        if let Err(Stop::Early(_)) = ended {
            self.keep_finished(true)?;
        }
        ended?;
        if self.job.source.deletion == Deletion::Missing {
            self.remove_missing()?;
        }
        Ok(())
    }

    fn changed(&mut self) -> Result<(), Stop> {
        for blob in self.source.blobs() {
            self.check()?;
            if !self.job.indexer.parsing.wants(&blob.name) {
                continue;
            }
            let known = self.store.blob(&self.job.indexer.name, &blob.name).map_err(lost)?;
            let same = |known: &BlobState| known.modified == blob.modified && known.size == blob.size;
            if !known.as_ref().is_some_and(same) {
                self.blob(&blob, known, None)?;
            }
        }
        self.flush()
    }

    /// Takes single documents, or all documents of single blobs, once more.
    pub(super) fn again(&mut self, keys: &BTreeSet<String>, blobs: &BTreeSet<String>) -> Result<(), Stop> {
        self.keeps_state = false;
        for blob in self.source.blobs() {
            self.check()?;
            if !self.job.indexer.parsing.wants(&blob.name) {
                continue;
            }
            if blobs.contains(&blob.name) || blobs.contains(&self.source.address(&blob.name)) {
                self.blob(&blob, None, None)?;
                continue;
            }
            let known = self.store.blob(&self.job.indexer.name, &blob.name).map_err(lost)?;
            let holds =
                |known: &BlobState| !known.all_keys || known.keys.iter().any(|key| keys.contains(key));
            if known.as_ref().is_some_and(holds) {
                self.blob(&blob, known, Some(keys))?;
            }
        }
        self.flush()
    }

    fn blob(
        &mut self,
        blob: &Blob,
        before: Option<BlobState>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<(), Stop> {
        let state = BlobState { modified: blob.modified, size: blob.size, keys: Vec::new(), all_keys: true };
        self.open.push(Open { name: blob.name.clone(), state, before, finished: false, failed: false });
        let metadata = parse::metadata(self.source, blob);
        match parse::items(self.source, blob, &self.job.indexer.parsing, self.limits) {
            Err(failure) => self.unreadable(blob, failure)?,
            Ok(items) => {
                for item in items {
                    self.check()?;
                    match item {
                        Ok(item) => self.item(blob, &metadata, item, only)?,
                        Err(failure) => {
                            let last = failure.last;
                            self.unreadable(blob, failure)?;
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
        // Many blobs without documents must not gather either.
        if self.open.len() >= self.job.indexer.batch_size { self.flush() } else { Ok(()) }
    }

    fn item(
        &mut self,
        blob: &Blob,
        metadata: &Map<String, Value>,
        item: Item,
        only: Option<&BTreeSet<String>>,
    ) -> Result<(), Stop> {
        let Item { fields, number, warnings } = item;
        let deletes = match &self.job.source.deletion {
            Deletion::Marked { column, marker } => fields
                .get(column)
                .or_else(|| metadata.get(column))
                .is_some_and(|value| is_marker(value, marker)),
            _ => false,
        };
        for warning in warnings {
            self.warn(blob, warning, self.extraction());
        }
        let tree = self.job.skillset.as_ref().filter(|_| !deletes).map(|skillset| {
            let mut tree = Node::document(&fields, metadata);
            for warning in skillset.enrich(&mut tree) {
                let name = format!("Enrichment.{}", warning.skill);
                self.warn(blob, warning.message, name);
            }
            tree
        });
        let mut document = match self.mapper.map(Piece { fields, metadata, number }, tree.as_ref()) {
            Ok(document) => document,
            Err(message) => {
                let place = number
                    .map_or_else(|| blob.name.clone(), |number| format!("{}, item {number}", blob.name));
                return self.fail(
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
        self.pending_bytes += document.values().map(weight).sum::<usize>();
        self.pending.push(Pending { action: document, key, blob, deletes });
        let full = self.pending.len() >= self.job.indexer.batch_size || self.pending_bytes >= BATCH_BYTES;
        if full { self.flush() } else { Ok(()) }
    }

    /// Hands over what waits, and keeps the state of blobs that are done.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let keeps_all = self.job.source.deletion == Deletion::Missing;
        let mut facts = Vec::with_capacity(pending.len());
        let mut actions = Vec::with_capacity(pending.len());
        for Pending { action, key, blob, deletes } in pending {
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
        too_many.map_or(Ok(()), |message| Err(Stop::Message(message)))
    }

    /// Gives the message with which the run must end when too many actions failed.
    fn apply(
        &mut self,
        actions: Vec<Map<String, Value>>,
        mut done: impl FnMut(&mut Self, usize, bool),
    ) -> Result<Option<String>, Stop> {
        let mut too_many = None;
        if actions.is_empty() {
            return Ok(too_many);
        }
        let sent = actions.len();
        let outcomes = self.job.target.apply(actions).map_err(|error| Stop::Message(error.message))?;
        if outcomes.len() != sent {
            return Err(Stop::Message("The index did not answer for each document.".to_owned()));
        }
        for (at, outcome) in outcomes.into_iter().enumerate() {
            self.run.count(1);
            if !outcome.ok {
                let message = outcome.message.unwrap_or_else(|| "The document was refused.".to_owned());
                let name = format!("Indexing.{}", self.job.indexer.target_index);
                too_many = self.failed(outcome.key, message, outcome.status, name, None).or(too_many);
            }
            done(self, at, outcome.ok);
        }
        Ok(too_many)
    }

    fn keep_finished(&mut self, stopping: bool) -> Result<(), Stop> {
        let unfinished = self.open.iter().position(|open| !open.finished).unwrap_or(self.open.len());
        // Blobs with actions that were never handed over are not done, however far they were read.
        let split = self.pending.first().map_or(unfinished, |waiting| waiting.blob.min(unfinished));
        let finished: Vec<Open> = self.open.drain(..split).collect();
        if !self.keeps_state {
            return Ok(());
        }
        let mut changes = Vec::new();
        for open in finished {
            // A run that ends because of failures meets the same blobs again.
            if stopping && open.failed {
                continue;
            }
            if self.job.source.deletion == Deletion::Missing
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

    fn remove_missing(&mut self) -> Result<(), Stop> {
        let indexer = &self.job.indexer.name;
        for name in self.store.names(indexer).map_err(lost)? {
            self.check()?;
            if self.source.exists(&name) {
                continue;
            }
            if let Some(state) = self.store.blob(indexer, &name).map_err(lost)? {
                self.remove(&state.keys)?;
                if !state.all_keys {
                    let message = format!(
                        "Blob '{name}' is gone; not all of its documents were known, and some may remain."
                    );
                    self.run.warn(Some(self.source.address(&name)), message, None, None);
                }
            }
            self.store.save(indexer, vec![(name, None)]).map_err(lost)?;
        }
        Ok(())
    }

    /// Deletes documents, except those that this run wrote from other blobs.
    fn remove(&mut self, keys: &[String]) -> Result<(), Stop> {
        let gone: Vec<&String> = keys.iter().filter(|key| !self.written.contains(&hash(key))).collect();
        for batch in gone.chunks(self.job.indexer.batch_size) {
            let actions = batch.iter().map(|key| {
                let action = [("@search.action", "delete"), (self.key_field, key.as_str())];
                action.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
            });
            let actions = actions.collect();
            if let Some(message) = self.apply(actions, |_, _, _| {})? {
                return Err(Stop::Message(message));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Stop> {
        if self.run.cancelled.load(Ordering::Acquire) {
            return Err(Stop::Early("The run was cancelled.".to_owned()));
        }
        if Instant::now() >= self.run.deadline {
            let message = "The run took as long as a run may take. The next run goes on from here.";
            return Err(Stop::Early(message.to_owned()));
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

fn lost(error: StateError) -> Stop {
    Stop::Message(ApiError::internal("keeping the state of an indexer", error).message)
}
