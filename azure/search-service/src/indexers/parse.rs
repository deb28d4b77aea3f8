//! Parses a blob into items: one for most files, many for lines and arrays.

mod delimited;
mod json;
mod markdown;
mod plain;

use std::fs::File;
use std::io::Read;

use bindpost_azure_search_model::ApiError;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value};

use super::definition::IndexerObject;
use super::source::{Blob, BlobContainer};
use super::status::IndexerLimits;

/// How blobs are parsed: `parameters.configuration` of an indexer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParseOptions {
    pub mode: ParsingMode,
    pub extract: DataToExtract,
    /// File name extensions to index, in lower case and with the dot. Empty for all files.
    pub only_extensions: Vec<String>,
    pub without_extensions: Vec<String>,
    pub fail_on_unsupported: bool,
    /// `Some(false)` turns unreadable files into warnings.
    pub fail_on_unprocessable: Option<bool>,
    pub metadata_of_oversized: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParsingMode {
    Default,
    Text,
    Json,
    JsonArray {
        root: Vec<String>,
    },
    JsonLines,
    Delimited {
        delimiter: u8,
        headers: Option<Vec<String>>,
        first_line_is_headers: bool,
    },
    /// Headings up to this depth start sections.
    Markdown {
        sections: bool,
        depth: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataToExtract {
    Everything,
    /// Only metadata is indexed. The file is not read.
    Metadata,
}

/// The source of one document.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedItem {
    pub fields: Map<String, Value>,
    /// The number of the item within the blob, from 1. `None` if the blob is one item.
    pub number: Option<u64>,
    pub warnings: Vec<String>,
}

/// Why an item, or the rest of a blob, could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParseFailure {
    pub message: String,
    pub line: Option<u64>,
    pub reason: ParseFailureReason,
    /// No more items follow in this blob.
    pub last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParseFailureReason {
    /// A type of file that text cannot be extracted from.
    Unsupported,
    /// A supported type of file with invalid content.
    Malformed,
    Oversized,
    /// The file could not be read.
    Unreadable,
}

/// The items of one blob, in order.
pub(crate) type Items = Box<dyn Iterator<Item = Result<ParsedItem, ParseFailure>> + Send>;

/// A longer line, row or element is rejected.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;

impl ParseOptions {
    pub(crate) fn parse(given: &IndexerObject<'_>) -> Result<Self, ApiError> {
        if let Some(encoding) = given.text("encoding")?
            && !encoding.eq_ignore_ascii_case("utf-8")
            && !encoding.eq_ignore_ascii_case("utf8")
        {
            return Err(ApiError::not_supported(format!(
                "The encoding '{encoding}' is not supported. Convert the files to UTF-8."
            )));
        }
        let extract = given.choice(
            "dataToExtract",
            &[
                ("contentAndMetadata", DataToExtract::Everything),
                ("allMetadata", DataToExtract::Metadata),
                ("storageMetadata", DataToExtract::Metadata),
            ],
        )?;
        let extract = extract.unwrap_or(DataToExtract::Everything);
        Ok(Self {
            mode: ParsingMode::parse(given)?,
            extract,
            only_extensions: extensions(given, "indexedFileNameExtensions")?,
            without_extensions: extensions(given, "excludedFileNameExtensions")?,
            fail_on_unsupported: given.boolean("failOnUnsupportedContentType")?.unwrap_or(false),
            fail_on_unprocessable: given.boolean("failOnUnprocessableDocument")?,
            metadata_of_oversized: given
                .boolean("indexStorageMetadataOnlyForOversizedDocuments")?
                .unwrap_or(false),
        })
    }

    /// Returns whether files with this name are indexed. An excluded extension takes precedence over an
    /// indexed one.
    pub(crate) fn includes(&self, name: &str) -> bool {
        let extension = extension(name).to_ascii_lowercase();
        !self.without_extensions.contains(&extension)
            && (self.only_extensions.is_empty() || self.only_extensions.contains(&extension))
    }
}

impl ParsingMode {
    fn parse(given: &IndexerObject<'_>) -> Result<Self, ApiError> {
        Ok(match given.text("parsingMode")?.unwrap_or("default") {
            "default" => Self::Default,
            "text" => Self::Text,
            "json" => Self::Json,
            "jsonLines" => Self::JsonLines,
            "jsonArray" => {
                let root = given.text("documentRoot")?.unwrap_or("");
                Self::JsonArray {
                    root: root.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
                }
            }
            "delimitedText" => {
                let headers =
                    given.text("delimitedTextHeaders")?.filter(|headers| !headers.trim().is_empty());
                let headers: Option<Vec<String>> =
                    headers.map(|headers| headers.split(',').map(|name| name.trim().to_owned()).collect());
                let first_line_is_headers = given.boolean("firstLineContainsHeaders")?.unwrap_or(true);
                if headers.is_none() && !first_line_is_headers {
                    let problem = "is required when 'firstLineContainsHeaders' is false";
                    return Err(given.error("delimitedTextHeaders", problem));
                }
                let delimiter = match given.text("delimitedTextDelimiter")?.map(str::as_bytes) {
                    None | Some([]) => b',',
                    Some([one]) if *one != b'"' && *one != b'\n' && *one != b'\r' => *one,
                    Some(_) => {
                        return Err(given.error("delimitedTextDelimiter", "must be one ASCII character"));
                    }
                };
                Self::Delimited { delimiter, headers, first_line_is_headers }
            }
            "markdown" => {
                let sections = [("oneToMany", true), ("oneToOne", false)];
                let sections = given.choice("markdownParsingSubmode", &sections)?.unwrap_or(true);
                let depths = [("h1", 1), ("h2", 2), ("h3", 3), ("h4", 4), ("h5", 5), ("h6", 6)];
                let depth = given.choice("markdownHeaderDepth", &depths)?.unwrap_or(6);
                Self::Markdown { sections, depth }
            }
            other => {
                let known = "default, text, json, jsonArray, jsonLines, delimitedText, markdown";
                let problem = format_args!("must be one of {known}, not '{other}'");
                return Err(given.error("parsingMode", problem));
            }
        })
    }
}

/// Opens a blob and returns its items.
pub(crate) fn parse_blob(
    source: &BlobContainer,
    blob: &Blob,
    options: &ParseOptions,
    limits: &IndexerLimits,
) -> Result<Items, ParseFailure> {
    if options.extract == DataToExtract::Metadata {
        return Ok(one(ParsedItem::default()));
    }
    let file = source.open(blob).map_err(|error| ParseFailure::unreadable(&error))?;
    if options.mode == ParsingMode::Default
        && !plain::is_text(&file).map_err(|error| ParseFailure::unreadable(&error))?
    {
        return plain::without_text(&blob.name, options).map(one);
    }
    let streamed = matches!(options.mode, ParsingMode::JsonLines | ParsingMode::Delimited { .. });
    if !streamed && blob.size > limits.document_bytes {
        if options.metadata_of_oversized {
            let warning = format!(
                "The file has {} bytes, more than the maximum. Only its metadata is indexed.",
                blob.size
            );
            return Ok(one(ParsedItem { warnings: vec![warning], ..ParsedItem::default() }));
        }
        return Err(ParseFailure {
            message: format!(
                "The file has {} bytes, more than the maximum of {}. Set 'indexStorageMetadataOnlyForOversizedDocuments' to index its metadata only.",
                blob.size, limits.document_bytes
            ),
            line: None,
            reason: ParseFailureReason::Oversized,
            last: true,
        });
    }
    match &options.mode {
        ParsingMode::Default => plain::default(whole(file, limits)?, &blob.name, limits).map(one),
        ParsingMode::Text => plain::text(whole(file, limits)?, limits).map(one),
        ParsingMode::Json => json::single(&whole(file, limits)?).map(one),
        ParsingMode::JsonArray { root } => json::array(whole(file, limits)?, root),
        ParsingMode::JsonLines => Ok(json::lines(file)),
        ParsingMode::Delimited { delimiter, headers, first_line_is_headers } => {
            delimited::rows(file, *delimiter, headers.as_deref(), *first_line_is_headers)
        }
        ParsingMode::Markdown { sections: true, depth } => {
            Ok(markdown::sections(&utf8(whole(file, limits)?)?, *depth))
        }
        ParsingMode::Markdown { sections: false, depth } => {
            Ok(one(markdown::outline(&utf8(whole(file, limits)?)?, *depth)))
        }
    }
}

/// Returns the metadata of a blob without reading its content.
pub(crate) fn blob_metadata(source: &BlobContainer, blob: &Blob) -> Map<String, Value> {
    let modified = DateTime::from_timestamp_nanos(blob.modified).to_rfc3339_opts(SecondsFormat::Secs, true);
    let file_name = blob.name.rsplit('/').next().unwrap_or(&blob.name);
    [
        ("metadata_storage_name", Value::from(file_name)),
        ("metadata_storage_path", Value::from(source.address(&blob.name))),
        ("metadata_storage_size", Value::from(blob.size)),
        ("metadata_storage_last_modified", Value::from(modified)),
        ("metadata_storage_content_type", Value::from(plain::content_type(extension(&blob.name)))),
        ("metadata_storage_file_extension", Value::from(extension(&blob.name))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

impl ParseFailure {
    fn malformed(message: impl Into<String>, line: Option<u64>, last: bool) -> Self {
        Self { message: message.into(), line, reason: ParseFailureReason::Malformed, last }
    }

    fn unreadable(error: &std::io::Error) -> Self {
        // Only the kind of the error is shown, because some error texts contain paths.
        let message = format!("The file could not be read: {}.", error.kind());
        Self { message, line: None, reason: ParseFailureReason::Unreadable, last: true }
    }
}

/// Returns the extension with its dot, or an empty string.
fn extension(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.rfind('.').and_then(|dot| file.get(dot..)).unwrap_or("")
}

fn one(item: ParsedItem) -> Items {
    Box::new(std::iter::once(Ok(item)))
}

fn whole(file: File, limits: &IndexerLimits) -> Result<Vec<u8>, ParseFailure> {
    // The file may have grown since its size was read.
    let mut bytes = Vec::new();
    let most = limits.document_bytes.saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| ParseFailure::unreadable(&error))?;
    if bytes.len() as u64 >= most {
        let message = format!("The file has more than the maximum of {} bytes.", limits.document_bytes);
        return Err(ParseFailure { message, line: None, reason: ParseFailureReason::Oversized, last: true });
    }
    Ok(bytes)
}

fn utf8(bytes: Vec<u8>) -> Result<String, ParseFailure> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or(&[]);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        ParseFailure::malformed("The file is not UTF-8 text. Convert it to UTF-8.", Some(line), true)
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn extensions(given: &IndexerObject<'_>, name: &str) -> Result<Vec<String>, ApiError> {
    let list = given.text(name)?.unwrap_or("");
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    Ok(parts.map(|part| format!(".{}", part.trim_start_matches(['*', '.'])).to_ascii_lowercase()).collect())
}
