//! The full-text index. It is derived from the documents, and rebuilt from them if it is unusable.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::is_disk_full;
use http::StatusCode;
use tantivy::directory::error::OpenWriteError;
use tantivy::schema::{Field, Term};
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyError};

use super::change::ChangedDocument;
use crate::documents;
use crate::engine::plan::IndexPlan;
use crate::engine::store::StoreView;

/// Memory for documents that are not yet written to a segment.
const WRITER_BYTES: usize = 64 << 20;

/// The prefix of the folder `text-N`. A new folder is created next to it when the columns change.
const FOLDER: &str = "text-";

pub(super) struct FullTextIndex {
    folder: PathBuf,
    index: Index,
    /// The column with the numbers of documents.
    number: Field,
    reader: IndexReader,
    /// Created for the first change, and released when idle.
    writer: Option<IndexWriter>,
    /// When the writer was last used.
    used: Instant,
    /// The last committed batch.
    committed: u64,
    /// The last batch that the writer received. It is behind the store after a failure of the writer.
    given: u64,
    /// The number of documents changed since the last commit.
    pending: usize,
}

impl FullTextIndex {
    /// Opens the index and adds everything from the store. On a full disk it opens the last commit.
    pub(super) fn open(
        folder: &Path,
        plan: &IndexPlan,
        view: &StoreView,
        written: u64,
    ) -> Result<Self, ApiError> {
        let failed = |error: &dyn std::fmt::Display| ApiError::internal("opening the full-text index", error);
        let folders = folders(folder).map_err(|error| failed(&error))?;
        let last = folders.last();
        if let Some((_, path)) = last
            && let Some(text) = Self::resume(path, plan, view, written)
        {
            discard(folders.iter().filter(|(_, other)| other != path));
            return Ok(text);
        }
        let next = last.map_or(0, |(number, _)| number + 1);
        let path = folder.join(format!("{FOLDER}{next}"));
        let made = create(&path, plan)
            .and_then(|index| Self::new(&path, index, plan, 0))
            .map_err(|error| failed(&error));
        let made = made.and_then(|mut text| {
            text.rebuild(plan, view, written)?;
            text.reload()?;
            Ok(text)
        });
        match &made {
            Ok(_) => discard(&folders),
            // An incomplete folder must not replace the existing one.
            Err(_) => discard(&[(next, path)]),
        }
        made
    }

    /// Continues with the index in a folder. Returns `None` if it is unusable.
    fn resume(folder: &Path, plan: &IndexPlan, view: &StoreView, written: u64) -> Option<Self> {
        let (index, committed) = open(folder, plan).filter(|(_, committed)| *committed <= written)?;
        let mut text = match Self::new(folder, index, plan, committed) {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(%error, "a full-text index is damaged and is rebuilt from the documents");
                return None;
            }
        };
        match text.catch_up(plan, view, written) {
            Ok(()) => {}
            // A rebuild would fail in the same way.
            Err(error) if error.status == StatusCode::INSUFFICIENT_STORAGE => {}
            // The error has already been logged.
            Err(_) => return None,
        }
        text.reload().ok()?;
        Some(text)
    }

    fn new(folder: &Path, index: Index, plan: &IndexPlan, committed: u64) -> tantivy::Result<Self> {
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self {
            folder: folder.to_owned(),
            index,
            number: plan.columns.number,
            reader,
            writer: None,
            used: Instant::now(),
            committed,
            given: committed,
            pending: 0,
        })
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// Releases the folder, so that another writer may use it. Waits for running merges.
    pub(super) fn release_writer(&mut self) {
        self.given = self.committed;
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.wait_merging_threads()
        {
            tracing::warn!(%error, "the writer of a full-text index failed");
        }
    }

    /// Releases the threads and the memory of the writer if it was idle for this time and has nothing
    /// to commit.
    pub(super) fn release_writer_after(&mut self, idle: Duration) {
        if self.writer.is_some() && self.given == self.committed && self.used.elapsed() >= idle {
            self.release_writer();
        }
    }

    #[cfg(test)]
    pub(super) fn has_writer(&self) -> bool {
        self.writer.is_some()
    }

    /// Discards everything that was not committed. A failed writer may hold a part of it.
    fn roll_back(&mut self) {
        self.writer = None;
        self.given = self.committed;
    }

    /// Adds the changes of a batch. The documents are already durable. If this fails, the next commit
    /// reads them from the store.
    pub(super) fn add_changes(&mut self, plan: &IndexPlan, changes: Vec<ChangedDocument>, batch: u64) {
        if self.given + 1 != batch {
            return;
        }
        match self.write(plan, changes) {
            Ok(()) => self.given = batch,
            Err(error) => {
                tracing::warn!(%error, "the full-text index could not add a batch");
                self.roll_back();
            }
        }
    }

    /// Adds to the number of changed documents and returns the sum.
    pub(super) fn add_pending(&mut self, more: usize) -> usize {
        self.pending += more;
        self.pending
    }

    /// Commits everything in the store.
    pub(super) fn commit(
        &mut self,
        plan: &IndexPlan,
        view: &StoreView,
        written: u64,
    ) -> Result<(), ApiError> {
        if self.committed == written {
            // An earlier reload after the commit may have failed.
        } else if self.given == written {
            self.commit_writer(written).map_err(|error| self.failed("committing documents", &error))?;
        } else {
            self.catch_up(plan, view, written)?;
        }
        self.reload()
    }

    fn write(&mut self, plan: &IndexPlan, changes: Vec<ChangedDocument>) -> tantivy::Result<()> {
        let number = plan.columns.number;
        let writer = self.writer()?;
        for change in changes {
            if change.existed {
                writer.delete_term(Term::from_field_u64(number, change.number));
            }
            if let Some(document) = change.document {
                writer.add_document(plan.tantivy_document(change.number, document))?;
            }
        }
        Ok(())
    }

    /// Adds the documents that changed after the last commit.
    fn catch_up(&mut self, plan: &IndexPlan, view: &StoreView, written: u64) -> Result<(), ApiError> {
        if self.committed == written {
            self.given = written;
            return Ok(());
        }
        let Some(numbers) = view.changed_since(self.committed)? else {
            return self.rebuild(plan, view, written);
        };
        let doing = "reading documents into the index";
        self.roll_back();
        for number in numbers {
            let document = view.read(number, |json| documents::read_document(json, &plan.shape))?;
            let document =
                document.transpose().map_err(|error| ApiError::internal("reading a document", error))?;
            let given = self.writer().and_then(|writer| {
                writer.delete_term(Term::from_field_u64(plan.columns.number, number));
                document
                    .map_or(Ok(0), |document| writer.add_document(plan.tantivy_document(number, document)))
            });
            given.map_err(|error| self.failed(doing, &error))?;
        }
        self.commit_writer(written).map_err(|error| self.failed(doing, &error))
    }

    /// Adds all documents from the store.
    fn rebuild(&mut self, plan: &IndexPlan, view: &StoreView, written: u64) -> Result<(), ApiError> {
        let doing = "rebuilding the full-text index";
        self.roll_back();
        let emptied = self.writer().and_then(|writer| writer.delete_all_documents());
        emptied.map_err(|error| self.failed(doing, &error))?;
        view.for_each(|number, json| {
            let document = documents::read_document(json, &plan.shape);
            let document = document.map_err(|error| ApiError::internal("reading a document", error))?;
            let row = plan.tantivy_document(number, document);
            let given = self.writer().and_then(|writer| writer.add_document(row));
            given.map_err(|error| self.failed(doing, &error))?;
            Ok::<(), ApiError>(())
        })?;
        self.commit_writer(written).map_err(|error| self.failed(doing, &error))
    }

    fn writer(&mut self) -> tantivy::Result<&mut IndexWriter> {
        self.used = Instant::now();
        if self.writer.is_none() {
            let writer = self.index.writer_with_num_threads(1, WRITER_BYTES)?;
            // The first operation of a writer has the stamp of the last commit (tantivy 0.27). A merge up
            // to that commit may treat the operation as done, and then a deleted document is found again.
            // The first operation therefore deletes a number that no document has.
            writer.delete_term(Term::from_field_u64(self.number, u64::MAX));
            self.writer = Some(writer);
        }
        self.writer.as_mut().ok_or_else(|| TantivyError::InternalError("no writer".to_owned()))
    }

    fn commit_writer(&mut self, batch: u64) -> tantivy::Result<()> {
        let committed = self.writer().and_then(|writer| {
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&batch.to_string());
            prepared.commit()
        });
        if let Err(error) = committed {
            // The writer would commit without the lost documents.
            self.roll_back();
            return Err(error);
        }
        (self.committed, self.given, self.pending) = (batch, batch, 0);
        Ok(())
    }

    /// Converts an error of tantivy. A writer whose thread ended because of a full disk does not report
    /// the cause. The free disk space is therefore checked.
    fn failed(&self, doing: &'static str, error: &TantivyError) -> ApiError {
        let full = match error {
            TantivyError::IoError(reason) => is_disk_full(reason),
            TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, .. }) => is_disk_full(io_error),
            _ => false,
        };
        if full || !has_room(&self.folder) { ApiError::disk_full() } else { ApiError::internal(doing, error) }
    }

    fn reload(&self) -> Result<(), ApiError> {
        self.reader.reload().map_err(|error| ApiError::internal("reading committed documents", error))
    }
}

/// Returns whether a small file can be written to the folder.
fn has_room(folder: &Path) -> bool {
    const SMALL: usize = 256 << 10;
    let file = folder.join("room");
    let written = std::fs::write(&file, vec![0; SMALL]);
    let _ = std::fs::remove_file(&file);
    !written.is_err_and(|error| is_disk_full(&error))
}

/// Returns the folders of full-text indexes by their number.
fn folders(folder: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse().ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

/// Deletes unused folders. A folder that cannot be deleted now is deleted at the next start.
fn discard<'a>(folders: impl IntoIterator<Item = &'a (u64, PathBuf)>) {
    for (_, folder) in folders {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Returns the index in a folder and its last batch. Returns `None` if it cannot be used unchanged.
fn open(folder: &Path, plan: &IndexPlan) -> Option<(Index, u64)> {
    let mut index = Index::open_in_dir(folder).ok()?;
    if index.schema() != *plan.columns.schema() {
        return None;
    }
    index.set_tokenizers(plan.tokenizers());
    let payload = index.load_metas().ok()?.payload?;
    Some((index, payload.parse().ok()?))
}

fn create(folder: &Path, plan: &IndexPlan) -> tantivy::Result<Index> {
    std::fs::create_dir_all(folder).map_err(|error| TantivyError::IoError(Arc::new(error)))?;
    let builder = Index::builder().schema(plan.columns.schema().clone()).settings(IndexSettings::default());
    builder.tokenizers(plan.tokenizers()).create_in_dir(folder)
}
