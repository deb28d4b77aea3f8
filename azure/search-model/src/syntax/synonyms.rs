//! Synonym maps in Solr's format: `USA, United States` and `Washington, Wash. => WA`, one rule per line.
//!
//! Rules are plain text until [`SynonymRules::compile`] analyzes them with the analyzer of a field.
//! Only then can they be compared with the terms of a query.

use std::collections::HashMap;

use crate::ApiError;

/// The maximum number of rules in one map. It is Azure's limit outside the free tier.
pub const MAX_RULES: usize = 20_000;
/// The maximum number of alternatives on one side of a rule.
pub const MAX_ALTERNATIVES: usize = 20;

/// The maximum number of alternatives that all rules together give to one source. Further ones are
/// dropped. Each alternative is compared with all others, and a search text with several such words
/// would exceed the size limit.
const MAX_ADDED_UP: usize = 1_000;

/// The rules of a map, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SynonymRules {
    rules: Vec<SynonymRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SynonymRule {
    /// The texts that a query may contain.
    from: Vec<String>,
    /// The texts that are searched instead. `None` if all of `from` are equivalent.
    to: Option<Vec<String>>,
}

impl SynonymRules {
    /// Parses the rules. Comments (lines that start with `#`) and empty lines are skipped.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let mut rules = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if rules.len() == MAX_RULES {
                return Err(ApiError::invalid(format!(
                    "The synonym map has more than {MAX_RULES} rules. Spread them over several maps."
                )));
            }
            let rule = parse_rule(line).map_err(|reason| {
                ApiError::invalid(format!("Line {} of the synonym map is not a rule: {reason}", at + 1))
            })?;
            rules.extend(rule);
        }
        Ok(Self { rules })
    }

    pub fn len(&self) -> usize {
        self.rules.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Analyzes all rules with the analyzer of a field, so that they can be compared with
    /// the terms of a query.
    ///
    /// A text that analyzes to no terms, such as a stop word, is not an alternative.
    pub fn compile(&self, analyze: &mut dyn FnMut(&str) -> Vec<String>) -> CompiledSynonyms {
        let mut by_source: HashMap<Vec<String>, Vec<Vec<String>>> = HashMap::new();
        for rule in &self.rules {
            let from = analyze_all(&rule.from, analyze);
            let to = rule.to.as_ref().map(|to| analyze_all(to, analyze));
            for source in &from {
                add_alternatives(&mut by_source, source, to.as_ref().unwrap_or(&from), to.is_none());
            }
        }
        let mut by_first: HashMap<String, Vec<SynonymEntry>> = HashMap::new();
        for (source, alternatives) in by_source {
            let mut source = source.into_iter();
            if let Some(first) = source.next() {
                by_first
                    .entry(first)
                    .or_default()
                    .push(SynonymEntry { rest: source.collect(), alternatives });
            }
        }
        for entries in by_first.values_mut() {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.rest.len()));
        }
        CompiledSynonyms { by_first }
    }
}

/// The analyzed rules of a map, indexed by their first term.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledSynonyms {
    by_first: HashMap<String, Vec<SynonymEntry>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SynonymEntry {
    /// The terms after the first.
    rest: Vec<String>,
    alternatives: Vec<Vec<String>>,
}

impl CompiledSynonyms {
    /// Finds the longest rule that matches the start of these terms. Returns how many terms it matches,
    /// and the alternatives to search.
    ///
    /// The terms themselves are the first alternative, unless a rule with `=>` replaces them.
    pub fn expand<T: AsRef<str>>(&self, terms: &[T]) -> Option<(usize, &[Vec<String>])> {
        let (first, rest) = terms.split_first()?;
        let entry = self.by_first.get(first.as_ref())?.iter().find(|entry| {
            entry.rest.len() <= rest.len()
                && entry.rest.iter().zip(rest).all(|(wanted, term)| wanted == term.as_ref())
        })?;
        Some((entry.rest.len() + 1, &entry.alternatives))
    }

    pub fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }
}

/// Adds alternatives to a source. With `keep`, the source itself is the first alternative.
fn add_alternatives(
    by_source: &mut HashMap<Vec<String>, Vec<Vec<String>>>,
    source: &[String],
    alternatives: &[Vec<String>],
    keep: bool,
) {
    // Skip a replacement that analyzes to no terms. It would make the word match nothing.
    if alternatives.is_empty() {
        return;
    }
    let known = by_source.entry(source.to_vec()).or_default();
    if keep && !known.iter().any(|known| known == source) {
        known.insert(0, source.to_vec());
    }
    for alternative in alternatives {
        if known.len() >= MAX_ADDED_UP {
            return;
        }
        if !known.contains(alternative) {
            known.push(alternative.clone());
        }
    }
}

fn analyze_all(texts: &[String], analyze: &mut dyn FnMut(&str) -> Vec<String>) -> Vec<Vec<String>> {
    texts.iter().map(|text| analyze(text)).filter(|terms| !terms.is_empty()).collect()
}

/// Parses one rule. Returns `None` for a line without any text (`,`). The error says what is wrong and
/// how to fix it.
fn parse_rule(line: &str) -> Result<Option<SynonymRule>, String> {
    let mut sides: Vec<Vec<String>> = vec![Vec::new()];
    let mut item = String::new();
    let mut letters = line.chars().peekable();
    let end_item = |item: &mut String, sides: &mut Vec<Vec<String>>| {
        let text = std::mem::take(item);
        if let (false, Some(side)) = (text.trim().is_empty(), sides.last_mut()) {
            side.push(text.trim().to_owned());
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => item.extend(letters.next()),
            ',' => end_item(&mut item, &mut sides),
            '=' if letters.peek() == Some(&'>') => {
                letters.next();
                end_item(&mut item, &mut sides);
                sides.push(Vec::new());
            }
            letter => item.push(letter),
        }
    }
    end_item(&mut item, &mut sides);
    if sides.iter().any(|side| side.len() > MAX_ALTERNATIVES) {
        return Err(format!("it has more than {MAX_ALTERNATIVES} alternatives. Split the rule."));
    }
    let mut sides = sides.into_iter();
    let (from, to, more) = (sides.next().unwrap_or_default(), sides.next(), sides.next());
    if more.is_some() {
        return Err("it has more than one `=>`. Write a rule for each.".to_owned());
    }
    match &to {
        None if from.is_empty() => return Ok(None),
        Some(_) if from.is_empty() => {
            return Err("no text before `=>`. Add the text to replace.".to_owned());
        }
        Some(to) if to.is_empty() => {
            return Err("no text after `=>`. Add the text to search for instead.".to_owned());
        }
        _ => {}
    }
    Ok(Some(SynonymRule { from, to }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compiled(rules: &str) -> CompiledSynonyms {
        SynonymRules::parse(rules).unwrap().compile(&mut |text| {
            text.to_lowercase()
                .split_whitespace()
                .filter(|word| *word != "the")
                .map(|word| word.trim_end_matches('s').to_owned())
                .collect()
        })
    }

    fn expand(synonyms: &CompiledSynonyms, terms: &str) -> Option<(usize, Vec<String>)> {
        let terms: Vec<_> = terms.split(' ').collect();
        let (taken, alternatives) = synonyms.expand(&terms)?;
        Some((taken, alternatives.iter().map(|terms| terms.join(" ")).collect()))
    }

    fn some(taken: usize, alternatives: &[&str]) -> Option<(usize, Vec<String>)> {
        Some((taken, alternatives.iter().map(|&text| text.to_owned()).collect()))
    }

    #[test]
    fn equivalent_texts_expand_to_each_other() {
        let synonyms = compiled("# countries\n\nUSA, United States, United States of America\ndog, puppy");
        assert_eq!(expand(&synonyms, "usa"), some(1, &["usa", "united state", "united state of america"]));
        let united = some(2, &["united state", "usa", "united state of america"]);
        assert_eq!(expand(&synonyms, "united state"), united);
        assert_eq!(expand(&synonyms, "puppy"), some(1, &["puppy", "dog"]));
        assert_eq!(expand(&synonyms, "cat"), None);
        assert_eq!(expand(&synonyms, "united"), None);
    }

    #[test]
    fn the_longest_rule_wins() {
        let synonyms = compiled("new york, ny\nnew york city, nyc\nnew, fresh");
        assert_eq!(expand(&synonyms, "new york city hotel"), some(3, &["new york city", "nyc"]));
        assert_eq!(expand(&synonyms, "new york hotel"), some(2, &["new york", "ny"]));
        assert_eq!(expand(&synonyms, "new hotel"), some(1, &["new", "fresh"]));
    }

    #[test]
    fn an_arrow_replaces() {
        let synonyms = compiled("Washington, Wash., WA => WA\nrest => hotel, motel");
        assert_eq!(expand(&synonyms, "washington"), some(1, &["wa"]));
        assert_eq!(expand(&synonyms, "wash."), some(1, &["wa"]));
        assert_eq!(expand(&synonyms, "rest"), some(1, &["hotel", "motel"]));
        assert_eq!(expand(&synonyms, "hotel"), None);
    }

    #[test]
    fn rules_of_the_same_source_add_up_and_stop_words_are_dropped() {
        let synonyms = compiled("dog, puppy\ndog, canine\nthe, a\nthe dogs, hounds");
        assert_eq!(expand(&synonyms, "dog"), some(1, &["dog", "puppy", "canine", "hound"]));
        assert_eq!(expand(&synonyms, "a"), some(1, &["a"]));
    }

    #[test]
    fn the_alternatives_of_one_source_are_limited() {
        let rules: String = (0..600).map(|at| format!("dog => cat{at}a, cat{at}b\n")).collect();
        assert_eq!(expand(&compiled(&rules), "dog").unwrap().1.len(), MAX_ADDED_UP);
    }

    #[test]
    fn treats_escaped_operators_as_text() {
        let rules = SynonymRules::parse(r"a\,b, c\=>d, e\\f").unwrap();
        assert_eq!(rules.rules[0].from, ["a,b", "c=>d", r"e\f"]);
        assert_eq!(rules.rules[0].to, None);
    }

    #[test]
    fn names_the_invalid_line() {
        for (rules, expected) in [
            ("a, b\n\na => b => c", "Line 3 of the synonym map is not a rule: it has more than one"),
            ("=> c", "Line 1 of the synonym map is not a rule: no text before"),
            ("a, b =>", "Line 1 of the synonym map is not a rule: no text after"),
            (&["x"; 21].join(","), "more than 20 alternatives"),
        ] {
            let error = SynonymRules::parse(rules).unwrap_err();
            assert!(error.message.contains(expected), "{}", error.message);
        }
        assert!(SynonymRules::parse(&"a, b\n".repeat(20_000)).is_ok());
        assert!(SynonymRules::parse(&"a, b\n".repeat(20_001)).unwrap_err().message.contains("20000"));
    }

    proptest! {
        #[test]
        fn never_panics(rules in r"[ab, =>\\#\n]{0,80}") {
            if let Ok(rules) = SynonymRules::parse(&rules) {
                rules.compile(&mut |text| text.split(' ').map(str::to_owned).collect()).expand(&["a", "b"]);
            }
        }
    }
}
