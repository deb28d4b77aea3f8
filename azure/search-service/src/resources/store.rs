//! Definitions on disk: one table in `service.redb`.

use std::fs;
use std::path::{Path, PathBuf};

use redb::{ReadableTable as _, TableDefinition};
use serde_json::json;

use crate::ApiError;
use crate::database::{self, RedbDatabase};

use super::{ResourceDefinition, ResourceKind};

/// Collection and name.
type Key = (&'static str, &'static str);
/// ETag and JSON.
type Row = (&'static str, &'static [u8]);
const DEFINITIONS: TableDefinition<'static, Key, Row> = TableDefinition::new("definitions");

const CACHE_BYTES: usize = 4 << 20;

/// What the loss of the file costs.
const HOLDS: &str =
    "any definitions; the documents of indexes stay in their folders, and are served again with the old file";

const FIX: &str = "put a copy of the file back, or give it another name to start without any definitions";

/// Why the definitions cannot be read at the start.
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
    /// The store with all definitions that it holds.
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
            // A file that the disk has failed before is opened again.
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
            // A file that the disk has failed before is opened again.
            self.database.reopen_after_failure()?;
            let transaction = self.database.write()?;
            transaction.open_table(DEFINITIONS)?.remove((kind.collection(), name))?;
            Ok(transaction.commit()?)
        };
        database::catch_redb_panic(write)
            .map_err(|error| database::database_error("removing a definition", &error))
    }
}

/// What the file holds: collection, name, ETag and JSON.
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
    /// `None` for a definition that cannot be read: the others are served.
    fn into_definition(self, path: &Path) -> Result<Option<ResourceDefinition>, ResourceStoreError> {
        let Self { collection, name, etag, json } = self;
        let kind =
            ResourceKind::ALL.into_iter().find(|kind| kind.collection() == collection).ok_or_else(|| {
                let reason =
                    format!("'{collection}' is unknown here; a newer version of the program wrote it");
                ResourceStoreError {
                    path: path.to_owned(),
                    reason: format!("{reason}\n  fix: use that version"),
                }
            })?;
        let value = match serde_json::from_slice(&json) {
            Ok(value) => value,
            // Its name is enough to say that it cannot be used, and to delete it.
            Err(_) if kind == ResourceKind::Index => json!({"name": name}),
            Err(error) => {
                tracing::error!(
                    file = %path.display(), %error,
                    "the {kind} '{name}' is damaged and left out\n  fix: create it again"
                );
                return Ok(None);
            }
        };
        Ok(Some(ResourceDefinition { kind, name, etag, value }))
    }
}
