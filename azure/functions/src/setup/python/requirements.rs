//! Reads requirements.txt and all files that it names, to detect changes.

use std::fs;
use std::path::Path;

use super::super::SetupError;

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

    /// Returns the content of each file.
    pub(super) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().map(|text| text.as_bytes())
    }

    /// Returns the lines of all files.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().flat_map(|text| text.lines())
    }
}

/// Returns the name of the package that a line requires on every system. `None` for options and for requirements with a
/// condition, such as `; sys_platform == "win32"`.
pub(super) fn unconditional_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (name, _) = split_name(line);
    (!line.contains(';') && !line.starts_with(['-', '.']) && !name.is_empty()).then_some(name)
}

/// Returns the name at the beginning of a line, and the rest.
fn split_name(line: &str) -> (&str, &str) {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(line.len());
    line.split_at(end)
}

/// Returns what a line says about the version of a package: `>=2` of `azure-functions>=2`. The name may be in any
/// spelling that pip considers equal. `None` if the line is about another package.
pub(super) fn specifier_of<'a>(line: &'a str, package: &str) -> Option<&'a str> {
    let (name, rest) = split_name(line.trim_start());
    if name.to_ascii_lowercase().replace(['_', '.'], "-") != package {
        return None;
    }
    let rest = rest.trim_start();
    // Extras, such as `[dev]`.
    let rest = rest.strip_prefix('[').and_then(|rest| Some(rest.split_once(']')?.1)).unwrap_or(rest);
    Some(rest.split(" #").next().unwrap_or(rest).trim())
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
    fn required_packages_have_names() {
        assert_eq!(unconditional_name("mcp[cli]>=1.14.1"), Some("mcp"));
        assert_eq!(unconditional_name("my_pkg @ https://example.com/a.whl"), Some("my_pkg"));
        for line in ["", "# mcp", "-r base.txt", "./here", "a; sys_platform == 'win32'"] {
            assert_eq!(unconditional_name(line), None, "{line}");
        }
    }

    #[test]
    fn the_package_is_recognized_in_every_spelling() {
        let specifier = |line| specifier_of(line, "azure-functions");
        assert_eq!(specifier("Azure_Functions==1.25.0"), Some("==1.25.0"));
        assert_eq!(specifier(" azure.functions [dev] >= 2 # new"), Some(">= 2"));
        assert_eq!(specifier("azure-functions"), Some(""));
        assert_eq!(specifier("azure-functions-durable"), None);
        assert_eq!(specifier("# azure-functions"), None);
        assert_eq!(specifier(""), None);
    }
}
