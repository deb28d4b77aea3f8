//! [`OperationSelection`]: which operations of a document are served. Other operations are not reachable
//! in any way.

use bindpost_mcp_server::ToolHints;
use bindpost_mcp_server::nearest::nearest;
use percent_encoding::percent_decode_str;

use crate::operation::Operation;

/// Selects the operations of a document that are served. Default: all.
///
/// A pattern is matched against the operation's id, against its path if it begins with `/` or `*`, and
/// against `METHOD /path` if it contains a space or begins with `*`. `*` matches any
/// text. Matching is case-insensitive.
///
/// ```
/// use bindpost_mcp_openapi::OperationSelection;
///
/// let selection = OperationSelection::all().tag("pets").include("GET /pets*").deny("*admin*").read_only();
/// # let _ = selection;
/// ```
#[derive(Clone, Debug, Default)]
pub struct OperationSelection {
    tags: Vec<String>,
    include: Vec<String>,
    allow: Vec<String>,
    deny: Vec<String>,
    read_only: bool,
}

impl OperationSelection {
    /// Selects all operations.
    pub fn all() -> OperationSelection {
        OperationSelection::default()
    }

    /// Selects operations with this tag, in addition to other selected operations.
    pub fn tag(mut self, tag: impl Into<String>) -> OperationSelection {
        self.tags.push(tag.into());
        self
    }

    /// Selects operations that match this pattern, in addition to other selected operations.
    pub fn include(mut self, pattern: impl Into<String>) -> OperationSelection {
        self.include.push(pattern.into());
        self
    }

    /// Selects the operation with this id, regardless of tags and patterns.
    pub fn allow(mut self, id: impl Into<String>) -> OperationSelection {
        self.allow.push(id.into());
        self
    }

    /// Excludes operations that match this pattern, regardless of all other settings.
    pub fn deny(mut self, pattern: impl Into<String>) -> OperationSelection {
        self.deny.push(pattern.into());
        self
    }

    /// Selects only read-only operations.
    pub fn read_only(mut self) -> OperationSelection {
        self.read_only = true;
        self
    }

    /// Returns whether an operation is selected, given its hints.
    pub fn selects(&self, operation: &Operation, hints: ToolHints) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| pattern_matches(pattern, operation));
        let tagged = |wanted: &String| operation.tags.iter().any(|tag| tag.eq_ignore_ascii_case(wanted));
        let says_nothing = self.tags.is_empty() && self.include.is_empty();
        let chosen = match says_nothing {
            true => self.allow.is_empty(),
            false => {
                (self.tags.is_empty() || self.tags.iter().any(tagged))
                    && (self.include.is_empty() || named(&self.include))
            }
        };
        (chosen || self.allow.contains(&operation.id))
            && !named(&self.deny)
            && (hints.read_only || !self.read_only)
    }

    /// Returns a warning for each tag, pattern or id without an operation. It is probably a typing error,
    /// which is dangerous for a denied operation.
    pub(crate) fn unmatched_patterns(&self, operations: &[Operation]) -> Vec<String> {
        let ids: Vec<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();
        let tags: Vec<&str> =
            operations.iter().flat_map(|operation| &operation.tags).map(String::as_str).collect();
        let meant = |name: &str, known: &[&str]| match nearest(name, known) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => "correct it, or remove it".to_owned(),
        };
        let mut idle = Vec::new();
        for tag in &self.tags {
            if !tags.iter().any(|known| known.eq_ignore_ascii_case(tag)) {
                idle.push(format!("no operation has the tag {tag:?}; fix: {}", meant(tag, &tags)));
            }
        }
        for (what, pattern) in
            self.include.iter().map(|it| ("includes", it)).chain(self.deny.iter().map(|it| ("denies", it)))
        {
            if !operations.iter().any(|operation| pattern_matches(pattern, operation)) {
                idle.push(format!("{pattern:?} {what} no operation; fix: {}", meant(pattern, &ids)));
            }
        }
        for id in self.allow.iter().filter(|id| !ids.contains(&id.as_str())) {
            idle.push(format!("allowed operation {id:?} does not exist; fix: {}", meant(id, &ids)));
        }
        idle
    }
}

/// Returns whether a pattern matches an operation.
fn pattern_matches(pattern: &str, operation: &Operation) -> bool {
    let pattern = pattern.trim().to_lowercase();
    let (path, id) = (operation.path.to_lowercase(), operation.id.to_lowercase());
    let whole = format!("{} {path}", operation.method.as_str().to_lowercase());
    // `get*` matches ids that begin with it, not every GET.
    glob(&pattern, &id)
        || pattern.starts_with(['/', '*']) && glob(&pattern, &path)
        || (pattern.contains(' ') || pattern.starts_with('*')) && glob(&pattern, &whole)
}

/// Returns whether a text matches a pattern, in which `*` matches any text.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// A path with variables, used to recognise the paths it matches.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    segments: Vec<String>,
    /// The number of variables. If two patterns match, services use the one with fewer variables.
    pub(crate) variables: usize,
}

impl PathPattern {
    pub(crate) fn new(path: &str) -> PathPattern {
        PathPattern::with_values(path, |_| None)
    }

    /// Returns the pattern of the paths in which these variables have these values.
    pub(crate) fn with_values(path: &str, value: impl Fn(&str) -> Option<String>) -> PathPattern {
        let segment = |segment: &str| {
            let mut out = String::new();
            let mut rest = segment;
            while let Some((before, after)) = rest.split_once('{') {
                let (name, after) = after.split_once('}').unwrap_or((after, ""));
                out.push_str(before);
                // A value with a star would be a pattern itself.
                out.push_str(value(name).filter(|value| !value.contains('*')).as_deref().unwrap_or("*"));
                rest = after;
            }
            out + rest
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        PathPattern {
            segments: path.trim_end_matches('/').split('/').map(segment).collect(),
            variables: path.matches('{').count(),
        }
    }

    /// Returns whether this encoded path, with or without a query, matches.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut segments = path.trim_end_matches('/').split('/');
        let all = self.segments.iter().all(|pattern| {
            segments.next().is_some_and(|segment| {
                let segment = percent_decode_str(segment).decode_utf8_lossy();
                glob(pattern, &segment) && (pattern.is_empty() || !segment.is_empty())
            })
        });
        all && segments.next().is_none()
    }

    /// Returns whether a lenient service could match this path. Such a service decodes slashes, decodes
    /// twice, ignores case, and drops segment parameters and empty segments.
    pub(crate) fn may_cover(&self, path: &str) -> bool {
        let mut path = path.split(['?', '#']).next().unwrap_or_default().to_owned();
        for _ in 0..3 {
            path = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        }
        let path = path.to_lowercase();
        let bare = |segment: &'_ str| segment.split(';').next().unwrap_or_default().trim().to_owned();
        let segments =
            path.split(['/', '\\']).map(bare).filter(|segment| !segment.is_empty() && segment != ".");
        let patterns = self.segments.iter().map(|pattern| pattern.to_lowercase());
        let patterns: Vec<String> = patterns.filter(|pattern| !pattern.is_empty()).collect();
        let segments: Vec<String> = segments.collect();
        patterns.len() == segments.len()
            && patterns.iter().zip(&segments).all(|(pattern, segment)| glob(pattern, segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("ab*ba", "aba", false),
            ("get /pets/*", "get /pets/{id}", true),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_path_matches_its_template() {
        let pattern = PathPattern::new("/indexes('{name}')/docs/{key}");
        assert!(pattern.covers("/indexes('hotels')/docs/1?x=/"));
        assert!(pattern.covers("/indexes(%27a%2Fb%27)/docs/1/"));
        assert!(!pattern.covers("/indexes('hotels')/docs"));
        assert!(!pattern.covers("/indexes('hotels')/docs/1/2"));
        assert!(!pattern.covers("/indexes/docs/1"));
        assert_eq!(pattern.variables, 2);
        assert!(PathPattern::new("/pets/secret").covers("/pets/%73ecret"));
    }

    #[test]
    fn a_path_matches_in_every_spelling_that_a_service_accepts() {
        let secret = PathPattern::new("/pets/secret");
        for path in [
            "/pets/secret",
            "/pets/secret/",
            "/pets/secret%2F",
            "/pets/%2Fsecret",
            "/pets/Secret",
            "/pets/%2573ecret",
            "/pets/secret%3Bx%3D1",
            "/pets/.%2Fsecret",
            "/pets/secret%20",
            "/pets%5Csecret?a=b",
        ] {
            assert!(secret.may_cover(path), "{path}");
        }
        for path in ["/pets/secrets", "/pets", "/pets/secret/a", "/pets/a%2Fsecret"] {
            assert!(!secret.may_cover(path), "{path}");
        }
        assert!(PathPattern::new("/pets/{id}/secret").may_cover("/pets/a%2Fsecret"));
    }
}
