//! The full query syntax: Lucene's, as its classic parser reads it.
//!
//! `AND` makes both sides required, and `OR` leaves them optional. Both have the same precedence:
//! `a AND b OR c` is `+a +b c`, and a document needs both `a` and `b`. Parentheses change the grouping. There
//! is one difference from Lucene: with searchMode `all`, Lucene makes `b` optional again when `OR` follows it.
//! Here it stays required in both modes.
//!
//! Ranges (`[a TO b]`) are not supported. Azure AI Search has filters for them.

use super::tree::{ClauseOccur, QueryClause, QueryNode, WildcardPiece};
use super::{MAX_DEPTH, check_length, count_clause, too_deep};
use crate::ApiError;

mod scan;

use scan::{LuceneScanner, LuceneWord};

/// Parses a search text. `is_field` returns whether a path is a searchable field.
pub fn parse_full(text: &str, is_field: &dyn Fn(&str) -> bool) -> Result<QueryNode, ApiError> {
    check_length(text)?;
    if matches!(text.trim(), "" | "*") {
        return Ok(QueryNode::All);
    }
    let mut parser = LuceneParser { scanner: LuceneScanner::new(text), is_field, clauses: 0 };
    let node = parser.group(0)?;
    match parser.scanner.peek() {
        None => Ok(node),
        Some(_) => {
            Err(parser.scanner.error("this `)` has no matching `(`. Remove it, or escape it as `\\)`"))
        }
    }
}

struct LuceneParser<'a> {
    scanner: LuceneScanner<'a>,
    is_field: &'a dyn Fn(&str) -> bool,
    clauses: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum ClauseConjunction {
    Plainly,
    And,
    Or,
}

impl LuceneParser<'_> {
    /// Parses clauses up to the end of the text or up to a `)`, which is not consumed.
    fn group(&mut self, depth: usize) -> Result<QueryNode, ApiError> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let mut clauses: Vec<QueryClause> = Vec::new();
        loop {
            self.scanner.skip_space();
            if matches!(self.scanner.peek(), None | Some(')')) {
                break;
            }
            let joined = self.parse_conjunction(clauses.is_empty())?;
            let occur = self.parse_occur(joined)?;
            // `AND` also makes the clause before it required.
            if let (ClauseConjunction::And | ClauseConjunction::Or, Some(last)) = (joined, clauses.last_mut())
            {
                match (joined, last.occur) {
                    (ClauseConjunction::And, ClauseOccur::Default | ClauseOccur::Should) => {
                        last.occur = ClauseOccur::Must
                    }
                    (ClauseConjunction::Or, ClauseOccur::Default) => last.occur = ClauseOccur::Should,
                    _ => {}
                }
            }
            let node = self.clause(depth)?;
            clauses.push(QueryClause { occur, node });
        }
        Ok(match clauses.as_slice() {
            [] => return Err(self.scanner.error("a word, a phrase or `(` is missing here")),
            [one] if one.occur != ClauseOccur::MustNot => match clauses.pop() {
                Some(clause) => clause.node,
                None => QueryNode::Nothing,
            },
            _ => QueryNode::Clauses(clauses),
        })
    }

    fn parse_conjunction(&mut self, first: bool) -> Result<ClauseConjunction, ApiError> {
        let start = self.scanner.at();
        let joined = if self.scanner.skip_keyword("AND") || self.scanner.skip_if_next("&&") {
            ClauseConjunction::And
        } else if self.scanner.skip_keyword("OR") || self.scanner.skip_if_next("||") {
            ClauseConjunction::Or
        } else {
            return Ok(ClauseConjunction::Plainly);
        };
        if first {
            let reason = "an operator needs a clause before it. To search for the word, quote it";
            return Err(self.scanner.error_at(start, reason));
        }
        self.scanner.skip_space();
        Ok(joined)
    }

    fn parse_occur(&mut self, joined: ClauseConjunction) -> Result<ClauseOccur, ApiError> {
        let plain = match joined {
            ClauseConjunction::Plainly => ClauseOccur::Default,
            ClauseConjunction::And => ClauseOccur::Must,
            ClauseConjunction::Or => ClauseOccur::Should,
        };
        let occur = match self.scanner.peek() {
            // A sign before a space is a word, as in `bed - breakfast`.
            Some('+' | '-' | '!') if self.scanner.space_follows() => return Ok(plain),
            Some('+') => {
                self.scanner.next();
                ClauseOccur::Must
            }
            Some('-' | '!') => {
                self.scanner.next();
                ClauseOccur::MustNot
            }
            _ if self.scanner.skip_keyword("NOT") => ClauseOccur::MustNot,
            _ => return Ok(plain),
        };
        self.scanner.skip_space();
        Ok(occur)
    }

    /// Parses one clause with its field and its boost.
    fn clause(&mut self, depth: usize) -> Result<QueryNode, ApiError> {
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
            if self.scanner.skip_if_next("*") && self.scanner.ends_here() {
                return self.counted(QueryNode::All);
            }
            return Err(self.scanner.error_at(start, "`*` is not a field name. Only `*:*` is allowed"));
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
                    return Err(self
                        .scanner
                        .error("this is a second colon. Escape it as `\\:`, or quote the words"));
                }
                self.value(depth, Some(word))?
            }
        };
        Ok(match value {
            // The boost is the outermost node, regardless of the order in the text.
            QueryNode::Boost { node, factor } => {
                QueryNode::Boost { node: Box::new(QueryNode::Field { path, node }), factor }
            }
            node => QueryNode::Field { path, node: Box::new(node) },
        })
    }

    fn word(&mut self) -> Result<LuceneWord, ApiError> {
        if ["AND", "OR", "NOT"].iter().any(|word| self.scanner.clone().skip_keyword(word))
            || ["&&", "||"].iter().any(|sign| self.scanner.clone().skip_if_next(sign))
        {
            return Err(self
                .scanner
                .error("there are two operators in a row. To search for the word, quote it"));
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
            Some(_) => "this character is not allowed here. Escape it with a backslash to search for it",
        }))
    }

    /// Parses what can follow `field:`, with its suffixes. `word` is set if the word has already been read.
    fn value(&mut self, depth: usize, word: Option<LuceneWord>) -> Result<QueryNode, ApiError> {
        let start = self.scanner.at();
        let node = match (word, self.scanner.peek()) {
            (Some(word), _) => {
                let fuzzy = self.scanner.tilde()?;
                return self.boosted(word_node(word, fuzzy, &self.scanner)?);
            }
            (None, Some('(')) => {
                self.scanner.next();
                let node = self.group(depth + 1)?;
                if self.scanner.next() != Some(')') {
                    return Err(self
                        .scanner
                        .error_at(start, "this `(` is never closed. Add `)`, or escape it as `\\(`"));
                }
                return self.suffixed(node);
            }
            (None, Some('"')) => {
                let text = self.scanner.quoted('"', true).ok_or_else(|| {
                    self.scanner
                        .error_at(start, "this quote is never closed. Add a quote, or escape it as `\\\"`")
                })?;
                let slop = self.scanner.tilde()?.and_then(Result::ok).unwrap_or(0.0);
                QueryNode::Phrase { text, slop: slop as u32 }
            }
            _ => {
                let expression = self.scanner.quoted('/', false).ok_or_else(|| {
                    self.scanner
                        .error_at(start, "this expression is never closed. Add `/`, or escape it as `\\/`")
                })?;
                QueryNode::Regex(expression)
            }
        };
        self.boosted(node)
    }

    fn boosted(&mut self, node: QueryNode) -> Result<QueryNode, ApiError> {
        let node = self.counted(node)?;
        self.suffixed(node)
    }

    fn counted(&mut self, node: QueryNode) -> Result<QueryNode, ApiError> {
        count_clause(&mut self.clauses, &node)?;
        Ok(node)
    }

    fn suffixed(&mut self, node: QueryNode) -> Result<QueryNode, ApiError> {
        Ok(match self.scanner.boost()? {
            Some(factor) => QueryNode::Boost { node: Box::new(node), factor },
            None => node,
        })
    }
}

const LEADING: &str = "a word cannot begin with `*` or `?`. Use an expression such as `/.*word/`";

/// Builds the node of a word without a field. `fuzzy` is the suffix after `~`, if present.
fn word_node(
    word: LuceneWord,
    fuzzy: Option<Result<f32, ()>>,
    scanner: &LuceneScanner<'_>,
) -> Result<QueryNode, ApiError> {
    if word.is_star() {
        return Ok(QueryNode::All);
    }
    let start = word.start;
    let mut pieces = word.pieces;
    match pieces.as_slice() {
        [WildcardPiece::Text(_)] => {
            let Some(WildcardPiece::Text(text)) = pieces.pop() else { return Ok(QueryNode::Nothing) };
            Ok(match fuzzy {
                None => QueryNode::Term(text),
                Some(given) => {
                    let distance = fuzzy_distance(given.ok(), &text);
                    QueryNode::Fuzzy { text, distance }
                }
            })
        }
        [WildcardPiece::Text(text), WildcardPiece::Any] => Ok(QueryNode::Prefix(text.clone())),
        [WildcardPiece::Any | WildcardPiece::One, ..] => Err(scanner.error_at(start, LEADING)),
        _ => Ok(QueryNode::Wildcard(pieces)),
    }
}

/// Returns the edit distance as Lucene interprets the number. The default and the maximum are 2. A
/// number below 1 is a share of the word's length.
fn fuzzy_distance(given: Option<f32>, text: &str) -> u8 {
    let edits = match given {
        None => 2.0,
        Some(share) if share > 0.0 && share < 1.0 => (1.0 - share) * text.chars().count() as f32,
        Some(edits) => edits,
    };
    edits.clamp(0.0, 2.0) as u8
}

#[cfg(test)]
mod tests;
