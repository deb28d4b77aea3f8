//! Data sources: a folder of this machine that looks like a container of blobs.

use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use serde_json::Value;

use super::definition::{object, required, text};
use crate::ApiError;

/// Which folders the operator lets data sources read.
#[derive(Debug, Clone, Default)]
pub struct AllowedFolders {
    /// Holds one folder per container, for `UseDevelopmentStorage=true`.
    pub blobs: PathBuf,
    /// Data sources may name these folders and those below them as `file:///…`.
    pub allowed: Vec<PathBuf>,
}

/// The JSON of a data source, read and checked.
#[derive(Debug, Clone)]
pub struct DataSourceDefinition {
    pub name: String,
    pub kind: String,
    pub container: String,
    /// Only blobs whose names begin with this.
    pub prefix: String,
    pub deletion: DeletionPolicy,
    connection: SourceConnection,
}

/// How an item or blob shows that its documents must go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionPolicy {
    Never,
    /// A member of the item, or of the blob's metadata, has this value.
    Marked {
        column: String,
        marker: String,
    },
    /// The blob is no longer there.
    Missing,
}

#[derive(Debug, Clone)]
enum SourceConnection {
    Development,
    Folder(PathBuf),
    /// Kept, but no run can use it.
    Elsewhere,
}

/// An opened folder. Names given to it can never lead out of it.
#[derive(Debug)]
pub struct BlobContainer {
    /// Without links, so that a path that begins with it is truly inside.
    folder: PathBuf,
    container: String,
    prefix: String,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Below the container, with slashes.
    pub name: String,
    pub size: u64,
    /// Nanoseconds since 1970.
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
    pub fn parse(json: &Value) -> Result<Self, ApiError> {
        let json =
            json.as_object().ok_or_else(|| ApiError::invalid("A data source must be a JSON object."))?;
        let name = required(json, "name", "data source")?.to_owned();
        let kind = required(json, "type", "data source")?.to_ascii_lowercase();
        if !KINDS.contains(&kind.as_str()) {
            let known = KINDS.join(", ");
            return Err(ApiError::invalid(format!(
                "Data source type '{kind}' is not known; there are {known}."
            )));
        }
        let container = object(json, "container", "data source")?.ok_or_else(|| {
            ApiError::invalid("The required property 'container' is missing in 'data source'.")
        })?;
        let credentials = object(json, "credentials", "data source")?;
        let connection = credentials.map(|given| text(given, "connectionString")).transpose()?.flatten();
        let deletion = match object(json, "dataDeletionDetectionPolicy", "data source")? {
            None => DeletionPolicy::Never,
            Some(policy) => match required(policy, "@odata.type", "dataDeletionDetectionPolicy")? {
                "#Microsoft.Azure.Search.SoftDeleteColumnDeletionDetectionPolicy" => DeletionPolicy::Marked {
                    column: required(policy, "softDeleteColumnName", "dataDeletionDetectionPolicy")?
                        .to_owned(),
                    marker: required(policy, "softDeleteMarkerValue", "dataDeletionDetectionPolicy")?
                        .to_owned(),
                },
                "#Microsoft.Azure.Search.NativeBlobSoftDeleteDeletionDetectionPolicy" => {
                    DeletionPolicy::Missing
                }
                other => {
                    return Err(ApiError::invalid(format!(
                        "Deletion detection policy '{other}' is not known."
                    )));
                }
            },
        };
        let folders = matches!(kind.as_str(), "azureblob" | "adlsgen2" | "azurefile");
        let container_name = required(container, "name", "container")?.to_owned();
        let prefix = text(container, "query")?.unwrap_or("").trim_start_matches('/').to_owned();
        if folders {
            if !is_one_name(&container_name) {
                return Err(ApiError::invalid(format!(
                    "Container name '{container_name}' must be one name, without slashes and dots that lead elsewhere."
                )));
            }
            if !stays_inside(&prefix) {
                return Err(ApiError::invalid(format!(
                    "The container's query '{prefix}' must be the beginning of blob names; '..' and '\\' are refused."
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

    /// Finds the folder. Errors may be shown to clients: they name no path of this machine.
    pub fn open(&self, places: &AllowedFolders) -> Result<BlobContainer, ApiError> {
        let root = match &self.connection {
            SourceConnection::Development => places.blobs.clone(),
            SourceConnection::Folder(folder) => allowed(folder, &places.allowed)?,
            SourceConnection::Elsewhere
                if matches!(self.kind.as_str(), "azureblob" | "adlsgen2" | "azurefile") =>
            {
                return Err(ApiError::not_supported(format!(
                    "Data source '{}' names a storage account, and this service reads only folders. Set its connectionString to 'UseDevelopmentStorage=true', or to 'file:///folder' with a folder that the operator allows.",
                    self.name
                )));
            }
            SourceConnection::Elsewhere => {
                return Err(ApiError::not_supported(format!(
                    "Data source '{}' is of type '{}', which this service keeps but cannot read. Export its rows as JSON Lines into a folder and use a data source of type 'azureblob'.",
                    self.name, self.kind
                )));
            }
        };
        let missing = || {
            ApiError::not_found(format!(
                "Container '{}' of data source '{}' does not exist. Create a folder of this name where the service keeps its blobs, or in the folder that the connectionString names.",
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
    /// All blobs, sorted by name as storage accounts sort them. A folder is read when its turn comes.
    pub fn blobs(&self) -> BlobIterator<'_> {
        // Folders above the last slash of the prefix hold everything that can match.
        let start = self.prefix.rfind('/').map_or("", |slash| self.prefix.get(..slash).unwrap_or(""));
        let mut blobs = BlobIterator { source: self, levels: Vec::new() };
        let first = if start.is_empty() { String::new() } else { format!("{start}/") };
        // A folder that is missing, or reached over a link, has no blobs.
        let real = fs::canonicalize(self.path(start)).ok();
        if real.is_some_and(|path| path == self.path(start))
            && let Ok(level) = self.level(&first)
        {
            blobs.levels.push(level);
        }
        blobs
    }

    pub fn open(&self, blob: &Blob) -> io::Result<fs::File> {
        let path = self.resolve_inside(&blob.name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        fs::File::open(path)
    }

    pub fn exists(&self, name: &str) -> bool {
        self.resolve_inside(name).is_some_and(|path| path.is_file())
    }

    /// The address that documents carry as `metadata_storage_path`; it stands for no server.
    pub fn address(&self, name: &str) -> String {
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

    /// Part by part, because not all systems take a slash between folders.
    fn path(&self, name: &str) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(name.split('/').filter(|part| !part.is_empty()));
        path
    }

    /// The file of this name, links resolved, if that is still inside the folder.
    fn resolve_inside(&self, name: &str) -> Option<PathBuf> {
        if !stays_inside(name) {
            return None;
        }
        let path = fs::canonicalize(self.path(name)).ok()?;
        path.starts_with(&self.folder).then_some(path)
    }

    /// What one folder holds, last name first. Files and folders that cannot be read are left out.
    fn level(&self, above: &str) -> io::Result<Vec<FolderEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path(above))? {
            let Ok(entry) = entry else { continue };
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let name = format!("{above}{name}");
            if kind.is_dir() {
                entries.push(FolderEntry::Folder(format!("{name}/")));
            } else if kind.is_file() || (kind.is_symlink() && self.exists(&name)) {
                // Links to folders are not followed: they could go round in circles.
                entries.push(FolderEntry::File(name));
            }
        }
        // With its slash a folder sorts where its blobs sort.
        entries.sort_unstable_by(|one, other| other.name().cmp(one.name()));
        Ok(entries)
    }
}

/// The names of a source, one after the other.
pub struct BlobIterator<'a> {
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
                    // A file that went away since its folder was read is no blob any more.
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
            // The account of the storage emulator, which long connection strings for it name.
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
    // Whether a folder exists is said only about folders that may be read.
    let refused = || {
        ApiError::not_supported(
            "The folder of this data source may not be read. The operator allows folders when starting the service, with the option --indexer-folder; 'UseDevelopmentStorage=true' needs no such option.",
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
