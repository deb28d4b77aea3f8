//! Stores definitions on disk, in one table of `service.redb`.

use std::fs;
use std::path::{Path, PathBuf};

use bindpost_azure_search_model::ApiError;
use redb::{ReadableTable as _, TableDefinition};
use serde_json::json;

use crate::database::{self, RedbDatabase};

use super::{ResourceDefinition, ResourceKind};

/// Collection and name.
type Key = (&'static str, &'static str);
/// ETag and JSON.
type Row = (&'static str, &'static [u8]);
const DEFINITIONS: TableDefinition<'static, Key, Row> = TableDefinition::new("definitions");

const CACHE_BYTES: usize = 4 << 20;

/// What the service starts without if the file is damaged.
const HOLDS: &str =
    "any definitions (documents stay in the folders of their indexes and return with the old file)";

const FIX: &str = "restore a copy of the file, or rename it to start without any definitions";

/// An error when the definitions are read at startup.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ResourceStoreError {
    path: PathBuf,
    reason: String,
}

pub(super) struct ResourceStore {
    database: RedbDatabase,
}

impl ResourceStore {
    /// Opens the store and reads all its definitions.
    pub(super) fn open(folder: &Path) -> Result<(Self, Vec<ResourceDefinition>), ResourceStoreError> {
        let path = folder.join("service.redb");
        let wrong = |reason: String| ResourceStoreError { path: path.clone(), reason };
        fs::create_dir_all(folder).map_err(|error| wrong(error.to_string()))?;
        let opened = RedbDatabase::open_or_put_aside(&path, CACHE_BYTES, HOLDS, read_rows);
        let (database, rows) = opened.map_err(|error| match error {
            redb::Error::DatabaseAlreadyOpen => wrong(
                "another process has it open\n  fix: stop that process, or choose another folder".to_owned(),
            ),
            other => wrong(format!("{other}\n  fix: {FIX}")),
        })?;
        let definitions = rows.into_iter().filter_map(|row| row.into_definition(&path).transpose());
        Ok((Self { database }, definitions.collect::<Result<_, _>>()?))
    }

    pub(super) fn insert(&self, definition: &ResourceDefinition) -> Result<(), ApiError> {
        let json = serde_json::to_vec(&definition.value)
            .map_err(|error| ApiError::internal("writing a definition", error))?;
        let write = || -> Result<(), redb::Error> {
            // Reopen the file after an earlier disk error.
            self.database.reopen_after_failure()?;
            let transaction = self.database.write()?;
            {
                let mut table = transaction.open_table(DEFINITIONS)?;
                let key = (definition.kind.collection(), definition.name.as_str());
                table.insert(key, (definition.etag.as_str(), json.as_slice()))?;
            }
            Ok(transaction.commit()?)
        };
        database::catch_redb_panic(write)
            .map_err(|error| database::database_error("keeping a definition", &error))
    }

    pub(super) fn remove(&self, kind: ResourceKind, name: &str) -> Result<(), ApiError> {
        let write = || -> Result<(), redb::Error> {
            // Reopen the file after an earlier disk error.
            self.database.reopen_after_failure()?;
            let transaction = self.database.write()?;
            transaction.open_table(DEFINITIONS)?.remove((kind.collection(), name))?;
            Ok(transaction.commit()?)
        };
        database::catch_redb_panic(write)
            .map_err(|error| database::database_error("removing a definition", &error))
    }
}

/// One row of the file: collection, name, ETag and JSON.
struct ResourceRow {
    collection: String,
    name: String,
    etag: String,
    json: Vec<u8>,
}

fn read_rows(database: &RedbDatabase) -> Result<Vec<ResourceRow>, redb::Error> {
    let transaction = database.read()?;
    let table = match transaction.open_table(DEFINITIONS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut rows = Vec::new();
    for row in table.iter()? {
        let (key, value) = row?;
        let ((collection, name), (etag, json)) = (key.value(), value.value());
        let (collection, name, etag) = (collection.to_owned(), name.to_owned(), etag.to_owned());
        rows.push(ResourceRow { collection, name, etag, json: json.to_vec() });
    }
    Ok(rows)
}

impl ResourceRow {
    /// Returns `None` for a definition that cannot be read. The others stay available.
    fn into_definition(self, path: &Path) -> Result<Option<ResourceDefinition>, ResourceStoreError> {
        let Self { collection, name, etag, json } = self;
        let kind =
            ResourceKind::ALL.into_iter().find(|kind| kind.collection() == collection).ok_or_else(|| {
                let reason =
                    format!("'{collection}' is unknown, because a newer version of the program wrote it");
                ResourceStoreError {
                    path: path.to_owned(),
                    reason: format!("{reason}\n  fix: use that version"),
                }
            })?;
        let value = match serde_json::from_slice(&json) {
            Ok(value) => value,
            // The name is enough to report that the index is unusable, and to delete it.
            Err(_) if kind == ResourceKind::Index => json!({"name": name}),
            Err(error) => {
                tracing::error!(
                    file = %path.display(), %error,
                    "the {kind} '{name}' is damaged and was skipped\n  fix: create it again"
                );
                return Ok(None);
            }
        };
        Ok(Some(ResourceDefinition { kind, name, etag, value }))
    }
}
