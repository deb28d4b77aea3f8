//! `findOperations`: searches operations by the words in their names, paths, summaries and tags.

use std::cmp::Reverse;

use bindpost_mcp_protocol::CallToolResult;
use bindpost_mcp_server::{Context, ToolError};
use serde_json::{Map, Value, json};

use super::{FIND, text_of};
use crate::bridge::offered::OfferedOperation;
use crate::bridge::{BridgeState, text};
use crate::reply::CallFailure;

/// The words of all operations.
#[derive(Debug)]
pub(crate) struct OperationIndex(Vec<IndexedOperation>);

#[derive(Debug)]
struct IndexedOperation {
    /// The words with their weights.
    words: Vec<(String, u32)>,
    /// The number of words in the id.
    name: usize,
}

impl OperationIndex {
    pub(crate) fn new(offered: &[OfferedOperation]) -> OperationIndex {
        let words_of = |offered: &OfferedOperation| {
            let operation = &offered.operation;
            let tags = operation.tags.join(" ");
            let texts = [
                (operation.id.as_str(), 5),
                (operation.path.as_str(), 3),
                (operation.summary.as_deref().unwrap_or_default(), 3),
                (&tags, 2),
                (operation.description.as_deref().unwrap_or_default(), 1),
                (operation.method.as_str(), 1),
            ];
            let mut found: Vec<(String, u32)> = Vec::new();
            for (text, weight) in texts {
                for word in words(text).into_iter().take(200) {
                    match found.iter_mut().find(|(known, _)| *known == word) {
                        Some((_, known)) => *known = weight.max(*known),
                        None => found.push((word, weight)),
                    }
                }
            }
            IndexedOperation { words: found, name: words(&operation.id).len() }
        };
        OperationIndex(offered.iter().map(words_of).collect())
    }

    /// Returns the score of each operation, 0 for no match. Each query word adds its best match. Among
    /// equal scores, the operation with fewer other words in its name comes first.
    fn scores<'a>(&'a self, query: &'a [String]) -> impl Iterator<Item = (u32, Reverse<usize>)> + 'a {
        self.0.iter().map(|known| {
            let score = |word: &String| {
                let fit = |(candidate, weight): &(String, u32)| match () {
                    () if candidate == word => weight * 4,
                    () if word.len() >= 3 && candidate.starts_with(word.as_str()) => weight * 2,
                    () if candidate.len() >= 4 && word.starts_with(candidate.as_str()) => *weight,
                    () => 0,
                };
                known.words.iter().map(fit).max().unwrap_or_default()
            };
            let scores: Vec<u32> = query.iter().map(score).collect();
            // Operations that match more of the words come before those that match one of them well.
            let matched = scores.iter().filter(|score| **score > 0).count() as u32;
            (scores.iter().sum::<u32>() + matched.saturating_sub(1) * 20, Reverse(known.name))
        })
    }
}

/// Splits a text into words: `getIndexStats`, `get_index_stats` and `/get/indexes` give the same words,
/// in the singular.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        // `getURLs` becomes `get`, `urls`. `HTTPServer` becomes `http`, `server`.
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_ascii_digit())
                || before.is_some_and(|before| before.is_uppercase())
                    && after.is_some_and(|after| after.is_lowercase() && *after != 's'));
        if begins || !letter.is_alphanumeric() {
            words.extend(Some(singular(&word)).filter(|word| !word.is_empty()));
            word.clear();
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    words.extend(Some(singular(&word)).filter(|word| !word.is_empty()));
    words
}

/// Returns the singular of a word, as far as its ending shows it.
fn singular(word: &str) -> String {
    let stem = |end: &str, rest: &str| {
        let stem = word.strip_suffix(end).filter(|stem| stem.len() >= 2)?;
        Some(format!("{stem}{rest}"))
    };
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word.to_owned();
    }
    let plural = stem("ies", "y")
        .or_else(|| stem("xes", "x"))
        .or_else(|| stem("ches", "ch"))
        .or_else(|| stem("shes", "sh"))
        .or_else(|| stem("sses", "ss"))
        .or_else(|| stem("s", ""));
    plural.unwrap_or_else(|| word.to_owned())
}

/// Words that are ignored in a query.
const IDLE: [&str; 12] = ["a", "all", "an", "the", "of", "to", "for", "in", "on", "and", "with", "by"];

/// Runs `findOperations`.
pub(crate) fn find(
    shared: &BridgeState,
    finder: &OperationIndex,
    given: &Map<String, Value>,
    context: &Context,
) -> Result<CallToolResult, ToolError> {
    let caller = context.caller().id();
    let mut given = given.clone();
    let mut from = 0;
    if let Some(cursor) = given.remove("cursor").as_ref().and_then(Value::as_str) {
        let (before, at) = match shared.cursors.verify::<(Map<String, Value>, usize)>(FIND, caller, cursor) {
            Ok(opened) => opened,
            Err(error) => return Ok(CallFailure::invalid(error.to_string()).into_result()),
        };
        // The limit may differ from that of the previous page.
        let limit = given.remove("limit");
        if let Some(changed) = CallFailure::changed_arguments(&given, &before) {
            return Ok(changed.into_result());
        }
        (given, from) = (before, at);
        given.extend(limit.map(|limit| ("limit".to_owned(), limit)));
    }
    let limit = given.get("limit").and_then(Value::as_u64).map_or(20, |limit| limit.clamp(1, 100) as usize);
    let mut query = words(text_of(&given, "query").unwrap_or_default());
    if query.iter().any(|word| !IDLE.contains(&word.as_str())) {
        query.retain(|word| !IDLE.contains(&word.as_str()));
    }
    let (tag, method) = (text_of(&given, "tag"), text_of(&given, "method"));
    let fits = |offered: &OfferedOperation| {
        let operation = &offered.operation;
        tag.is_none_or(|tag| operation.tags.iter().any(|known| known.eq_ignore_ascii_case(tag)))
            && method.is_none_or(|method| operation.method.as_str().eq_ignore_ascii_case(method))
    };
    let mut found: Vec<((u32, Reverse<usize>), &OfferedOperation)> =
        finder.scores(&query).zip(&shared.offered).filter(|(_, offered)| fits(offered)).collect();
    if !query.is_empty() {
        found.retain(|((score, _), _)| *score > 0);
        found.sort_by_key(|(score, _)| Reverse(*score));
    }
    let total = found.len();
    let items: Vec<Value> =
        found.iter().skip(from).take(limit).map(|(_, offered)| operation_json(offered)).collect();
    let end = from + items.len();
    let mut said = json!({"items": items, "total": total, "hasMore": end < total});
    if end < total
        && let Some(cursor) = shared.cursors.sign(FIND, caller, &(given.clone(), end))
    {
        said["nextCursor"] = cursor.into();
    }
    if total == 0 {
        let tags = shared.offered.iter().flat_map(|offered| &offered.operation.tags);
        let mut tags: Vec<String> = tags.map(|tag| text::sentences(&text::plain_text(tag), 80)).collect();
        tags.sort_unstable();
        tags.dedup();
        tags.truncate(50);
        said["hint"] = "No match. Try other words, or only a tag.".into();
        said["tags"] = json!(tags);
    }
    Ok(CallToolResult::structured(said))
}

fn operation_json(offered: &OfferedOperation) -> Value {
    let operation = &offered.operation;
    json!({
        "operation": offered.display_id(),
        "method": operation.method.as_str(),
        "path": text::visible_text(&operation.path),
        "summary": text::summary(operation),
        "readOnly": offered.hints.read_only,
        "destructive": offered.hints.destructive,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words_without_plurals() {
        for (text, expected) in [
            ("getIndexStats", "get index stat"),
            ("list_synonym-maps", "list synonym map"),
            ("/indexes('{indexName}')/docs", "index index name doc"),
            ("HTTPServer getURLs", "http server get url"),
            ("Policies address status classes", "policy address status class"),
            ("Indexers_Get2", "indexer get2"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }
}
