//! The words of a query, and the tokens that each analyzer produces from them.

use serde_json::{Value, json};

use super::{ExplainRequest, searched_fields};
use crate::service::failure::{Kind, ServiceFailure};

/// One analyzer and the tokens it produces from the words of the query.
#[derive(Clone, Debug)]
pub(super) struct AnalyzerTokens {
    pub(super) analyzer: String,
    /// The fields that are searched with this analyzer.
    pub(super) fields: Vec<String>,
    pub(super) tokens: Vec<String>,
    /// Why the service did not return tokens.
    refused: Option<String>,
}

/// The words and tokens of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryTerms {
    pub(super) groups: Vec<AnalyzerTokens>,
    pub(super) words: ClassifiedWords,
}

/// A word of the query as written, with its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryWord {
    pub(super) word: String,
    pub(super) tokens: Vec<String>,
}

/// Joins words for a sentence. Stems with a different spelling are in brackets.
pub(super) fn join_words(words: &[QueryWord]) -> String {
    let told = words.iter().map(|QueryWord { word, tokens }| {
        let stems: Vec<&str> = tokens
            .iter()
            .map(String::as_str)
            .filter(|token| *token != word && *token != word.to_lowercase())
            .collect();
        match stems.is_empty() {
            true => word.clone(),
            false => format!("{word} ({})", stems.join(", ")),
        }
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The words of a query, grouped by their operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassifiedWords {
    /// Words that are analyzed.
    pub(super) plain: Vec<String>,
    /// `hot*`, `hotle~`, `/reg.*/`: compared as written, not analyzed.
    pub(super) patterns: Vec<String>,
    /// `-spa`, `!spa`: documents with these words are excluded.
    pub(super) negated: Vec<String>,
}

impl ClassifiedWords {
    /// Parses a query approximately. Operators that join words are dropped. `name:word` searches one
    /// field, and only the word is kept.
    pub(super) fn read(search: &str) -> ClassifiedWords {
        let mut words = ClassifiedWords::default();
        let mut negate_next = false;
        for part in search.split(|c: char| c.is_whitespace() || ['"', '(', ')', '|', '+', ','].contains(&c)) {
            match part {
                "" | "*" | "AND" | "OR" | "&&" => continue,
                "NOT" => {
                    negate_next = true;
                    continue;
                }
                _ => {}
            }
            let stripped = part.strip_prefix(['-', '!']).filter(|rest| !rest.is_empty());
            let negated = std::mem::take(&mut negate_next) || stripped.is_some();
            let word = stripped.unwrap_or(part);
            let word = match word.split_once(':') {
                Some((field, word)) if !field.is_empty() && !word.is_empty() && !word.starts_with("//") => {
                    word
                }
                _ => word,
            };
            let word = word.split('^').next().unwrap_or_default();
            let is_pattern = word.contains(['*', '?', '~'])
                || (word.len() > 2 && word.starts_with('/') && word.ends_with('/'));
            let list = match (negated, is_pattern) {
                (true, _) => &mut words.negated,
                (false, true) if word.starts_with('~') => continue,
                (false, true) => &mut words.patterns,
                (false, false) => &mut words.plain,
            };
            if !word.is_empty() {
                list.push(word.to_owned());
            }
        }
        words
    }
}

/// Requests the tokens of every analyzer of the searched fields.
pub(super) async fn analyze_query(question: &ExplainRequest<'_>) -> Result<QueryTerms, ServiceFailure> {
    let mut terms =
        QueryTerms { groups: Vec::new(), words: ClassifiedWords::read(&question.arguments.search) };
    for field in searched_fields(question) {
        let Some(analyzer) = &field.search_analyzer else { continue };
        match terms.groups.iter_mut().find(|group| group.analyzer == *analyzer) {
            Some(group) => group.fields.push(field.path.clone()),
            None => terms.groups.push(AnalyzerTokens {
                analyzer: analyzer.clone(),
                fields: vec![field.path.clone()],
                tokens: Vec::new(),
                refused: None,
            }),
        }
    }
    if terms.words.plain.is_empty() {
        return Ok(terms);
    }
    let text = terms.words.plain.join(" ");
    for group in &mut terms.groups {
        match question.reader.tokens(&question.index.name, &group.analyzer, &text).await {
            Ok(mut tokens) => {
                let mut seen = std::collections::HashSet::new();
                tokens.retain(|token| seen.insert(token.clone()));
                group.tokens = tokens;
            }
            // Query keys can search, but not analyze.
            Err(failure) if matches!(failure.kind, Kind::Unauthorized | Kind::InvalidRequest) => {
                group.refused = Some(failure.message.lines().next().unwrap_or_default().to_owned());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(terms)
}

impl QueryTerms {
    /// Returns the tokens of the analyzer of a field.
    pub(super) fn tokens_for_field(&self, path: &str) -> Option<&AnalyzerTokens> {
        self.groups.iter().find(|group| group.fields.iter().any(|field| field == path))
    }

    /// Returns the words that tokens came from, in the order of the query. A token without a matching
    /// word is returned itself.
    pub(super) fn as_words<'t>(&self, tokens: impl IntoIterator<Item = &'t String>) -> Vec<QueryWord> {
        let mut words: Vec<QueryWord> = self
            .words
            .plain
            .iter()
            .map(|word| QueryWord { word: word.clone(), tokens: Vec::new() })
            .collect();
        let mut others = Vec::new();
        for token in tokens {
            let origin = words
                .iter_mut()
                .map(|word| (likeness(&word.word, token), word))
                .filter(|(alike, _)| *alike > 0)
                .max_by_key(|(alike, _)| *alike);
            let list = match origin {
                Some((_, word)) => &mut word.tokens,
                None => &mut others,
            };
            if !list.contains(token) {
                list.push(token.clone());
            }
        }
        words.retain(|word| !word.tokens.is_empty());
        let mut seen = std::collections::HashSet::new();
        words.retain(|word| seen.insert(word.word.to_lowercase()));
        // An analyzer with one token for the whole query does not separate its words.
        others.retain(|token| words.is_empty() || !token.contains(char::is_whitespace));
        words.extend(others.into_iter().map(|token| QueryWord { word: token.clone(), tokens: vec![token] }));
        words
    }

    pub(super) fn to_json(&self) -> Value {
        self.groups
            .iter()
            .map(|group| match &group.refused {
                None => json!({"analyzer": group.analyzer, "fields": group.fields, "tokens": group.tokens}),
                Some(refused) => {
                    json!({"analyzer": group.analyzer, "fields": group.fields, "tokens": null, "refused": refused})
                }
            })
            .collect()
    }

    pub(super) fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let words = &self.words;
        for group in &self.groups {
            if group.tokens.is_empty() && group.refused.is_none() && !words.plain.is_empty() {
                reasons.push(format!(
                    "{} produces no tokens from the query (stop words only), so the words find nothing in {}.",
                    group.analyzer,
                    group.fields.join(", ")
                ));
            }
        }
        if !words.patterns.is_empty() {
            reasons.push(format!(
                "{} is compared without analysis: no stemming, and `~` needs queryType full.",
                words.patterns.join(", ")
            ));
        }
        if !words.negated.is_empty() {
            reasons.push(format!(
                "Documents with {} are excluded; with searchMode any, a negated word beside others widens the search.",
                words.negated.join(", ")
            ));
        }
        reasons
    }
}

/// Returns how many letters a token shares with the word that it may have come from, or 0 if it cannot
/// be a form of it.
fn likeness(word: &str, token: &str) -> usize {
    let word = word.to_lowercase();
    if word == token {
        return usize::MAX;
    }
    let shared = word.chars().zip(token.chars()).take_while(|(one, other)| one == other).count();
    let longest = word.chars().count().min(token.chars().count());
    let is_form = shared >= 2 && shared + 2 >= longest && !token.contains(char::is_whitespace);
    if is_form { shared } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_grouped_by_their_operators() {
        let words =
            ClassifiedWords::read(r#"+beach "grand hotel" -spa hot* hotle~1 title:sea^2 NOT pool (a|b) *"#);
        assert_eq!(words.plain, ["beach", "grand", "hotel", "sea", "a", "b"]);
        assert_eq!(words.patterns, ["hot*", "hotle~1"]);
        assert_eq!(words.negated, ["spa", "pool"]);
        assert_eq!(ClassifiedWords::read(" * "), ClassifiedWords::default());
        assert_eq!(ClassifiedWords::read("wi-fi https://x.org").plain, ["wi-fi", "https://x.org"]);
    }

    #[test]
    fn tokens_are_mapped_to_the_words_they_came_from() {
        let terms = QueryTerms { groups: Vec::new(), words: ClassifiedWords::read("Lake hut easy") };
        let tokens = ["lake", "hut", "easy", "easi", "Lake hut easy", "synonym"].map(str::to_owned);
        assert_eq!(join_words(&terms.as_words(&tokens)), "Lake, hut, easy (easi), synonym");
        let whole = ["Lake hut easy".to_owned()];
        assert_eq!(join_words(&terms.as_words(&whole)), "Lake hut easy");
    }
}
