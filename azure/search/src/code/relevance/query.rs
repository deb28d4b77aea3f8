//! Judged queries: the lines of `judgements/NAME.jsonl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::code::settings::RelevanceMinimum;

/// A judged query.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryCheck {
    /// Its name in reports.
    id: Option<String>,
    #[serde(default = "everything")]
    pub(crate) search: String,
    /// Grades by document key.
    #[serde(default, alias = "judgments")]
    pub(crate) judgements: BTreeMap<String, f64>,
    /// Search parameters of this query.
    #[serde(default)]
    pub(crate) parameters: Map<String, Value>,
    /// Keys that must be found, with their lowest acceptable ranks, if they have one.
    #[serde(default, deserialize_with = "expected")]
    pub(crate) expect: Vec<(String, Option<usize>)>,
    /// Keys that must not be found.
    #[serde(default)]
    pub(crate) reject: Vec<String>,
    /// The lowest acceptable measures of this query.
    #[serde(default)]
    pub(crate) minimum: RelevanceMinimum,
}

fn everything() -> String {
    "*".to_owned()
}

fn expected<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Option<usize>)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ExpectedKeys {
        Keys(Vec<String>),
        Ranks(BTreeMap<String, usize>),
    }
    Ok(match ExpectedKeys::deserialize(deserializer)? {
        ExpectedKeys::Keys(keys) => keys.into_iter().map(|key| (key, None)).collect(),
        ExpectedKeys::Ranks(ranks) => ranks.into_iter().map(|(key, rank)| (key, Some(rank))).collect(),
    })
}

impl QueryCheck {
    /// Parses a line. The error contains the fix.
    pub(crate) fn parse(line: &str) -> Result<QueryCheck, String> {
        let query: QueryCheck = serde_json::from_str(line).map_err(|error| {
            format!(
                "not a judged query: {error}\n  fix: write {{\"search\": \"words\", \"judgements\": {{\"key\": 1}}}}, with \
                 \"expect\": [\"key\"] for documents that must be found"
            )
        })?;
        if query.judgements.is_empty() && query.expect.is_empty() && query.reject.is_empty() {
            return Err("judges nothing\n  fix: add \"judgements\", \"expect\" or \"reject\"".to_owned());
        }
        let wrong = query.judgements.iter().find(|(_, grade)| !(0.0..=10.0).contains(*grade));
        if let Some((key, grade)) = wrong {
            return Err(format!(
                "the grade of {key} is {grade}\n  fix: use grades from 0 (irrelevant) to 10"
            ));
        }
        Ok(query)
    }

    /// Returns its name in reports. `number` is its place in the file, from 1.
    pub(crate) fn name(&self, number: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("query {number}"))
    }

    /// Returns all keys that it judges.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        let expected = self.expect.iter().map(|(key, _)| key);
        self.judgements.keys().chain(expected).chain(&self.reject).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_keys_are_a_list_or_have_ranks() {
        let list = QueryCheck::parse(r#"{"search": "a", "expect": ["1"]}"#).unwrap();
        assert_eq!(list.expect, [("1".to_owned(), None)]);
        let ranks =
            QueryCheck::parse(r#"{"search": "a", "expect": {"1": 3}, "judgments": {"2": 1}}"#).unwrap();
        assert_eq!(ranks.expect, [("1".to_owned(), Some(3))]);
        assert_eq!(ranks.keys().collect::<Vec<_>>(), ["2", "1"]);
    }

    #[test]
    fn lines_that_judge_nothing_are_refused_with_a_fix() {
        for line in [
            "{}",
            r#"{"search": "a"}"#,
            r#"{"serch": "a", "expect": ["1"]}"#,
            r#"{"judgements": {"1": 11}}"#,
            "x",
        ] {
            assert!(QueryCheck::parse(line).unwrap_err().contains("fix:"), "{line}");
        }
    }
}
