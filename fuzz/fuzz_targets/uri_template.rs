//! Matches a URI, on the second line, against a template, on the first, with [`UriTemplate`]. The matched
//! values are those of the URI, and a segment is one segment.

#![cfg_attr(fuzzing, no_main)]

use bindpost_mcp_server::UriTemplate;

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let text = bindpost_fuzz::text(data);
    let (source, uri) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(template) = UriTemplate::parse(source) else { return };
    let parts = parts(source);
    let names: Vec<&str> = parts.iter().flat_map(Part::names).collect();
    assert_eq!(template.variables().collect::<Vec<_>>(), names);

    if let Some(found) = template.matches(uri) {
        check(&parts, uri, &found);
    }
    covers_what_it_describes(&template, &parts);
}

/// A template, parsed a second time.
enum Part<'a> {
    Literal(&'a str),
    Segment(&'a str),
    Reserved(&'a str),
    Query(Vec<&'a str>),
}

impl<'a> Part<'a> {
    fn names(&self) -> Vec<&'a str> {
        match self {
            Part::Literal(_) => Vec::new(),
            Part::Segment(name) | Part::Reserved(name) => vec![name],
            Part::Query(names) => names.clone(),
        }
    }
}

fn parts(template: &str) -> Vec<Part<'_>> {
    // Braces are balanced in every accepted template, so every other piece is an expression.
    let pieces =
        template.split(['{', '}']).enumerate().filter(|(index, piece)| index % 2 == 1 || !piece.is_empty());
    pieces
        .map(|(index, piece)| match piece.as_bytes() {
            _ if index % 2 == 0 => Part::Literal(piece),
            [b'?', ..] => Part::Query(piece[1..].split(',').collect()),
            [b'+', ..] => Part::Reserved(&piece[1..]),
            _ => Part::Segment(piece),
        })
        .collect()
}

/// Inserts the values into the template and checks that the result is the URI, except for percent-encoding.
fn check(parts: &[Part<'_>], uri: &str, found: &[(String, String)]) {
    let mut values = found.iter();
    let mut rest = uri.as_bytes();
    for part in parts {
        match part {
            Part::Literal(literal) => rest = rest.strip_prefix(literal.as_bytes()).expect("the literal"),
            Part::Segment(name) | Part::Reserved(name) => {
                let (found, value) = values.next().expect("a value for every variable of the path");
                assert_eq!(found, name);
                assert!(!value.is_empty());
                let is_segment = matches!(part, Part::Segment(_));
                assert!(!(is_segment && value.contains(['/', '\\'])), "{value:?} is not a segment");
                let mut segments = value.split(['/', '\\']);
                assert!(segments.all(|segment| segment != "." && segment != ".."), "{value:?} contains dots");
                assert!(!value.contains('\0'), "{value:?} contains a NUL");
                // After `://` a path may be absolute. After any other slash it must be relative.
                let before = &uri.as_bytes()[..uri.len() - rest.len()];
                let below = before.ends_with(b"/") && !before.ends_with(b"://");
                assert!(!(below && value.starts_with(['/', '\\'])), "{value:?} is absolute");
                rest = skip(rest, value);
            }
            Part::Query(names) => {
                let mut seen = Vec::new();
                rest = rest.strip_prefix(b"?").unwrap_or(rest);
                for (name, value) in values.by_ref() {
                    assert!(names.contains(&name.as_str()), "{name:?} is not a variable");
                    assert!(!seen.contains(&name), "{name:?} occurs twice");
                    seen.push(name);
                    rest = skip_all(rest, b'&');
                    rest = skip(rest, name);
                    rest = rest.strip_prefix(b"=").unwrap_or(rest);
                    rest = skip(rest, value);
                }
                rest = skip_all(rest, b'&');
            }
        }
    }
    assert!(rest.is_empty(), "{:?} of the URI was not matched", String::from_utf8_lossy(rest));
    assert!(values.next().is_none());
}

/// Skips a value, plain or percent-encoded.
fn skip<'a>(mut rest: &'a [u8], value: &str) -> &'a [u8] {
    for &byte in value.as_bytes() {
        rest = match rest {
            [b'%', high, low, after @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("two digits");
                assert_eq!(u8::from_str_radix(digits, 16), Ok(byte));
                after
            }
            [plain, after @ ..] if *plain == byte => after,
            _ => panic!("{value:?} is not in the URI"),
        };
    }
    rest
}

fn skip_all(rest: &[u8], byte: u8) -> &[u8] {
    let count = rest.iter().take_while(|&&other| other == byte).count();
    &rest[count..]
}

/// A URI that was built from the template matches it, with the same values.
fn covers_what_it_describes(template: &UriTemplate, parts: &[Part<'_>]) {
    let literals =
        || parts.iter().filter_map(|part| if let Part::Literal(text) = part { Some(*text) } else { None });
    // With query variables the path ends at the first `?`.
    let has_query = matches!(parts.last(), Some(Part::Query(_)));
    if has_query && literals().any(|literal| literal.contains('?')) {
        return;
    }
    // A value that contains no literal of the template.
    let Some(value) = ('a'..='z').find(|letter| !literals().any(|literal| literal.contains(*letter))) else {
        return;
    };
    let value = value.to_string();
    let mut uri = String::new();
    let mut expected = Vec::new();
    for part in parts {
        match part {
            Part::Literal(literal) => uri.push_str(literal),
            Part::Segment(_) | Part::Reserved(_) => uri.push_str(&value),
            Part::Query(names) => {
                let pairs: Vec<String> = names.iter().map(|name| format!("{name}={value}")).collect();
                uri.push('?');
                uri.push_str(&pairs.join("&"));
            }
        }
        expected.extend(part.names().into_iter().map(|name| (name.to_owned(), value.clone())));
    }
    // Longer than the supported URI length.
    if uri.len() <= 8 * 1024 {
        assert_eq!(template.matches(&uri), Some(expected), "{uri:?}");
    }
}
