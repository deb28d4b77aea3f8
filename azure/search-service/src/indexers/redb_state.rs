//! The state of indexers in a redb database.

use std::path::Path;

use redb::{TableDefinition, TableError};

use super::state::{BlobState, IndexerRecord, StateError};
use crate::database::{self, RedbDatabase};

/// Maps an indexer and a blob to the state of the blob.
const BLOBS: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("blobs");
const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");

const CACHE_BYTES: usize = 4 << 20;

/// The log message for a lost file.
const HOLDS: &str = "the state of indexers (their next runs index all blobs again)";

/// Creates all tables. Read transactions can open only existing tables.
fn make_tables(database: &RedbDatabase) -> Result<(), redb::Error> {
    let reading = database.read()?;
    match reading.open_table(BLOBS).and(reading.open_table(RECORDS).map(|_| ())) {
        Ok(()) => return Ok(()),
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    drop(reading);
    let transaction = database.write()?;
    transaction.open_table(BLOBS)?;
    transaction.open_table(RECORDS)?;
    Ok(transaction.commit()?)
}

/// Stores the state of all indexers in one file. Calls may block.
pub(crate) struct RedbState {
    database: RedbDatabase,
}

impl RedbState {
    pub(crate) fn open(path: &Path) -> Result<Self, StateError> {
        let (database, ()) =
            RedbDatabase::open_or_put_aside(path, CACHE_BYTES, HOLDS, make_tables).map_err(state_error)?;
        Ok(Self { database })
    }

    /// Runs an operation on the file. A panic caused by a damaged file becomes an error.
    fn catch_redb_panic<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        database::catch_redb_panic(|| Ok(work(self))).map_err(state_error)?
    }

    /// Begins a write transaction. Reopens the file after a disk failure.
    fn begin_write(&self) -> Result<redb::WriteTransaction, StateError> {
        self.database.reopen_after_failure().and_then(|_| self.database.write()).map_err(state_error)
    }

    fn remove_blobs(transaction: &redb::WriteTransaction, indexer: &str) -> Result<(), StateError> {
        let mut blobs = transaction.open_table(BLOBS).map_err(state_error)?;
        // No blob name sorts after this one.
        blobs.retain_in((indexer, "")..=(indexer, "\u{10ffff}\u{10ffff}"), |_, _| false).map_err(state_error)
    }
}

impl RedbState {
    pub(crate) fn blob(&self, indexer: &str, name: &str) -> Result<Option<BlobState>, StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.database.read().map_err(state_error)?;
            let blobs = transaction.open_table(BLOBS).map_err(state_error)?;
            let Some(found) = blobs.get((indexer, name)).map_err(state_error)? else { return Ok(None) };
            Ok(Some(serde_json::from_slice(found.value())?))
        })
    }

    /// Writes all changes in one transaction. `None` removes a blob.
    pub(crate) fn save(
        &self,
        indexer: &str,
        changes: Vec<(String, Option<BlobState>)>,
    ) -> Result<(), StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.begin_write()?;
            {
                let mut blobs = transaction.open_table(BLOBS).map_err(state_error)?;
                for (name, state) in &changes {
                    let place = (indexer, name.as_str());
                    match state {
                        Some(state) => {
                            blobs
                                .insert(place, serde_json::to_vec(state)?.as_slice())
                                .map_err(state_error)?;
                        }
                        None => {
                            blobs.remove(place).map_err(state_error)?;
                        }
                    }
                }
            }
            transaction.commit().map_err(state_error)
        })
    }

    /// Returns the names of all recorded blobs, sorted.
    pub(crate) fn blob_names(&self, indexer: &str) -> Result<Vec<String>, StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.database.read().map_err(state_error)?;
            let blobs = transaction.open_table(BLOBS).map_err(state_error)?;
            let mut names = Vec::new();
            for entry in blobs.range((indexer, "")..).map_err(state_error)? {
                let (place, _) = entry.map_err(state_error)?;
                let (of, name) = place.value();
                if of != indexer {
                    break;
                }
                names.push(name.to_owned());
            }
            Ok(names)
        })
    }

    /// Deletes the state of all blobs. The record stays.
    pub(crate) fn clear(&self, indexer: &str) -> Result<(), StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.begin_write()?;
            Self::remove_blobs(&transaction, indexer)?;
            transaction.commit().map_err(state_error)
        })
    }

    pub(crate) fn record(&self, indexer: &str) -> Result<IndexerRecord, StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.database.read().map_err(state_error)?;
            let records = transaction.open_table(RECORDS).map_err(state_error)?;
            match records.get(indexer).map_err(state_error)? {
                Some(record) => Ok(serde_json::from_slice(record.value())?),
                None => Ok(IndexerRecord::default()),
            }
        })
    }

    pub(crate) fn save_record(&self, indexer: &str, record: &IndexerRecord) -> Result<(), StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.begin_write()?;
            {
                let mut records = transaction.open_table(RECORDS).map_err(state_error)?;
                records.insert(indexer, serde_json::to_vec(record)?.as_slice()).map_err(state_error)?;
            }
            transaction.commit().map_err(state_error)
        })
    }

    /// Deletes the state of a deleted indexer.
    pub(crate) fn remove(&self, indexer: &str) -> Result<(), StateError> {
        self.catch_redb_panic(|this| {
            let transaction = this.begin_write()?;
            Self::remove_blobs(&transaction, indexer)?;
            transaction.open_table(RECORDS).map_err(state_error)?.remove(indexer).map_err(state_error)?;
            transaction.commit().map_err(state_error)
        })
    }
}

fn state_error(error: impl Into<redb::Error>) -> StateError {
    StateError(error.into().to_string())
}
