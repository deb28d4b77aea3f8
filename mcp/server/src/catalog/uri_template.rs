//! [`UriTemplate`]: matches URIs against a template and extracts the variables.
//!
//! Matching takes one pass without backtracking: a variable ends at the first occurrence of the
//! literal that follows it.

use percent::decode;

/// The maximum length of a template and of a URI, in bytes.
const MAX_LENGTH: usize = 8 * 1024;
const MAX_VARIABLES: usize = 256;

/// An RFC 6570 template that is matched in reverse: it extracts the variables from a URI.
///
/// `{id}` matches one path segment, `{+path}` one or more. `{?q,page}` matches query parameters in any
/// order. Each of them is optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<TemplatePart>,
    query: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    /// One segment without `/`, even encoded.
    Segment(String),
    /// One or more segments.
    Reserved(String),
}

impl UriTemplate {
    /// Parses a template.
    pub fn parse(template: &str) -> Result<UriTemplate, String> {
        if template.len() > MAX_LENGTH {
            return Err(format!("the template is longer than {MAX_LENGTH} bytes"));
        }
        let mut parts = Vec::new();
        let mut query = Vec::new();
        let mut rest = template;
        while !rest.is_empty() {
            let Some((literal, after)) = rest.split_once('{') else {
                if !query.is_empty() {
                    return Err("nothing may follow the query variables".to_owned());
                }
                if rest.contains('}') {
                    return Err("`}` without `{`".to_owned());
                }
                parts.push(TemplatePart::Literal(rest.to_owned()));
                break;
            };
            if literal.contains('}') {
                return Err("`}` without `{`".to_owned());
            }
            if !query.is_empty() {
                return Err("nothing may follow the query variables".to_owned());
            }
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            let Some((expression, after)) = after.split_once('}') else {
                return Err("`{` without `}`".to_owned());
            };
            rest = after;
            if let Some(names) = expression.strip_prefix('?') {
                query = names.split(',').map(check_variable_name).collect::<Result<_, _>>()?;
                continue;
            }
            if matches!(parts.last(), Some(TemplatePart::Segment(_) | TemplatePart::Reserved(_))) {
                return Err(format!("`{{{expression}}}` must not follow another variable directly"));
            }
            parts.push(match expression.strip_prefix('+') {
                Some(path) => TemplatePart::Reserved(check_variable_name(path)?),
                None => TemplatePart::Segment(check_variable_name(expression)?),
            });
        }
        let template = UriTemplate { parts, query };
        let names: Vec<&str> = template.variables().collect();
        if names.len() > MAX_VARIABLES {
            return Err(format!("more than {MAX_VARIABLES} variables"));
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(format!("variable {name:?} appears twice"));
            }
        }
        Ok(template)
    }

    /// Returns the names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let in_path = self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Segment(name) | TemplatePart::Reserved(name) => Some(name.as_str()),
        });
        in_path.chain(self.query.iter().map(String::as_str))
    }

    /// Returns whether both templates match the same URIs. The names of the variables do not matter.
    pub(crate) fn covers_the_same(&self, other: &UriTemplate) -> bool {
        let same = |(one, other): (&TemplatePart, &TemplatePart)| match (one, other) {
            (TemplatePart::Literal(one), TemplatePart::Literal(other)) => one == other,
            (TemplatePart::Segment(_), TemplatePart::Segment(_))
            | (TemplatePart::Reserved(_), TemplatePart::Reserved(_)) => true,
            _ => false,
        };
        self.parts.len() == other.parts.len() && self.parts.iter().zip(&other.parts).all(same)
    }

    /// Returns the decoded variables of a URI, or `None` if the template does not match.
    ///
    /// A segment does not match if it decodes to `.` or `..`, or to text with a slash, a backslash or a
    /// NUL. A path does not match if it contains `.` or `..` segments. After a slash, it does not match
    /// either if it starts with a slash, a backslash or a drive letter.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        if uri.len() > MAX_LENGTH {
            return None;
        }
        let (path, query) = match uri.split_once('?') {
            Some((path, query)) if !self.query.is_empty() => (path, Some(query)),
            _ => (uri, None),
        };
        let mut rest = path;
        let mut variables = Vec::new();
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                TemplatePart::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                TemplatePart::Segment(name) | TemplatePart::Reserved(name) => {
                    let end = match parts.peek() {
                        Some(TemplatePart::Literal(next)) => rest.find(next.as_str())?,
                        _ => rest.len(),
                    };
                    let (value, after) = rest.split_at(end);
                    let one_segment = matches!(part, TemplatePart::Segment(_));
                    if value.is_empty() || one_segment && value.contains('/') {
                        return None;
                    }
                    let value = decode(value)?;
                    // After a slash, an absolute path would leave the folder. After a scheme it is the
                    // whole path.
                    let before = path.strip_suffix(rest).unwrap_or(path);
                    let below = before.ends_with('/') && !before.ends_with("://");
                    let fits = if one_segment {
                        is_one_segment(&value)
                    } else {
                        has_no_dot_segments(&value) && !(below && is_absolute(&value))
                    };
                    if !fits {
                        return None;
                    }
                    variables.push((name.clone(), value));
                    rest = after;
                }
            }
        }
        if !rest.is_empty() {
            return None;
        }
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name)?;
            let known = self.query.contains(&name);
            if !known || variables.iter().any(|(seen, _)| *seen == name) {
                return None;
            }
            variables.push((name, decode(value).filter(|value| !value.contains('\0'))?));
        }
        Some(variables)
    }
}

fn check_variable_name(name: &str) -> Result<String, String> {
    let fits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if fits {
        Ok(name.to_owned())
    } else {
        Err(format!("{name:?} is not a valid variable name; use letters, digits, `_`, `.` and `-`"))
    }
}

/// Returns whether a path has no `.` or `..` segments and no NUL.
fn has_no_dot_segments(path: &str) -> bool {
    !path.contains('\0') && path.split(['/', '\\']).all(|segment| segment != "." && segment != "..")
}

/// Returns whether a path is absolute, so that joining it to a folder would leave the folder.
fn is_absolute(path: &str) -> bool {
    let mut letters = path.chars();
    path.starts_with(['/', '\\'])
        || letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(':')
}

fn is_one_segment(value: &str) -> bool {
    value != "." && value != ".." && !value.contains(['/', '\\', '\0'])
}

mod percent {
    /// Percent-decodes text. Returns `None` if an escape is invalid or the bytes are not UTF-8.
    pub(crate) fn decode(text: &str) -> Option<String> {
        if !text.contains('%') {
            return Some(text.to_owned());
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                bytes.push((high << 4 | low) as u8);
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn variables(template: &str, uri: &str) -> Option<String> {
        let found = UriTemplate::parse(template).unwrap().matches(uri)?;
        Some(found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_query_does_not_affect_the_path() {
        let template = "file:///data/{+path}{?q}";
        assert_eq!(variables(template, "file:///data/a/b?q=1").as_deref(), Some("path=a/b q=1"));
        assert_eq!(variables(template, "file:///data//etc/passwd?q=1"), None);
        assert_eq!(
            variables(template, "file:///data//etc/passwd?q=11111111111111111111111111111111111"),
            None
        );
        // The path is not split inside a character.
        assert_eq!(variables("{a}/x{?q}", "ü/x?q=1").as_deref(), Some("a=ü q=1"));
        assert_eq!(variables("{a}/ü{b}{?q}", "x/üy?q=1").as_deref(), Some("a=x b=y q=1"));
    }

    #[test]
    fn a_path_stays_below_the_slash_it_follows() {
        let below = UriTemplate::parse("file:///{+path}").unwrap();
        for (uri, covered) in [
            ("file:///a/b", true),
            ("file:////etc/hostname", false),
            ("file:///%2Fetc/passwd", false),
            ("file:///%5Cserver", false),
            ("file:///C:/x", false),
            ("file:///a/../b", false),
        ] {
            assert_eq!(below.matches(uri).is_some(), covered, "{uri}");
        }
        // Here the slash is a part of the path.
        assert!(UriTemplate::parse("file://{+path}").unwrap().matches("file:///a").is_some());
        assert!(UriTemplate::parse("s://x{?q}").unwrap().matches("s://x?q=%00").is_none());
    }

    #[test]
    fn finds_variables() {
        assert_eq!(variables("test://template/{id}/data", "test://template/123/data").unwrap(), "id=123");
        assert_eq!(variables("a://{x}/{y}", "a://1/%C3%A9").unwrap(), "x=1 y=é");
        assert_eq!(variables("file:///{+path}", "file:///a/b/c").unwrap(), "path=a/b/c");
        assert_eq!(variables("s://find{?q,page}", "s://find?page=2&q=a%20b").unwrap(), "page=2 q=a b");
        assert_eq!(variables("s://find{?q}", "s://find").unwrap(), "");
    }

    #[test]
    fn does_not_match_other_uris() {
        for (template, uri) in [
            ("a://{x}", "a://"),
            ("a://{x}", "a://1/2"),
            ("a://{x}", "a://1%2F2"),
            ("a://{x}", "a://.."),
            ("a://{x}", "a://%2e%2e"),
            ("a://{x}", "a://%00"),
            ("a://{x}", "a://%zz"),
            ("a://{x}", "a://%ff"),
            ("a://{x}/b", "a://1/c"),
            ("a://{+x}", "a://b/../c"),
            ("a://{+x}", "a://b%2f%2e%2e"),
            ("s://find{?q}", "s://find?z=1"),
            ("s://find{?q}", "s://find?q=1&q=2"),
        ] {
            assert_eq!(variables(template, uri), None, "{template} {uri}");
        }
    }

    #[test]
    fn rejects_invalid_templates() {
        for bad in ["{", "}", "a{x}{y}", "{x}/{x}", "{}", "{?a}b", "{x y}", "a}b{c}"] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(template in "[a{}+?/,%]{0,20}", uri in "[a/?%&=.]{0,20}") {
            if let Ok(template) = UriTemplate::parse(&template) {
                let _ = template.matches(&uri);
            }
        }
    }
}
