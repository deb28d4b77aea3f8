//! Definitions on disk: one table in `service.redb`.

use std::fs;
use std::path::{Path, PathBuf};

use redb::{ReadableTable as _, TableDefinition};
use serde_json::json;

use crate::ApiError;
use crate::database::{self, Database};

use super::{Definition, Kind};

/// Collection and name.
type Key = (&'static str, &'static str);
/// ETag and JSON.
type Row = (&'static str, &'static [u8]);
const DEFINITIONS: TableDefinition<'static, Key, Row> = TableDefinition::new("definitions");

const CACHE_BYTES: usize = 4 << 20;

const FIX: &str =
    "put a copy of the whole folder back, or start with another folder and load everything again";

/// Why the definitions cannot be read at the start.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct StoreError {
    path: PathBuf,
    reason: String,
}

pub(super) struct Store {
    database: Database,
    path: PathBuf,
}

impl Store {
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("service.redb");
        let wrong = |reason: String| StoreError { path: path.clone(), reason };
        fs::create_dir_all(folder).map_err(|error| wrong(error.to_string()))?;
        let database = Database::open(&path, CACHE_BYTES).map_err(|error| match error {
            redb::Error::DatabaseAlreadyOpen => wrong(
                "another process has it open\n  fix: stop that process, or choose another folder".to_owned(),
            ),
            other => wrong(format!("{other}\n  fix: {FIX}")),
        })?;
        Ok(Self { database, path })
    }

    pub(super) fn read_all(&self) -> Result<Vec<Definition>, StoreError> {
        let rows = self.rows().map_err(|error| self.wrong(format!("{error}\n  fix: {FIX}")))?;
        rows.into_iter().collect()
    }

    pub(super) fn insert(&self, definition: &Definition) -> Result<(), ApiError> {
        let json = serde_json::to_vec(&definition.value)
            .map_err(|error| ApiError::internal("writing a definition", error))?;
        let write = || -> Result<(), redb::Error> {
            // A file that the disk has failed before is opened again.
            self.database.revive()?;
            let transaction = self.database.write()?;
            {
                let mut table = transaction.open_table(DEFINITIONS)?;
                let key = (definition.kind.collection(), definition.name.as_str());
                table.insert(key, (definition.etag.as_str(), json.as_slice()))?;
            }
            Ok(transaction.commit()?)
        };
        write().map_err(|error| database::refusal("keeping a definition", &error))
    }

    pub(super) fn remove(&self, kind: Kind, name: &str) -> Result<(), ApiError> {
        let write = || -> Result<(), redb::Error> {
            // A file that the disk has failed before is opened again.
            self.database.revive()?;
            let transaction = self.database.write()?;
            transaction.open_table(DEFINITIONS)?.remove((kind.collection(), name))?;
            Ok(transaction.commit()?)
        };
        write().map_err(|error| database::refusal("removing a definition", &error))
    }

    fn rows(&self) -> Result<Vec<Result<Definition, StoreError>>, redb::Error> {
        let transaction = self.database.read()?;
        let table = match transaction.open_table(DEFINITIONS) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut rows = Vec::new();
        for row in table.iter()? {
            let (key, value) = row?;
            let ((collection, name), (etag, json)) = (key.value(), value.value());
            rows.push(self.definition(collection, name, etag, json));
        }
        Ok(rows)
    }

    fn definition(
        &self,
        collection: &str,
        name: &str,
        etag: &str,
        json: &[u8],
    ) -> Result<Definition, StoreError> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.collection() == collection).ok_or_else(|| {
            self.wrong(format!("'{collection}' is unknown here; a newer version of the program wrote it"))
        })?;
        let value = match serde_json::from_slice(json) {
            // Its name is enough to say that it cannot be used, and to delete it; the other indexes are served.
            Err(_) if kind == Kind::Index => json!({"name": name}),
            read => read.map_err(|error| self.wrong(format!("the {kind} '{name}' is damaged: {error}")))?,
        };
        Ok(Definition { kind, name: name.to_owned(), etag: etag.to_owned(), value })
    }

    fn wrong(&self, reason: String) -> StoreError {
        StoreError { path: self.path.clone(), reason }
    }
}
