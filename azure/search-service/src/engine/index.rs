//! One index: it applies batches of documents and returns snapshots.
//!
//! A batch is durable when [`SearchIndex::apply`] returns, because its documents are in the store. The
//! full-text index is committed at the next search, or when no more batches arrive. After a crash,
//! batches that were not committed are applied again.

mod change;
mod full_text;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod upkeep_tests;
mod vector_fields;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bindpost_azure_search_model::ApiError;
use http::StatusCode;

use self::change::BatchApplier;
use self::full_text::FullTextIndex;
use self::vector_fields::VectorFields;
use super::plan::IndexPlan;
use super::snapshot::IndexSnapshot;
use super::store::{DocumentStore, DocumentStoreError, StoreView};
use crate::documents::{self, BatchEntry, IndexingResult, check_keys, parse_batch};

/// After this many changed documents the index is committed even without a search. This limits the work
/// after a crash.
const COMMIT_AFTER: usize = 20_000;

/// After this time without writes, the threads and the memory of the writer are released.
const REST_AFTER: Duration = Duration::from_secs(30);

/// The minimum time between a failed commit and the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(1);

const STORE_FILE: &str = "documents.redb";

/// One search index in a folder.
pub struct SearchIndex {
    folder: PathBuf,
    store: DocumentStore,
    writing: Mutex<WriterState>,
    /// The number of the last batch in the store, or [`UNKNOWN`] if the snapshot is invalid.
    written: AtomicU64,
    /// The last batch at the time of the last maintenance.
    tended: AtomicU64,
    snapshot: RwLock<Arc<IndexSnapshot>>,
    /// The last failed commit, until a commit succeeds.
    failure: Mutex<Option<CommitFailure>>,
}

/// A commit that failed.
struct CommitFailure {
    /// When the next attempt is allowed.
    until: Instant,
}

/// Not the number of any batch.
const UNKNOWN: u64 = u64::MAX;

/// The state that only the current writer may use.
struct WriterState {
    plan: Arc<IndexPlan>,
    text: FullTextIndex,
    vectors: VectorFields,
    /// The store may be ahead of the derived data after an error or a panic. All derived data is then
    /// rebuilt from the store before it is used.
    behind: bool,
    /// The index was deleted. Its folder is deleted too, or will be soon.
    closed: bool,
}

impl SearchIndex {
    /// Opens the index in a folder, or creates it. The full-text index is rebuilt from the stored
    /// documents if it is missing or damaged, or if its columns differ from the definition.
    pub fn open(folder: &Path, plan: Arc<IndexPlan>) -> Result<Self, ApiError> {
        std::fs::create_dir_all(folder).map_err(|error| ApiError::internal("opening an index", error))?;
        let store = DocumentStore::open(&folder.join(STORE_FILE))?;
        let (writing, snapshot, written) = load_derived(folder, &store, plan)?;
        Ok(Self {
            folder: folder.to_owned(),
            store,
            writing: Mutex::new(writing),
            written: AtomicU64::new(written),
            tended: AtomicU64::new(written),
            snapshot: RwLock::new(Arc::new(snapshot)),
            failure: Mutex::new(None),
        })
    }

    pub fn plan(&self) -> Arc<IndexPlan> {
        Arc::clone(&self.current().plan)
    }

    /// Applies a new definition to the same documents.
    pub fn replan(&self, plan: Arc<IndexPlan>) -> Result<(), ApiError> {
        let mut writing = self.lock_writer();
        // Pending changes belong to the old columns.
        self.commit(&mut writing)?;
        // If this fails, the documents may already have their new form. They are then converted back.
        writing.behind = true;
        self.restart(&mut writing, plan)?;
        Ok(())
    }

    /// Parses a batch and applies it. A document with an invalid key makes the whole batch invalid.
    pub fn apply_batch(&self, body: &[u8]) -> Result<Vec<IndexingResult>, ApiError> {
        self.read_and_apply(body, check_keys)
    }

    /// Parses a batch of an indexer and applies it. Documents with invalid keys are rejected one by one.
    pub fn apply_valid_items(&self, body: &[u8]) -> Result<Vec<IndexingResult>, ApiError> {
        self.read_and_apply(body, |_| Ok(()))
    }

    fn read_and_apply(
        &self,
        body: &[u8],
        check: impl Fn(&[BatchEntry]) -> Result<(), ApiError>,
    ) -> Result<Vec<IndexingResult>, ApiError> {
        loop {
            let plan = self.plan();
            let items = parse_batch(body, &plan.shape)?;
            check(&items)?;
            // The definition may have changed in the meantime. Its fields then have other positions.
            if let Some(outcomes) = self.apply(&plan, items)? {
                return Ok(outcomes);
            }
        }
    }

    /// Applies actions in their order. When this returns, all of them are durable, and every later
    /// snapshot contains them. Returns `None`, and changes nothing, if the index has a new plan.
    pub fn apply(
        &self,
        plan: &Arc<IndexPlan>,
        items: Vec<BatchEntry>,
    ) -> Result<Option<Vec<IndexingResult>>, ApiError> {
        let mut writing = self.lock_writer();
        writing.check_open()?;
        if !Arc::ptr_eq(&writing.plan, plan) {
            return Ok(None);
        }
        if writing.behind {
            self.rebuild_derived(&mut writing)?;
        }
        let mut changes = BatchApplier::new(plan, &writing.vectors, items.len());
        let written = self.store.write(writing.text.committed(), |batch| {
            items
                .into_iter()
                .map(|item| changes.apply(item, batch))
                .collect::<Result<Vec<_>, DocumentStoreError>>()
        });
        let changes = changes.into_changes();
        let (outcomes, batch) = match written {
            Ok(written) => written,
            Err(error) => {
                self.reopen_after_failure(&mut writing);
                return Err(error.into());
            }
        };
        if changes.is_empty() {
            return Ok(Some(outcomes));
        }
        let count = changes.len();
        // After a panic from here on, the store is ahead of the derived data.
        writing.behind = true;
        writing.vectors.apply(&changes);
        writing.text.add_changes(plan, changes, batch);
        self.written.store(batch, Ordering::Release);
        writing.behind = false;
        if writing.text.add_pending(count) >= COMMIT_AFTER {
            // The batch is durable even if the commit fails. The next search retries the commit.
            let _ = self.commit(&mut writing);
        }
        Ok(Some(outcomes))
    }

    /// Returns the current documents, with every batch that was acknowledged before this call. If a
    /// commit is impossible, for example on a full disk, it returns the documents of the last commit.
    pub fn snapshot(&self) -> Result<Arc<IndexSnapshot>, ApiError> {
        if let Some(ready) = self.ready_snapshot() {
            return Ok(ready);
        }
        let started = Instant::now();
        let committed = self.commit(&mut self.lock_writer());
        match committed {
            Ok(snapshot) => {
                if self.lock_failure().take().is_some() {
                    tracing::info!(folder = %self.folder.display(), "an index can be committed again");
                }
                Ok(snapshot)
            }
            Err(error) if error.status == StatusCode::NOT_FOUND => Err(error),
            Err(error) => {
                // Commits that take long to fail are retried less often.
                let until = Instant::now() + RETRY_AFTER.max(10 * started.elapsed());
                if self.lock_failure().replace(CommitFailure { until }).is_none() {
                    tracing::error!(
                        folder = %self.folder.display(), %error,
                        "an index cannot be committed; searches use the last committed documents\n  fix: free \
                         disk space, or make the folder writable"
                    );
                }
                // The last snapshot is invalid only if its file has been closed.
                if self.written.load(Ordering::Acquire) == UNKNOWN { Err(error) } else { Ok(self.current()) }
            }
        }
    }

    /// Returns the current snapshot if it needs no commit.
    pub fn ready_snapshot(&self) -> Option<Arc<IndexSnapshot>> {
        let current = self.current();
        let written = self.written.load(Ordering::Acquire);
        (current.batch == written || (self.has_failed() && written != UNKNOWN)).then_some(current)
    }

    /// Returns the stored documents and their plan. This needs no commit.
    pub fn documents(&self) -> Result<(Arc<IndexPlan>, Arc<StoreView>), ApiError> {
        let current = self.current();
        let written = self.written.load(Ordering::Acquire);
        if written == UNKNOWN {
            let snapshot = self.snapshot()?;
            return Ok((Arc::clone(&snapshot.plan), Arc::clone(&snapshot.documents)));
        }
        let documents = match current.batch == written {
            true => Arc::clone(&current.documents),
            false => Arc::new(self.store.view()?),
        };
        Ok((Arc::clone(&current.plan), documents))
    }

    fn lock_failure(&self) -> MutexGuard<'_, Option<CommitFailure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a commit has failed recently.
    fn has_failed(&self) -> bool {
        self.lock_failure().as_ref().is_some_and(|failure| Instant::now() < failure.until)
    }

    /// Closes the index before it is deleted. Waits for the current batch and rejects later ones.
    /// Searches on earlier snapshots continue.
    pub fn close(&self) {
        let mut writing = self.lock_writer();
        writing.closed = true;
        writing.text.release_writer();
    }

    /// Commits pending changes and runs long maintenance. Call it periodically on its own thread.
    pub fn maintain(&self, stop: &dyn Fn() -> bool) -> Result<(), ApiError> {
        let written = self.written.load(Ordering::Acquire);
        // While batches keep arriving, frequent commits would only create small segments that must be merged.
        let settled = self.tended.swap(written, Ordering::Relaxed) == written;
        if settled {
            self.snapshot()?;
        }
        let sets = {
            let mut writing = self.lock_writer();
            writing.check_open()?;
            if settled && writing.behind {
                self.rebuild_derived(&mut writing)?;
            }
            writing.text.release_writer_after(REST_AFTER);
            writing.vectors.sets()
        };
        for set in sets {
            while !stop() && set.maintain(stop) {}
        }
        Ok(())
    }

    /// Returns the bytes on disk: of documents with their columns, and of vectors.
    pub fn sizes(&self) -> Result<(u64, u64), ApiError> {
        let snapshot = self.snapshot()?;
        let (documents, vectors) = snapshot.documents.stored_bytes()?;
        let text = snapshot.searcher.space_usage().map_or(0, |usage| usage.total().get_bytes());
        Ok((documents + text, vectors))
    }

    /// Commits the full-text index and publishes a snapshot of everything written.
    fn commit(&self, writing: &mut WriterState) -> Result<Arc<IndexSnapshot>, ApiError> {
        writing.check_open()?;
        if writing.behind {
            return self.rebuild_derived(writing);
        }
        let written = self.written.load(Ordering::Acquire);
        let current = self.current();
        if current.batch == written {
            return Ok(current);
        }
        let view = Arc::new(self.store.view()?);
        if let Err(error) = writing.text.commit(&writing.plan, &view, written) {
            // The cause may be in the folder, so the next commit reopens or rebuilds the full-text index.
            // That would not help on a full disk.
            writing.behind = error.status != StatusCode::INSUFFICIENT_STORAGE;
            return Err(error);
        }
        let snapshot = Arc::new(writing.snapshot(view, written)?);
        self.publish(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Rebuilds everything that is derived from the store.
    fn rebuild_derived(&self, writing: &mut WriterState) -> Result<Arc<IndexSnapshot>, ApiError> {
        self.store.reopen_after_failure()?;
        self.restart(writing, Arc::clone(&writing.plan))
    }

    /// Reopens the store after an error if the disk has failed. Without this, nothing could be read.
    fn reopen_after_failure(&self, writing: &mut WriterState) {
        if matches!(self.store.reopen_after_failure(), Ok(false)) {
            return;
        }
        writing.behind = true;
        // The snapshot belongs to the file that is now closed.
        self.written.store(UNKNOWN, Ordering::Release);
        if let Err(error) = self.restart(writing, Arc::clone(&writing.plan)) {
            tracing::warn!(%error, "an index is unavailable until its disk works again");
        }
    }

    fn restart(
        &self,
        writing: &mut WriterState,
        plan: Arc<IndexPlan>,
    ) -> Result<Arc<IndexSnapshot>, ApiError> {
        // The folder can have only one writer.
        writing.text.release_writer();
        let (new, snapshot, written) = load_derived(&self.folder, &self.store, plan)?;
        *writing = new;
        let snapshot = Arc::new(snapshot);
        if snapshot.batch == written {
            *self.lock_failure() = None;
        }
        self.publish(Arc::clone(&snapshot));
        self.written.store(written, Ordering::Release);
        Ok(snapshot)
    }

    fn current(&self) -> Arc<IndexSnapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, snapshot: Arc<IndexSnapshot>) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn lock_writer(&self) -> MutexGuard<'_, WriterState> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriterState {
    fn check_open(&self) -> Result<(), ApiError> {
        match self.closed {
            true => Err(ApiError::not_found("The index has just been deleted.")),
            false => Ok(()),
        }
    }

    fn snapshot(&self, documents: Arc<StoreView>, batch: u64) -> Result<IndexSnapshot, ApiError> {
        let plan = Arc::clone(&self.plan);
        IndexSnapshot::new(plan, self.text.searcher(), documents, self.vectors.views(), batch)
    }
}

/// Brings all derived data up to date. The returned number is the last batch in the store. The snapshot
/// is older if the commit is impossible.
fn load_derived(
    folder: &Path,
    store: &DocumentStore,
    plan: Arc<IndexPlan>,
) -> Result<(WriterState, IndexSnapshot, u64), ApiError> {
    store.rewrite_documents(plan.shape_number(), |json| {
        match documents::read_document(json, &plan.shape) {
            Ok(document) => Ok(document.json),
            Err(error) => Err(ApiError::internal("reading a document", error)),
        }
    })?;
    let view = Arc::new(store.view()?);
    let written = view.last_batch()?;
    let text = FullTextIndex::open(folder, &plan, &view, written)?;
    let vectors = VectorFields::load(&plan, &view)?;
    let committed = text.committed();
    let writing = WriterState { plan, text, vectors, behind: false, closed: false };
    let snapshot = writing.snapshot(view, committed)?;
    Ok((writing, snapshot, written))
}
