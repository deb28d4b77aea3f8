//! A problem of a filter: the field, the rule, the fix and the position.

use bindpost_mcp_server::nearest::nearest;
use serde::Serialize;

use crate::tools::reading::IndexDescription;

/// One problem of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct FilterProblem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
    /// The kind of problem in one word, such as `unknownField`.
    pub(super) rule: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
    /// The position: a path in the form (`conditions.all[1]`), or a character of the filter text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
}

impl FilterProblem {
    pub(super) fn new(rule: &'static str, message: impl Into<String>) -> FilterProblem {
        FilterProblem { rule, message: message.into(), ..FilterProblem::default() }
    }

    pub(super) fn field(mut self, field: &str) -> FilterProblem {
        self.field = Some(field.to_owned());
        self
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> FilterProblem {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn at(mut self, at: &str) -> FilterProblem {
        self.at = Some(at.to_owned());
        self
    }

    /// Returns whether the filter is unusable. A filter with an unknown value is usable.
    pub(super) fn is_fatal(&self) -> bool {
        self.rule != "valueNotFound"
    }

    /// Returns the problem of an unknown field.
    pub(super) fn unknown_field(path: &str, index: &IndexDescription) -> FilterProblem {
        let leaves = index.schema.leaves();
        let paths: Vec<&str> = leaves.iter().map(|field| field.path.as_str()).collect();
        let fix = match near_path(path, &paths) {
            Some(near) => format!("write {near}"),
            None => {
                let known: Vec<&str> =
                    leaves.iter().filter(|field| field.filterable).map(|field| field.path.as_str()).collect();
                format!("filterable fields are: {}", known.join(", "))
            }
        };
        FilterProblem::new("unknownField", format!("Unknown field '{path}'. Names are case-sensitive."))
            .field(path)
            .fix(fix)
    }

    /// Converts the error of the filter parser.
    pub(super) fn from_parse_error(message: &str, text: &str, index: &IndexDescription) -> FilterProblem {
        let message = message.split("\r\n").next().unwrap_or_default();
        let message = message.strip_prefix("Invalid expression: ").unwrap_or(message);
        let (message, at) = match message.rsplit_once(" (At character ") {
            Some((message, at)) => (message, at.trim_end_matches(".)").parse::<usize>().ok()),
            None => (message, None),
        };
        let named = message.split('\'').nth(1).unwrap_or_default();
        let path = at.map(|at| path_at(text, at)).filter(|path| !path.is_empty());
        let known = [named, path.as_deref().unwrap_or_default()];
        let known = known.into_iter().find(|name| index.schema.find(name).is_some()).map(str::to_owned);
        let rule = rule_of(message);
        let mut problem = match rule {
            "unknownField" => FilterProblem::unknown_field(path.as_deref().unwrap_or(named), index),
            _ => FilterProblem { field: known, ..FilterProblem::new(rule, message) },
        };
        // The parser's message is kept if it contains a fix.
        if rule == "unknownField" && (message.contains("lambda") || message.contains("slash")) {
            problem.fix = Some(message.to_owned());
        }
        if problem.fix.is_none() {
            problem.fix = match rule {
                "notFilterable" => Some(
                    "use a filterable field, or search in it: search.ismatch('words', 'field') if it is searchable"
                        .to_owned(),
                ),
                "syntax" => Some("compare a field with a constant: rating ge 4 and category eq 'Luxury'".to_owned()),
                _ => None,
            };
        }
        problem.at = at.map(|at| format!("character {at}"));
        problem
    }
}

fn rule_of(message: &str) -> &'static str {
    const RULES: [(&str, &str); 9] = [
        ("There is no field", "unknownField"),
        ("has no subfield", "unknownField"),
        ("is not a filterable field", "notFilterable"),
        ("is a vector field", "notFilterable"),
        ("is not a searchable", "notSearchable"),
        ("is a collection", "collection"),
        ("are for collections", "collection"),
        ("There is no function", "unknownFunction"),
        ("is of type", "wrongType"),
    ];
    RULES.iter().find(|(words, _)| message.contains(words)).map_or("syntax", |(_, rule)| rule)
}

/// Returns the path at a character of a filter, counted from one.
fn path_at(text: &str, at: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    let belongs = |c: &char| c.is_alphanumeric() || ['_', '/', '.'].contains(c);
    let start = at.saturating_sub(1);
    // A subfield has its own position, but is named from the root.
    let before = characters.iter().take(start).rev().take_while(|c| belongs(c)).count();
    characters.iter().skip(start - before.min(start)).take_while(|c| belongs(c)).collect()
}

/// Returns the most similar known path, including `address/city` for `city`.
fn near_path<'a>(path: &str, paths: &[&'a str]) -> Option<&'a str> {
    let last = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    nearest(path, paths).or_else(|| {
        let lasts: Vec<&str> = paths.iter().map(|path| last(path)).collect();
        let near = nearest(path, &lasts)?;
        paths.iter().copied().find(|path| last(path) == near)
    })
}
