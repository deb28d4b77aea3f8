//! Export and import of documents as JSON Lines. Both continue where they were interrupted.

mod export;
mod import;
mod lines;

use std::path::{Path, PathBuf};

pub use export::{ExportOptions, ExportReport, export};
pub(crate) use import::load_file;
pub use import::{ImportAction, ImportOptions, ImportReport, import};

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Returns a path with something added to its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
