//! JSON: one object, an array of objects, or one object per line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Items, LONGEST_LINE, ParseFailure, ParsedItem, utf8};

pub(super) fn single(bytes: &[u8]) -> Result<ParsedItem, ParseFailure> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let fields = object(bytes, 1, true)?;
    Ok(ParsedItem { fields, ..ParsedItem::default() })
}

/// Parses the elements of an array one by one. Only the text stays in memory.
pub(super) fn array(bytes: Vec<u8>, root: &[String]) -> Result<Items, ParseFailure> {
    let text = utf8(bytes)?;
    let ranges = elements(&text, root)?;
    let mut at = 0;
    Ok(Box::new(ranges.into_iter().map(move |range| {
        at += 1;
        let element = text.get(range.clone()).unwrap_or("");
        object(element.as_bytes(), 1, false)
            .map_err(|failure| {
                // Lines are counted only for an error.
                let above = text.get(..range.start).unwrap_or("").matches('\n').count() as u64;
                let line = failure.line.map(|line| line + above);
                let message = format!("Element {at} of the array: {}", failure.message);
                ParseFailure { line, message, ..failure }
            })
            .map(|fields| ParsedItem { fields, number: Some(at), warnings: Vec::new() })
    })))
}

pub(super) fn lines(file: File) -> Items {
    Box::new(JsonLineReader {
        reader: BufReader::new(file),
        line: 0,
        number: 0,
        buffer: Vec::new(),
        ended: false,
    })
}

struct JsonLineReader<R> {
    reader: BufReader<R>,
    line: u64,
    number: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl<R: Read> Iterator for JsonLineReader<R> {
    type Item = Result<ParsedItem, ParseFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            self.buffer.clear();
            let mut part = (&mut self.reader).take(LONGEST_LINE);
            match part.read_until(b'\n', &mut self.buffer) {
                Err(error) => {
                    self.ended = true;
                    return Some(Err(ParseFailure::unreadable(&error)));
                }
                Ok(0) => return None,
                Ok(_) => {}
            }
            self.line += 1;
            if self.buffer.len() as u64 >= LONGEST_LINE {
                self.ended = true;
                let message = format!("The line is longer than {LONGEST_LINE} bytes.");
                return Some(Err(ParseFailure::malformed(message, Some(self.line), true)));
            }
            let text = self.buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.buffer);
            // The end of line is removed. Otherwise a truncated object would be reported on the next line.
            let text = text.trim_ascii_end();
            if text.is_empty() {
                continue;
            }
            // All candidate lines are numbered, so that fixing one line does not change the keys of
            // later lines.
            self.number += 1;
            let item = object(text, self.line, false);
            return Some(item.map(|fields| ParsedItem {
                fields,
                number: Some(self.number),
                warnings: Vec::new(),
            }));
        }
        None
    }
}

fn object(text: &[u8], first_line: u64, last: bool) -> Result<Map<String, Value>, ParseFailure> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => {
            let message = format!("Expected a JSON object, found {}.", kind(&other));
            Err(ParseFailure::malformed(message, Some(first_line), last))
        }
        Err(error) => Err(damaged(&error, first_line, last)),
    }
}

fn damaged(error: &serde_json::Error, first_line: u64, last: bool) -> ParseFailure {
    let line = first_line + (error.line() as u64).saturating_sub(1);
    let said = error.to_string();
    // serde reports a position relative to the parsed text, not to the file.
    let said = said.split(" at line ").next().unwrap_or(&said);
    let message = format!("The JSON is invalid at column {}: {said}.", error.column());
    ParseFailure::malformed(message, Some(line), last)
}

/// Returns the ranges of the array elements in the text.
fn elements(text: &str, root: &[String]) -> Result<Vec<Range<usize>>, ParseFailure> {
    let start = |part: &str| (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let line = |part: &str| 1 + text.get(..start(part)).unwrap_or("").matches('\n').count() as u64;
    let mut here = text.trim_start();
    for name in root {
        let members: HashMap<String, &RawValue> =
            serde_json::from_str(here).map_err(|error| damaged(&error, line(here), true))?;
        here = members.get(name.as_str()).map(|member| member.get()).ok_or_else(|| {
            let message = format!("The member '{name}' of 'documentRoot' is missing.");
            ParseFailure::malformed(message, Some(line(here)), true)
        })?;
    }
    if !here.starts_with('[') {
        let message = "Expected a JSON array. Set 'documentRoot' to the path of the array.";
        return Err(ParseFailure::malformed(message, Some(line(here)), true));
    }
    let elements: Vec<&RawValue> =
        serde_json::from_str(here).map_err(|error| damaged(&error, line(here), true))?;
    Ok(elements
        .iter()
        .map(|element| start(element.get())..start(element.get()) + element.get().len())
        .collect())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array (parsingMode 'jsonArray' reads arrays)",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_elements_are_found_below_a_root_and_numbered() {
        let text = br#"{"a": {"b": [{"id": 1},
            7, {"id": 3}]}}"#;
        let items: Vec<_> = array(text.to_vec(), &["a".into(), "b".into()]).unwrap().collect();
        assert_eq!(items[0].as_ref().unwrap().fields["id"], 1);
        let failure = items[1].as_ref().unwrap_err();
        assert_eq!((failure.line, failure.last), (Some(2), false));
        assert_eq!(items[2].as_ref().unwrap().number, Some(3));
    }

    #[test]
    fn wrong_roots_and_invalid_arrays_name_their_line() {
        let wrong = |text: &str, root: &[&str]| {
            let root: Vec<String> = root.iter().map(|name| (*name).to_owned()).collect();
            array(text.as_bytes().to_vec(), &root).err().unwrap()
        };
        assert!(wrong("{\"a\": 1}", &["b"]).message.contains("'b'"));
        assert!(wrong("{\"a\": 1}", &[]).message.contains("documentRoot"));
        assert_eq!(wrong("[{\"a\":\n\n 1},", &[]).line, Some(3));
    }

    #[test]
    fn parsing_continues_after_an_invalid_line() {
        let text: &[u8] = b"\xef\xbb\xbf{\"id\":1}\n\n{\"id\":\n{\"id\":3}";
        let lines = JsonLineReader {
            reader: BufReader::new(text),
            line: 0,
            number: 0,
            buffer: Vec::new(),
            ended: false,
        };
        let items: Vec<_> = lines.collect();
        assert_eq!(items.len(), 3);
        assert_eq!(items[1].as_ref().unwrap_err().line, Some(3));
        assert_eq!(items[2].as_ref().unwrap().number, Some(3));
    }
}
