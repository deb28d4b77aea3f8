//! Data sources: a local folder in the role of a blob container.

use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::JsonPlace;
use serde_json::Value;

use super::definition::IndexerObject;

/// The folders that the operator allows data sources to read.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedFolders {
    /// Contains one folder per container, for `UseDevelopmentStorage=true`.
    pub blobs: PathBuf,
    /// Data sources may use these folders and their subfolders as `file:///…`.
    pub allowed: Vec<PathBuf>,
}

/// A parsed and valid data source definition.
#[derive(Debug, Clone)]
pub(crate) struct DataSourceDefinition {
    pub name: String,
    pub kind: &'static str,
    pub container: String,
    /// Only blobs whose names start with this prefix are read.
    pub prefix: String,
    pub deletion: DeletionPolicy,
    connection: SourceConnection,
}

/// How the deletion of a blob or an item is detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeletionPolicy {
    Never,
    /// A member of the item, or of the blob's metadata, has this value.
    Marked {
        column: String,
        marker: String,
    },
    /// The blob no longer exists.
    Missing,
}

#[derive(Debug, Clone)]
enum SourceConnection {
    Development,
    Folder(PathBuf),
    /// A source that is stored, but that runs cannot read.
    Elsewhere,
}

/// An opened folder. Blob names cannot refer to files outside it.
#[derive(Debug)]
pub(crate) struct BlobContainer {
    /// The canonical path without links, so that paths with this prefix are inside the folder.
    folder: PathBuf,
    container: String,
    prefix: String,
}

/// A file of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    /// The path within the container, with slashes.
    pub name: String,
    pub size: u64,
    /// The modification time in nanoseconds since 1970.
    pub modified: i64,
}

const KINDS: [&str; 9] = [
    "azureblob",
    "adlsgen2",
    "azurefile",
    "azuresql",
    "cosmosdb",
    "azuretable",
    "mysql",
    "onelake",
    "sharepoint",
];
const DEEPEST: usize = 64;

impl DataSourceDefinition {
    pub(crate) fn parse(json: &Value) -> Result<Self, ApiError> {
        let given = IndexerObject::new(json, JsonPlace::of("the data source"))?;
        let name = given.required_text("name")?.to_owned();
        given.required_text("type")?;
        let kinds = KINDS.map(|kind| (kind, kind));
        let kind = given.choice_in_any_case("type", &kinds)?.unwrap_or_default();
        let container = given.required_object("container")?;
        let connection = given.object_or_empty("credentials")?.text("connectionString")?;
        let deletion = match given.object("dataDeletionDetectionPolicy")? {
            None => DeletionPolicy::Never,
            Some(policy) => match policy.required_text("@odata.type")? {
                "#Microsoft.Azure.Search.SoftDeleteColumnDeletionDetectionPolicy" => DeletionPolicy::Marked {
                    column: policy.required_text("softDeleteColumnName")?.to_owned(),
                    marker: policy.required_text("softDeleteMarkerValue")?.to_owned(),
                },
                "#Microsoft.Azure.Search.NativeBlobSoftDeleteDeletionDetectionPolicy" => {
                    DeletionPolicy::Missing
                }
                other => {
                    let problem = format_args!("is not a deletion detection policy: '{other}'");
                    return Err(policy.error("@odata.type", problem));
                }
            },
        };
        let folders = matches!(kind, "azureblob" | "adlsgen2" | "azurefile");
        let container_name = container.required_text("name")?.to_owned();
        let prefix = container.text("query")?.unwrap_or("").trim_start_matches('/').to_owned();
        if folders {
            if !is_one_name(&container_name) {
                return Err(ApiError::invalid(format!(
                    "Container name '{container_name}' must be a single name without slashes, and neither '.' nor '..'."
                )));
            }
            if !stays_inside(&prefix) {
                return Err(ApiError::invalid(format!(
                    "The container's query '{prefix}' must be a prefix of blob names without '..' and '\\'."
                )));
            }
        }
        Ok(Self {
            name,
            container: container_name,
            prefix,
            deletion,
            connection: if folders { read_connection(connection) } else { SourceConnection::Elsewhere },
            kind,
        })
    }

    /// Opens the folder. Errors are shown to clients and contain no local path.
    pub(crate) fn open(&self, places: &AllowedFolders) -> Result<BlobContainer, ApiError> {
        let root = match &self.connection {
            SourceConnection::Development => places.blobs.clone(),
            SourceConnection::Folder(folder) => allowed(folder, &places.allowed)?,
            SourceConnection::Elsewhere if matches!(self.kind, "azureblob" | "adlsgen2" | "azurefile") => {
                return Err(ApiError::not_supported(format!(
                    "Data source '{}' refers to a storage account, but this service reads only folders. Set its connectionString to 'UseDevelopmentStorage=true', or to 'file:///folder' with a folder that the operator allows.",
                    self.name
                )));
            }
            SourceConnection::Elsewhere => {
                return Err(ApiError::not_supported(format!(
                    "Data source '{}' is of type '{}', which this service stores but cannot read. Export its rows as JSON Lines into a folder and use a data source of type 'azureblob'.",
                    self.name, self.kind
                )));
            }
        };
        let missing = || {
            ApiError::not_found(format!(
                "Container '{}' of data source '{}' does not exist. Create a folder with this name in the blobs folder of the service, or in the folder of the connectionString.",
                self.container, self.name
            ))
        };
        let root = fs::canonicalize(root).map_err(|_| missing())?;
        let folder = fs::canonicalize(root.join(&self.container)).map_err(|_| missing())?;
        if !folder.starts_with(&root) || !folder.is_dir() {
            return Err(missing());
        }
        Ok(BlobContainer { folder, container: self.container.clone(), prefix: self.prefix.clone() })
    }
}

impl BlobContainer {
    /// Returns all blobs, sorted by name as in storage accounts. Folders are read lazily.
    pub(crate) fn blobs(&self) -> BlobIterator<'_> {
        // Only the folder before the last slash of the prefix can contain matching blobs.
        let start = self.prefix.rfind('/').map_or("", |slash| self.prefix.get(..slash).unwrap_or(""));
        let mut blobs = BlobIterator { source: self, levels: Vec::new() };
        let first = if start.is_empty() { String::new() } else { format!("{start}/") };
        // A missing folder, or a folder behind a link, has no blobs.
        let real = fs::canonicalize(self.path(start)).ok();
        if real.is_some_and(|path| path == self.path(start))
            && let Ok(level) = self.level(&first)
        {
            blobs.levels.push(level);
        }
        blobs
    }

    pub(crate) fn open(&self, blob: &Blob) -> io::Result<fs::File> {
        let path = self.resolve_inside(&blob.name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        fs::File::open(path)
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.resolve_inside(name).is_some_and(|path| path.is_file())
    }

    /// Returns the URL for `metadata_storage_path`. No server exists at this URL.
    pub(crate) fn address(&self, name: &str) -> String {
        let mut address = format!("http://local/{}", self.container);
        for part in name.split('/') {
            address.push('/');
            for byte in part.bytes() {
                match byte {
                    b'a'..=b'z'
                    | b'A'..=b'Z'
                    | b'0'..=b'9'
                    | b'-'
                    | b'.'
                    | b'_'
                    | b'~'
                    | b'('
                    | b')'
                    | b'!' => {
                        address.push(char::from(byte));
                    }
                    _ => address.push_str(&format!("%{byte:02X}")),
                }
            }
        }
        address
    }

    /// Adds each part separately, because not all systems accept a slash in a path.
    fn path(&self, name: &str) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(name.split('/').filter(|part| !part.is_empty()));
        path
    }

    /// Returns the file with this name, with links resolved, if it is inside the folder.
    fn resolve_inside(&self, name: &str) -> Option<PathBuf> {
        if !stays_inside(name) {
            return None;
        }
        let path = fs::canonicalize(self.path(name)).ok()?;
        path.starts_with(&self.folder).then_some(path)
    }

    /// Returns the content of one folder in descending order of names. Unreadable files and folders
    /// are skipped.
    fn level(&self, above: &str) -> io::Result<Vec<FolderEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path(above))? {
            let Ok(entry) = entry else { continue };
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let name = format!("{above}{name}");
            if kind.is_dir() {
                entries.push(FolderEntry::Folder(format!("{name}/")));
            } else if kind.is_file() || (kind.is_symlink() && self.exists(&name)) {
                // Links to folders are not followed, because they may form cycles.
                entries.push(FolderEntry::File(name));
            }
        }
        // A folder with its slash sorts at the position of its blobs.
        entries.sort_unstable_by(|one, other| other.name().cmp(one.name()));
        Ok(entries)
    }
}

/// Iterates over the blobs of a source.
pub(crate) struct BlobIterator<'a> {
    source: &'a BlobContainer,
    levels: Vec<Vec<FolderEntry>>,
}

enum FolderEntry {
    File(String),
    Folder(String),
}

impl FolderEntry {
    fn name(&self) -> &str {
        match self {
            Self::File(name) | Self::Folder(name) => name,
        }
    }
}

impl Iterator for BlobIterator<'_> {
    type Item = Blob;

    fn next(&mut self) -> Option<Blob> {
        loop {
            let level = self.levels.last_mut()?;
            let prefix = &self.source.prefix;
            match level.pop() {
                None => {
                    self.levels.pop();
                }
                Some(FolderEntry::Folder(name)) => {
                    let wanted = name.starts_with(prefix.as_str()) || prefix.starts_with(&name);
                    if wanted
                        && self.levels.len() < DEEPEST
                        && let Ok(level) = self.source.level(&name)
                    {
                        self.levels.push(level);
                    }
                }
                Some(FolderEntry::File(name)) if name.starts_with(prefix.as_str()) => {
                    // The file was deleted after its folder was read.
                    let Some(Ok(facts)) = self.source.resolve_inside(&name).map(fs::metadata) else {
                        continue;
                    };
                    let modified =
                        facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                    let modified =
                        modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
                    return Some(Blob { name, size: facts.len(), modified });
                }
                Some(FolderEntry::File(_)) => {}
            }
        }
    }
}

fn read_connection(given: Option<&str>) -> SourceConnection {
    let Some(given) = given.map(str::trim) else { return SourceConnection::Elsewhere };
    if let Some(folder) = file_address(given) {
        return SourceConnection::Folder(folder);
    }
    let mut emulator = false;
    for (name, value) in given.split(';').filter_map(|part| part.split_once('=')) {
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "usedevelopmentstorage" if value.eq_ignore_ascii_case("true") => {
                return SourceConnection::Development;
            }
            // The account name of the storage emulator, which its full connection strings contain.
            "accountname" if value == "devstoreaccount1" => emulator = true,
            "blobendpoint" => {
                if let Some(folder) = file_address(value) {
                    return SourceConnection::Folder(folder);
                }
            }
            _ => {}
        }
    }
    if emulator { SourceConnection::Development } else { SourceConnection::Elsewhere }
}

fn file_address(given: &str) -> Option<PathBuf> {
    let path = given.strip_prefix("file://")?;
    let path = super::mapping::percent_decode(path, false)?;
    let path = if cfg!(windows) { path.trim_start_matches('/') } else { path.as_str() };
    let path = PathBuf::from(path);
    path.is_absolute().then_some(path)
}

fn allowed(folder: &Path, allowed: &[PathBuf]) -> Result<PathBuf, ApiError> {
    // The error must not reveal whether a folder exists that is not allowed.
    let refused = || {
        ApiError::not_supported(
            "The folder of this data source is not allowed. The operator must allow it with the option --indexer-folder when starting the service. 'UseDevelopmentStorage=true' does not need this option.",
        )
    };
    let real = fs::canonicalize(folder).map_err(|_| refused())?;
    let inside =
        allowed.iter().filter_map(|root| fs::canonicalize(root).ok()).any(|root| real.starts_with(root));
    if inside { Ok(real) } else { Err(refused()) }
}

fn is_one_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        && !name.contains(['/', '\\', '\0'])
}

fn stays_inside(name: &str) -> bool {
    !name.contains(['\\', '\0'])
        && !name.split('/').any(|part| part == ".." || part == ".")
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}
