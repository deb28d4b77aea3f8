//! Validates the URI of a resource. The messages are those of the MCP extension.

/// The maximum length of a URI in .NET, here in bytes.
pub(super) const LONGEST: usize = 65_519;

/// The text that replaces an expression when the rest is checked.
const PLACEHOLDER: &str = "placeholder";

/// Returns whether a URI is a template, which has an expression with text between its braces.
pub fn is_template(uri: &str) -> bool {
    uri.split('{').skip(1).any(|part| part.split_once('}').is_some_and(|(name, _)| !name.is_empty()))
}

/// Validates a URI or a template.
pub fn check_uri(uri: &str) -> Result<(), String> {
    if uri.trim().is_empty() {
        return Err("Resource URI cannot be null or whitespace.".to_owned());
    }
    if !is_template(uri) {
        if uri.contains(['{', '}']) {
            let message = "Resource URI contains malformed template syntax (unmatched or empty braces).";
            return Err(message.to_owned());
        }
        return check_absolute(uri, uri);
    }
    let Some((names, filled)) = expressions(uri) else {
        return Err("Resource URI template has unbalanced braces.".to_owned());
    };
    if uri.contains("}{") {
        let message = "Resource URI template expressions must be separated by at least one literal \
                       character or delimiter.";
        return Err(message.to_owned());
    }
    check_names(&names)?;
    check_absolute(uri, &filled)
}

/// Returns the names between braces, and the URI with a word in place of each. Returns `None` if braces do
/// not match.
fn expressions(uri: &str) -> Option<(Vec<&str>, String)> {
    let mut parts = uri.split('{');
    let before = parts.next().filter(|before| !before.contains('}'))?;
    let mut names = Vec::new();
    let mut filled = before.to_owned();
    for part in parts {
        let (name, then) = part.split_once('}').filter(|(_, then)| !then.contains('}'))?;
        names.push(name);
        filled.push_str(PLACEHOLDER);
        filled.push_str(then);
    }
    Some((names, filled))
}

fn check_names(names: &[&str]) -> Result<(), String> {
    for name in names.iter().filter(|name| !name.trim().is_empty()) {
        // The names become binding data, which ignores case.
        let key = binding_key(name);
        let same: Vec<String> = names
            .iter()
            .filter(|other| binding_key(other).eq_ignore_ascii_case(&key))
            .map(|other| format!("'{other}'"))
            .collect();
        if same.len() > 1 {
            return Err(format!(
                "Resource URI template has duplicate or colliding parameter names: {} all resolve to '{key}'.",
                same.join(", ")
            ));
        }
    }
    for name in names {
        if name.trim().is_empty() {
            return Err("Resource URI template parameters cannot be empty.".to_owned());
        }
        if name.contains(['/', '#', '?', '&', ' ']) {
            return Err(format!("Resource URI template parameter '{name}' contains invalid characters."));
        }
        let lower = name.to_ascii_lowercase();
        if lower.contains("%7b") || lower.contains("%7d") {
            return Err(format!("Resource URI template parameter '{name}' contains encoded braces."));
        }
    }
    Ok(())
}

/// Returns the name of a parameter in the binding data: all but letters, digits and `_` become `_`.
fn binding_key(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' }).collect()
}

fn check_absolute(uri: &str, filled: &str) -> Result<(), String> {
    let absolute = filled.len() <= LONGEST && is_absolute(filled.trim());
    absolute.then_some(()).ok_or_else(|| format!("Invalid resource URI format: '{uri}'"))
}

/// Returns whether a URI has a scheme with text after it, and a valid host and port.
fn is_absolute(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let letters = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.');
    if !scheme.starts_with(|char: char| char.is_ascii_alphabetic()) || !scheme.chars().all(letters) {
        return false;
    }
    if rest.is_empty() || rest.contains(|char: char| char.is_control()) {
        return false;
    }
    let Some(rest) = rest.strip_prefix("//") else { return !needs_host(scheme) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let behind_address = host_and_port.rsplit_once(']').map_or(host_and_port, |(_, rest)| rest);
    let (host, port) = behind_address.split_once(':').unwrap_or((behind_address, ""));
    let port_is_one =
        port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let has_host = !host.is_empty() || host_and_port.contains(']');
    port_is_one && (has_host || !needs_host(scheme)) && !rest.is_empty()
}

fn needs_host(scheme: &str) -> bool {
    ["http", "https", "ws", "wss", "ftp"].iter().any(|known| known.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_something_between_braces() {
        for (uri, expected) in [
            ("x://{a}", true),
            ("x://a", false),
            ("x://{}", false),
            ("x://{a", false),
            ("x://a}", false),
            ("x://{}{a}", true),
            ("{{a}", true),
        ] {
            assert_eq!(is_template(uri), expected, "{uri}");
        }
    }

    #[test]
    fn every_mistake_has_the_message_of_the_extension() {
        let malformed = "Resource URI contains malformed template syntax (unmatched or empty braces).";
        let unbalanced = "Resource URI template has unbalanced braces.";
        for (uri, message) in [
            ("", "Resource URI cannot be null or whitespace."),
            (" \t", "Resource URI cannot be null or whitespace."),
            ("x://{", malformed),
            ("x://}", malformed),
            ("x://{}", malformed),
            ("x://{a}}", unbalanced),
            ("x://{a}/{b", unbalanced),
            ("x://{{a}}", unbalanced),
            ("x://}{a}", unbalanced),
            (
                "x://{a}{b}",
                "Resource URI template expressions must be separated by at least one literal character or delimiter.",
            ),
            (
                "x://{a}/{a}",
                "Resource URI template has duplicate or colliding parameter names: 'a', 'a' all resolve to 'a'.",
            ),
            (
                "x://{a}/{A}",
                "Resource URI template has duplicate or colliding parameter names: 'a', 'A' all resolve to 'a'.",
            ),
            (
                "x://{a-b}/{a_b}",
                "Resource URI template has duplicate or colliding parameter names: 'a-b', 'a_b' all resolve to 'a_b'.",
            ),
            ("x://{a}/{}", "Resource URI template parameters cannot be empty."),
            ("x://{a}/{ }", "Resource URI template parameters cannot be empty."),
            ("x://{a/b}", "Resource URI template parameter 'a/b' contains invalid characters."),
            ("x://{#a}", "Resource URI template parameter '#a' contains invalid characters."),
            ("x://{?a}", "Resource URI template parameter '?a' contains invalid characters."),
            ("x://{&a}", "Resource URI template parameter '&a' contains invalid characters."),
            ("x://{a b}", "Resource URI template parameter 'a b' contains invalid characters."),
            ("x://{a%7Bb}", "Resource URI template parameter 'a%7Bb' contains encoded braces."),
            ("x://{a%7d}", "Resource URI template parameter 'a%7d' contains encoded braces."),
            ("readme.md", "Invalid resource URI format: 'readme.md'"),
            ("a/{b}", "Invalid resource URI format: 'a/{b}'"),
            ("1x://a", "Invalid resource URI format: '1x://a'"),
            ("x:", "Invalid resource URI format: 'x:'"),
            ("http://", "Invalid resource URI format: 'http://'"),
            ("http:/a", "Invalid resource URI format: 'http:/a'"),
            ("x://a:port/", "Invalid resource URI format: 'x://a:port/'"),
            ("x://a:99999/", "Invalid resource URI format: 'x://a:99999/'"),
            ("x://a\nb", "Invalid resource URI format: 'x://a\nb'"),
        ] {
            assert_eq!(check_uri(uri), Err(message.to_owned()), "{uri}");
        }
    }

    #[test]
    fn absolute_uris_and_their_templates_are_accepted() {
        for uri in [
            "file://readme.md",
            "file:///a b",
            "ui://T/view",
            "urn:isbn:1",
            "snippet://{Name}",
            "http://{host}/x",
            "x://[::1]:80/a",
            "x://me:secret@host:1/",
            "test://template/{id}/data",
            "x://s?q={a}&r={b}",
            "X+y-1.2:a",
            "data:,{a}",
        ] {
            assert_eq!(check_uri(uri), Ok(()), "{uri}");
        }
        assert!(check_uri(&format!("x://{}", "a".repeat(70_000))).is_err());
    }
}
