//! Reads requirements.txt and all files that it names, to detect changes.

use std::fs;
use std::path::Path;

use super::super::SetupError;
use super::super::stamp::InstallStamp;

pub(super) const FILE: &str = "requirements.txt";
/// The maximum number of files to read. Files may name each other in a cycle.
const MAX_FILES: usize = 64;

/// The packages that an app requires.
pub(super) struct PythonRequirements {
    /// The content of requirements.txt, followed by that of the files that it names.
    texts: Vec<String>,
}

impl PythonRequirements {
    /// Reads the requirements of an app. Returns `None` if it has no requirements.txt.
    pub(super) fn read(app: &Path) -> Result<Option<Self>, SetupError> {
        let file = app.join(FILE);
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SetupError::file(&file, "read")(error)),
        };
        let mut texts = vec![String::from_utf8_lossy(&bytes).into_owned()];
        let mut files = vec![file];
        let mut next = 0;
        while let (Some(text), Some(file)) = (texts.get(next), files.get(next)) {
            let folder = file.parent().unwrap_or(app);
            let named: Vec<_> = text.lines().filter_map(named_file).map(|name| folder.join(name)).collect();
            for file in named {
                // A file that cannot be read is reported by pip.
                if files.len() < MAX_FILES
                    && !files.contains(&file)
                    && let Ok(bytes) = fs::read(&file)
                {
                    texts.push(String::from_utf8_lossy(&bytes).into_owned());
                    files.push(file);
                }
            }
            next += 1;
        }
        Ok(Some(Self { texts }))
    }

    pub(super) fn stamp(&self, python_version: &str) -> InstallStamp {
        let texts = self.texts.iter().map(|text| text.as_bytes());
        InstallStamp::from_parts(std::iter::once(python_version.as_bytes()).chain(texts))
    }

    /// Returns whether `azure-functions` is required, in any spelling that pip considers equal.
    pub(super) fn includes_functions_library(&self) -> bool {
        self.texts.iter().flat_map(|text| text.lines()).any(|line| {
            let line = line.trim_start().to_ascii_lowercase().replace(['_', '.'], "-");
            line.strip_prefix("azure-functions")
                .is_some_and(|rest| !rest.starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric()))
        })
    }
}

/// Returns the file that a line such as `-r base.txt` or `--constraint=pins.txt` names.
fn named_file(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest =
        ["--requirement", "--constraint", "-r", "-c"].iter().find_map(|flag| line.strip_prefix(flag))?;
    let name = rest.trim_start_matches(['=', ' ', '\t']);
    let name = name.split(" #").next().unwrap_or(name).trim();
    (!name.is_empty() && !name.contains("://")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_files_are_followed() {
        assert_eq!(named_file("-r base.txt  # ours"), Some("base.txt"));
        assert_eq!(named_file("--constraint=pins.txt"), Some("pins.txt"));
        assert_eq!(named_file("-rbase.txt"), Some("base.txt"));
        assert_eq!(named_file("-r https://example.com/r.txt"), None);
        assert_eq!(named_file("requests"), None);
    }

    #[test]
    fn the_package_is_recognized_in_every_spelling() {
        let names =
            |text: &str| PythonRequirements { texts: vec![text.to_owned()] }.includes_functions_library();
        assert!(names("requests\nAzure_Functions==1.25.0") && names("azure-functions"));
        assert!(!names("azure-functions-durable") && !names("# azure-functions"));
    }
}
