//! `export`: writes the documents of an index to a file.
//!
//! Pages are appended to `FILE.part`. After each page, a checkpoint says how long the file is and which key was
//! the last. A file that is longer than its checkpoint says is cut. Each page of a compressed file is a member of its
//! own, so the file can be cut between pages.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::{beside, is_gzip};
use crate::code::failure::CodeError;
use crate::code::pull::without_annotations;
use crate::code::{RunControl, files, folder};
use crate::service::client::SearchClient;
use crate::tools::index_change::copy::{CopyPaging, CopyPosition, PageReader};
use crate::tools::index_change::fields::{self, DefinitionField};
use crate::tools::index_change::live::count;
use crate::tools::reading::ServiceReader;

/// Options of [`export`].
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The index, or an alias of it.
    pub index: String,
    /// The file. With the extension `gz` it is compressed.
    pub file: PathBuf,
    /// An OData filter.
    pub filter: Option<String>,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Whether an interrupted export begins again.
    pub restart: bool,
    /// Identifies the service.
    pub service: String,
}

/// What [`export`] did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportReport {
    pub documents: u64,
    /// Number of documents that an interrupted export had written before.
    pub continued_from: u64,
    pub notes: Vec<String>,
}

/// How far an export is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportCheckpoint {
    /// Identifies the service, the index and the filter.
    source: String,
    position: CopyPosition,
    /// Length of the file.
    bytes: u64,
}

/// Writes all documents of an index to a file.
pub async fn export(
    client: &SearchClient,
    options: &ExportOptions,
    control: &RunControl,
) -> Result<ExportReport, CodeError> {
    if options.file.exists() && !options.overwrite {
        return Err(CodeError::Refused(format!(
            "{}: the file exists\n  fix: choose another name, or replace it with --overwrite",
            options.file.display()
        )));
    }
    let fail = || CodeError::service(format!("cannot export {}", options.index));
    let reader = ServiceReader::of_client(client);
    let definition = reader.definition(&options.index).await.map_err(fail())?.body;
    let index = definition.get("name").and_then(Value::as_str).unwrap_or(&options.index).to_owned();
    let documents = count(client, &index).await.map_err(fail())?;
    let all = fields::all(&definition);
    let is_readable = |field: &&DefinitionField| field.is_complex() || field.flag("retrievable");
    let readable: Vec<DefinitionField> = all.iter().filter(is_readable).cloned().collect();
    let mut notes = Vec::new();
    let lost: Vec<&str> =
        all.iter().filter(|field| !is_readable(field)).map(|field| field.path.as_str()).collect();
    if !lost.is_empty() {
        notes.push(format!("these fields are not retrievable, so they are missing: {}", lost.join(", ")));
    }
    let paging = CopyPaging::choose(&readable, &readable, documents)
        .map_err(|why| CodeError::Refused(format!("{index} cannot be exported: {why}")))?;
    notes.extend(paging.warning());
    let mut file = ExportFile::open(options, &index)?;
    let continued_from = file.checkpoint.position.documents;
    let mut reader = PageReader::new(client.clone(), &index, paging, file.checkpoint.position.clone())
        .filter(options.filter.clone());
    // The number of documents that a filter selects is not known.
    let total = options.filter.is_none().then_some(documents);
    loop {
        let done = reader.position().documents;
        control.report(format!("export {index}"), done, total.map(|total| total.max(done)), "documents");
        control.check_stopped()?;
        let mut page = reader.next_page().await.map_err(fail())?;
        if page.is_empty() {
            break;
        }
        page.iter_mut().for_each(without_annotations);
        file = file.append(page, reader.position().clone()).await?;
    }
    let documents = reader.position().documents;
    file.finish()?;
    Ok(ExportReport { documents, continued_from, notes })
}

/// A file that is being written.
struct ExportFile {
    file: PathBuf,
    part: PathBuf,
    journal: PathBuf,
    output: File,
    is_compressed: bool,
    checkpoint: ExportCheckpoint,
}

impl ExportFile {
    fn open(options: &ExportOptions, index: &str) -> Result<ExportFile, CodeError> {
        let part = beside(&options.file, ".part");
        let journal = beside(&options.file, ".part.json");
        let source = files::fingerprint(&(&options.service, index, &options.filter));
        let known = match options.restart {
            true => None,
            false => folder::read_text(&journal)?,
        };
        let known = known.and_then(|text| serde_json::from_str::<ExportCheckpoint>(&text).ok());
        let checkpoint = match known {
            Some(known) if known.source != source => {
                return Err(CodeError::Refused(format!(
                    "{}: an export of another index, service or filter was interrupted here\n  fix: finish it, or begin again \
                     with --restart",
                    options.file.display()
                )));
            }
            Some(known) if fs::metadata(&part).is_ok_and(|part| part.len() >= known.bytes) => known,
            _ => ExportCheckpoint { source, ..ExportCheckpoint::default() },
        };
        if let Some(folder) = options.file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(CodeError::file(folder))?;
        }
        let output =
            OpenOptions::new().create(true).append(true).open(&part).map_err(CodeError::file(&part))?;
        output.set_len(checkpoint.bytes).map_err(CodeError::file(&part))?;
        let is_compressed = is_gzip(&options.file);
        Ok(ExportFile { file: options.file.clone(), part, journal, output, is_compressed, checkpoint })
    }

    /// Writes a page, then the checkpoint behind it.
    async fn append(mut self, page: Vec<Value>, position: CopyPosition) -> Result<ExportFile, CodeError> {
        let written = spawn_blocking(move || {
            let bytes = encode(&page, self.is_compressed).map_err(CodeError::file(&self.part))?;
            self.output
                .write_all(&bytes)
                .and_then(|()| self.output.sync_data())
                .map_err(CodeError::file(&self.part))?;
            self.checkpoint.bytes += bytes.len() as u64;
            self.checkpoint.position = position;
            let text = serde_json::to_vec(&self.checkpoint).unwrap_or_default();
            files::replace(&self.journal, &text)?;
            Ok(self)
        });
        written.await.map_err(|error| CodeError::Refused(format!("a page was not written: {error}")))?
    }

    fn finish(self) -> Result<(), CodeError> {
        fs::rename(&self.part, &self.file).map_err(CodeError::file(&self.file))?;
        if let Some(folder) = self.file.parent() {
            files::sync_folder(folder);
        }
        match fs::remove_file(&self.journal) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(CodeError::file(&self.journal)(error)),
            _ => Ok(()),
        }
    }
}

/// Returns the lines of a page.
fn encode(page: &[Value], is_compressed: bool) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for document in page {
        serde_json::to_writer(&mut lines, document)?;
        lines.push(b'\n');
    }
    if !is_compressed {
        return Ok(lines);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&lines)?;
    encoder.finish()
}
