//! The keys of a function app. They are created when they are first needed, in a file that only its owner can
//! read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bindpost_mcp_http::ApiKeys;

use crate::host::state_folder::ignore_in_git;

/// The master key, which is valid everywhere.
const MASTER: &str = "_master";
/// The host key, which is valid for every HTTP function.
const HOST: &str = "default";
/// The keys of a new file: the MCP extension's key, the master key and the host key.
pub(crate) const NAMES: [&str; 3] = ["mcp_extension", MASTER, HOST];
/// The header that carries the key.
const HEADER: &str = "x-functions-key";
/// The query parameter that carries the key, for clients that cannot send headers.
pub(crate) const PARAMETER: &str = "code";

/// What a key is valid for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind<'a> {
    /// Every function and the MCP endpoint.
    Master,
    /// The functions with an HTTP trigger, except those of the level `admin`.
    Host,
    /// One function with an HTTP trigger: `<function>.<name>`.
    Function(&'a str),
    /// The MCP endpoint: `mcp_extension`, and every other name.
    System,
}

/// Returns what a key is valid for. `caller` is the id that authentication gives to the caller with this key.
pub(crate) fn kind_of(caller: &str) -> Option<KeyKind<'_>> {
    caller.strip_prefix("key:").map(kind_of_name)
}

fn kind_of_name(name: &str) -> KeyKind<'_> {
    match name.split_once('.') {
        _ if name == MASTER => KeyKind::Master,
        _ if name == HOST => KeyKind::Host,
        Some((function, _)) => KeyKind::Function(function),
        None => KeyKind::System,
    }
}

/// Returns whether the key of this name is valid for the MCP endpoint. The keys of HTTP functions are not, as on the
/// platform.
pub(crate) fn is_for_endpoint(name: &str) -> bool {
    matches!(kind_of_name(name), KeyKind::Master | KeyKind::System)
}

/// The keys cannot be read or created.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}\n  fix: make the folder writable, or serve without keys", path.display())]
pub struct KeysError {
    path: PathBuf,
    source: io::Error,
}

/// Opens the file `keys` in this folder. Creates it if it does not exist. Returns the keys and the path.
pub(crate) fn open(folder: &Path) -> Result<(ApiKeys, PathBuf), KeysError> {
    let path = folder.join("keys");
    let wrong = |source| KeysError { path: path.clone(), source };
    if !path.exists() {
        create_key_file(folder, &path).map_err(wrong)?;
    }
    let keys = ApiKeys::from_file(&path).map_err(wrong)?;
    Ok((keys.header(HEADER).in_query(PARAMETER), path))
}

fn create_key_file(folder: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    ignore_in_git(folder)?;
    let mut text = String::from(
        "# The keys of this function app, as Azure Functions names them. A client sends one in the header\n\
         # x-functions-key or in the parameter `code`. Change or remove a line to take a key back.\n",
    );
    for name in NAMES {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        text.push_str(&format!("{name} = {}\n", URL_SAFE.encode(secret)));
    }
    // Written to a draft and renamed, because another process may create the file at the same time.
    let draft = folder.join(format!("keys.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::hard_link(&draft, path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => fs::rename(&draft, path),
        })
    });
    let _ = fs::remove_file(&draft);
    written
}
