//! [`NamePatterns`]: names and patterns with `*`, by which `host.json` selects tools and functions.

use serde_json::Value;

use crate::json::ConfigReader;

/// The names that a list in `host.json` selects, in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePatterns {
    /// `true`: all names.
    All,
    /// Names that match one of these patterns. `*` matches any text.
    Matching(Vec<String>),
}

impl Default for NamePatterns {
    fn default() -> NamePatterns {
        NamePatterns::Matching(Vec::new())
    }
}

impl NamePatterns {
    /// Reads a member: `true`, `false`, or a list of patterns.
    pub(super) fn read(members: &ConfigReader<'_>, name: &str) -> NamePatterns {
        let is_all = match members.value(name) {
            Some(Value::Bool(all)) => Some(*all),
            // Application settings are texts.
            Some(Value::String(text)) => text.trim().to_ascii_lowercase().parse().ok(),
            _ => None,
        };
        match is_all {
            Some(true) => NamePatterns::All,
            Some(false) => NamePatterns::default(),
            None => NamePatterns::Matching(members.texts(name)),
        }
    }

    /// Returns whether the name is selected.
    pub(crate) fn select(&self, name: &str) -> bool {
        match self {
            NamePatterns::All => true,
            NamePatterns::Matching(patterns) => patterns.iter().any(|pattern| matches(pattern, name)),
        }
    }

    /// Returns whether no name can be selected.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, NamePatterns::Matching(patterns) if patterns.is_empty())
    }

    /// Returns the patterns that match none of these names.
    pub(crate) fn idle_patterns(&self, names: &[&str]) -> Vec<&str> {
        let NamePatterns::Matching(patterns) = self else { return Vec::new() };
        let idle = patterns.iter().filter(|pattern| !names.iter().any(|name| matches(pattern, name)));
        idle.map(String::as_str).collect()
    }
}

/// Returns whether a name matches a pattern, in any case.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.trim().to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text_in_any_case() {
        for (pattern, tool, expected) in [
            ("mine", "mine", true),
            ("mine", "mine_ore", false),
            ("mine_*", "Mine_Ore", true),
            ("mine_*", "mine", false),
            ("*_ore", "mine_ore", true),
            ("*", "anything", true),
            ("m*_o*e", "mine_ore", true),
            ("ab*ba", "aba", false),
            ("", "mine", false),
        ] {
            assert_eq!(matches(pattern, tool), expected, "{pattern:?} {tool}");
        }
    }

    #[test]
    fn patterns_that_match_no_name_are_found() {
        let tools = NamePatterns::Matching(vec!["mine_*".to_owned(), "dig".to_owned()]);
        assert_eq!(tools.idle_patterns(&["mine_ore", "echo"]), ["dig"]);
        assert_eq!(NamePatterns::All.idle_patterns(&[]), [""; 0]);
    }
}
