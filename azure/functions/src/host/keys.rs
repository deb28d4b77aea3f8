//! The keys of a function app. They are created when they are first needed, in a file that only its owner can
//! read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bindpost_mcp_http::ApiKeys;

/// The names of the MCP extension's key and of the master key, which is valid everywhere.
pub(crate) const NAMES: [&str; 2] = ["mcp_extension", "_master"];
/// The header that carries the key.
const HEADER: &str = "x-functions-key";
/// The query parameter that carries the key, for clients that cannot send headers.
pub(crate) const PARAMETER: &str = "code";

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
