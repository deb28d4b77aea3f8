//! The n-gram and path hierarchy tokenizers.

/// Emits n-grams of `min` to `max` characters. With `edge`, only those at the start of a word.
#[derive(Debug, Clone)]
pub(crate) struct NGramTokenizer {
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) edge: bool,
    /// The characters that belong to words. Other characters separate words. If empty, all characters
    /// belong to words.
    pub(crate) kinds: Vec<TokenCharacterKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCharacterKind {
    Letter,
    Digit,
    Whitespace,
    Punctuation,
    Symbol,
}

/// Emits a path and its parent paths.
#[derive(Debug, Clone)]
pub(crate) struct PathHierarchyTokenizer {
    pub(crate) delimiter: char,
    pub(crate) replacement: char,
    pub(crate) max: usize,
    pub(crate) reverse: bool,
    pub(crate) skip: usize,
}

impl NGramTokenizer {
    fn contains(&self, c: char) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.contains(c))
    }

    /// Returns the next run of characters that belong to words.
    pub(crate) fn run_after(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let rest = text.get(at..)?;
        let start = at + rest.find(|c| self.contains(c))?;
        let rest = text.get(start..)?;
        Some((start, start + rest.find(|c| !self.contains(c)).unwrap_or(rest.len())))
    }
}

impl TokenCharacterKind {
    fn contains(self, c: char) -> bool {
        match self {
            Self::Letter => c.is_alphabetic(),
            Self::Digit => c.is_numeric(),
            Self::Whitespace => c.is_whitespace(),
            Self::Punctuation => {
                if c.is_ascii() {
                    c.is_ascii_punctuation() && !is_ascii_symbol(c)
                } else {
                    matches!(c, '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}'
                        | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}'
                        | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}'
                        | '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}')
                }
            }
            Self::Symbol => {
                if c.is_ascii() {
                    is_ascii_symbol(c)
                } else {
                    matches!(c, '¢'..='¦' | '¨' | '©' | '¬' | '®'..='±' | '´' | '¸' | '×' | '÷'
                        | '\u{2044}' | '\u{2052}' | '\u{20a0}'..='\u{20cf}' | '\u{2100}'..='\u{2bff}'
                        | '\u{1f000}'..='\u{1faff}')
                        && !c.is_alphanumeric()
                }
            }
        }
    }
}

fn is_ascii_symbol(c: char) -> bool {
    matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
}

impl PathHierarchyTokenizer {
    /// Returns the offsets where tokens end, or where they begin if the order is reversed.
    pub(crate) fn cuts(&self, text: &str) -> Vec<usize> {
        if text.is_empty() {
            return Vec::new();
        }
        let delimiters = text.match_indices(self.delimiter).map(|(at, _)| at);
        if self.reverse {
            let mut cuts = vec![0];
            cuts.extend(delimiters.map(|at| at + self.delimiter.len_utf8()).filter(|at| *at < text.len()));
            cuts
        } else {
            let mut cuts: Vec<usize> = delimiters.filter(|at| *at > 0).collect();
            if cuts.last() != Some(&text.len()) {
                cuts.push(text.len());
            }
            cuts
        }
    }

    pub(crate) fn piece(&self, cuts: &[usize], index: usize, length: usize) -> Option<(usize, usize)> {
        if self.reverse {
            // In reversed order, parts are skipped at the end.
            let kept = cuts.len().checked_sub(self.skip)?;
            let from = *cuts.get(..kept)?.get(index - self.skip)?;
            return Some((from, cuts.get(kept).copied().unwrap_or(length)));
        }
        let from = match self.skip.checked_sub(1) {
            Some(before) => *cuts.get(before)?,
            None => 0,
        };
        Some((from, *cuts.get(index)?))
    }
}
