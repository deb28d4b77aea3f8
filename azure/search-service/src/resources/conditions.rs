//! The conditional headers If-Match and If-None-Match.

use bindpost_azure_search_model::ApiError;

use super::ResourceKind;

/// The conditions for writing or deleting a definition. A missing condition always holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchConditions {
    /// The header value: `*`, or a comma-separated list of ETags.
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
}

impl MatchConditions {
    /// Checks the conditions. `etag` is that of the current definition, if it exists.
    pub(super) fn check(&self, kind: ResourceKind, name: &str, etag: Option<&str>) -> Result<(), ApiError> {
        if let Some(wanted) = &self.if_match {
            let Some(etag) = etag else {
                return Err(ApiError::precondition_failed(format!(
                    "If-Match requires the {kind} '{name}' to exist, but it does not exist. Remove the header to \
                     create it."
                )));
            };
            if !matches(wanted, etag) {
                return Err(ApiError::precondition_failed(format!(
                    "The {kind} '{name}' was changed by another client: its ETag is {etag}, but If-Match requires \
                     {wanted}. Read it again and repeat the change, or remove the header to overwrite it."
                )));
            }
        }
        if let (Some(unwanted), Some(etag)) = (&self.if_none_match, etag)
            && matches(unwanted, etag)
        {
            let why = if unwanted.trim() == "*" { "already exists" } else { "still has this ETag" };
            return Err(ApiError::precondition_failed(format!(
                "The {kind} '{name}' {why}, but If-None-Match: {unwanted} forbids that."
            )));
        }
        Ok(())
    }
}

/// Whether a header contains this ETag. Quotes are optional, because some clients omit them.
fn matches(header: &str, etag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    header.trim() == "*" || header.split(',').any(|one| bare(one) == bare(etag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(if_match: Option<&str>, if_none_match: Option<&str>, etag: Option<&str>) -> bool {
        let conditions = MatchConditions {
            if_match: if_match.map(str::to_owned),
            if_none_match: if_none_match.map(str::to_owned),
        };
        conditions.check(ResourceKind::Index, "hotels", etag).is_ok()
    }

    #[test]
    fn if_match_requires_one_of_its_etags() {
        let etag = Some("\"0x1\"");
        assert!(holds(Some("\"0x1\""), None, etag));
        assert!(holds(Some("0x1"), None, etag));
        assert!(holds(Some("\"0x2\", W/\"0x1\""), None, etag));
        assert!(holds(Some("*"), None, etag));
        assert!(!holds(Some("\"0x2\""), None, etag));
        assert!(!holds(Some("*"), None, None));
        assert!(!holds(Some("\"0x1\""), None, None));
    }

    #[test]
    fn if_none_match_forbids_its_etags() {
        assert!(holds(None, Some("*"), None));
        assert!(!holds(None, Some("*"), Some("\"0x1\"")));
        assert!(!holds(None, Some("\"0x1\""), Some("\"0x1\"")));
        assert!(holds(None, Some("\"0x2\""), Some("\"0x1\"")));
    }
}
