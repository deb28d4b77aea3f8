//! The full syntax: Lucene's, as its classic parser reads it.
//!
//! `AND` makes both of its sides a must, `OR` leaves them optional, and none binds closer than the other: `a AND b OR c`
//! is `+a +b c`, a document needs both `a` and `b`. Parentheses say it otherwise. One difference: with searchMode `all`,
//! Lucene makes `b` optional again when `OR` follows it; here it stays a must in both modes.
//!
//! Ranges (`[a TO b]`) are no part of it: Azure has filters for them.

use super::tree::{Clause, Node, Occur, Piece};
use super::{MAX_DEPTH, check_length, count_clause, too_deep};
use crate::ApiError;

mod scan;

use scan::{Scanner, Word};

/// Reads a search text. `is_field` says whether a path is that of a searchable field.
pub fn parse_full(text: &str, is_field: &dyn Fn(&str) -> bool) -> Result<Node, ApiError> {
    check_length(text)?;
    if matches!(text.trim(), "" | "*") {
        return Ok(Node::All);
    }
    let mut parser = Parser { scanner: Scanner::new(text), is_field, clauses: 0 };
    let node = parser.group(0)?;
    match parser.scanner.peek() {
        None => Ok(node),
        Some(_) => Err(parser.scanner.error("this `)` closes nothing. Remove it, or escape it as `\\)`")),
    }
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    is_field: &'a dyn Fn(&str) -> bool,
    clauses: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Joined {
    Plainly,
    And,
    Or,
}

impl Parser<'_> {
    /// Clauses up to the end or to a `)`, which stays.
    fn group(&mut self, depth: usize) -> Result<Node, ApiError> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let mut clauses: Vec<Clause> = Vec::new();
        loop {
            self.scanner.skip_space();
            if matches!(self.scanner.peek(), None | Some(')')) {
                break;
            }
            let joined = self.joined(clauses.is_empty())?;
            let occur = self.sign(joined)?;
            // AND reaches back: what stands before it is as much a must as what follows.
            if let (Joined::And | Joined::Or, Some(last)) = (joined, clauses.last_mut()) {
                match (joined, last.occur) {
                    (Joined::And, Occur::Default | Occur::Should) => last.occur = Occur::Must,
                    (Joined::Or, Occur::Default) => last.occur = Occur::Should,
                    _ => {}
                }
            }
            let node = self.clause(depth)?;
            clauses.push(Clause { occur, node });
        }
        Ok(match clauses.as_slice() {
            [] => return Err(self.scanner.error("a word, a phrase or `(` is missing here")),
            [one] if one.occur != Occur::MustNot => match clauses.pop() {
                Some(clause) => clause.node,
                None => Node::Nothing,
            },
            _ => Node::Clauses(clauses),
        })
    }

    fn joined(&mut self, first: bool) -> Result<Joined, ApiError> {
        let start = self.scanner.at();
        let joined = if self.scanner.keyword("AND") || self.scanner.sign("&&") {
            Joined::And
        } else if self.scanner.keyword("OR") || self.scanner.sign("||") {
            Joined::Or
        } else {
            return Ok(Joined::Plainly);
        };
        if first {
            let reason = "an operator needs something before it. To search for the word, quote it";
            return Err(self.scanner.error_at(start, reason));
        }
        self.scanner.skip_space();
        Ok(joined)
    }

    fn sign(&mut self, joined: Joined) -> Result<Occur, ApiError> {
        let plain = match joined {
            Joined::Plainly => Occur::Default,
            Joined::And => Occur::Must,
            Joined::Or => Occur::Should,
        };
        let occur = match self.scanner.peek() {
            // Signs with a space behind them are words, as in `bed - breakfast`.
            Some('+' | '-' | '!') if self.scanner.space_follows() => return Ok(plain),
            Some('+') => {
                self.scanner.next();
                Occur::Must
            }
            Some('-' | '!') => {
                self.scanner.next();
                Occur::MustNot
            }
            _ if self.scanner.keyword("NOT") => Occur::MustNot,
            _ => return Ok(plain),
        };
        self.scanner.skip_space();
        Ok(occur)
    }

    /// One clause with its field and its boost.
    fn clause(&mut self, depth: usize) -> Result<Node, ApiError> {
        let start = self.scanner.at();
        let word = match self.scanner.peek() {
            Some('(' | '"' | '/') => None,
            _ => Some(self.word()?),
        };
        let Some(word) = word else { return self.value(depth, None) };
        if self.scanner.peek() != Some(':') {
            return self.value(depth, Some(word));
        }
        self.scanner.next();
        if word.is_star() {
            if self.scanner.sign("*") && self.scanner.ends_here() {
                return self.counted(Node::All);
            }
            return Err(self.scanner.error_at(start, "`*` names no field; only `*:*` begins so"));
        }
        let path = word.text();
        if !(self.is_field)(&path) {
            let reason = format!(
                "`{path}` is not a searchable field of this index. Correct it, or escape the colon as `\\:`"
            );
            return Err(self.scanner.error_at(start, &reason));
        }
        self.scanner.skip_space();
        let value = match self.scanner.peek() {
            Some('(' | '"' | '/') => self.value(depth, None)?,
            _ => {
                let at = self.scanner.at();
                let word = self.word()?;
                if word.is_star() {
                    return Err(self.scanner.error_at(at, LEADING));
                }
                if self.scanner.peek() == Some(':') {
                    return Err(self.scanner.error("a second colon. Escape it as `\\:`, or quote the words"));
                }
                self.value(depth, Some(word))?
            }
        };
        Ok(match value {
            // The boost belongs to the outside, whatever the order was.
            Node::Boost { node, factor } => {
                Node::Boost { node: Box::new(Node::Field { path, node }), factor }
            }
            node => Node::Field { path, node: Box::new(node) },
        })
    }

    fn word(&mut self) -> Result<Word, ApiError> {
        if ["AND", "OR", "NOT"].iter().any(|word| self.scanner.clone().keyword(word))
            || ["&&", "||"].iter().any(|sign| self.scanner.clone().sign(sign))
        {
            return Err(self.scanner.error("two operators in a row. To search for the word, quote it"));
        }
        let word = self.scanner.word()?;
        if !word.is_empty() {
            return Ok(word);
        }
        Err(self.scanner.error(match self.scanner.peek() {
            None => "the text ends where a word, a phrase or `(` should follow",
            Some(')') => "a word, a phrase or `(` is missing before this `)`",
            Some('[' | ']' | '{' | '}') => {
                "ranges are not supported in search texts. Use `$filter`, or escape brackets with a backslash"
            }
            Some(_) => "this sign is out of place. Escape it with a backslash if it is meant as text",
        }))
    }

    /// What may stand behind `field:`, with what follows it. The word may have been read already.
    fn value(&mut self, depth: usize, word: Option<Word>) -> Result<Node, ApiError> {
        let start = self.scanner.at();
        let node = match (word, self.scanner.peek()) {
            (Some(word), _) => {
                let fuzzy = self.scanner.tilde()?;
                return self.boosted(plain(word, fuzzy, &self.scanner)?);
            }
            (None, Some('(')) => {
                self.scanner.next();
                let node = self.group(depth + 1)?;
                if self.scanner.next() != Some(')') {
                    return Err(self
                        .scanner
                        .error_at(start, "nothing closes this `(`. Add `)`, or escape it as `\\(`"));
                }
                return self.suffixed(node);
            }
            (None, Some('"')) => {
                let text = self.scanner.quoted('"', true).ok_or_else(|| {
                    self.scanner.error_at(start, "nothing closes this quote. Add one, or escape it as `\\\"`")
                })?;
                let slop = self.scanner.tilde()?.and_then(Result::ok).unwrap_or(0.0);
                Node::Phrase { text, slop: slop as u32 }
            }
            _ => {
                let expression = self.scanner.quoted('/', false).ok_or_else(|| {
                    self.scanner
                        .error_at(start, "nothing closes this expression. Add `/`, or escape it as `\\/`")
                })?;
                Node::Regex(expression)
            }
        };
        self.boosted(node)
    }

    fn boosted(&mut self, node: Node) -> Result<Node, ApiError> {
        let node = self.counted(node)?;
        self.suffixed(node)
    }

    fn counted(&mut self, node: Node) -> Result<Node, ApiError> {
        count_clause(&mut self.clauses, &node)?;
        Ok(node)
    }

    fn suffixed(&mut self, node: Node) -> Result<Node, ApiError> {
        Ok(match self.scanner.boost()? {
            Some(factor) => Node::Boost { node: Box::new(node), factor },
            None => node,
        })
    }
}

const LEADING: &str = "a word cannot begin with `*` or `?`. Use an expression such as `/.*word/`";

/// A word without field: `fuzzy` is what follows `~`, if that is there.
fn plain(word: Word, fuzzy: Option<Result<f32, ()>>, scanner: &Scanner<'_>) -> Result<Node, ApiError> {
    if word.is_star() {
        return Ok(Node::All);
    }
    let start = word.start;
    let mut pieces = word.pieces;
    match pieces.as_slice() {
        [Piece::Text(_)] => {
            let Some(Piece::Text(text)) = pieces.pop() else { return Ok(Node::Nothing) };
            Ok(match fuzzy {
                None => Node::Term(text),
                Some(given) => {
                    let distance = distance(given.ok(), &text);
                    Node::Fuzzy { text, distance }
                }
            })
        }
        [Piece::Text(text), Piece::Any] => Ok(Node::Prefix(text.clone())),
        [Piece::Any | Piece::One, ..] => Err(scanner.error_at(start, LEADING)),
        _ => Ok(Node::Wildcard(pieces)),
    }
}

/// Lucene's reading of the number: 2 when there is none, never more; below 1 it is a share of the word's letters.
fn distance(given: Option<f32>, text: &str) -> u8 {
    let edits = match given {
        None => 2.0,
        Some(share) if share > 0.0 && share < 1.0 => (1.0 - share) * text.chars().count() as f32,
        Some(edits) => edits,
    };
    edits.clamp(0.0, 2.0) as u8
}

#[cfg(test)]
mod tests;
