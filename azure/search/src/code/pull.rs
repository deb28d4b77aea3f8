//! `pull`: writes the definitions of a service to a folder, and samples of its documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::canonical::to_folder;
use super::failure::CodeError;
use super::files::{self, file_name};
use super::folder::{DOCUMENTS, JUDGEMENTS, SETTINGS, SearchFolder, file_text, place, read_text};
use super::kinds::CodeKind;
use super::live::LiveState;
use super::{RunControl, print, secrets};
use crate::service::client::{SearchClient, odata_key};
use crate::tools::index_change::copy::{CopyPaging, CopyPosition, PageReader};
use crate::tools::index_change::fields::{self, DefinitionField};

/// Maximum number of queries that a pull writes for an index.
const STARTERS: usize = 20;
/// Number of words of such a query.
const WORDS: usize = 8;

/// Options of [`pull`].
#[derive(Clone, Debug, Default)]
pub struct PullOptions {
    /// Maximum number of sample documents of each index; 0 writes none.
    pub documents: usize,
    /// Whether files of definitions that the service does not have are deleted.
    pub prune: bool,
}

/// What [`pull`] did.
#[derive(Clone, Debug, Default)]
pub struct PullReport {
    /// All files, with their paths relative to the folder.
    pub files: Vec<(String, PulledFile)>,
    pub notes: Vec<String>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulledFile {
    Added,
    Changed,
    Unchanged,
    Deleted,
    /// The service does not have it.
    Kept,
}

/// Writes all definitions of a service to a folder.
pub async fn pull(
    client: &SearchClient,
    root: &Path,
    options: &PullOptions,
    control: &RunControl,
) -> Result<PullReport, CodeError> {
    let folder = SearchFolder::read_unchecked(root)?;
    let live = LiveState::read(client).await?;
    let mut writer = FolderWriter { root, report: PullReport::default() };
    let mut settings = folder.settings.clone();
    settings.api_version.get_or_insert_with(|| client.api_version().to_owned());
    let mut written: BTreeSet<(CodeKind, String)> = BTreeSet::new();
    for kind in CodeKind::ALL {
        for (name, definition) in live.all(kind) {
            let has_file = match kind {
                CodeKind::Index => live.names.is_current(name),
                CodeKind::Alias => !live.names.is_implicit(name),
                _ => true,
            };
            if !has_file {
                continue;
            }
            let name = if kind == CodeKind::Index { live.names.logical(name) } else { name };
            let definition = to_folder(kind, &definition.json, &live.names, folder.get(kind, name));
            if let Some(secret) = secrets::written_out(&definition).first() {
                return Err(CodeError::Refused(format!(
                    "{}: {secret} has a secret that cannot be replaced by a variable, so nothing of it was written",
                    place(kind, name)
                )));
            }
            writer.write(&place(kind, name), &file_text(&definition))?;
            written.insert((kind, name.to_owned()));
        }
    }
    for kind in CodeKind::ALL {
        for (name, _) in folder.all(kind).filter(|(name, _)| !written.contains(&(kind, (*name).to_owned()))) {
            writer.leave(&place(kind, name), options.prune)?;
        }
    }
    for (index, logical) in live.names.other_versions() {
        writer.report.notes.push(format!(
            "the index {index} is another version of {logical}, so it has no file (push --delete-old deletes it)"
        ));
    }
    for kind in &live.unsupported {
        writer.report.notes.push(format!("the service has no {} in this API version", kind.folder()));
    }
    if options.documents > 0 {
        for (index, _) in live.all(CodeKind::Index).filter(|(index, _)| live.names.is_current(index)) {
            let sample = IndexSample {
                client,
                folder: &folder,
                live: &live,
                index,
                maximum: options.documents,
                control,
            };
            sample.write(&mut writer).await?;
        }
    }
    let text = serde_json::to_value(&settings).map(|json| print::readable(&json)).unwrap_or_default();
    writer.write(SETTINGS, &text)?;
    Ok(writer.report)
}

/// Writes the files of a folder, and records what happened to them.
struct FolderWriter<'a> {
    root: &'a Path,
    report: PullReport,
}

impl FolderWriter<'_> {
    fn write(&mut self, file: &str, text: &str) -> Result<(), CodeError> {
        let path = self.root.join(file);
        let change = match read_text(&path)? {
            Some(old) if old == text => PulledFile::Unchanged,
            Some(_) => PulledFile::Changed,
            None => PulledFile::Added,
        };
        if change != PulledFile::Unchanged {
            files::replace(&path, text.as_bytes())?;
        }
        self.report.files.push((file.to_owned(), change));
        Ok(())
    }

    /// Keeps or deletes a file whose definition the service does not have.
    fn leave(&mut self, file: &str, prune: bool) -> Result<(), CodeError> {
        let path = self.root.join(file);
        let change = match prune {
            true => {
                fs::remove_file(&path).map_err(CodeError::file(&path))?;
                PulledFile::Deleted
            }
            false => PulledFile::Kept,
        };
        self.report.files.push((file.to_owned(), change));
        Ok(())
    }
}

/// The sample of an index.
struct IndexSample<'a> {
    client: &'a SearchClient,
    folder: &'a SearchFolder,
    live: &'a LiveState,
    /// The name in the service.
    index: &'a str,
    maximum: usize,
    control: &'a RunControl,
}

impl IndexSample<'_> {
    /// Writes the documents, and queries if the index has none.
    async fn write(&self, writer: &mut FolderWriter<'_>) -> Result<(), CodeError> {
        let name = self.live.names.logical(self.index);
        let Some(definition) = self.live.get(CodeKind::Index, self.index) else { return Ok(()) };
        let fields = fields::all(&definition.json);
        let Some(key) = fields::key(&fields).map(|key| key.path.clone()) else { return Ok(()) };
        let documents = self.documents(&fields, &key).await?;
        if documents.is_empty() {
            writer.report.notes.push(format!("{name} has no documents, so it has no sample"));
            return Ok(());
        }
        let lines: Vec<String> =
            documents.iter().map(|document| format!("{}\n", print::one_line(document))).collect();
        writer.write(&format!("{DOCUMENTS}/{}.jsonl", file_name(name)), &lines.concat())?;
        if self.judged_files().next().is_some() {
            return Ok(());
        }
        let queries = starters(&fields, &key, &documents);
        if !queries.is_empty() {
            let file = format!("{JUDGEMENTS}/{}.jsonl", file_name(name));
            writer.write(&file, &queries.concat())?;
            writer.report.notes.push(format!(
                "{file} has {} queries that must find their own documents: replace them by the queries of your users, then set \
                 what they must reach with bindpost search test DIR --accept",
                queries.len()
            ));
        }
        Ok(())
    }

    /// Returns the files of judged queries of this index.
    fn judged_files(&self) -> impl Iterator<Item = &String> {
        let index = self.live.names.logical(self.index);
        let tests = &self.folder.settings.tests;
        self.folder.judged.keys().filter(move |name| {
            tests.get(*name).and_then(|target| target.index.as_deref()).unwrap_or(name) == index
        })
    }

    /// Returns the sample: all judged documents, and the first others.
    async fn documents(&self, fields: &[DefinitionField], key: &str) -> Result<Vec<Value>, CodeError> {
        let (index, name) = (self.index, self.live.names.logical(self.index));
        let fail = || CodeError::service(format!("cannot read the documents of {name}"));
        // Fields that are not retrievable are missing in the sample.
        let readable: Vec<DefinitionField> =
            fields.iter().filter(|field| field.is_complex() || field.flag("retrievable")).cloned().collect();
        let paging = CopyPaging::choose(&readable, &readable, 0)
            .map_err(|why| CodeError::Refused(format!("the documents of {name} cannot be read: {why}")))?;
        let mut documents: Vec<Value> = Vec::new();
        let judged: BTreeSet<String> = self
            .judged_files()
            .flat_map(|file| self.folder.judged.get(file).into_iter().flatten())
            .flat_map(|query| query.keys())
            .collect();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for judged in judged {
            let path = format!("indexes{}/docs{}", odata_key(index), odata_key(&judged));
            match self.client.get(path).send().await {
                Ok(answer) => documents.push(answer.body),
                Err(failure) if failure.status == Some(404) => {}
                Err(failure) => return Err(fail()(failure)),
            }
            known.insert(judged);
        }
        let mut reader = PageReader::new(self.client.clone(), index, paging, CopyPosition::default());
        while documents.len() < self.maximum {
            self.control.check_stopped()?;
            let page = reader.next_page().await.map_err(fail())?;
            if page.is_empty() {
                break;
            }
            let is_new = |document: &&Value| {
                let key = document.get(key).and_then(Value::as_str);
                !key.is_some_and(|key| known.contains(key))
            };
            let room = self.maximum - documents.len();
            documents.extend(page.iter().filter(is_new).take(room).cloned());
            let (done, total) = (documents.len() as u64, self.maximum as u64);
            self.control.report(format!("sample of {name}"), done, Some(total), "documents");
        }
        documents.iter_mut().for_each(without_annotations);
        let key_of = |document: &Value| document.get(key).and_then(Value::as_str).map(str::to_owned);
        documents.sort_by_key(key_of);
        Ok(documents)
    }
}

/// Removes members such as the score of a hit.
pub(crate) fn without_annotations(document: &mut Value) {
    if let Value::Object(members) = document {
        members.retain(|name, _| !name.starts_with('@'));
    }
}

/// Returns queries that must find their own documents: the first words of a text that most documents have.
fn starters(fields: &[DefinitionField], key: &str, documents: &[Value]) -> Vec<String> {
    let text = |field: &DefinitionField, document: &Value| -> Option<String> {
        let text = document.get(&field.path)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let mut texts = fields.iter().filter(|field| {
        field.kind() == "Edm.String"
            && field.path != key
            && !field.path.contains('/')
            && field.flag("searchable")
    });
    let has_text = |field: &&DefinitionField| {
        documents.iter().filter(|document| text(field, document).is_some()).count() * 2 > documents.len()
    };
    let Some(field) = texts.find(has_text) else { return Vec::new() };
    let query = |document: &Value| {
        let text = text(field, document)?;
        let words: Vec<&str> = text
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(WORDS)
            .collect();
        let key = document.get(key)?.as_str()?;
        if words.is_empty() {
            return None;
        }
        let judgements = Map::from_iter([(key.to_owned(), json!(1))]);
        let query =
            json!({"id": format!("known-{key}"), "search": words.join(" "), "judgements": judgements});
        Some(format!("{}\n", print::one_line(&query)))
    };
    let every = documents.len().div_ceil(STARTERS).max(1);
    documents.iter().step_by(every).filter_map(query).collect()
}
