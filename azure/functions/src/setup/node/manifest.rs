//! package.json: the members that decide how an app is prepared.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::SetupError;

/// An app's package.json.
pub(super) struct PackageJson {
    json: Value,
}

impl PackageJson {
    /// Reads the package.json of a folder. Returns `None` if it does not exist.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, SetupError> {
        let path = folder.join("package.json");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SetupError::file(&path, "read")(error)),
        };
        // Editors on Windows write a byte order mark, which npm accepts.
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let invalid = |reason: String| SetupError::InvalidManifest { path: path.clone(), reason };
        let json: Value = serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
        if json.is_object() { Ok(Some(Self { json })) } else { Err(invalid("it is not an object".into())) }
    }

    /// Returns the entry files: a path, or a pattern such as `dist/src/{index.js,functions/*.js}`.
    pub(super) fn main(&self) -> &str {
        self.json.get("main").and_then(Value::as_str).filter(|main| !main.is_empty()).unwrap_or("index.js")
    }

    pub(super) fn has_main(&self) -> bool {
        self.json.get("main").is_some()
    }

    pub(super) fn has_build_script(&self) -> bool {
        self.json.pointer("/scripts/build").is_some_and(Value::is_string)
    }

    /// Returns the script that builds the app the first time. If `npm start` starts the Functions host, its `prestart`
    /// does what has to be done before, which may be more than `build`: a web page that is built beside the app.
    pub(super) fn first_build_script(&self) -> &'static str {
        let script = |name: &str| self.json.pointer(&format!("/scripts/{name}")).and_then(Value::as_str);
        let starts_host = script("start").is_some_and(|start| start.trim_start().starts_with("func "));
        let builds = script("prestart").is_some_and(|prestart| prestart.contains("build"));
        if starts_host && builds { "prestart" } else { "build" }
    }

    pub(super) fn has_workspaces(&self) -> bool {
        self.json.get("workspaces").is_some()
    }

    /// Returns whether there are packages to install.
    pub(super) fn has_dependencies(&self) -> bool {
        ["dependencies", "devDependencies", "optionalDependencies", "workspaces"].iter().any(
            |list| match self.json.get(list) {
                Some(Value::Object(packages)) => !packages.is_empty(),
                Some(Value::Array(folders)) => !folders.is_empty(),
                _ => false,
            },
        )
    }

    /// Returns the names of the packages in `dependencies`.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = &str> {
        let list = self.json.get("dependencies").and_then(Value::as_object);
        list.into_iter().flat_map(|list| list.keys().map(String::as_str))
    }

    /// Returns the file that a script runs with Node: `dist/index.js` of `node dist/index.js`.
    pub(super) fn file_of_script(&self, name: &str) -> Option<&str> {
        let script = self.json.pointer(&format!("/scripts/{name}"))?.as_str()?;
        // Of several commands, the last one serves.
        let last = script.rsplit("&&").next()?.trim();
        last.strip_prefix("node ")?.split_whitespace().find(|word| !word.starts_with('-'))
    }

    /// Returns whether the package is in `dependencies`.
    pub(super) fn depends_on(&self, package: &str) -> bool {
        self.json.get("dependencies").is_some_and(|list| list.get(package).is_some())
    }
}
