//! The API version of a request, and what differs between versions.

use std::fmt;

/// A dated version such as `2026-04-01` or `2025-08-01-preview`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiVersion(String);

impl ApiVersion {
    /// Returns `None` for a text that is not a date, with or without `-preview`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, suffix) = text.split_at_checked(10)?;
        let dated = chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok()
            && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        (dated && (suffix.is_empty() || suffix.eq_ignore_ascii_case("-preview")))
            .then(|| Self(text.to_owned()))
    }

    /// Retrieve returns messages without a role, for knowledge bases. Before, for agents, they have one.
    pub(crate) fn has_knowledge_bases(&self) -> bool {
        self.date() >= "2025-11-01"
    }

    /// Agents name knowledge sources. Before, they name indexes in `targetIndexes`.
    pub(crate) fn has_knowledge_sources(&self) -> bool {
        self.date() >= "2025-08-01"
    }

    fn date(&self) -> &str {
        self.0.get(..10).unwrap_or_default()
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
