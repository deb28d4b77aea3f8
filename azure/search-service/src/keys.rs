//! The API keys of the service: two admin keys, and query keys that only read documents.
//!
//! They are created at the first start and kept in `keys.json`, which only its owner can read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::files::{self, FileAccess};

/// The permissions of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    /// Allows all operations.
    Admin,
    /// Allows reading documents: search, suggest, autocomplete, look-up and count.
    Query,
}

/// An error that makes the keys unusable.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}\n  fix: {fix}", path.display())]
pub struct KeysError {
    path: PathBuf,
    reason: String,
    fix: &'static str,
}

pub struct ApiKeys {
    /// Whether the keys were created at this start.
    fresh: bool,
    written: KeyFile,
    /// SHA-256 of each key, so that the comparison takes the same time for every input.
    admin: Vec<[u8; 32]>,
    query: Vec<[u8; 32]>,
}

/// The content of `keys.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyFile {
    admin_keys: Vec<String>,
    query_keys: Vec<String>,
}

/// The length of keys, as in Azure.
const LENGTH: usize = 52;
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

const FIX_FOLDER: &str = "make the data folder writable, or run without keys";
const FIX_FILE: &str =
    "write {\"adminKeys\":[\"…\"],\"queryKeys\":[\"…\"]}, or delete the file to create new keys";

impl ApiKeys {
    /// Reads the keys in this folder, or creates new ones.
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        let path = folder.join("keys.json");
        let wrong = |reason: String, fix| KeysError { path: path.clone(), reason, fix };
        let mut fresh = false;
        let written = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| wrong(error.to_string(), FIX_FILE))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fresh = true;
                let made = make().and_then(|made| {
                    fs::create_dir_all(folder)?;
                    let text = serde_json::to_vec_pretty(&made).map_err(io::Error::other)?;
                    files::write_atomically(&path, &text, FileAccess::Owner)?;
                    Ok(made)
                });
                made.map_err(|error| wrong(error.to_string(), FIX_FOLDER))?
            }
            Err(error) => return Err(wrong(error.to_string(), FIX_FOLDER)),
        };
        let keys = Self::new(written).map_err(|reason| wrong(reason, FIX_FILE))?;
        Ok(Self { fresh, ..keys })
    }

    /// Returns the role of a key, or `None` if the key is unknown.
    pub fn role(&self, presented: &str) -> Option<KeyRole> {
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let among =
            |keys: &[[u8; 32]]| keys.iter().fold(Choice::from(0), |found, key| found | key.ct_eq(&digest));
        let (admin, query) = (among(&self.admin), among(&self.query));
        match (bool::from(admin), bool::from(query)) {
            (true, _) => Some(KeyRole::Admin),
            (false, true) => Some(KeyRole::Query),
            (false, false) => None,
        }
    }

    /// Returns whether the keys were created at this start, so that the user has not seen them yet.
    pub fn are_new(&self) -> bool {
        self.fresh
    }

    /// Returns the admin keys. The program shows them to its user.
    pub fn admin_keys(&self) -> &[String] {
        &self.written.admin_keys
    }

    pub fn query_keys(&self) -> &[String] {
        &self.written.query_keys
    }

    fn new(written: KeyFile) -> Result<Self, String> {
        if written.admin_keys.is_empty() {
            return Err("there is no admin key".to_owned());
        }
        for key in written.admin_keys.iter().chain(&written.query_keys) {
            if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err("a key is empty or has characters that are not valid in a header".to_owned());
            }
        }
        let digests = |keys: &[String]| keys.iter().map(|key| Sha256::digest(key).into()).collect();
        Ok(Self {
            fresh: false,
            admin: digests(&written.admin_keys),
            query: digests(&written.query_keys),
            written,
        })
    }
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({} admin, {} query)", self.admin.len(), self.query.len())
    }
}

fn make() -> io::Result<KeyFile> {
    Ok(KeyFile { admin_keys: vec![random()?, random()?], query_keys: vec![random()?] })
}

fn random() -> io::Result<String> {
    let mut key = String::with_capacity(LENGTH);
    while key.len() < LENGTH {
        let mut bytes = [0; 64];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        // Six bits select a letter. The two values without a letter are skipped, so all letters have the
        // same probability.
        let letters = bytes.iter().filter_map(|byte| LETTERS.get(usize::from(byte & 63)));
        key.extend(letters.take(LENGTH - key.len()).map(|letter| char::from(*letter)));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::scratch::TestFolder;

    #[test]
    fn creates_keys_once_and_reads_them_again() {
        let folder = TestFolder::new();
        let first = ApiKeys::open(folder.path()).unwrap();
        let second = ApiKeys::open(folder.path()).unwrap();
        assert_eq!(first.admin_keys(), second.admin_keys());
        assert_eq!((first.admin_keys().len(), first.query_keys().len()), (2, 1));
        for key in first.admin_keys().iter().chain(first.query_keys()) {
            assert!(key.len() == 52 && key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
        }
        assert_ne!(first.admin_keys()[0], first.admin_keys()[1]);
    }

    #[test]
    fn distinguishes_the_roles() {
        let folder = TestFolder::new();
        let keys = ApiKeys::open(folder.path()).unwrap();
        assert_eq!(keys.role(&keys.admin_keys()[1]), Some(KeyRole::Admin));
        assert_eq!(keys.role(&keys.query_keys()[0]), Some(KeyRole::Query));
        assert_eq!(keys.role(&keys.query_keys()[0][..51]), None);
        assert_eq!(keys.role(""), None);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = TestFolder::new();
        ApiKeys::open(folder.path()).unwrap();
        let mode = fs::metadata(folder.path().join("keys.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn errors_explain_an_invalid_file_and_its_fix() {
        let folder = TestFolder::new();
        fs::write(folder.path().join("keys.json"), r#"{"adminKeys":[],"queryKeys":[]}"#).unwrap();
        let error = ApiKeys::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no admin key") && error.contains("fix:"), "{error}");
    }
}
