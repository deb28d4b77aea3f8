//! The scanner of the full syntax: words, quotes and their suffixes.

use crate::ApiError;
use crate::syntax::invalid_search_text;
use crate::syntax::tree::WildcardPiece;

/// A position in the search text.
#[derive(Clone)]
pub(super) struct LuceneScanner<'a> {
    text: &'a str,
    at: usize,
}

/// A word in pieces, without escapes.
pub(super) struct LuceneWord {
    pub(super) start: usize,
    pub(super) pieces: Vec<WildcardPiece>,
}

impl LuceneWord {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the word is exactly `*`.
    pub(super) fn is_star(&self) -> bool {
        matches!(self.pieces.as_slice(), [WildcardPiece::Any])
    }

    /// Returns the word as one text, for field names.
    pub(super) fn text(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                WildcardPiece::Text(text) => text.as_str(),
                WildcardPiece::Any => "*",
                WildcardPiece::One => "?",
            })
            .collect()
    }

    fn push(&mut self, letter: char) {
        match self.pieces.last_mut() {
            Some(WildcardPiece::Text(text)) => text.push(letter),
            _ => self.pieces.push(WildcardPiece::Text(letter.into())),
        }
    }
}

impl<'a> LuceneScanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    pub(super) fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether the character after the next one is a space.
    pub(super) fn space_follows(&self) -> bool {
        self.rest().chars().nth(1).is_some_and(char::is_whitespace)
    }

    /// Whether a word ends here.
    pub(super) fn ends_here(&self) -> bool {
        self.peek().is_none_or(|letter| letter == ')' || letter.is_whitespace())
    }

    /// Skips this text if it comes next. Returns whether it did.
    pub(super) fn skip_if_next(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Skips this keyword if it comes next as a whole word. Returns whether it did.
    pub(super) fn skip_keyword(&mut self, word: &str) -> bool {
        let Some(after) = self.rest().strip_prefix(word) else { return false };
        let whole = after.chars().next().is_none_or(|next| {
            next.is_whitespace() || matches!(next, '(' | ')' | '"' | '!' | '[' | ']' | '{' | '}')
        });
        if whole {
            self.at += word.len();
        }
        whole
    }

    /// Reads a word. The result is empty if no word begins here.
    pub(super) fn word(&mut self) -> Result<LuceneWord, ApiError> {
        let mut word = LuceneWord { start: self.at, pieces: Vec::new() };
        while let Some(letter) = self.peek() {
            match letter {
                '(' | ')' | '"' | ':' | '[' | ']' | '{' | '}' => break,
                // Between spaces it is a word, like `-` and `+`.
                '!' if !(word.is_empty() && self.space_follows()) => break,
                '+' | '-' if word.is_empty() && !self.space_follows() => break,
                '~' if !word.is_empty() && self.clone().tilde()?.is_some() => break,
                '^' if !word.is_empty() && self.clone().boost()?.is_some() => break,
                '~' | '^' if word.is_empty() => break,
                letter if letter.is_whitespace() => break,
                '\\' => {
                    let start = self.at;
                    self.next();
                    let letter = self.escaped().ok_or_else(|| {
                        self.error_at(
                            start,
                            "nothing follows this backslash. Double it to search for a backslash",
                        )
                    })?;
                    word.push(letter);
                }
                '*' => {
                    self.next();
                    if word.pieces.last() != Some(&WildcardPiece::Any) {
                        word.pieces.push(WildcardPiece::Any);
                    }
                }
                '?' => {
                    self.next();
                    word.pieces.push(WildcardPiece::One);
                }
                letter => {
                    self.next();
                    word.push(letter);
                }
            }
        }
        Ok(word)
    }

    /// Reads the character after a backslash. `u` with four hexadecimal digits is a code point.
    fn escaped(&mut self) -> Option<char> {
        let letter = self.next()?;
        if letter == 'u'
            && let Some(digits) = self.rest().get(..4)
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            && let Some(code) = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
        {
            self.at += 4;
            return Some(code);
        }
        Some(letter)
    }

    /// Reads the text between two marks, the first of which comes next. Returns `None` if
    /// the second is missing.
    ///
    /// Removes escapes. Without `remove_escapes`, used for regular expressions, only escapes of the
    /// mark itself are removed.
    pub(super) fn quoted(&mut self, mark: char, remove_escapes: bool) -> Option<String> {
        let mut inside = self.clone();
        inside.next();
        let mut text = String::new();
        loop {
            match inside.next()? {
                letter if letter == mark => break,
                '\\' if remove_escapes => text.push(inside.escaped()?),
                '\\' => {
                    let letter = inside.next()?;
                    if letter != mark {
                        text.push('\\');
                    }
                    text.push(letter);
                }
                letter => text.push(letter),
            }
        }
        *self = inside;
        Some(text)
    }

    /// Reads `~` at the end of a word or phrase, with its number. Returns `Some(Err)` if it has no
    /// number. Inside a word, `~` is an ordinary character.
    pub(super) fn tilde(&mut self) -> Result<Option<Result<f32, ()>>, ApiError> {
        let mut after = self.clone();
        if after.next() != Some('~') {
            return Ok(None);
        }
        let digits = after.number();
        if !after.ends_here() && after.peek() != Some('^') {
            return Ok(None);
        }
        let number = match digits {
            "" => Err(()),
            digits => match digits.parse() {
                Ok(number) => Ok(number),
                Err(_) => return Err(self.error("`~` needs a number such as `~1`")),
            },
        };
        *self = after;
        Ok(Some(number))
    }

    /// Reads a boost such as `^2.5`. Inside a word, `^` is an ordinary character.
    pub(super) fn boost(&mut self) -> Result<Option<f32>, ApiError> {
        let mut after = self.clone();
        if after.next() != Some('^') {
            return Ok(None);
        }
        let digits = after.number();
        if digits.is_empty() && !after.ends_here() && !matches!(after.peek(), Some('-' | '+')) {
            return Ok(None);
        }
        match digits.parse::<f32>() {
            Ok(factor) if factor.is_finite() && after.ends_here() => {
                *self = after;
                Ok(Some(factor))
            }
            _ => Err(self.error("`^` needs a number that is not negative, such as `^2` or `^0.5`")),
        }
    }

    fn number(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    pub(super) fn error(&self, reason: &str) -> ApiError {
        self.error_at(self.at, reason)
    }

    pub(super) fn error_at(&self, at: usize, reason: &str) -> ApiError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        invalid_search_text(format!(
            "The search text cannot be read at line {line}, column {column}: {reason}. \
             The syntax is described at https://aka.ms/azure-search-full-query"
        ))
    }
}
