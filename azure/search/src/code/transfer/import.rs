//! `import`: loads the lines of a file into an index.
//!
//! After each batch that the service has acknowledged, a checkpoint beside the file says which line was the last.
//! Documents that the service rejects are collected in `FILE.errors.jsonl`.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::beside;
use super::lines::{InputLine, LineReader};
use crate::code::failure::CodeError;
use crate::code::{RunControl, files, folder};
use crate::service::client::{SearchClient, odata_key};
use crate::service::failure::ServiceFailure;
use crate::tools::index_change::copy::send_with_retry;

/// Maximum number of attempts for documents that the service was too busy to index.
const TRIES: u32 = 6;

/// Options of [`import`].
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The index, or an alias of it.
    pub index: String,
    /// The file; `-` is stdin. With the extension `gz` it is decompressed.
    pub file: PathBuf,
    pub action: ImportAction,
    /// The import stops when more documents than this were rejected.
    pub max_errors: u64,
    /// Whether an interrupted import begins again.
    pub restart: bool,
    /// Identifies the service.
    pub service: String,
}

/// What is done with each document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImportAction {
    /// Replaces a document as a whole.
    #[default]
    Upload,
    /// Changes the members of a document that exists.
    Merge,
    MergeOrUpload,
    Delete,
}

/// What [`import`] did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    pub documents: u64,
    pub rejected: u64,
    /// The line from which an interrupted import was continued.
    pub continued_from: u64,
    /// The file with the rejected documents.
    pub errors_file: Option<PathBuf>,
    /// Whether the import stopped because too many documents were rejected.
    pub stopped: bool,
}

/// How far an import is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImportCheckpoint {
    /// Identifies the service, the index, the action and the file.
    target: String,
    /// The position behind the last line.
    offset: u64,
    line: u64,
    documents: u64,
    rejected: u64,
    /// Length of the file of rejected documents.
    errors_bytes: u64,
}

/// Loads all documents of a file. An interrupted import continues behind the last batch that the service
/// has acknowledged; the batch that was under way is sent again.
pub async fn import(
    client: &SearchClient,
    options: &ImportOptions,
    control: &RunControl,
) -> Result<ImportReport, CodeError> {
    let mut state = ImportState::open(options)?;
    let continued_from = state.checkpoint.line;
    let mut reader = open(&options.file, state.checkpoint.offset, state.checkpoint.line).await?;
    let mut stopped = false;
    loop {
        control.report(format!("import {}", options.index), reader.bytes_read(), reader.size, "bytes");
        control.check_stopped()?;
        let (returned, lines) = read_batch(reader, &options.file).await?;
        reader = returned;
        if lines.is_empty() {
            break;
        }
        let sent = send_lines(client, &options.index, options.action, lines).await?;
        state.checkpoint.documents += sent.documents;
        state.checkpoint.offset = reader.offset;
        state.checkpoint.line = reader.line;
        state.record(&sent.rejected)?;
        if state.checkpoint.rejected > options.max_errors {
            stopped = true;
            break;
        }
    }
    let ImportCheckpoint { documents, rejected, .. } = state.checkpoint;
    let errors_file = (rejected > 0).then(|| state.errors.clone());
    if !stopped {
        state.finish()?;
    }
    Ok(ImportReport { documents, rejected, continued_from, errors_file, stopped })
}

/// Loads a file into an index that is empty, without a checkpoint. Returns the number of documents, and the
/// rejected ones.
pub(crate) async fn load_file(
    client: &SearchClient,
    index: &str,
    path: &Path,
    control: &RunControl,
) -> Result<(u64, Vec<DocumentError>), CodeError> {
    let (mut documents, mut rejected) = (0, Vec::new());
    let mut reader = open(path, 0, 0).await?;
    loop {
        control.check_stopped()?;
        let (returned, lines) = read_batch(reader, path).await?;
        reader = returned;
        if lines.is_empty() {
            return Ok((documents, rejected));
        }
        let sent = send_lines(client, index, ImportAction::Upload, lines).await?;
        documents += sent.documents;
        rejected.extend(sent.rejected);
    }
}

/// The checkpoint of an import, and its files.
struct ImportState {
    /// The file of the checkpoint. An import of stdin has none.
    journal: Option<PathBuf>,
    /// The file of rejected documents.
    errors: PathBuf,
    checkpoint: ImportCheckpoint,
}

impl ImportState {
    fn open(options: &ImportOptions) -> Result<ImportState, CodeError> {
        if options.file == Path::new("-") {
            let errors = PathBuf::from("stdin.errors.jsonl");
            ImportState::cut(&errors, 0)?;
            return Ok(ImportState { journal: None, errors, checkpoint: ImportCheckpoint::default() });
        }
        let size = fs::metadata(&options.file).map_err(CodeError::file(&options.file))?.len();
        let target = files::fingerprint(&(&options.service, &options.index, options.action, size));
        let journal = beside(&options.file, ".import.json");
        let errors = beside(&options.file, ".errors.jsonl");
        let known = match options.restart {
            true => None,
            false => folder::read_text(&journal)?,
        };
        let checkpoint = match known {
            None => ImportCheckpoint { target, ..ImportCheckpoint::default() },
            Some(text) => match serde_json::from_str::<ImportCheckpoint>(&text) {
                Ok(known) if known.target == target => known,
                _ => {
                    return Err(CodeError::Refused(format!(
                        "{}: an import to another index or service was interrupted, or the file was changed since\n  fix: \
                         finish it, or begin again with --restart",
                        options.file.display()
                    )));
                }
            },
        };
        ImportState::cut(&errors, checkpoint.errors_bytes)?;
        Ok(ImportState { journal: Some(journal), errors, checkpoint })
    }

    /// Removes rejected documents behind the checkpoint: they are sent again.
    fn cut(errors: &Path, bytes: u64) -> Result<(), CodeError> {
        if bytes == 0 {
            let _ = fs::remove_file(errors);
            return Ok(());
        }
        let file = OpenOptions::new().write(true).open(errors).map_err(CodeError::file(errors))?;
        file.set_len(bytes).map_err(CodeError::file(errors))
    }

    /// Writes rejected documents, then the checkpoint.
    fn record(&mut self, rejected: &[DocumentError]) -> Result<(), CodeError> {
        self.checkpoint.rejected += rejected.len() as u64;
        if !rejected.is_empty() {
            let mut lines = Vec::new();
            for one in rejected {
                let _ = serde_json::to_writer(&mut lines, one);
                lines.push(b'\n');
            }
            let file = OpenOptions::new().create(true).append(true).open(&self.errors);
            file.and_then(|mut file| file.write_all(&lines).and_then(|()| file.sync_data()))
                .map_err(CodeError::file(&self.errors))?;
            self.checkpoint.errors_bytes += lines.len() as u64;
        }
        match &self.journal {
            Some(journal) => {
                files::replace(journal, &serde_json::to_vec(&self.checkpoint).unwrap_or_default())
            }
            None => Ok(()),
        }
    }

    fn finish(&self) -> Result<(), CodeError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        match fs::remove_file(journal) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(CodeError::file(journal)(error)),
            _ => Ok(()),
        }
    }
}

/// Opens a file. Skipping the beginning of a compressed file takes time.
async fn open(path: &Path, offset: u64, line: u64) -> Result<LineReader, CodeError> {
    let file = path.to_owned();
    let opened = spawn_blocking(move || LineReader::open(&file, offset, line)).await;
    opened.map_err(io::Error::other).and_then(|opened| opened).map_err(CodeError::file(path))
}

async fn read_batch(mut reader: LineReader, path: &Path) -> Result<(LineReader, Vec<InputLine>), CodeError> {
    let read = spawn_blocking(move || {
        let lines = reader.read_batch();
        (reader, lines)
    });
    let (reader, lines) = read.await.map_err(io::Error::other).map_err(CodeError::file(path))?;
    Ok((reader, lines.map_err(CodeError::file(path))?))
}

/// A document that was rejected.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DocumentError {
    pub(crate) line: u64,
    key: Option<String>,
    status: Option<u64>,
    pub(crate) message: String,
}

/// What became of documents.
#[derive(Debug, Default)]
struct SentBatch {
    documents: u64,
    rejected: Vec<DocumentError>,
}

/// Sends documents. A batch that is rejected as a whole is halved, to find the documents that are wrong.
async fn send_lines(
    client: &SearchClient,
    index: &str,
    action: ImportAction,
    lines: Vec<InputLine>,
) -> Result<SentBatch, CodeError> {
    let mut sent = SentBatch::default();
    let mut batch = Vec::new();
    for line in lines {
        let number = line.number;
        match parse(line, action) {
            Ok(document) => batch.push((number, document)),
            Err(message) => {
                sent.rejected.push(DocumentError { line: number, key: None, status: None, message });
            }
        }
    }
    let mut waiting = vec![batch];
    while let Some(mut batch) = waiting.pop() {
        if batch.is_empty() {
            continue;
        }
        match send_batch(client, index, &batch).await? {
            Ok(taken) => {
                sent.documents += taken.documents;
                sent.rejected.extend(taken.rejected);
            }
            Err(failure) if batch.len() == 1 => {
                sent.rejected.extend(batch.into_iter().map(|(line, _)| DocumentError {
                    line,
                    key: None,
                    status: failure.status.map(u64::from),
                    message: failure.message.clone(),
                }));
            }
            Err(_) => {
                let rest = batch.split_off(batch.len() / 2);
                waiting.push(rest);
                waiting.push(batch);
            }
        }
    }
    sent.rejected.sort_by_key(|one| one.line);
    Ok(sent)
}

/// Returns the action for a line.
fn parse(line: InputLine, action: ImportAction) -> Result<Value, String> {
    let Some(text) = line.text else {
        return Err("the line is longer than 16 MiB, which no service accepts".to_owned());
    };
    let document: Value = serde_json::from_slice(&text).map_err(|error| format!("not JSON: {error}"))?;
    let Value::Object(mut members) = document else { return Err("not a JSON object".to_owned()) };
    members.retain(|name, _| !name.starts_with("@search.") && !name.starts_with("@odata."));
    members.insert("@search.action".to_owned(), serde_json::to_value(action).unwrap_or_default());
    Ok(Value::Object(members))
}

/// Sends one batch. Returns the failure if the service rejected it as a whole: documents are wrong, or it is
/// too large.
async fn send_batch(
    client: &SearchClient,
    index: &str,
    batch: &[(u64, Value)],
) -> Result<Result<SentBatch, ServiceFailure>, CodeError> {
    let path = format!("indexes{}/docs/search.index", odata_key(index));
    let mut pause = Duration::from_millis(500);
    let mut sent = SentBatch::default();
    let mut pending: Vec<&(u64, Value)> = batch.iter().collect();
    for attempt in 1..=TRIES {
        let documents: Vec<&Value> = pending.iter().map(|(_, document)| document).collect();
        let body = json!({"value": documents});
        let answer = match send_with_retry(|| client.post(path.clone(), body.clone())).await {
            Ok(answer) => answer.body,
            Err(failure) if matches!(failure.status, Some(400 | 413)) && attempt == 1 => {
                return Ok(Err(failure));
            }
            Err(failure) => {
                return Err(CodeError::service(format!("cannot load documents into {index}"))(failure));
            }
        };
        let outcomes = answer.get("value").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut busy = Vec::new();
        // Results have the order of the documents.
        for (place, document) in pending.into_iter().enumerate() {
            let outcome = outcomes.get(place);
            let status = outcome.and_then(|outcome| outcome.get("statusCode")).and_then(Value::as_u64);
            let failed = outcome.is_none_or(|outcome| outcome.get("status") == Some(&Value::Bool(false)));
            match status {
                _ if !failed => sent.documents += 1,
                Some(409 | 422 | 429 | 503) if attempt < TRIES => busy.push(document),
                status => sent.rejected.push(DocumentError {
                    line: document.0,
                    key: outcome.and_then(|outcome| outcome.get("key")?.as_str().map(str::to_owned)),
                    status,
                    message: outcome
                        .and_then(|outcome| outcome.get("errorMessage")?.as_str())
                        .unwrap_or("the service gave no reason")
                        .to_owned(),
                }),
            }
        }
        if busy.is_empty() {
            break;
        }
        pending = busy;
        sleep(pause).await;
        pause *= 2;
    }
    Ok(Ok(sent))
}
