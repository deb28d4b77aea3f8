//! Tokenizers. They split a text into tokens, one at a time.

pub(crate) mod pieces;
pub(crate) mod words;

use std::sync::OnceLock;

use bindpost_azure_search_model::ApiError;
use regex::Regex;

use self::pieces::{NGramTokenizer, PathHierarchyTokenizer};
use self::words::WordRanges;
use super::filters::step::AnalysisToken;

#[derive(Debug, Clone)]
pub(super) enum Tokenizer {
    /// Unicode word breaking. For `join_runs` see [`WordRanges`].
    Standard {
        max: usize,
        join_runs: bool,
    },
    /// Unicode word breaking, but URLs and email addresses stay whole.
    UrlEmail {
        pattern: Regex,
        max: usize,
    },
    /// Lucene's older rules: acronyms, company names, email addresses, host names and numbers stay whole.
    Classic {
        pattern: Regex,
        max: usize,
    },
    /// The whole text as one token.
    Whole {
        max: usize,
    },
    Runs {
        of: TokenRunKind,
        lower: bool,
        max: usize,
    },
    /// The pattern matches the separators between tokens.
    Split(Regex),
    /// A group of the pattern is the token.
    Group {
        pattern: Regex,
        group: usize,
    },
    Grams(NGramTokenizer),
    Path(PathHierarchyTokenizer),
}

/// The characters that a token consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenRunKind {
    Letters,
    NotSpace,
}

/// A tokenizer while it processes one text.
pub(super) struct RunningTokenizer<'a> {
    text: &'a str,
    cutter: TokenizerState<'a>,
    /// The rest of a token that is longer than the maximum.
    rest: (usize, usize),
    max: usize,
    lower: bool,
    position: usize,
}

enum TokenizerState<'a> {
    Words(WordRanges<'a>),
    /// The words between the matches of a pattern, and the matches themselves.
    Around {
        pattern: &'a Regex,
        at: usize,
        base: usize,
        words: WordRanges<'a>,
        found: Option<(usize, usize)>,
    },
    Found {
        pattern: &'a Regex,
        at: usize,
    },
    Whole {
        done: bool,
    },
    Runs {
        of: TokenRunKind,
        at: usize,
    },
    Split {
        pattern: &'a Regex,
        at: usize,
        search: usize,
        done: bool,
    },
    Group {
        pattern: &'a Regex,
        group: usize,
        at: usize,
    },
    Grams {
        grams: &'a NGramTokenizer,
        run: (usize, usize),
        start: usize,
        end: usize,
        length: usize,
    },
    Path {
        path: &'a PathHierarchyTokenizer,
        cuts: Vec<usize>,
        next: usize,
    },
}

impl Tokenizer {
    pub(super) fn start<'a>(&'a self, text: &'a str) -> RunningTokenizer<'a> {
        let unlimited = usize::MAX;
        let (cutter, max) = match self {
            Self::Standard { max, join_runs } => {
                (TokenizerState::Words(WordRanges::new(text, *join_runs)), *max)
            }
            Self::UrlEmail { pattern, max } => (
                TokenizerState::Around {
                    pattern,
                    at: 0,
                    base: 0,
                    words: WordRanges::new("", true),
                    found: None,
                },
                *max,
            ),
            Self::Classic { pattern, max } => (TokenizerState::Found { pattern, at: 0 }, *max),
            Self::Whole { max } => (TokenizerState::Whole { done: false }, *max),
            Self::Runs { of, max, .. } => (TokenizerState::Runs { of: *of, at: 0 }, *max),
            Self::Split(pattern) => {
                (TokenizerState::Split { pattern, at: 0, search: 0, done: false }, unlimited)
            }
            Self::Group { pattern, group } => {
                (TokenizerState::Group { pattern, group: *group, at: 0 }, unlimited)
            }
            Self::Grams(grams) => {
                (TokenizerState::Grams { grams, run: (0, 0), start: 0, end: 0, length: 0 }, unlimited)
            }
            Self::Path(path) => {
                (TokenizerState::Path { path, cuts: path.cuts(text), next: path.skip }, unlimited)
            }
        };
        let lower = matches!(self, Self::Runs { lower: true, .. });
        RunningTokenizer { text, cutter, rest: (0, 0), max, lower, position: 0 }
    }
}

impl RunningTokenizer<'_> {
    pub(super) fn next(&mut self, term: &mut AnalysisToken) -> bool {
        if let TokenizerState::Path { path, cuts, next } = &mut self.cutter {
            let Some((from, to)) = path.piece(cuts, *next, self.text.len()) else { return false };
            *next += 1;
            term.keyword = false;
            let token = &mut term.token;
            token.text.clear();
            let piece = self.text.get(from..to).unwrap_or_default().chars().take(path.max);
            token.text.extend(piece.map(|c| if c == path.delimiter { path.replacement } else { c }));
            (token.offset_from, token.offset_to, token.position, token.position_length) = (from, to, 0, 1);
            return true;
        }
        let (mut from, mut to) = self.rest;
        if from >= to {
            loop {
                let Some(found) = self.cutter.next(self.text) else { return false };
                (from, to) = found;
                if from < to {
                    break;
                }
            }
        }
        // A word has at most as many characters as bytes, so short words need no counting.
        if to - from > self.max {
            let word = self.text.get(from..to).unwrap_or_default();
            if let Some((at, _)) = word.char_indices().nth(self.max) {
                self.rest = (from + at, to);
                to = from + at;
            } else {
                self.rest = (to, to);
            }
        } else {
            self.rest = (to, to);
        }
        term.keyword = false;
        let token = &mut term.token;
        token.text.clear();
        token.text.push_str(self.text.get(from..to).unwrap_or_default());
        if self.lower {
            super::filters::folding::lower(&mut token.text);
        }
        token.offset_from = from;
        token.offset_to = to;
        token.position = self.position;
        token.position_length = 1;
        self.position += 1;
        true
    }
}

impl<'a> TokenizerState<'a> {
    fn next(&mut self, text: &'a str) -> Option<(usize, usize)> {
        match self {
            Self::Words(words) => words.next(),
            Self::Around { .. } => self.next_around(text),
            Self::Found { pattern, at } => {
                let found = pattern.find_at(text, *at)?;
                *at = found.end();
                Some((found.start(), found.end()))
            }
            Self::Whole { done } => (!std::mem::replace(done, true)).then_some((0, text.len())),
            Self::Runs { of, at } => {
                let rest = text.get(*at..)?;
                let start = *at + rest.find(|c| of.contains(c))?;
                let rest = text.get(start..)?;
                let end = start + rest.find(|c| !of.contains(c)).unwrap_or(rest.len());
                *at = end;
                Some((start, end))
            }
            Self::Split { pattern, at, search, done } => loop {
                if *done {
                    return None;
                }
                let start = *at;
                let Some(found) = (*search <= text.len()).then(|| pattern.find_at(text, *search)).flatten()
                else {
                    *done = true;
                    return Some((start, text.len()));
                };
                // An empty match between two characters separates them.
                *search = if found.is_empty() { next_char_boundary(text, found.end()) } else { found.end() };
                *at = found.end();
                if start < found.start() {
                    return Some((start, found.start()));
                }
            },
            Self::Group { pattern, group, at } => loop {
                if *at > text.len() {
                    return None;
                }
                let captures = pattern.captures_at(text, *at)?;
                let whole = captures.get(0)?;
                *at = if whole.is_empty() { next_char_boundary(text, whole.end()) } else { whole.end() };
                if let Some(found) = captures.get(*group).filter(|found| !found.is_empty()) {
                    return Some((found.start(), found.end()));
                }
            },
            Self::Grams { grams, run, start, end, length } => loop {
                let in_run = |at: usize| text.get(at..run.1).and_then(|rest| rest.chars().next());
                // The next longer n-gram from the same start.
                if *length > 0
                    && *length < grams.max
                    && let Some(c) = in_run(*end)
                {
                    *end += c.len_utf8();
                    *length += 1;
                    return Some((*start, *end));
                }
                // The next start in the same run.
                let next = match in_run(*start) {
                    Some(c) if *length > 0 && !grams.edge => Some(*start + c.len_utf8()),
                    _ => None,
                };
                *start = match next {
                    Some(next) => next,
                    None => {
                        *run = grams.run_after(text, run.1)?;
                        run.0
                    }
                };
                let rest = text.get(*start..run.1).unwrap_or_default();
                *end = match rest.char_indices().nth(grams.min - 1) {
                    Some((at, c)) => *start + at + c.len_utf8(),
                    // The rest of this run is too short. Continue with the next run.
                    None => {
                        *length = 0;
                        continue;
                    }
                };
                *length = grams.min;
                return Some((*start, *end));
            },
            Self::Path { .. } => None,
        }
    }

    fn next_around(&mut self, text: &'a str) -> Option<(usize, usize)> {
        let Self::Around { pattern, at, base, words, found } = self else { return None };
        loop {
            if let Some((from, to)) = words.next() {
                return Some((*base + from, *base + to));
            }
            if let Some(found) = found.take() {
                return Some(found);
            }
            if *at > text.len() {
                return None;
            }
            *found = pattern.find_at(text, *at).map(|found| (found.start(), found.end()));
            let (gap_end, next) = found.unwrap_or((text.len(), text.len() + 1));
            *words = WordRanges::new(text.get(*at..gap_end).unwrap_or_default(), true);
            *base = *at;
            *at = next;
        }
    }
}

/// Returns the offset after the next character.
fn next_char_boundary(text: &str, at: usize) -> usize {
    at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

impl TokenRunKind {
    fn contains(self, c: char) -> bool {
        match self {
            Self::Letters => c.is_alphabetic(),
            // Lucene does not split at no-break spaces.
            Self::NotSpace => {
                !c.is_whitespace() || matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}')
            }
        }
    }
}

/// The pattern of URLs and email addresses.
pub(super) fn address_pattern() -> Result<Regex, ApiError> {
    static MADE: OnceLock<Regex> = OnceLock::new();
    compile_once(
        &MADE,
        concat!(
            r"(?i)(?:https?|ftps?|file)://[^\s<>\x22]*[^\s<>\x22.,;:!?'\x29\]]",
            r"|[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}",
            r"|(?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?/(?:[^\s<>\x22]*[^\s<>\x22.,;:!?'\x29\]])?",
        ),
    )
}

/// The pattern of the tokens of [`Tokenizer::Classic`].
pub(super) fn classic_pattern() -> Result<Regex, ApiError> {
    static MADE: OnceLock<Regex> = OnceLock::new();
    let word = r"[\p{L}\p{M}\p{Nd}]+";
    let letters = r"[\p{L}\p{M}]+";
    let digits = r"[\p{L}\p{M}\p{Nd}]*\p{Nd}[\p{L}\p{M}\p{Nd}]*";
    let joint = "[_/.,-]";
    compile_once(
        &MADE,
        &format!(
            concat!(
                r"{word}(?:[._-]{word})*@{word}(?:[.-]{word})+",
                r"|\p{{L}}\.(?:\p{{L}}\.)+",
                r"|{letters}(?:'{letters})+",
                r"|{letters}[&@]{letters}",
                r"|(?:{digits}(?:{joint}{word}{joint}{digits})*(?:{joint}{word})?",
                r"|{word}{joint}{digits}(?:{joint}{word}{joint}{digits})*(?:{joint}{word})?)",
                r"|{word}(?:\.{word})+",
                r"|[\p{{Han}}\p{{Hiragana}}]",
                r"|[\p{{L}}\p{{M}}\p{{Nd}}--[\p{{Han}}\p{{Hiragana}}]]+",
            ),
            word = word,
            letters = letters,
            digits = digits,
            joint = joint,
        ),
    )
}

/// Compiles a built-in pattern once. These patterns are large, and copies of the compiled form are cheap.
fn compile_once(made: &OnceLock<Regex>, pattern: &str) -> Result<Regex, ApiError> {
    if let Some(regex) = made.get() {
        return Ok(regex.clone());
    }
    let regex = Regex::new(pattern).map_err(|error| ApiError::internal("preparing a tokenizer", error))?;
    Ok(made.get_or_init(|| regex).clone())
}
