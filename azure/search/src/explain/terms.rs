//! The words of a query: which are wanted, and what each analyzer makes of them.

use serde_json::{Value, json};

use super::{Question, searched};
use crate::failure::{Failure, Kind};

/// One analyzer and the tokens it makes of the query's words.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) analyzer: String,
    /// The fields that are searched with it.
    pub(super) fields: Vec<String>,
    pub(super) tokens: Vec<String>,
    /// Why there are none.
    refused: Option<String>,
}

/// A query as far as its words go.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    pub(super) groups: Vec<Group>,
    pub(super) words: Words,
}

/// The words of a query by what its signs say of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Looked for after analysis.
    pub(super) plain: Vec<String>,
    /// `hot*`, `hotle~`, `/reg.*/`: compared as they are written, not analyzed.
    pub(super) patterns: Vec<String>,
    /// `-spa`, `!spa`: documents with them are left out.
    pub(super) negated: Vec<String>,
}

impl Words {
    /// Reads a query, roughly: signs that join words are dropped. `name:word` looks in one field, and only the word counts.
    pub(super) fn read(search: &str) -> Words {
        let mut words = Words::default();
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

/// Asks the service for the tokens of every analyzer that searched fields have.
pub(super) async fn read(question: &Question<'_>) -> Result<Terms, Failure> {
    let mut terms = Terms { groups: Vec::new(), words: Words::read(&question.arguments.search) };
    for field in searched(question) {
        let Some(analyzer) = &field.search_analyzer else { continue };
        match terms.groups.iter_mut().find(|group| group.analyzer == *analyzer) {
            Some(group) => group.fields.push(field.path.clone()),
            None => terms.groups.push(Group {
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
            // Query keys may search and not analyze.
            Err(failure) if matches!(failure.kind, Kind::Unauthorized | Kind::InvalidRequest) => {
                group.refused = Some(failure.message.lines().next().unwrap_or_default().to_owned());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(terms)
}

impl Terms {
    /// The group that a field is searched with.
    pub(super) fn of(&self, path: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.fields.iter().any(|field| field == path))
    }

    pub(super) fn told(&self) -> Value {
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
                    "{} makes no token of the query (stop words only), so the words find nothing in {}.",
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
                "Documents with {} are left out; with searchMode any, a negated word beside others widens the search.",
                words.negated.join(", ")
            ));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_by_their_signs() {
        let words = Words::read(r#"+beach "grand hotel" -spa hot* hotle~1 title:sea^2 NOT pool (a|b) *"#);
        assert_eq!(words.plain, ["beach", "grand", "hotel", "sea", "a", "b"]);
        assert_eq!(words.patterns, ["hot*", "hotle~1"]);
        assert_eq!(words.negated, ["spa", "pool"]);
        assert_eq!(Words::read(" * "), Words::default());
        assert_eq!(Words::read("wi-fi https://x.org").plain, ["wi-fi", "https://x.org"]);
    }
}
