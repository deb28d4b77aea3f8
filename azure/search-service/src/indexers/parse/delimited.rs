//! Delimited text, such as comma-separated values.

use std::fs::File;
use std::io::{self, Read};

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use serde_json::{Map, Value};

use super::{Items, LONGEST_LINE, ParseFailure, ParsedItem};

pub(super) fn rows(
    file: File,
    delimiter: u8,
    headers: Option<&[String]>,
    first_line_is_headers: bool,
) -> Result<Items, ParseFailure> {
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(first_line_is_headers)
        .flexible(true)
        .trim(Trim::Headers)
        .from_reader(CappedReader { inner: file, left: LONGEST_LINE });
    let headers = match headers {
        Some(given) => given.to_vec(),
        None => {
            let first = reader.headers().map_err(|error| failure(&error, 1))?;
            first.iter().map(str::to_owned).collect()
        }
    };
    let mut record = StringRecord::new();
    let (mut number, mut ended) = (0, false);
    Ok(Box::new(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let line = reader.position().line();
        reader.get_mut().left = LONGEST_LINE;
        let read = reader.read_record(&mut record);
        if let Ok(false) = read {
            return None;
        }
        number += 1;
        let result = match read {
            Ok(_) => fields(&record, &headers, record.position().map_or(line, csv::Position::line)),
            Err(error) => Err(failure(&error, line)),
        };
        ended = result.as_ref().is_err_and(|failure| failure.last);
        Some(result.map(|fields| ParsedItem { fields, number: Some(number), warnings: Vec::new() }))
    })))
}

fn fields(record: &StringRecord, headers: &[String], line: u64) -> Result<Map<String, Value>, ParseFailure> {
    if record.len() > headers.len() {
        let message = format!(
            "The row has {} values for {} columns. Values that hold the delimiter need quotes.",
            record.len(),
            headers.len()
        );
        return Err(ParseFailure::malformed(message, Some(line), false));
    }
    Ok(headers.iter().cloned().zip(record.iter().map(Value::from)).collect())
}

fn failure(error: &csv::Error, line: u64) -> ParseFailure {
    let line = error.position().map_or(line, csv::Position::line);
    match error.kind() {
        ErrorKind::Utf8 { err, .. } => {
            let message = format!("Column {} is not UTF-8 text.", err.field() + 1);
            ParseFailure::malformed(message, Some(line), false)
        }
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => ParseFailure::malformed(
            format!("The row is longer than {LONGEST_LINE} bytes. Check for a missing closing quote."),
            Some(line),
            true,
        ),
        ErrorKind::Io(error) => ParseFailure::unreadable(error),
        _ => ParseFailure::malformed("The row cannot be read.", Some(line), true),
    }
}

/// Stops when one row is too long. Without a limit, a missing closing quote would read the rest of the
/// file into memory.
struct CappedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for CappedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}
