//! The files of a folder: reading, checking, and their places.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::canonical::referenced_indexes;
use super::failure::CodeError;
use super::files::file_name;
use super::kinds::CodeKind;
use super::relevance::query::QueryCheck;
use super::settings::FolderSettings;
use super::{print, secrets};
use crate::tools::index_change::fields;

/// The file of the settings.
pub(crate) const SETTINGS: &str = "search.json";
pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const JUDGEMENTS: &str = "judgements";

/// The files of a folder.
#[derive(Debug)]
pub struct SearchFolder {
    pub(crate) root: PathBuf,
    pub(crate) settings: FolderSettings,
    /// Whether it has a file of settings, as every folder of definitions.
    has_settings: bool,
    definitions: BTreeMap<CodeKind, BTreeMap<String, Value>>,
    /// The judged queries, by the names of their files.
    pub(crate) judged: BTreeMap<String, Vec<QueryCheck>>,
}

impl SearchFolder {
    /// Reads and checks all files. Every problem is reported, with its file and its fix.
    pub fn read(root: &Path) -> Result<SearchFolder, CodeError> {
        let folder = SearchFolder::read_unchecked(root)?;
        if !folder.has_settings {
            let text = format!(
                "{}: not a folder of definitions, because it has no {SETTINGS}\n  fix: create it with bindpost search pull DIR",
                root.display()
            );
            return Err(CodeError::Problems(vec![text]));
        }
        let problems = folder.problems();
        if problems.is_empty() { Ok(folder) } else { Err(CodeError::Problems(problems)) }
    }

    /// Returns the API version that the definitions were written for.
    pub fn api_version(&self) -> Option<&str> {
        self.settings.api_version.as_deref()
    }

    /// Reads the files that exist, without checking what they refer to.
    pub(crate) fn read_unchecked(root: &Path) -> Result<SearchFolder, CodeError> {
        let mut problems = Vec::new();
        let text = read_text(&root.join(SETTINGS))?;
        let has_settings = text.is_some();
        let settings = match text.map(|text| serde_json::from_str::<FolderSettings>(&text)) {
            Some(Ok(settings)) => settings,
            Some(Err(error)) => {
                problems.push(format!("{SETTINGS}: {error}"));
                FolderSettings::default()
            }
            None => FolderSettings::default(),
        };
        if settings.version != 1 {
            problems.push(format!(
                "{SETTINGS}: version {} is not known\n  fix: use a newer bindpost, or write \"version\": 1",
                settings.version
            ));
        }
        let mut definitions = BTreeMap::new();
        for kind in CodeKind::ALL {
            definitions.insert(kind, read_kind(root, kind, &mut problems)?);
        }
        let judged = read_judged(root, &mut problems)?;
        if !problems.is_empty() {
            return Err(CodeError::Problems(problems));
        }
        Ok(SearchFolder { root: root.to_owned(), settings, has_settings, definitions, judged })
    }

    /// Returns all definitions of a kind, by name.
    pub(crate) fn all(&self, kind: CodeKind) -> impl Iterator<Item = (&str, &Value)> {
        let all = self.definitions.get(&kind).into_iter().flatten();
        all.map(|(name, definition)| (name.as_str(), definition))
    }

    pub(crate) fn get(&self, kind: CodeKind, name: &str) -> Option<&Value> {
        self.definitions.get(&kind)?.get(name)
    }

    /// Returns the aliases of the folder that point to an index.
    pub(crate) fn aliases_of<'a>(&'a self, index: &'a str) -> impl Iterator<Item = &'a str> {
        let points_to = move |alias: &Value| {
            let target = alias.get("indexes").and_then(|all| all.get(0)).and_then(Value::as_str);
            target == Some(index)
        };
        self.all(CodeKind::Alias).filter(move |(_, alias)| points_to(alias)).map(|(name, _)| name)
    }

    /// Returns the file with the sample documents of an index, which may not exist.
    pub(crate) fn documents_path(&self, index: &str) -> PathBuf {
        let plain = self.root.join(DOCUMENTS).join(format!("{}.jsonl", file_name(index)));
        let compressed = plain.with_extension("jsonl.gz");
        if !plain.exists() && compressed.exists() { compressed } else { plain }
    }

    /// Returns what is wrong in the files, each with its fix.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for kind in CodeKind::ALL {
            for (name, definition) in self.all(kind) {
                let place = place(kind, name);
                for path in secrets::written_out(definition) {
                    problems.push(format!(
                        "{place}: {path} has a secret in it\n  fix: write ${{NAME}} and set the variable NAME when you push"
                    ));
                }
                let references = self.reference_problems(kind, definition);
                problems.extend(references.into_iter().map(|problem| format!("{place}: {problem}")));
            }
        }
        for (name, _) in self.all(CodeKind::Alias) {
            if self.get(CodeKind::Index, name).is_some() {
                problems.push(format!(
                    "{}: an index of this folder has the same name\n  fix: delete the alias; a new index gets an alias of its \
                     name by itself",
                    place(CodeKind::Alias, name)
                ));
            }
        }
        for (name, target) in &self.settings.tests {
            let index = target.index.as_deref().unwrap_or(name);
            if self.get(CodeKind::Index, index).is_none() {
                problems.push(format!(
                    "{SETTINGS}: tests.{name} is for the index \"{index}\", which is not in indexes/\n  fix: set tests.{name}.index"
                ));
            }
            if !self.judged.contains_key(name) {
                problems.push(format!(
                    "{SETTINGS}: tests.{name} has no queries\n  fix: write them to {JUDGEMENTS}/{name}.jsonl, or remove it"
                ));
            }
        }
        problems
    }

    /// Returns the references of a definition to others that the folder does not have.
    fn reference_problems(&self, kind: CodeKind, definition: &Value) -> Vec<String> {
        let named = |member: &str| definition.get(member).and_then(Value::as_str).map(str::to_owned);
        let mut references: Vec<(CodeKind, String)> = Vec::new();
        match kind {
            CodeKind::Indexer => {
                references.extend(named("dataSourceName").map(|name| (CodeKind::DataSource, name)));
                references.extend(named("skillsetName").map(|name| (CodeKind::Skillset, name)));
            }
            CodeKind::KnowledgeBase => {
                let sources =
                    definition.get("knowledgeSources").and_then(Value::as_array).into_iter().flatten();
                let names = sources.filter_map(|source| source.get("name")?.as_str().map(str::to_owned));
                references.extend(names.map(|name| (CodeKind::KnowledgeSource, name)));
            }
            CodeKind::Index => {
                references
                    .extend(synonym_maps(definition).into_iter().map(|name| (CodeKind::SynonymMap, name)));
            }
            _ => {}
        }
        let indexes = referenced_indexes(kind, definition);
        references.extend(indexes.into_iter().map(|name| (CodeKind::Index, name)));
        references
            .into_iter()
            .filter(|(kind, name)| self.get(*kind, name).is_none())
            .filter(|(kind, name)| *kind != CodeKind::Index || self.get(CodeKind::Alias, name).is_none())
            .map(|(kind, name)| {
                format!(
                    "refers to {}, which does not exist\n  fix: add that file, or correct the name",
                    place(kind, &name)
                )
            })
            .collect()
    }
}

/// Returns the synonym maps of all fields.
fn synonym_maps(index: &Value) -> Vec<String> {
    let fields = fields::all(index).into_iter();
    let maps = fields.flat_map(|field| {
        let maps = field.json.get("synonymMaps").and_then(Value::as_array).cloned().unwrap_or_default();
        maps.into_iter().filter_map(|map| map.as_str().map(str::to_owned))
    });
    maps.collect()
}

/// Returns the path of a definition, relative to the folder.
pub(crate) fn place(kind: CodeKind, name: &str) -> String {
    format!("{}/{}.json", kind.folder(), file_name(name))
}

/// Returns a definition as the text of its file.
pub(crate) fn file_text(definition: &Value) -> String {
    print::readable(definition)
}

/// Reads a file, or returns `None` if it does not exist.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, CodeError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CodeError::file(path)(error)),
    }
}

/// Returns the files of a folder with this extension: their names without it, and their paths.
fn list(folder: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>, CodeError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CodeError::file(folder)(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(CodeError::file(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(extension).filter(|stem| !stem.starts_with('.') && !stem.is_empty());
        if let Some(stem) = stem {
            files.push((stem.to_owned(), entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

fn read_kind(
    root: &Path,
    kind: CodeKind,
    problems: &mut Vec<String>,
) -> Result<BTreeMap<String, Value>, CodeError> {
    let mut definitions = BTreeMap::new();
    for (stem, path) in list(&root.join(kind.folder()), ".json")? {
        let place = format!("{}/{stem}.json", kind.folder());
        let text = read_text(&path)?.unwrap_or_default();
        let definition: Value = match serde_json::from_str(&text) {
            Ok(definition) => definition,
            Err(error) => {
                problems.push(format!("{place}: not the JSON of a definition: {error}"));
                continue;
            }
        };
        let name = definition.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = name else {
            problems.push(format!("{place}: has no \"name\"\n  fix: write \"name\": \"{stem}\""));
            continue;
        };
        if file_name(name) != stem {
            problems.push(format!(
                "{place}: its name is \"{name}\"\n  fix: rename the file to {}.json, or correct the name",
                file_name(name)
            ));
            continue;
        }
        definitions.insert(name.to_owned(), definition);
    }
    Ok(definitions)
}

fn read_judged(
    root: &Path,
    problems: &mut Vec<String>,
) -> Result<BTreeMap<String, Vec<QueryCheck>>, CodeError> {
    let mut judged = BTreeMap::new();
    for (stem, path) in list(&root.join(JUDGEMENTS), ".jsonl")? {
        let text = read_text(&path)?.unwrap_or_default();
        let mut queries = Vec::new();
        for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match QueryCheck::parse(line) {
                Ok(query) => queries.push(query),
                Err(error) => problems.push(format!("{JUDGEMENTS}/{stem}.jsonl:{}: {error}", place + 1)),
            }
        }
        judged.insert(stem, queries);
    }
    Ok(judged)
}
