//! Translates Lucene regular expressions for the automata of tantivy.
//!
//! An expression must match a whole term. `^`, `$` and other characters without a meaning in Lucene are
//! literal. `@` matches any text, `"…"` is literal text, and `\d \D \s \S \w \W` are ASCII classes.
//! Complement (`~`), intersection (`&`), the empty language (`#`) and numeric intervals (`<1-9>`) are
//! rejected, because the automata do not support them.

use std::iter::Peekable;
use std::str::Chars;

/// The approximate number of automaton steps for a class of nearly all letters.
pub(super) const ANY_LETTER: usize = 45;
/// The maximum depth of nested parentheses.
const MAX_DEPTH: usize = 50;
/// The maximum number within braces.
const MAX_REPEAT: usize = 1_000;

/// Returns the expression in Rust's syntax and its size. The error is a reason for the client.
pub(super) fn translate(expression: &str, max_steps: usize) -> Result<(String, usize), String> {
    let mut reader = RegexTranslator { letters: expression.chars().peekable(), max_steps };
    let piece = reader.union(0)?;
    match reader.letters.peek() {
        None => Ok((piece.written, piece.steps)),
        Some(_) => Err("a `)` has no matching `(`. Escape it as `\\)`".to_owned()),
    }
}

struct RegexTranslator<'a> {
    letters: Peekable<Chars<'a>>,
    max_steps: usize,
}

#[derive(Default)]
struct TranslatedRegex {
    written: String,
    steps: usize,
}

impl RegexTranslator<'_> {
    fn union(&mut self, depth: usize) -> Result<TranslatedRegex, String> {
        if depth > MAX_DEPTH {
            return Err(format!("its parentheses nest deeper than {MAX_DEPTH} levels"));
        }
        let mut union = self.row(depth)?;
        while self.letters.next_if_eq(&'|').is_some() {
            let next = self.row(depth)?;
            union.written = format!("{}|{}", union.written, next.written);
            union.steps = self.bounded(union.steps + next.steps + 2)?;
        }
        Ok(union)
    }

    fn row(&mut self, depth: usize) -> Result<TranslatedRegex, String> {
        let mut row = TranslatedRegex::default();
        while let Some(&letter) = self.letters.peek() {
            if matches!(letter, '|' | ')') {
                break;
            }
            let piece = self.repeated(depth)?;
            row.written.push_str(&piece.written);
            row.steps = self.bounded(row.steps + piece.steps)?;
        }
        Ok(row)
    }

    fn repeated(&mut self, depth: usize) -> Result<TranslatedRegex, String> {
        let mut piece = self.single(depth)?;
        let mut signs = 0;
        while let Some(&sign) = self.letters.peek() {
            let (suffix, times) = match sign {
                '?' => ("?".to_owned(), 1),
                '*' => ("*".to_owned(), 1),
                '+' => ("+".to_owned(), 2),
                '{' => {
                    self.letters.next();
                    self.braces()?
                }
                _ => break,
            };
            if sign != '{' {
                self.letters.next();
            }
            signs += 1;
            if signs > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} repetition operators are adjacent"));
            }
            piece.steps = self.bounded((piece.steps + 2).saturating_mul(times))?;
            // The group prevents `a*?` from becoming a lazy repetition, which Lucene does not have.
            piece.written = format!("(?:{}){suffix}", piece.written);
        }
        Ok(piece)
    }

    /// Parses `{3}`, `{3,}` or `{3,5}` after the opening brace. Also returns how often the piece is copied.
    fn braces(&mut self) -> Result<(String, usize), String> {
        let least = self.number()?;
        let most = match self.letters.next_if_eq(&',') {
            None => Some(least),
            Some(_) if self.letters.peek() == Some(&'}') => None,
            Some(_) => Some(self.number()?),
        };
        if self.letters.next() != Some('}') {
            return Err(
                "a `{` is not closed. Write `{2}`, `{2,}` or `{2,5}`, or escape it as `\\{`".to_owned()
            );
        }
        match most {
            None => Ok((format!("{{{least},}}"), least + 1)),
            Some(most) if most < least => {
                Err(format!("`{{{least},{most}}}` has a minimum above its maximum"))
            }
            Some(most) => Ok((format!("{{{least},{most}}}"), most.max(1))),
        }
    }

    fn number(&mut self) -> Result<usize, String> {
        let mut digits = String::new();
        while let Some(digit) = self.letters.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        match digits.parse() {
            Ok(number) if number <= MAX_REPEAT => Ok(number),
            _ => Err(format!("braces must hold numbers up to {MAX_REPEAT}")),
        }
    }

    fn single(&mut self, depth: usize) -> Result<TranslatedRegex, String> {
        let Some(letter) = self.letters.next() else { return Ok(TranslatedRegex::default()) };
        Ok(match letter {
            '.' => TranslatedRegex { written: "(?s:.)".to_owned(), steps: ANY_LETTER },
            '@' => TranslatedRegex { written: "(?s:.)*".to_owned(), steps: ANY_LETTER + 2 },
            '(' => {
                let inner = self.union(depth + 1)?;
                if self.letters.next() != Some(')') {
                    return Err("a `(` is not closed. Escape it as `\\(` if it is text".to_owned());
                }
                TranslatedRegex { written: format!("(?:{})", inner.written), steps: inner.steps }
            }
            '[' => self.class()?,
            '"' => {
                let mut text = TranslatedRegex::default();
                loop {
                    match self.letters.next() {
                        None => {
                            return Err("a `\"` is not closed. Escape it as `\\\"` if it is text".to_owned());
                        }
                        Some('"') => break,
                        Some(letter) => {
                            let letter = literal(letter);
                            text.written.push_str(&letter.written);
                            text.steps = self.bounded(text.steps + letter.steps)?;
                        }
                    }
                }
                TranslatedRegex { written: format!("(?:{})", text.written), steps: text.steps }
            }
            '~' | '&' | '#' | '<' => {
                return Err(format!(
                    "`{letter}` as an operator is not supported here. Escape it as `\\{letter}` if it is text"
                ));
            }
            '\\' => match self.letters.next() {
                None => return Err("it ends with a backslash. Double it".to_owned()),
                Some(letter) => known_class(letter).unwrap_or_else(|| literal(letter)),
            },
            letter => literal(letter),
        })
    }

    /// Parses a character class after `[`.
    fn class(&mut self) -> Result<TranslatedRegex, String> {
        let negated = self.letters.next_if_eq(&'^').is_some();
        let mut written = String::new();
        let mut steps = if negated { ANY_LETTER } else { 0 };
        loop {
            let open = || "a `[` is not closed. Escape it as `\\[` if it is text".to_owned();
            let from = match self.letters.next().ok_or_else(open)? {
                ']' if !written.is_empty() => break,
                '\\' => {
                    let letter = self.letters.next().ok_or_else(open)?;
                    if let Some(class) = known_class(letter) {
                        written.push_str(&class.written);
                        steps = self.bounded(steps + class.steps)?;
                        continue;
                    }
                    letter
                }
                letter => letter,
            };
            let to = match self.letters.next_if_eq(&'-') {
                None => from,
                // A dash at the end of a class is literal.
                Some(_) if self.letters.peek() == Some(&']') => {
                    written.push_str("\\-");
                    steps += 3;
                    from
                }
                Some(_) => match self.letters.next().ok_or_else(open)? {
                    '\\' => self.letters.next().ok_or_else(open)?,
                    letter => letter,
                },
            };
            let (from, to) = (lower(from), lower(to));
            if from > to {
                return Err(format!("the range `{from}-{to}` is in descending order"));
            }
            written.push_str(&format!("\\x{{{:x}}}-\\x{{{:x}}}", u32::from(from), u32::from(to)));
            steps = self.bounded(steps + if to.is_ascii() { 3 } else { ANY_LETTER })?;
        }
        let sign = if negated { "^" } else { "" };
        Ok(TranslatedRegex { written: format!("[{sign}{written}]"), steps })
    }

    fn bounded(&self, steps: usize) -> Result<usize, String> {
        if steps > self.max_steps {
            return Err("it is too large. Simplify it".to_owned());
        }
        Ok(steps)
    }
}

fn literal(letter: char) -> TranslatedRegex {
    let letters: String = letter.to_lowercase().collect();
    TranslatedRegex { steps: letters.len(), written: format!("(?:{})", regex::escape(&letters)) }
}

/// Returns the lower case of a letter, or the letter itself if its lower case has several letters.
fn lower(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn known_class(letter: char) -> Option<TranslatedRegex> {
    let (written, steps) = match letter {
        'd' => ("[0-9]", 3),
        'D' => ("[^0-9]", ANY_LETTER + 3),
        's' => ("[ \\t\\n\\r]", 12),
        'S' => ("[^ \\t\\n\\r]", ANY_LETTER + 12),
        'w' => ("[A-Za-z0-9_]", 12),
        'W' => ("[^A-Za-z0-9_]", ANY_LETTER + 12),
        _ => return None,
    };
    Some(TranslatedRegex { written: written.to_owned(), steps })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tantivy_fst::Regex;

    use super::super::TermPattern;
    use super::*;

    fn fits(expression: &str, term: &str) -> bool {
        let (written, _) = translate(expression, 1_500).unwrap();
        TermPattern::Regex(Regex::new(&written).unwrap_or_else(|error| panic!("{written}: {error}")).into())
            .matches(term)
    }

    #[test]
    fn matches_whole_terms() {
        for (expression, fitting, others) in [
            ("[mh]otel", &["motel", "hotel"][..], &["otel", "hotels", "xhotel"][..]),
            ("h.*l", &["hotel", "hl"], &["hotels"]),
            ("HOTEL", &["hotel"], &["HOTEL"]),
            ("[A-C]x", &["ax", "cx"], &["dx"]),
            ("[^a-c]x", &["dx", "äx"], &["ax"]),
            ("a|bc|", &["a", "bc", ""], &["b"]),
            ("(ab)+c?", &["ab", "ababc"], &["c"]),
            ("a{2}", &["aa"], &["a", "aaa"]),
            ("a{1,2}b{0,}", &["a", "aabbb"], &["aaab"]),
            ("a*?", &["", "aaa"], &["b"]),
            ("a@z", &["az", "abcz"], &["a"]),
            ("\"a.b\"", &["a.b"], &["axb"]),
            (r"a\.b", &["a.b"], &["axb"]),
            (r"\d+\w", &["12x"], &["x"]),
            ("^a$", &["^a$"], &["a"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("gr.ß", &["grüß", "größ"], &["grß"]),
            ("[à-ü]x", &["éx"], &["ex"]),
            ("", &[""], &["a"]),
            ("*a", &["*a"], &["a"]),
            ("[]a]", &["]", "a"], &["b"]),
            (r"[\d.]x", &["1x", ".x"], &["ax"]),
        ] {
            for term in fitting {
                assert!(fits(expression, term), "/{expression}/ matches {term}");
            }
            for term in others {
                assert!(!fits(expression, term), "/{expression}/ does not match {term}");
            }
        }
    }

    #[test]
    fn rejects_unsupported_operators() {
        for (expression, reason) in [
            ("a~b", "`~` as an operator"),
            ("a&b", "`&` as an operator"),
            ("<1-9>", "`<` as an operator"),
            ("#", "`#` as an operator"),
            ("(a", "not closed"),
            ("a)", "no matching `(`"),
            ("[a", "not closed"),
            ("[b-a]", "descending order"),
            ("\"a", "not closed"),
            ("a{", "braces must hold numbers"),
            ("a{2", "not closed"),
            ("a{3,2}", "minimum above its maximum"),
            ("a{9999}", "numbers up to 1000"),
            ("((a{1000}){1000}){1000}", "too large"),
            ("(a?){1000}", "too large"),
            ("a\\", "ends with a backslash"),
        ] {
            let error = translate(expression, 1_500).err().unwrap_or_default();
            assert!(error.contains(reason), "/{expression}/: {error}");
        }
        assert!(translate(&"(".repeat(100_000), 1_500).is_err());
        assert!(translate(&format!("a{}", "*".repeat(100_000)), 1_500).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics_and_writes_valid_rust_regex(expression in r#"[ab\[\](){}|*+?.\\"@^\-,12é]{0,16}"#) {
            if let Ok((written, steps)) = translate(&expression, 300) {
                prop_assert!(steps <= 300);
                if let Err(error) = Regex::new(&written) {
                    let error = error.to_string();
                    prop_assert!(error.contains("states") || error.contains("big"), "{}: {}", written, error);
                }
            }
        }
    }
}
