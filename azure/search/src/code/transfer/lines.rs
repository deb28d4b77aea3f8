//! Reads the lines of a file in batches, plain or compressed, and knows the position behind each line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use super::is_gzip;

/// Maximum number of lines of a batch. Services accept 1,000 documents.
const BATCH_LINES: usize = 1_000;
/// Target size of a batch. The service accepts batches of 16 MB.
const BATCH_BYTES: usize = 4 << 20;
/// Maximum length of a line. Longer documents are rejected by every service.
const LONGEST: usize = 16 << 20;

/// A line of a file.
pub(super) struct InputLine {
    /// Its number, from 1.
    pub(super) number: u64,
    /// The text, or `None` if it is too long.
    pub(super) text: Option<Vec<u8>>,
}

/// Reads lines, and counts bytes.
pub(super) struct LineReader {
    input: Box<dyn BufRead + Send>,
    /// The position behind the last line, in the decompressed text.
    pub(super) offset: u64,
    /// The number of the last line.
    pub(super) line: u64,
    /// Size of the file, if it is known.
    pub(super) size: Option<u64>,
    read: Arc<AtomicU64>,
}

impl LineReader {
    /// Opens a file behind a line that was read before. `-` is stdin.
    pub(super) fn open(path: &Path, offset: u64, line: u64) -> io::Result<LineReader> {
        let read = Arc::new(AtomicU64::new(0));
        if path == Path::new("-") {
            let input = Box::new(BufReader::new(io::stdin()));
            return Ok(LineReader { input, offset: 0, line: 0, size: None, read });
        }
        let mut file = File::open(path)?;
        let size = Some(file.metadata()?.len());
        let is_compressed = is_gzip(path);
        if !is_compressed {
            file.seek(SeekFrom::Start(offset))?;
            read.store(offset, Ordering::Relaxed);
        }
        let counted = CountedReader { inner: file, read: Arc::clone(&read) };
        let mut input: Box<dyn BufRead + Send> = match is_compressed {
            true => Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(counted)))),
            false => Box::new(BufReader::new(counted)),
        };
        if is_compressed {
            io::copy(&mut input.by_ref().take(offset), &mut io::sink())?;
        }
        Ok(LineReader { input, offset, line, size, read })
    }

    /// Returns the number of bytes of the file that were read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Reads the lines of a batch, without empty ones. Returns none at the end.
    pub(super) fn read_batch(&mut self) -> io::Result<Vec<InputLine>> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < BATCH_LINES && bytes < BATCH_BYTES {
            let Some(line) = self.read_line()? else { break };
            let length = match &line.text {
                Some(text) if text.iter().all(u8::is_ascii_whitespace) => continue,
                Some(text) => text.len(),
                None => 0,
            };
            bytes += length;
            lines.push(line);
        }
        Ok(lines)
    }

    fn read_line(&mut self) -> io::Result<Option<InputLine>> {
        let (mut text, mut is_too_long, mut length) = (Vec::new(), false, 0_u64);
        loop {
            // The text of a line that is too long is not kept in memory.
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |end| end + 1);
            let part = buffer.get(..end.unwrap_or(used)).unwrap_or_default();
            if is_too_long || text.len() + part.len() > LONGEST {
                is_too_long = true;
                text.clear();
            } else {
                text.extend_from_slice(part);
            }
            self.input.consume(used);
            length += used as u64;
            if end.is_some() {
                break;
            }
        }
        if length == 0 {
            return Ok(None);
        }
        self.offset += length;
        self.line += 1;
        if self.line == 1 && text.starts_with("\u{feff}".as_bytes()) {
            text.drain(..3);
        }
        Ok(Some(InputLine { number: self.line, text: (!is_too_long).then_some(text) }))
    }
}

/// A reader that counts its bytes.
struct CountedReader {
    inner: File,
    read: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
