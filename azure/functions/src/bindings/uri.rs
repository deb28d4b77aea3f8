//! [`UriPattern`]: validates the URIs of resources, and matches URIs with templates.
//!
//! A template is a URI with expressions like `{name}`. The operators of RFC 6570 are not supported: the text
//! between the braces is the name. An expression matches one or more characters except `/`, `?` and `#`.
//! Directly after `?` or `&` it matches everything except `&` and `#`. The matched text is passed on without
//! decoding.

mod check;

pub use check::{check_uri, is_template};

/// A URI with expressions, ready to match.
#[derive(Clone, Debug)]
pub struct UriPattern {
    /// The text before the first expression, folded.
    start: Vec<char>,
    captures: Vec<UriCapture>,
    text: String,
    normalized: String,
}

/// One expression and the literal text after it.
#[derive(Clone, Debug)]
struct UriCapture {
    name: String,
    /// Whether it is the value of a query parameter.
    in_query: bool,
    /// The text after it, folded.
    then: Vec<char>,
}

impl UriPattern {
    /// Parses a template. The messages are those of the MCP extension. A URI without expressions is a pattern
    /// that matches itself.
    pub fn parse(text: &str) -> Result<UriPattern, String> {
        check_uri(text)?;
        let mut start = text;
        let mut captures = Vec::new();
        if let Some((before, rest)) = text.split_once('{') {
            start = before;
            let mut before = before;
            for expression in rest.split('{') {
                // The check has verified that all braces match.
                let (name, then) = expression.split_once('}').unwrap_or((expression, ""));
                let in_query = before.ends_with(['?', '&']);
                captures.push(UriCapture { name: name.to_owned(), in_query, then: folded(then) });
                before = then;
            }
        }
        let literals = captures.iter().map(|capture| &capture.then);
        let normalized = literals.fold(start.chars().map(fold).collect::<String>(), |mut text, literal| {
            text.push_str("{}");
            text.extend(literal);
            text
        });
        Ok(UriPattern { start: folded(start), captures, text: text.to_owned(), normalized })
    }

    /// Returns the names and values of the expressions, if the whole URI matches in any case. If several
    /// matches exist, earlier expressions match as much as they can. Takes time linear in the URI.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        if uri.len() > check::LONGEST {
            return None;
        }
        let offsets: Vec<usize> = uri.char_indices().map(|(at, _)| at).chain([uri.len()]).collect();
        let chars = folded(uri);
        if !chars.starts_with(&self.start) {
            return None;
        }
        let ends = self.furthest_ends(&chars);
        let mut at = self.start.len();
        let mut found = Vec::with_capacity(self.captures.len());
        for (capture, ends) in self.captures.iter().zip(ends.iter().rev()) {
            let end = ends.get(at).copied().flatten()?;
            let value = uri.get(*offsets.get(at)?..*offsets.get(end)?)?;
            found.push((capture.name.clone(), value.to_owned()));
            at = end + capture.then.len();
        }
        (at == chars.len()).then_some(found)
    }

    /// Returns the template as a key. Templates with the same key match the same URIs.
    pub fn normalized(&self) -> &str {
        &self.normalized
    }

    /// Returns the template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns, for every expression, last one first, and every start position, the furthest end with which
    /// the rest of the pattern matches the rest of the text.
    ///
    /// Each result follows from those already computed, so nothing is tried twice. Backtracking from the left
    /// takes exponential time on templates like `{a}x{b}x{c}x…`.
    fn furthest_ends(&self, chars: &[char]) -> Vec<Vec<Option<usize>>> {
        let mut table: Vec<Vec<Option<usize>>> = Vec::with_capacity(self.captures.len());
        for capture in self.captures.iter().rev() {
            let rest_matches = |at: usize| match table.last() {
                None => at == chars.len(),
                Some(ends) => ends.get(at).is_some_and(Option::is_some),
            };
            let ends_here = |at: usize| {
                chars.get(at..).is_some_and(|rest| rest.starts_with(&capture.then))
                    && rest_matches(at + capture.then.len())
            };
            let mut ends = vec![None; chars.len() + 1];
            // The furthest end in the run of characters that the expression may match.
            let mut furthest = None;
            for (at, char) in chars.iter().enumerate().rev() {
                if furthest.is_none() && ends_here(at + 1) {
                    furthest = Some(at + 1);
                }
                if !capture.accepts(*char) {
                    furthest = None;
                }
                if let Some(end) = ends.get_mut(at) {
                    *end = furthest;
                }
            }
            table.push(ends);
        }
        table
    }
}

impl UriCapture {
    fn accepts(&self, char: char) -> bool {
        if self.in_query { !matches!(char, '&' | '#') } else { !matches!(char, '/' | '?' | '#') }
    }
}

fn folded(text: &str) -> Vec<char> {
    text.chars().map(fold).collect()
}

/// Returns the lower case of a character if that is one character, so that positions stay the same.
fn fold(char: char) -> char {
    let mut lower = char.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => char,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(template: &str, uri: &str) -> Option<Vec<String>> {
        let found = UriPattern::parse(template).unwrap().matches(uri)?;
        Some(found.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn templates_match_whole_uris_in_any_case() {
        for (template, uri, expected) in [
            ("user://profile/{name}", "user://profile/bob", Some("name=bob")),
            ("user://profile/{name}", "USER://Profile/Bob", Some("name=Bob")),
            ("user://profile/{name}", "user://profile/", None),
            ("user://profile/{name}", "user://profile/a/b", None),
            ("user://profile/{name}", "user://profile/a?b", None),
            ("user://profile/{name}", "user://profile/a#b", None),
            ("user://profile/{name}", "xuser://profile/a", None),
            ("user://{name}/end", "user://a/endless", None),
            ("user://profile/{name}", "user://profile/a%2Fb%20c", Some("name=a%2Fb%20c")),
            ("user://profile/{user-id}", "user://profile/7", Some("user-id=7")),
            ("user://{name}/x", "user://bob/X", Some("name=bob")),
            ("user://profile/{name}", "user://profile/äÖ", Some("name=äÖ")),
            (
                "store://catalog/{category}items{tag}",
                "store://catalog/booksitemsfiction",
                Some("category=books,tag=fiction"),
            ),
            ("x://{a}-{b}", "x://1-2-3", Some("a=1-2,b=3")),
            ("x://{a}-{b}", "x://--", None),
            ("x://{a}-{b}", "x://---", Some("a=-,b=-")),
            ("x://s?q={a}&r={b}", "x://s?q=1&r=2", Some("a=1,b=2")),
            ("x://s?q={a}", "x://s?q=1/2", None),
            ("x://s?{a}&{b}", "x://s?q=1/2?&r=3", Some("a=q=1/2?,b=r=3")),
            ("x://s?{a}", "x://s?q#f", None),
            ("x://s?{a}", "x://s?q&r", None),
            // A search from the right alone would find `?` too late for the first expression.
            ("x://{a}?{b}", "x://p?q?r", Some("a=p,b=q?r")),
            ("file://readme.md", "file://README.md", Some("")),
            ("file://readme.md", "file://readme.mdx", None),
        ] {
            let expected = expected.map(|text| {
                text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
            });
            assert_eq!(captured(template, uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn equivalent_templates_have_one_key() {
        let key = |text| UriPattern::parse(text).unwrap().normalized().to_owned();
        assert_eq!(key("X://{a}/{b}.md"), key("x://{c}/{d}.MD"));
        assert_ne!(key("x://{a}/{b}"), key("x://{a}/{b}/"));
        assert_eq!(key("x://{a}/b"), "x://{}/b");
    }

    #[test]
    fn many_expressions_do_not_take_exponential_time() {
        let template: String = (0..30).map(|n| format!("{{p{n}}}a")).collect();
        let pattern = UriPattern::parse(&format!("x://{template}b")).unwrap();
        let started = std::time::Instant::now();
        assert_eq!(pattern.matches(&format!("x://{}", "a".repeat(5_000))), None);
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    #[test]
    fn a_uri_longer_than_the_limit_of_dotnet_matches_nothing() {
        let pattern = UriPattern::parse("x://{a}").unwrap();
        assert!(pattern.matches(&format!("x://{}", "a".repeat(1_000))).is_some());
        assert!(pattern.matches(&format!("x://{}", "a".repeat(70_000))).is_none());
    }

    /// Returns the template with values in place of its expressions.
    fn filled(template: &str, values: &[(String, String)]) -> String {
        values
            .iter()
            .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// Returns a template of alternating literals and expressions.
    fn template(literals: &[String]) -> String {
        literals
            .iter()
            .enumerate()
            .fold("x://".to_owned(), |text, (n, literal)| format!("{text}{{p{n}}}{literal}"))
    }

    /// Returns the end of each expression by backtracking: longest first, and back if the rest does not
    /// match.
    fn backtracking(captures: &[UriCapture], chars: &[char]) -> Option<Vec<usize>> {
        let Some((first, rest)) = captures.split_first() else { return chars.is_empty().then(Vec::new) };
        let run = chars.iter().take_while(|char| first.accepts(**char)).count();
        (1..=run).rev().find_map(|length| {
            let behind = chars[length..].strip_prefix(first.then.as_slice())?;
            Some([vec![length], backtracking(rest, behind)?].concat())
        })
    }

    proptest! {
        #[test]
        fn matching_gives_what_backtracking_gives(
            literals in prop::collection::vec("[ab/?&]{1,2}", 1..4),
            last in any::<bool>(),
            uri in "[abAB/?&#]{0,16}",
        ) {
            let mut template = template(&literals);
            if last {
                template.push_str("{last}");
            }
            let pattern = UriPattern::parse(&template).unwrap();
            let lengths = |values: Vec<(String, String)>| values.iter().map(|(_, value)| value.chars().count()).collect();
            let found: Option<Vec<usize>> = pattern.matches(&format!("x://{uri}")).map(lengths);
            prop_assert_eq!(found, backtracking(&pattern.captures, &folded(&uri)));
        }

        #[test]
        fn captures_put_back_give_the_uri(
            literals in prop::collection::vec("[ab/?&=.äÄ-]{1,3}", 1..5),
            uri in "x://[abAB/?&=.äÄ#-]{0,24}",
        ) {
            let template = template(&literals);
            let pattern = UriPattern::parse(&template).unwrap();
            if let Some(values) = pattern.matches(&uri) {
                prop_assert_eq!(folded(&filled(&template, &values)), folded(&uri));
                prop_assert!(values.iter().all(|(_, value)| !value.is_empty() && !value.contains('#')));
            }
        }

        #[test]
        fn a_filled_template_matches(
            literals in prop::collection::vec("[ab/?&=.äÄ-]{1,3}", 1..5),
            values in prop::collection::vec("[abc.=-]{1,4}", 5),
        ) {
            let template = template(&literals);
            let values: Vec<_> = values.into_iter().enumerate().map(|(n, value)| (format!("p{n}"), value)).collect();
            let uri = filled(&template, &values).to_uppercase();
            prop_assert!(UriPattern::parse(&template).unwrap().matches(&uri).is_some(), "{} {}", template, uri);
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "(x:)?[a/{}?&%7Bb#ß İ]{0,16}", uri in "\\PC{0,16}") {
            if let Ok(pattern) = UriPattern::parse(&text) {
                let _ = pattern.matches(&uri);
                let _ = pattern.matches(&text);
            }
        }
    }
}
