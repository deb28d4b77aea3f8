//! The files of a document and the references between them.
//!
//! Only this module reads from disk, and only below the allowed folders.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::text;
use crate::document::{DocumentError, LoadOptions};

/// The maximum number of consecutive references.
const MAX_HOPS: usize = 64;

/// A file or a text.
pub(crate) struct SourceFile {
    /// The name in messages.
    pub(crate) name: String,
    pub(crate) value: Rc<Value>,
    /// The keys of `paths` as written.
    pub(crate) order: Vec<(String, Vec<String>)>,
    /// The path of the file. A text has none.
    path: Option<PathBuf>,
}

/// A location in a file, as a decoded JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SourceLocation {
    pub(crate) file: usize,
    pub(crate) pointer: Vec<String>,
}

/// All files that were read.
pub(crate) struct SourceSet {
    options: LoadOptions,
    files: Vec<SourceFile>,
    by_path: HashMap<PathBuf, Result<usize, String>>,
    /// The given documents, in order.
    roots: Vec<usize>,
    /// The folders that may be read.
    allowed: Vec<PathBuf>,
    pub(crate) warnings: Vec<String>,
}

impl SourceSet {
    pub(crate) fn new(options: LoadOptions) -> SourceSet {
        let allowed = options.roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        let (files, by_path, roots) = (Vec::new(), HashMap::new(), Vec::new());
        SourceSet { options, files, by_path, roots, allowed, warnings: Vec::new() }
    }

    /// Returns the given documents.
    pub(crate) fn roots(&self) -> &[usize] {
        &self.roots
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn file(&self, file: usize) -> Option<&SourceFile> {
        self.files.get(file)
    }

    /// Adds a text. It cannot reference any file.
    pub(crate) fn add_text(&mut self, text: &str, name: &str) -> Result<(), DocumentError> {
        let parsed = text::parse(text, name)?;
        if !is_document(&parsed.value) {
            return Err(no_document(name));
        }
        self.roots.push(self.files.len());
        let (value, order) = (Rc::new(parsed.value), parsed.order);
        self.files.push(SourceFile { name: name.to_owned(), value, order, path: None });
        Ok(())
    }

    /// Adds a given file, or the documents in a given folder.
    pub(crate) fn add_path(&mut self, path: &Path) -> Result<(), DocumentError> {
        let found = path.canonicalize().map_err(|error| {
            DocumentError::invalid(
                path.display().to_string(),
                error.to_string(),
                "give a file or folder that exists",
            )
        })?;
        if !found.is_dir() {
            if let Some(folder) = found.parent() {
                self.allowed.push(folder.to_owned());
            }
            let file = self.read(&found)?;
            if !self.files.get(file).is_some_and(|source| is_document(&source.value)) {
                return Err(no_document(&path.display().to_string()));
            }
            self.add_root(file);
            return Ok(());
        }
        self.allowed.push(found.clone());
        let unreadable = |error: std::io::Error| {
            DocumentError::invalid(
                path.display().to_string(),
                error.to_string(),
                "give a folder that can be read",
            )
        };
        let mut candidates = Vec::new();
        for entry in std::fs::read_dir(&found).map_err(unreadable)? {
            let candidate = entry.map_err(unreadable)?.path();
            let extension =
                candidate.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
            if matches!(extension.as_deref(), Some("json" | "yaml" | "yml")) {
                candidates.push(candidate);
            }
        }
        candidates.sort();
        for candidate in candidates {
            // A symbolic link may lead outside the folder or be broken.
            let Ok(file) = candidate.canonicalize() else { continue };
            if !file.is_file() || !self.is_allowed(&file) {
                self.warnings.push(format!(
                    "{}: ignored, because it is outside its folder. Fix: copy the file into the folder.",
                    candidate.display()
                ));
                continue;
            }
            match self.read(&file) {
                Ok(file) if self.files.get(file).is_some_and(|source| is_document(&source.value)) => {
                    self.add_root(file)
                }
                Ok(_) => {}
                Err(DocumentError::Invalid { place, problem, fix }) => {
                    self.warnings.push(format!("{place}: ignored: {problem}. Fix: {fix}."));
                }
            }
        }
        Ok(())
    }

    fn add_root(&mut self, file: usize) {
        if !self.roots.contains(&file) {
            self.roots.push(file);
        }
    }

    fn is_allowed(&self, path: &Path) -> bool {
        self.allowed.iter().any(|root| path.starts_with(root))
    }

    /// Reads a file once. Its path must not contain symbolic links.
    fn read(&mut self, path: &Path) -> Result<usize, DocumentError> {
        if let Some(Ok(known)) = self.by_path.get(path) {
            return Ok(*known);
        }
        let name = self.name_of(path);
        let invalid = |problem: String, fix: &str| DocumentError::invalid(name.clone(), problem, fix);
        if self.files.len() >= self.options.max_files {
            let problem = format!("more than {} files are needed", self.options.max_files);
            return Err(invalid(problem, "bundle the document into fewer files"));
        }
        let size =
            std::fs::metadata(path).map_err(|error| invalid(error.to_string(), "make it readable"))?.len();
        if size > self.options.max_file_bytes {
            let problem = format!("it has {size} bytes; at most {} are read", self.options.max_file_bytes);
            return Err(invalid(problem, "split the document, or remove unused parts"));
        }
        let bytes = std::fs::read(path).map_err(|error| invalid(error.to_string(), "make it readable"))?;
        let text = String::from_utf8(bytes)
            .map_err(|error| invalid(format!("it is not UTF-8: {error}"), "save it as UTF-8"))?;
        let parsed = text::parse(&text, &name)?;
        let file = self.files.len();
        let (value, order) = (Rc::new(parsed.value), parsed.order);
        self.files.push(SourceFile { name, value, order, path: Some(path.to_owned()) });
        self.by_path.insert(path.to_owned(), Ok(file));
        Ok(file)
    }

    /// Returns the path of a file relative to the allowed folder, for messages.
    fn name_of(&self, path: &Path) -> String {
        let below = self.allowed.iter().filter_map(|root| path.strip_prefix(root).ok());
        let shortest = below.min_by_key(|rest| rest.as_os_str().len()).unwrap_or(path);
        shortest.display().to_string()
    }

    /// Returns the location that a reference in `file` leads to, and reads the target file if required.
    /// The location may not exist.
    pub(crate) fn resolve_reference(
        &mut self,
        file: usize,
        reference: &str,
    ) -> Result<SourceLocation, String> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = if address.is_empty() { file } else { self.referenced_file(file, address)? };
        Ok(SourceLocation { file, pointer: parse_pointer(fragment)? })
    }

    fn referenced_file(&mut self, from: usize, address: &str) -> Result<usize, String> {
        let has_scheme = address.split_once(':').is_some_and(|(scheme, _)| {
            scheme.len() > 1
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        if has_scheme || address.starts_with("//") {
            return Err("references are never fetched from a network; save the file beside the document and refer to it by a relative path".to_owned());
        }
        let Some(base) = self.files.get(from).and_then(|source| source.path.clone()) else {
            return Err("a text cannot reference files; load the document from a file".to_owned());
        };
        let address = address.split_once('?').map_or(address, |(path, _)| path);
        let decoded =
            percent_decode_str(address).decode_utf8().map_err(|_| "the path is not UTF-8".to_owned())?;
        if decoded.contains('\0') {
            return Err("the path contains a NUL".to_owned());
        }
        let outside = "it is outside the folders that may be read; copy the file beside the document, or allow its folder";
        let path = without_dots(&base.parent().unwrap_or(&base).join(decoded.as_ref()));
        if let Some(known) = self.by_path.get(&path) {
            return known.clone();
        }
        // Check before the file system is accessed, so that a document cannot find out which files exist
        // elsewhere. Check again after symbolic links are resolved.
        let found = if self.is_allowed(&path) {
            let real = path
                .canonicalize()
                .map_err(|_| "the file does not exist; create it, or correct the path".to_owned());
            real.and_then(|real| if self.is_allowed(&real) { Ok(real) } else { Err(outside.to_owned()) })
        } else {
            Err(outside.to_owned())
        };
        let read = found.and_then(|real| {
            self.read(&real)
                .map_err(|DocumentError::Invalid { place, problem, .. }| format!("{place}: {problem}"))
        });
        self.by_path.insert(path, read.clone());
        read
    }

    /// Returns the location of a value. References on the way are followed.
    pub(crate) fn find(&mut self, spot: &SourceLocation) -> Result<SourceLocation, String> {
        let mut spot = spot.clone();
        for _ in 0..MAX_HOPS {
            let Some(source) = self.files.get(spot.file) else {
                return Err("the file does not exist".to_owned());
            };
            let mut value: &Value = &source.value;
            let mut redirect = None;
            for (depth, token) in spot.pointer.iter().enumerate() {
                if let Some(next) = member(value, token) {
                    value = next;
                } else if let Some(reference) = reference_of(value) {
                    let rest: Vec<String> = spot.pointer.iter().skip(depth).cloned().collect();
                    redirect = Some((reference.to_owned(), rest));
                    break;
                } else {
                    return Err(format!(
                        "`{token}` does not exist there; correct the reference, or add what is missing"
                    ));
                }
            }
            let Some((reference, rest)) = redirect else { return Ok(spot) };
            spot = self.resolve_reference(spot.file, &reference)?;
            spot.pointer.extend(rest);
        }
        Err("the references are circular".to_owned())
    }

    /// Returns the value at a resolved location.
    pub(crate) fn value(&self, spot: &SourceLocation) -> Option<&Value> {
        let mut value: &Value = &self.files.get(spot.file)?.value;
        for token in &spot.pointer {
            value = member(value, token)?;
        }
        Some(value)
    }

    /// Follows references until a value is not a reference. Not used for schemas.
    pub(crate) fn follow(&mut self, spot: SourceLocation) -> Result<SourceLocation, String> {
        let mut spot = self.find(&spot)?;
        for _ in 0..MAX_HOPS {
            let Some(reference) = self.value(&spot).and_then(reference_of).map(str::to_owned) else {
                return Ok(spot);
            };
            let target = self
                .resolve_reference(spot.file, &reference)
                .map_err(|reason| format!("`{reference}`: {reason}"))?;
            spot = self.find(&target).map_err(|reason| format!("`{reference}`: {reason}"))?;
        }
        Err("the references are circular; one of them must lead to a value".to_owned())
    }

    /// Describes a location for messages.
    pub(crate) fn describe(&self, spot: &SourceLocation) -> String {
        let name = self.files.get(spot.file).map_or("", |source| source.name.as_str());
        format!("{name}#{}", write_pointer(&spot.pointer))
    }
}

/// Returns the target, if an object is a reference.
pub(crate) fn reference_of(value: &Value) -> Option<&str> {
    value.as_object()?.get("$ref")?.as_str()
}

/// Writes a pointer as in a fragment, without percent-encoding.
fn write_pointer(pointer: &[String]) -> String {
    pointer.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
}

fn parse_pointer(fragment: &str) -> Result<Vec<String>, String> {
    let decoded =
        percent_decode_str(fragment).decode_utf8().map_err(|_| "the pointer is not UTF-8".to_owned())?;
    if decoded.is_empty() || decoded == "/" {
        return Ok(Vec::new());
    }
    let Some(rest) = decoded.strip_prefix('/') else {
        return Err(
            "anchors are not followed; write a pointer such as `#/components/schemas/Name`".to_owned()
        );
    };
    let pointer: Vec<String> =
        rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    if pointer.len() > text::MAX_DEPTH {
        return Err(format!("the pointer has more than {} parts", text::MAX_DEPTH));
    }
    Ok(pointer)
}

fn member<'a>(value: &'a Value, token: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(token),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    }
}

fn is_document(value: &Value) -> bool {
    let says =
        |member: &str| value.get(member).is_some_and(|version| version.is_string() || version.is_number());
    says("swagger") || says("openapi")
}

fn no_document(name: &str) -> DocumentError {
    DocumentError::invalid(
        name,
        "this is not an OpenAPI or Swagger document: it has neither `openapi` nor `swagger`",
        "give the file that starts with one of them",
    )
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
