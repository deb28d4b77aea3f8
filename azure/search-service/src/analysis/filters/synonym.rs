//! The token filter `synonym`: rules in Solr's format, with one or more words on each side.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bindpost_azure_search_model::ApiError;

use super::stage::{FilterStage, with_text};
use super::step::{AnalysisToken, lowered};

/// The maximum number of words in one text of a rule, and in all synonyms of a text together. It limits
/// how many tokens replace a word.
const MOST_WORDS: usize = 100;

/// Maps texts to their synonyms. The words of a text are joined by spaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct SynonymTable {
    by_words: HashMap<String, Vec<String>>,
    longest: usize,
    ignore_case: bool,
}

impl SynonymTable {
    pub(crate) fn parse(
        rules: &[String],
        expand: bool,
        ignore_case: bool,
        place: &str,
    ) -> Result<Self, ApiError> {
        let mut parsed = Self { ignore_case, ..Self::default() };
        for rule in rules.iter().flat_map(|text| text.lines()).map(str::trim) {
            if rule.is_empty() || rule.starts_with('#') {
                continue;
            }
            let wrong = || {
                ApiError::invalid(format!(
                    "{place}: '{rule}' is not a rule. Write 'one, other' or 'one, other => third'."
                ))
            };
            let (left, right) = match rule.split_once("=>") {
                Some((left, right)) => (terms(left), terms(right)),
                None => {
                    let all = terms(rule);
                    let right = if expand { all.clone() } else { all.iter().take(1).cloned().collect() };
                    (all, right)
                }
            };
            if left.is_empty() || right.is_empty() || rule.matches("=>").count() > 1 {
                return Err(wrong());
            }
            for from in left {
                let key = if ignore_case { lowered(&from) } else { from };
                let words = key.split(' ').count();
                parsed.longest = parsed.longest.max(words);
                let targets = parsed.by_words.entry(key).or_default();
                let mut given: usize = targets.iter().map(|to| to.split(' ').count()).sum();
                for to in &right {
                    if !targets.contains(to) {
                        given += to.split(' ').count();
                        if given > MOST_WORDS {
                            break;
                        }
                        targets.push(to.clone());
                    }
                }
                if words.max(given) > MOST_WORDS {
                    return Err(ApiError::invalid(format!(
                        "{place}: a text, or its synonyms together, have more than {MOST_WORDS} words. Remove some words."
                    )));
                }
            }
        }
        Ok(parsed)
    }
}

/// Splits a text at commas. A backslash escapes the next character.
fn terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == ',' {
            terms.push(String::new());
        } else if let (Some(c), Some(term)) =
            (if c == '\\' { chars.next() } else { Some(c) }, terms.last_mut())
        {
            term.push(c);
        }
    }
    let joined = terms.iter().map(|term| term.split_whitespace().collect::<Vec<_>>().join(" "));
    joined.filter(|term| !term.is_empty()).collect()
}

#[derive(Clone)]
pub(crate) struct SynonymTokenFilter {
    rules: Arc<SynonymTable>,
    window: VecDeque<AnalysisToken>,
    /// Later words of synonyms with several words, sorted by position. They stand beside the following
    /// words, and postings need positions in order.
    later: VecDeque<AnalysisToken>,
}

impl SynonymTokenFilter {
    pub(crate) fn new(rules: SynonymTable) -> Self {
        Self { rules: Arc::new(rules), window: VecDeque::new(), later: VecDeque::new() }
    }

    fn push_ordered(&mut self, term: AnalysisToken, output: &mut VecDeque<AnalysisToken>) {
        let before = self.later.partition_point(|later| later.token.position <= term.token.position);
        output.extend(self.later.drain(..before));
        output.push_back(term);
    }

    /// Emits the longest match at the start of the window, or its first word if there is none.
    fn emit_match(&mut self, output: &mut VecDeque<AnalysisToken>) {
        for length in (1..=self.window.len().min(self.rules.longest)).rev() {
            let words: Vec<&AnalysisToken> = self.window.iter().take(length).collect();
            let neighbours = words
                .windows(2)
                .all(|pair| matches!(pair, [one, other] if one.token.position + 1 == other.token.position));
            if !neighbours {
                continue;
            }
            let texts: Vec<&str> = words.iter().map(|term| term.token.text.as_str()).collect();
            let key = texts.join(" ");
            let key = if self.rules.ignore_case { lowered(&key) } else { key };
            let Some(targets) = self.rules.by_words.get(&key) else { continue };
            let (Some(first), Some(last)) = (words.first(), words.last()) else { continue };
            let mut given: Vec<AnalysisToken> = Vec::new();
            for target in targets {
                for (index, word) in target.split(' ').enumerate() {
                    let mut term = with_text(first, word);
                    term.token.offset_to = last.token.offset_to.max(first.token.offset_from);
                    term.token.position = first.token.position + index;
                    given.push(term);
                }
            }
            let position = first.token.position;
            self.window.drain(..length);
            let (now, later): (Vec<AnalysisToken>, Vec<AnalysisToken>) =
                given.into_iter().partition(|term| term.token.position == position);
            for term in now {
                self.push_ordered(term, output);
            }
            self.later.extend(later);
            self.later.make_contiguous().sort_by_key(|term| term.token.position);
            return;
        }
        if let Some(first) = self.window.pop_front() {
            self.push_ordered(first, output);
        }
    }
}

impl FilterStage for SynonymTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        self.window.push_back(term);
        if self.window.len() >= self.rules.longest.max(1) {
            self.emit_match(output);
        }
    }

    fn finish(&mut self, output: &mut VecDeque<AnalysisToken>) {
        while !self.window.is_empty() {
            self.emit_match(output);
        }
        output.append(&mut self.later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_words_in_synonyms_is_limited() {
        let parse = |rules: &[String]| SynonymTable::parse(rules, true, false, "here");
        let names = |range: std::ops::Range<usize>, joined: &str| {
            range.map(|number| format!("w{number}")).collect::<Vec<_>>().join(joined)
        };
        assert!(parse(&[format!("a => {}", names(0..100, ", "))]).is_ok());
        assert!(
            parse(&[format!("a => {}", names(0..50, ",")), format!("a => {}", names(0..100, ","))]).is_ok()
        );
        for rules in [
            vec![format!("a => {}", names(0..101, ", "))],
            vec![format!("a => {}", names(0..101, " "))],
            vec![format!("{} => a", names(0..101, " "))],
            vec![names(0..101, ", ")],
            vec![format!("a => {}", names(0..60, ", ")), format!("a => {}", names(50..120, ", "))],
        ] {
            let error = parse(&rules).unwrap_err();
            assert!(error.message.contains("more than 100 words"), "{error}");
        }
    }
}
