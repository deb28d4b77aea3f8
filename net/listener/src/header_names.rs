//! [`SentHeaderNames`]: the header names of an HTTP/1 request as its client spelled them. hyper has them in
//! lower case only.
//!
//! [`HeadScanner`] reads the bytes of a connection beside hyper. It follows the lengths of bodies to find the next
//! head. Nothing depends on what it finds but the spelling: where it cannot follow, it finds no more names.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum length of one line of a head. Longer ones end the connection in hyper too.
const LONGEST_LINE: usize = 256 * 1024;
/// The maximum number of names of one head.
const MOST_NAMES: usize = 1_000;
/// The maximum number of heads that wait for hyper. A client can send many requests at once.
const MOST_HEADS: usize = 4_096;

/// The header names of an HTTP/1 request as its client spelled them:
/// [`ConnectedClient::next_header_names`](crate::ConnectedClient::next_header_names).
///
/// The names are one text with a line for each, because each request has some ten of them.
#[derive(Clone, Debug, Default)]
pub struct SentHeaderNames(Arc<str>);

impl SentHeaderNames {
    /// Returns a name as the client spelled it, if a header of the request has it. Of several spellings it is the first.
    pub fn spelling_of(&self, name: &str) -> Option<&str> {
        self.0.split_terminator('\n').find(|sent| sent.eq_ignore_ascii_case(name))
    }

    /// Returns a spelling like [`spelling_of`](Self::spelling_of). Names that are asked for in the order in which they
    /// were sent are found at once. `position` is 0 for the first name.
    pub fn spelling_in_order(&self, position: &mut usize, name: &str) -> Option<&str> {
        let mut begin = *position;
        while let Some(rest) = self.0.get(begin..).filter(|rest| !rest.is_empty()) {
            let has_length = rest.as_bytes().get(name.len()) == Some(&b'\n');
            let is_name = |sent: &&str| has_length && (*sent == name || sent.eq_ignore_ascii_case(name));
            let sent = rest.get(..name.len()).filter(is_name);
            if sent.is_some() {
                *position = begin + name.len() + 1;
                return sent;
            }
            begin += rest.find('\n')? + 1;
        }
        self.spelling_of(name)
    }

    /// Returns these names followed by those of another request.
    pub fn followed_by(&self, other: &SentHeaderNames) -> SentHeaderNames {
        SentHeaderNames(format!("{}{}", self.0, other.0).into())
    }
}

impl<'a> FromIterator<&'a str> for SentHeaderNames {
    fn from_iter<T: IntoIterator<Item = &'a str>>(names: T) -> SentHeaderNames {
        let mut lines = String::new();
        for name in names {
            lines.push_str(name);
            lines.push('\n');
        }
        SentHeaderNames(lines.into())
    }
}

/// The scanner of one connection, which its socket feeds and its service asks.
#[derive(Debug, Default)]
pub(super) struct HeaderNameRecorder(Mutex<HeadScanner>);

impl HeaderNameRecorder {
    /// Reads the next bytes of the client.
    pub(super) fn scan(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).scan(bytes);
    }

    /// Returns the names of the next request. Requests are asked for in the order in which they arrived.
    pub(super) fn next_request(&self) -> Option<SentHeaderNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).heads.pop_front()
    }
}

#[derive(Debug, Default)]
struct HeadScanner {
    place: StreamPlace,
    /// The begin of a line whose end has not arrived.
    line: Vec<u8>,
    /// The names of this head, a line for each.
    names: String,
    count: usize,
    framing: BodyFraming,
    heads: VecDeque<SentHeaderNames>,
}

/// What the next bytes are.
#[derive(Debug, Default)]
enum StreamPlace {
    /// A request line, or an empty line before it.
    #[default]
    RequestLine,
    Header,
    /// So many bytes without a head.
    Body(u64),
    ChunkSize,
    /// So many bytes of a chunk and of the end of its line.
    Chunk(u64),
    Trailer,
    /// The bytes could not be followed.
    Lost,
}

/// How the end of a body is found.
#[derive(Debug, Default)]
struct BodyFraming {
    length: u64,
    is_chunked: bool,
}

impl HeadScanner {
    fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.place {
                StreamPlace::Lost => return,
                StreamPlace::Body(left) | StreamPlace::Chunk(left) => {
                    let skipped = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= skipped as u64;
                    bytes = bytes.get(skipped..).unwrap_or_default();
                    if *left == 0 {
                        self.place = match self.place {
                            StreamPlace::Chunk(_) => StreamPlace::ChunkSize,
                            _ => StreamPlace::RequestLine,
                        };
                    }
                }
                _ => match memchr::memchr(b'\n', bytes) {
                    Some(end) => {
                        let (line, rest) = bytes.split_at(end);
                        bytes = rest.get(1..).unwrap_or_default();
                        self.read_line(line);
                    }
                    None if self.line.len() + bytes.len() > LONGEST_LINE => self.lose(),
                    None => {
                        self.line.extend_from_slice(bytes);
                        return;
                    }
                },
            }
        }
    }

    /// Reads a line whose end is `end`.
    fn read_line(&mut self, end: &[u8]) {
        let begin = std::mem::take(&mut self.line);
        let joined;
        let line = if begin.is_empty() {
            end
        } else {
            joined = [begin.as_slice(), end].concat();
            &joined
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let next = match self.place {
            // Empty lines before a request are ignored.
            StreamPlace::RequestLine if line.is_empty() => Some(StreamPlace::RequestLine),
            StreamPlace::RequestLine => Some(StreamPlace::Header),
            StreamPlace::Header if line.is_empty() => self.end_head(),
            StreamPlace::Header => self.read_header(line),
            StreamPlace::ChunkSize => chunk_size(line).map(|size| match size {
                0 => StreamPlace::Trailer,
                size => StreamPlace::Chunk(size.saturating_add(2)),
            }),
            StreamPlace::Trailer if line.is_empty() => Some(StreamPlace::RequestLine),
            StreamPlace::Trailer => Some(StreamPlace::Trailer),
            StreamPlace::Body(_) | StreamPlace::Chunk(_) | StreamPlace::Lost => None,
        };
        match next {
            Some(next) => self.place = next,
            None => self.lose(),
        }
    }

    fn read_header(&mut self, line: &[u8]) -> Option<StreamPlace> {
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = line.split_at_checked(colon)?;
        let name = std::str::from_utf8(name).ok()?;
        let text = || Some(std::str::from_utf8(value.get(1..)?).ok()?.trim());
        if name.eq_ignore_ascii_case("content-length") {
            self.framing.length = text()?.parse().ok()?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            let last = text()?.rsplit(',').next()?.trim();
            self.framing.is_chunked = last.eq_ignore_ascii_case("chunked");
        }
        if self.count >= MOST_NAMES {
            return None;
        }
        self.count += 1;
        self.names.push_str(name);
        self.names.push('\n');
        Some(StreamPlace::Header)
    }

    fn end_head(&mut self) -> Option<StreamPlace> {
        if self.heads.len() >= MOST_HEADS {
            return None;
        }
        self.heads.push_back(SentHeaderNames(self.names.as_str().into()));
        self.names.clear();
        self.count = 0;
        Some(match std::mem::take(&mut self.framing) {
            BodyFraming { is_chunked: true, .. } => StreamPlace::ChunkSize,
            BodyFraming { length: 0, .. } => StreamPlace::RequestLine,
            BodyFraming { length, .. } => StreamPlace::Body(length),
        })
    }

    fn lose(&mut self) {
        self.place = StreamPlace::Lost;
        self.names = String::new();
    }
}

/// Returns the size in the first line of a chunk, which extensions may follow.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    let digits = line.split([';', ' ', '\t']).next()?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of each head, when the bytes arrive in pieces of this size.
    fn heads(bytes: &[u8], piece: usize) -> Vec<String> {
        let recorder = HeaderNameRecorder::default();
        bytes.chunks(piece).for_each(|piece| recorder.scan(piece));
        std::iter::from_fn(|| recorder.next_request())
            .map(|names| names.0.trim_end().replace('\n', " "))
            .collect()
    }

    #[test]
    fn heads_are_found_behind_bodies_of_every_framing() {
        let stream = b"\r\nPOST / HTTP/1.1\r\nHOST: a\r\nContent-LENGTH: 7\r\n\r\nX-Y: z\nGET / HTTP/1.1\r\nx-One: 1\r\nX-one: 2\r\n\r\n\
            POST / HTTP/1.1\nTransfer-encoding: gzip, Chunked\nb:\n\n5;x=y\r\nX-A: \r\n1f\r\n0123456789012345678901234567890\r\n0\r\nX-End: 1\r\n\r\n\
            GET / HTTP/1.1\r\nlast: 1\r\n\r\n";
        for piece in 1..stream.len() {
            let expected = ["HOST Content-LENGTH", "x-One X-one", "Transfer-encoding b", "last"];
            assert_eq!(heads(stream, piece), expected, "pieces of {piece} bytes");
        }
    }

    #[test]
    fn what_cannot_be_followed_has_no_names() {
        for broken in [
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            "GET / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        ] {
            let stream = format!("GET / HTTP/1.1\r\nA: 1\r\n\r\n{broken}GET / HTTP/1.1\r\nB: 1\r\n\r\n");
            assert_eq!(heads(stream.as_bytes(), 5), ["A"], "{broken}");
        }
        let endless = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &vec![b'x'; LONGEST_LINE + 1]].concat();
        assert_eq!(heads(&endless, 1_000), [""; 0]);
        let many = b"GET / HTTP/1.1\r\n\r\n".repeat(MOST_HEADS + 10);
        assert_eq!(heads(&many, 1_000).len(), MOST_HEADS);
    }

    #[test]
    fn a_name_is_found_in_any_case() {
        let recorder = HeaderNameRecorder::default();
        recorder.scan(b"GET / HTTP/1.1\r\nX-oNe: 1\r\nx-one: 2\r\n\r\n");
        let names = recorder.next_request().unwrap();
        assert_eq!(names.spelling_of("x-one"), Some("X-oNe"));
        assert_eq!(names.spelling_of("x-two"), None);
    }

    #[test]
    fn names_are_found_in_and_out_of_order() {
        let sent = SentHeaderNames::from_iter(["Host", "X-A", "x-B", "hOST", "x-a-b"]);
        let mut position = 0;
        for (name, expected) in [
            ("host", Some("Host")),
            ("x-b", Some("x-B")),
            ("x-a", Some("X-A")),
            ("x-a-b", Some("x-a-b")),
            ("x", None),
            ("host", Some("Host")),
            ("x-b\nhost", None),
        ] {
            assert_eq!(sent.spelling_in_order(&mut position, name), expected, "{name}");
        }
    }
}
