//! Files: their names, and writes that leave the old or the new content after a crash.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::failure::CodeError;

/// The folder of journals and locks, which git ignores.
pub(crate) const STATE: &str = ".bindpost";

/// Writes a file as a whole: after a crash it has its old content, or all of the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), CodeError> {
    let fail = || CodeError::file(path);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(fail())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let new = folder.join(format!(".{name}.new"));
    let mut file = File::create(&new).map_err(fail())?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(fail())?;
    fs::rename(&new, path).map_err(fail())?;
    sync_folder(folder);
    Ok(())
}

/// Makes a rename durable, where the operating system can.
pub(crate) fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Returns the folder of journals, which it creates.
pub(crate) fn state_folder(root: &Path) -> Result<PathBuf, CodeError> {
    let folder = root.join(STATE);
    fs::create_dir_all(&folder).map_err(CodeError::file(&folder))?;
    let ignored = folder.join(".gitignore");
    if !ignored.exists() {
        fs::write(&ignored, "*\n").map_err(CodeError::file(&ignored))?;
    }
    Ok(folder)
}

/// Returns a file name for a name of the service, without its extension. It cannot leave its folder, and
/// different names have different files.
pub(crate) fn file_name(name: &str) -> String {
    let mut file = String::with_capacity(name.len());
    for (place, letter) in name.char_indices() {
        let is_plain = letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if is_plain || letter == '.' && place > 0 {
            file.push(letter);
        } else {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes).bytes().for_each(|byte| file += &format!("%{byte:02X}"));
        }
    }
    file
}

/// Returns a short identifier of a value: equal values have equal ones.
pub(crate) fn fingerprint(value: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let digest = Sha256::digest(&bytes);
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_service_cannot_leave_the_folder() {
        for (name, file) in [
            ("hotels-v2", "hotels-v2"),
            ("../x", "%2E.%2Fx"),
            ("a/b", "a%2Fb"),
            (".hidden", "%2Ehidden"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(file_name(name), file);
        }
    }
}
