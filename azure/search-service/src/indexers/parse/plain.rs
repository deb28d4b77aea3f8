//! Files with plain text content, and the content types of file names.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde_json::Value;

use super::{ParseFailure, ParseFailureReason, ParseOptions, ParsedItem, utf8};
use crate::indexers::status::IndexerLimits;

const LOOKED_AT: u64 = 8192;

/// `parsingMode: text`: the file must be UTF-8.
pub(super) fn text(bytes: Vec<u8>, limits: &IndexerLimits) -> Result<ParsedItem, ParseFailure> {
    let mut item = ParsedItem::default();
    set_content(&mut item, utf8(bytes)?, limits);
    Ok(item)
}

/// `parsingMode: default` for a text file.
pub(super) fn default(
    bytes: Vec<u8>,
    name: &str,
    limits: &IndexerLimits,
) -> Result<ParsedItem, ParseFailure> {
    let mut item = ParsedItem::default();
    let content = utf8(bytes)?;
    let content = match super::extension(name).to_ascii_lowercase().as_str() {
        ".html" | ".htm" | ".xhtml" => without_tags(&content),
        _ => content,
    };
    set_content(&mut item, content, limits);
    Ok(item)
}

/// `parsingMode: default` for other files: only metadata is indexed.
pub(super) fn without_text(name: &str, options: &ParseOptions) -> Result<ParsedItem, ParseFailure> {
    let message = format!(
        "This service cannot extract text from files of type '{}', so the content is empty. Convert the file to text, or exclude it with 'excludedFileNameExtensions'.",
        content_type(super::extension(name))
    );
    if options.fail_on_unsupported {
        return Err(ParseFailure {
            message,
            line: None,
            reason: ParseFailureReason::Unsupported,
            last: true,
        });
    }
    let mut item = ParsedItem { warnings: vec![message], ..ParsedItem::default() };
    item.fields.insert("content".to_owned(), Value::from(""));
    Ok(item)
}

/// Checks the start of a file and seeks back to it.
pub(super) fn is_text(mut file: &File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(looks_like_text(&start))
}

fn set_content(item: &mut ParsedItem, mut content: String, limits: &IndexerLimits) {
    if let Some((cut, _)) = content.char_indices().nth(limits.content_characters) {
        content.truncate(cut);
        let most = limits.content_characters;
        item.warnings.push(format!("The text was truncated after {most} characters."));
    }
    item.fields.insert("content".to_owned(), Value::from(content));
}

/// Returns whether the bytes have no zero byte and are valid UTF-8. PDF and Office files fail one of
/// these checks, or have a signature.
fn looks_like_text(start: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The sample may end within a character.
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !start.contains(&0) && !start.starts_with(b"%PDF-")
}

/// Returns the text of an HTML page without tags, comments, scripts and styles.
fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let (before, tag) = rest.split_at(open);
        text.push_str(before);
        let ends_with = if tag.starts_with("<!--") {
            "-->"
        } else if begins(tag, "<script") {
            "</script>"
        } else if begins(tag, "<style") {
            "</style>"
        } else {
            ">"
        };
        if !text.ends_with(char::is_whitespace) {
            text.push(' ');
        }
        rest = match find_ignoring_case(tag, ends_with) {
            Some(end) => tag.get(end + ends_with.len()..).unwrap_or(""),
            None => "",
        };
    }
    text.push_str(rest);
    for (entity, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")]
    {
        if text.contains(entity) {
            text = text.replace(entity, character);
        }
    }
    text.trim().to_owned()
}

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    text.as_bytes().windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Returns the usual content type of an extension, which includes the dot.
pub(super) fn content_type(extension: &str) -> &'static str {
    match extension.to_ascii_lowercase().as_str() {
        ".txt" | ".log" => "text/plain",
        ".md" | ".markdown" => "text/markdown",
        ".html" | ".htm" => "text/html",
        ".xhtml" => "application/xhtml+xml",
        ".css" => "text/css",
        ".csv" => "text/csv",
        ".tsv" => "text/tab-separated-values",
        ".json" => "application/json",
        ".jsonl" | ".ndjson" => "application/x-ndjson",
        ".xml" => "application/xml",
        ".yaml" | ".yml" => "application/yaml",
        ".rtf" => "application/rtf",
        ".pdf" => "application/pdf",
        ".doc" => "application/msword",
        ".docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ".xls" => "application/vnd.ms-excel",
        ".xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ".ppt" => "application/vnd.ms-powerpoint",
        ".pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ".zip" => "application/zip",
        ".gz" => "application/gzip",
        ".png" => "image/png",
        ".jpg" | ".jpeg" => "image/jpeg",
        ".gif" => "image/gif",
        ".svg" => "image/svg+xml",
        ".mp3" => "audio/mpeg",
        ".mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_tags_scripts_and_comments_are_removed() {
        let page =
            "<html><STYLE>p{}</style><!-- no --><p>One &amp; two<br>three</p><script>x<1</SCRIPT></html>";
        assert_eq!(without_tags(page), "One & two three");
        assert_eq!(without_tags("a < b <unclosed"), "a");
    }

    #[test]
    fn long_content_is_truncated_with_a_warning() {
        let limits = IndexerLimits { content_characters: 3, ..IndexerLimits::default() };
        let item = text("äöüß".into(), &limits).unwrap();
        assert_eq!(item.fields["content"], "äöü");
        assert_eq!(item.warnings.len(), 1);
    }
}
