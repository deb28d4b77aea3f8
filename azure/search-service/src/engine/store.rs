//! The documents of one index on disk. Everything else is derived from them.
//!
//! Each batch is one transaction in one file. An acknowledged batch survives a crash, and a batch is
//! never visible in part.

use std::path::Path;

use bindpost_azure_search_model::ApiError;
use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable as _, ReadableTableMetadata as _, TableDefinition,
    TableError,
};

use crate::database::{self, RedbDatabase};

/// Maps the key of a document to its number.
const KEYS: TableDefinition<&str, u64> = TableDefinition::new("keys");
/// Maps the number of a document to its JSON in canonical form.
const DOCUMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("documents");
/// Maps a vector field and the number of a document to the vector.
const VECTORS: TableDefinition<(u32, u64), &[u8]> = TableDefinition::new("vectors");
/// Maps the number of a batch to the numbers of the documents that it changed. Batches that the full-text
/// index has committed are deleted. The others are applied again after a crash.
const CHANGES: TableDefinition<u64, &[u8]> = TableDefinition::new("changes");
const COUNTERS: TableDefinition<&str, u64> = TableDefinition::new("counters");

const NEXT_NUMBER: &str = "next number";
const LAST_BATCH: &str = "last batch";
const SHAPE: &str = "shape";

/// The size of the database's page cache. The page cache of the operating system does the rest.
const CACHE_BYTES: usize = 16 << 20;

#[derive(Debug, thiserror::Error)]
#[error("the document store: {0}")]
pub struct DocumentStoreError(#[from] redb::Error);

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for DocumentStoreError {
            fn from(error: redb::$error) -> Self {
                Self(error.into())
            }
        }
    )*};
}
from_redb!(TableError, StorageError, CommitError);

impl From<DocumentStoreError> for ApiError {
    fn from(error: DocumentStoreError) -> Self {
        database::database_error("using the document store", &error.0)
    }
}

/// The documents of one index.
pub(crate) struct DocumentStore {
    database: RedbDatabase,
}

impl DocumentStore {
    /// Opens the file, or creates it.
    pub(crate) fn open(path: &Path) -> Result<Self, DocumentStoreError> {
        let database = RedbDatabase::open(path, CACHE_BYTES)?;
        match StoreView::open(&database.read()?) {
            Ok(_) => return Ok(Self { database }),
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let transaction = database.write()?;
        // Read transactions can open only existing tables.
        transaction.open_table(KEYS)?;
        transaction.open_table(DOCUMENTS)?;
        transaction.open_table(VECTORS)?;
        transaction.open_table(CHANGES)?;
        transaction.open_table(COUNTERS)?;
        transaction.commit()?;
        Ok(Self { database })
    }

    /// Changes documents in one transaction and returns the number of the batch. If `change` fails,
    /// nothing is written. `committed` is the last batch in the full-text index.
    pub(crate) fn write<T, E: From<DocumentStoreError>>(
        &self,
        committed: u64,
        change: impl FnOnce(&mut StoreBatch<'_>) -> Result<T, E>,
    ) -> Result<(T, u64), E> {
        let transaction = self.database.write().map_err(DocumentStoreError::from)?;
        let (result, batch, changed) = {
            let mut batch = StoreBatch::open(&transaction)?;
            let result = change(&mut batch)?;
            let changed = !batch.changed.is_empty();
            (result, batch.finish(committed)?, changed)
        };
        if changed {
            transaction.commit().map_err(DocumentStoreError::from)?;
        }
        Ok((result, batch))
    }

    /// Reopens the file after a disk failure. Returns whether it was reopened. Earlier views are
    /// then invalid.
    pub(crate) fn reopen_after_failure(&self) -> Result<bool, DocumentStoreError> {
        Ok(self.database.reopen_after_failure()?)
    }

    /// Rewrites every document if `shape` has changed, so that all documents have the same members.
    pub(crate) fn rewrite_documents<E: From<DocumentStoreError>>(
        &self,
        shape: u64,
        rewrite: impl Fn(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        if self.view()?.shape()? == Some(shape) {
            return Ok(());
        }
        let transaction = self.database.write().map_err(DocumentStoreError::from)?;
        {
            let mut counters = transaction.open_table(COUNTERS).map_err(DocumentStoreError::from)?;
            counters.insert(SHAPE, shape).map_err(DocumentStoreError::from)?;
            let mut documents = transaction.open_table(DOCUMENTS).map_err(DocumentStoreError::from)?;
            let mut next = Some(0);
            while let Some(from) = next {
                let rewritten = {
                    let mut range = documents.range(from..).map_err(DocumentStoreError::from)?;
                    match range.next() {
                        Some(entry) => {
                            let (number, json) = entry.map_err(DocumentStoreError::from)?;
                            Some((number.value(), rewrite(json.value())?))
                        }
                        None => None,
                    }
                };
                if let Some((number, json)) = &rewritten {
                    documents.insert(number, json.as_slice()).map_err(DocumentStoreError::from)?;
                }
                next = rewritten.map(|(number, _)| number + 1);
            }
        }
        transaction.commit().map_err(DocumentStoreError::from)?;
        Ok(())
    }

    /// Returns a view of the current documents. Later writes do not change it.
    pub(crate) fn view(&self) -> Result<StoreView, DocumentStoreError> {
        Ok(StoreView::open(&self.database.read()?)?)
    }
}

/// Changes that become visible together.
pub(crate) struct StoreBatch<'a> {
    keys: redb::Table<'a, &'static str, u64>,
    documents: redb::Table<'a, u64, &'static [u8]>,
    vectors: redb::Table<'a, (u32, u64), &'static [u8]>,
    changes: redb::Table<'a, u64, &'static [u8]>,
    counters: redb::Table<'a, &'static str, u64>,
    next_number: u64,
    /// The numbers of changed documents, eight bytes each.
    changed: Vec<u8>,
}

impl<'a> StoreBatch<'a> {
    fn open(transaction: &'a redb::WriteTransaction) -> Result<Self, DocumentStoreError> {
        let counters = transaction.open_table(COUNTERS)?;
        let next_number = counters.get(NEXT_NUMBER)?.map_or(0, |number| number.value());
        Ok(Self {
            keys: transaction.open_table(KEYS)?,
            documents: transaction.open_table(DOCUMENTS)?,
            vectors: transaction.open_table(VECTORS)?,
            changes: transaction.open_table(CHANGES)?,
            counters,
            next_number,
            changed: Vec::new(),
        })
    }

    /// Returns the number and JSON of a document, including changes of this batch.
    pub(crate) fn get(&self, key: &str) -> Result<Option<(u64, Vec<u8>)>, DocumentStoreError> {
        let Some(number) = self.number(key)? else { return Ok(None) };
        let json = self.documents.get(number)?.map(|json| json.value().to_vec()).unwrap_or_default();
        Ok(Some((number, json)))
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, DocumentStoreError> {
        Ok(self.keys.get(key)?.map(|number| number.value()))
    }

    /// Writes a document and returns its number. `number` is the number of an existing document.
    pub(crate) fn put(
        &mut self,
        key: &str,
        number: Option<u64>,
        json: &[u8],
    ) -> Result<u64, DocumentStoreError> {
        let number = match number {
            Some(number) => number,
            None => {
                let number = self.next_number;
                self.next_number += 1;
                self.keys.insert(key, number)?;
                number
            }
        };
        self.documents.insert(number, json)?;
        self.changed.extend_from_slice(&number.to_le_bytes());
        Ok(number)
    }

    pub(crate) fn put_vector(
        &mut self,
        field: u32,
        number: u64,
        vector: &[u8],
    ) -> Result<(), DocumentStoreError> {
        self.vectors.insert((field, number), vector)?;
        Ok(())
    }

    pub(crate) fn delete_vector(&mut self, field: u32, number: u64) -> Result<(), DocumentStoreError> {
        self.vectors.remove((field, number))?;
        Ok(())
    }

    /// Deletes a document and returns its former number.
    pub(crate) fn delete(&mut self, key: &str) -> Result<Option<u64>, DocumentStoreError> {
        let Some(number) = self.keys.remove(key)?.map(|number| number.value()) else { return Ok(None) };
        self.documents.remove(number)?;
        self.changed.extend_from_slice(&number.to_le_bytes());
        Ok(Some(number))
    }

    fn finish(mut self, committed: u64) -> Result<u64, DocumentStoreError> {
        let last = self.counters.get(LAST_BATCH)?.map_or(0, |number| number.value());
        if self.changed.is_empty() {
            return Ok(last);
        }
        let batch = last + 1;
        self.changes.insert(batch, self.changed.as_slice())?;
        self.changes.retain_in(..=committed, |_, _| false)?;
        self.counters.insert(LAST_BATCH, batch)?;
        self.counters.insert(NEXT_NUMBER, self.next_number)?;
        Ok(batch)
    }
}

/// A consistent view of the documents.
pub struct StoreView {
    keys: ReadOnlyTable<&'static str, u64>,
    documents: ReadOnlyTable<u64, &'static [u8]>,
    vectors: ReadOnlyTable<(u32, u64), &'static [u8]>,
    changes: ReadOnlyTable<u64, &'static [u8]>,
    counters: ReadOnlyTable<&'static str, u64>,
}

impl StoreView {
    fn open(transaction: &ReadTransaction) -> Result<Self, TableError> {
        Ok(Self {
            keys: transaction.open_table(KEYS)?,
            documents: transaction.open_table(DOCUMENTS)?,
            vectors: transaction.open_table(VECTORS)?,
            changes: transaction.open_table(CHANGES)?,
            counters: transaction.open_table(COUNTERS)?,
        })
    }

    /// Returns the shape that the documents were last written in.
    fn shape(&self) -> Result<Option<u64>, DocumentStoreError> {
        Ok(self.counters.get(SHAPE)?.map(|shape| shape.value()))
    }

    pub fn count(&self) -> Result<u64, DocumentStoreError> {
        Ok(self.documents.len()?)
    }

    /// Returns the total bytes of all documents and of all vectors.
    pub fn stored_bytes(&self) -> Result<(u64, u64), DocumentStoreError> {
        Ok((self.documents.stats()?.stored_bytes(), self.vectors.stats()?.stored_bytes()))
    }

    pub fn number(&self, key: &str) -> Result<Option<u64>, DocumentStoreError> {
        Ok(self.keys.get(key)?.map(|number| number.value()))
    }

    /// Passes the JSON of a document to `read` without a copy.
    pub fn read<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, DocumentStoreError> {
        Ok(self.documents.get(number)?.map(|json| read(json.value())))
    }

    /// Visits every document in the order of its number.
    pub fn for_each<E: From<DocumentStoreError>>(
        &self,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in self.documents.range::<u64>(..).map_err(DocumentStoreError::from)? {
            let (number, json) = entry.map_err(DocumentStoreError::from)?;
            each(number.value(), json.value())?;
        }
        Ok(())
    }

    /// Visits every vector of one field.
    pub fn for_each_vector(
        &self,
        field: u32,
        mut each: impl FnMut(u64, &[u8]),
    ) -> Result<(), DocumentStoreError> {
        for entry in self.vectors.range((field, 0)..=(field, u64::MAX))? {
            let (place, vector) = entry?;
            each(place.value().1, vector.value());
        }
        Ok(())
    }

    /// Returns the last written batch.
    pub fn last_batch(&self) -> Result<u64, DocumentStoreError> {
        Ok(self.counters.get(LAST_BATCH)?.map_or(0, |number| number.value()))
    }

    /// Returns the numbers of all documents that were changed after this batch. Returns `None` if some of
    /// these batches have been deleted, for example when the full-text index is an old copy.
    pub fn changed_since(&self, batch: u64) -> Result<Option<Vec<u64>>, DocumentStoreError> {
        let last = self.last_batch()?;
        let mut numbers = Vec::new();
        let mut expected = batch + 1;
        for entry in self.changes.range(batch + 1..)? {
            let (number, changed) = entry?;
            if number.value() != expected {
                return Ok(None);
            }
            expected += 1;
            let changed = changed.value().as_chunks::<8>().0.iter();
            numbers.extend(changed.map(|bytes| u64::from_le_bytes(*bytes)));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok((expected == last + 1).then_some(numbers))
    }
}
