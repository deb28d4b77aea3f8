//! The full-text index: derived from the documents, and made again from them when it cannot be used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::schema::Term;
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyError};

use super::change::Change;
use crate::ApiError;
use crate::documents;
use crate::engine::plan::Plan;
use crate::engine::store::StoreView;

/// Memory for documents on their way into a segment.
const WRITER_BYTES: usize = 64 << 20;

/// Its folder is `text-N`; another one is made next to it when the columns change.
const FOLDER: &str = "text-";

pub(super) struct FullText {
    index: Index,
    reader: IndexReader,
    /// Made for the first change.
    writer: Option<IndexWriter>,
    /// The last batch that is committed.
    committed: u64,
    /// The last batch that the writer was given; behind the store's when it has failed.
    given: u64,
    /// Changed documents since the last commit.
    pending: usize,
}

impl FullText {
    /// Opens it, with everything that the store has in it.
    pub(super) fn open(folder: &Path, plan: &Plan, view: &StoreView, written: u64) -> Result<Self, ApiError> {
        let failed = |error: &dyn std::fmt::Display| ApiError::internal("opening the full-text index", error);
        let folders = folders(folder).map_err(|error| failed(&error))?;
        let last = folders.last().map(|(number, path)| (*number, path.clone()));
        let opened = last.as_ref().and_then(|(_, path)| open(path, plan));
        let opened = opened.filter(|(_, committed)| *committed <= written);
        let (index, committed, current) = match (opened, &last) {
            (Some((index, committed)), Some((_, path))) => (index, Some(committed), path.clone()),
            _ => {
                let next = last.map_or(0, |(number, _)| number + 1);
                let path = folder.join(format!("{FOLDER}{next}"));
                (create(&path, plan).map_err(|error| failed(&error))?, None, path)
            }
        };
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        let reader: IndexReader = reader.map_err(|error| failed(&error))?;
        let mut text =
            Self { index, reader, writer: None, committed: committed.unwrap_or(0), given: 0, pending: 0 };
        match committed {
            Some(_) => text.catch_up(plan, view, written)?,
            None => text.rebuild(plan, view, written)?,
        }
        text.reload()?;
        for (_, old) in folders.into_iter().filter(|(_, path)| *path != current) {
            // Nobody opens it again; what cannot be removed now is tried at the next start.
            let _ = std::fs::remove_dir_all(old);
        }
        Ok(text)
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// Lets the folder go, so that another one may write to it.
    pub(super) fn rest(&mut self) {
        self.writer = None;
    }

    /// Takes the changes of a batch. The documents are safe whatever happens: what is missing here is made from them by
    /// the next commit.
    pub(super) fn give(&mut self, plan: &Plan, changes: Vec<Change>, batch: u64) {
        if self.given + 1 != batch {
            return;
        }
        match self.write(plan, changes) {
            Ok(()) => self.given = batch,
            Err(error) => {
                tracing::warn!(%error, "the full-text index did not take a batch");
                self.writer = None;
            }
        }
    }

    /// Adds to the number of changed documents, and returns it.
    pub(super) fn pending(&mut self, more: usize) -> usize {
        self.pending += more;
        self.pending
    }

    /// Commits everything that the store has.
    pub(super) fn commit(&mut self, plan: &Plan, view: &StoreView, written: u64) -> Result<(), ApiError> {
        if self.committed == written {
            return Ok(());
        }
        if self.given == written {
            self.commit_writer(written).map_err(|error| ApiError::internal("committing documents", error))?;
        } else {
            self.catch_up(plan, view, written)?;
        }
        self.reload()
    }

    fn write(&mut self, plan: &Plan, changes: Vec<Change>) -> tantivy::Result<()> {
        let number = plan.columns.number;
        let writer = self.writer()?;
        for change in changes {
            if change.existed {
                writer.delete_term(Term::from_field_u64(number, change.number));
            }
            if let Some(document) = change.document {
                writer.add_document(plan.columns_of(change.number, document))?;
            }
        }
        Ok(())
    }

    /// Reads documents that changed after the last commit from the store.
    fn catch_up(&mut self, plan: &Plan, view: &StoreView, written: u64) -> Result<(), ApiError> {
        if self.committed == written {
            self.given = written;
            return Ok(());
        }
        let Some(numbers) = view.changed_since(self.committed)? else {
            return self.rebuild(plan, view, written);
        };
        let failed = |error| ApiError::internal("reading documents into the index", error);
        // A writer that has failed may hold a part of them.
        self.writer = None;
        for number in numbers {
            let document = view.read(number, |json| documents::read(json, &plan.shape))?;
            let writer = self.writer().map_err(failed)?;
            writer.delete_term(Term::from_field_u64(plan.columns.number, number));
            if let Some(document) = document {
                let document = document.map_err(|error| ApiError::internal("reading a document", error))?;
                writer.add_document(plan.columns_of(number, document)).map_err(failed)?;
            }
        }
        self.commit_writer(written).map_err(failed)
    }

    /// Reads all documents from the store.
    fn rebuild(&mut self, plan: &Plan, view: &StoreView, written: u64) -> Result<(), ApiError> {
        let failed = |error| ApiError::internal("making the index again", error);
        self.writer = None;
        self.writer().map_err(failed)?.delete_all_documents().map_err(failed)?;
        view.for_each(|number, json| {
            let document = documents::read(json, &plan.shape);
            let document = document.map_err(|error| ApiError::internal("reading a document", error))?;
            let row = plan.columns_of(number, document);
            self.writer().and_then(|writer| writer.add_document(row)).map_err(failed)?;
            Ok::<(), ApiError>(())
        })?;
        self.commit_writer(written).map_err(failed)
    }

    fn writer(&mut self) -> tantivy::Result<&mut IndexWriter> {
        if self.writer.is_none() {
            self.writer = Some(self.index.writer_with_num_threads(1, WRITER_BYTES)?);
        }
        self.writer.as_mut().ok_or_else(|| TantivyError::InternalError("no writer".to_owned()))
    }

    fn commit_writer(&mut self, batch: u64) -> tantivy::Result<()> {
        let mut prepared = self.writer()?.prepare_commit()?;
        prepared.set_payload(&batch.to_string());
        prepared.commit()?;
        (self.committed, self.given, self.pending) = (batch, batch, 0);
        Ok(())
    }

    fn reload(&self) -> Result<(), ApiError> {
        self.reader.reload().map_err(|error| ApiError::internal("reading what was committed", error))
    }
}

/// The folders of full-text indexes, by their number.
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

/// The index in a folder and the last batch that it has; `None` when it cannot be used as it is.
fn open(folder: &Path, plan: &Plan) -> Option<(Index, u64)> {
    let mut index = Index::open_in_dir(folder).ok()?;
    if index.schema() != *plan.columns.schema() {
        return None;
    }
    index.set_tokenizers(plan.tokenizers());
    let payload = index.load_metas().ok()?.payload?;
    Some((index, payload.parse().ok()?))
}

fn create(folder: &Path, plan: &Plan) -> tantivy::Result<Index> {
    std::fs::create_dir_all(folder).map_err(|error| TantivyError::IoError(Arc::new(error)))?;
    let builder = Index::builder().schema(plan.columns.schema().clone()).settings(IndexSettings::default());
    builder.tokenizers(plan.tokenizers()).create_in_dir(folder)
}
