//! The simple query syntax: `+` and, `|` or, `-` not, quotes, parentheses, and `*` at the end of a word.
//!
//! It has no syntax errors: a misplaced operator, and a quote or parenthesis without its counterpart,
//! are ignored. Operators apply from left to right with equal precedence: `a | b + c` is `(a | b) + c`.

use std::str::Chars;

use super::tree::{ClauseOccur, QueryClause, QueryNode};
use super::{MAX_DEPTH, check_length, count_clause, too_deep};
use crate::ApiError;

/// Parses a search text. It only fails if the text is too large.
pub fn parse_simple(text: &str) -> Result<QueryNode, ApiError> {
    check_length(text)?;
    let text = text.trim();
    if text.is_empty() || text == "*" {
        return Ok(QueryNode::All);
    }
    let mut tokens = tokens(text);
    drop_lonely_parentheses(&mut tokens);
    build(tokens)
}

#[derive(Debug, PartialEq)]
enum SimpleToken {
    Clause(QueryNode),
    Open,
    Close,
    And,
    Or,
    Not,
}

fn tokens(text: &str) -> Vec<SimpleToken> {
    let mut tokens = Vec::new();
    let mut letters = text.chars();
    loop {
        let here = letters.clone();
        let Some(letter) = letters.next() else { return tokens };
        match letter {
            '(' => tokens.push(SimpleToken::Open),
            ')' => tokens.push(SimpleToken::Close),
            '+' => tokens.push(SimpleToken::And),
            '|' => tokens.push(SimpleToken::Or),
            // A dash before a space or at the end is ignored.
            '-' => {
                let next = letters.clone().next();
                if next.is_some_and(|next| !next.is_whitespace()) {
                    tokens.push(SimpleToken::Not);
                }
            }
            '"' => {
                // Without a closing quote, the rest is read as words. It contains no further quote.
                let mut ahead = letters.clone();
                if let Some(text) = phrase(&mut ahead) {
                    letters = ahead;
                    if !text.trim().is_empty() {
                        tokens.push(SimpleToken::Clause(QueryNode::Phrase { text, slop: 0 }));
                    }
                }
            }
            letter if letter.is_whitespace() => {}
            _ => {
                letters = here;
                tokens.extend(word(&mut letters).map(SimpleToken::Clause));
            }
        }
    }
}

/// Reads the text up to the closing quote. Returns `None` if there is no closing quote.
fn phrase(letters: &mut Chars<'_>) -> Option<String> {
    let mut phrase = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Some(phrase),
            '\\' => phrase.extend(letters.next()),
            letter => phrase.push(letter),
        }
    }
    None
}

/// Reads a word. Returns `None` for a backslash at the end of the text.
fn word(letters: &mut Chars<'_>) -> Option<QueryNode> {
    let mut word = String::new();
    // The length of the word in bytes without the stars at its end.
    let mut before_stars = 0;
    let mut stars = false;
    loop {
        let here = letters.clone();
        let Some(letter) = letters.next() else { break };
        match letter {
            '"' | '|' | '+' | '(' | ')' => {
                *letters = here;
                break;
            }
            letter if letter.is_whitespace() => break,
            '\\' => {
                word.extend(letters.next());
                stars = false;
            }
            '*' => {
                if !stars {
                    before_stars = word.len();
                }
                stars = true;
                word.push('*');
            }
            letter => {
                stars = false;
                word.push(letter);
            }
        }
    }
    if stars && before_stars > 0 {
        word.truncate(before_stars);
        return Some(QueryNode::Prefix(word));
    }
    (!word.is_empty()).then_some(QueryNode::Term(word))
}

fn drop_lonely_parentheses(tokens: &mut Vec<SimpleToken>) {
    let mut open = Vec::new();
    let mut lonely = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            SimpleToken::Open => open.push(at),
            SimpleToken::Close if open.pop().is_none() => lonely.push(at),
            _ => {}
        }
    }
    lonely.extend(open);
    if lonely.is_empty() {
        return;
    }
    lonely.sort_unstable();
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        lonely.binary_search(&(at - 1)).is_err()
    });
}

/// The clauses read so far within one pair of parentheses, or in the whole text.
#[derive(Default)]
struct OpenGroup {
    group: ClauseGroup,
    /// The operator since the last clause. The first of several applies.
    sign: Option<ClauseOccur>,
    /// The number of dashes right before the next clause.
    dashes: usize,
}

impl OpenGroup {
    fn add(&mut self, (node, depth): (QueryNode, usize)) -> Result<(), ApiError> {
        let (node, depth) = match std::mem::take(&mut self.dashes) % 2 {
            0 => (node, depth),
            _ => (QueryNode::Clauses(vec![QueryClause { occur: ClauseOccur::MustNot, node }]), depth + 1),
        };
        let sign = self.sign.take().unwrap_or(ClauseOccur::Default);
        self.group.add(node, sign, depth)
    }
}

/// Clauses joined by the same operator so far.
#[derive(Default)]
enum ClauseGroup {
    #[default]
    Empty,
    One(QueryNode, usize),
    Many {
        sign: ClauseOccur,
        clauses: Vec<QueryClause>,
        depth: usize,
    },
}

impl ClauseGroup {
    fn add(&mut self, node: QueryNode, sign: ClauseOccur, depth: usize) -> Result<(), ApiError> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match self {
            Self::Many { sign: same, clauses, depth: deepest } if *same == sign => {
                clauses.push(QueryClause { occur: sign, node });
                *deepest = (*deepest).max(depth + 1);
            }
            _ => {
                *self = match std::mem::take(self).finish() {
                    None => Self::One(node, depth),
                    Some((first, first_depth)) => {
                        let clauses =
                            vec![QueryClause { occur: sign, node: first }, QueryClause { occur: sign, node }];
                        Self::Many { sign, clauses, depth: first_depth.max(depth) + 1 }
                    }
                };
            }
        }
        match self {
            Self::Many { depth, .. } if *depth > MAX_DEPTH => Err(too_deep()),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Option<(QueryNode, usize)> {
        match self {
            Self::Empty => None,
            Self::One(node, depth) => Some((node, depth)),
            Self::Many { clauses, depth, .. } => Some((QueryNode::Clauses(clauses), depth)),
        }
    }
}

fn build(tokens: Vec<SimpleToken>) -> Result<QueryNode, ApiError> {
    let mut above: Vec<OpenGroup> = Vec::new();
    let mut level = OpenGroup::default();
    let mut clauses = 0;
    for token in tokens {
        match token {
            SimpleToken::Clause(node) => {
                count_clause(&mut clauses, &node)?;
                level.add((node, 1))?;
            }
            SimpleToken::Open => {
                if above.len() >= MAX_DEPTH {
                    return Err(too_deep());
                }
                above.push(std::mem::take(&mut level));
            }
            SimpleToken::Close => {
                let Some(outer) = above.pop() else { continue };
                let inner = std::mem::replace(&mut level, outer);
                match inner.group.finish() {
                    Some(node) => level.add(node)?,
                    // Operators before empty parentheses are dropped with them.
                    None => {
                        level.sign = None;
                        level.dashes = 0;
                    }
                }
            }
            SimpleToken::And | SimpleToken::Or => {
                level.dashes = 0;
                if level.sign.is_none() && !matches!(level.group, ClauseGroup::Empty) {
                    let occur =
                        if token == SimpleToken::And { ClauseOccur::Must } else { ClauseOccur::Should };
                    level.sign = Some(occur);
                }
            }
            SimpleToken::Not => level.dashes += 1,
        }
    }
    Ok(level.group.finish().map_or(QueryNode::Nothing, |(node, _)| node))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        show(&parse_simple(text).unwrap())
    }

    /// Prints a query: `&` for must, `/` for should, `_` where the mode decides.
    fn show(node: &QueryNode) -> String {
        match node {
            QueryNode::All => "ALL".to_owned(),
            QueryNode::Nothing => "NOTHING".to_owned(),
            QueryNode::Term(text) => text.clone(),
            QueryNode::Phrase { text, .. } => format!("\"{text}\""),
            QueryNode::Prefix(text) => format!("{text}*"),
            QueryNode::Clauses(clauses) => {
                let clauses: Vec<_> = clauses
                    .iter()
                    .map(|clause| {
                        let sign = match clause.occur {
                            ClauseOccur::Default => "_",
                            ClauseOccur::Must => "&",
                            ClauseOccur::Should => "/",
                            ClauseOccur::MustNot => "!",
                        };
                        format!("{sign}{}", show(&clause.node))
                    })
                    .collect();
                format!("({})", clauses.join(" "))
            }
            other => panic!("the simple syntax has no {other:?}"),
        }
    }

    #[test]
    fn reads_words_signs_phrases_and_prefixes() {
        for (text, expected) in [
            ("", "ALL"),
            ("  * ", "ALL"),
            ("wifi", "wifi"),
            ("wifi luxury", "(_wifi _luxury)"),
            ("wifi+luxury", "(&wifi &luxury)"),
            ("wifi + luxury + pool", "(&wifi &luxury &pool)"),
            ("wifi | luxury", "(/wifi /luxury)"),
            ("motel+(wifi|luxury)", "(&motel &(/wifi /luxury))"),
            ("wifi -luxury", "(_wifi _(!luxury))"),
            ("wifi + -luxury", "(&wifi &(!luxury))"),
            ("-(a b)", "(!(_a _b))"),
            ("--a", "a"),
            ("\"Roach Motel\" pool", "(_\"Roach Motel\" _pool)"),
            ("lux*", "lux*"),
            ("lux**", "lux*"),
            ("l*x", "l*x"),
            ("hands-free", "hands-free"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn applies_operators_from_left_to_right() {
        assert_eq!(parsed("a b + c"), "(&(_a _b) &c)");
        assert_eq!(parsed("a | b + c"), "(&(/a /b) &c)");
        assert_eq!(parsed("a + b | c"), "(/(&a &b) /c)");
        assert_eq!(parsed("budget hotel +pool"), "(&(_budget _hotel) &pool)");
    }

    #[test]
    fn ignores_misplaced_operators() {
        for (text, expected) in [
            ("a +", "a"),
            ("+ a", "a"),
            ("a + | b", "(&a &b)"),
            ("a - b", "(_a _b)"),
            ("a -", "a"),
            ("\"open quote", "(_open _quote)"),
            ("(open parenthesis", "(_open _parenthesis)"),
            ("closed) too", "(_closed _too)"),
            ("() a", "a"),
            ("()", "NOTHING"),
            ("+", "NOTHING"),
            ("\"\"", "NOTHING"),
            ("\\", "NOTHING"),
            ("a\"b c\"d", "(_a _\"b c\" _d)"),
            ("(a \"b) c\"", "(_a _\"b) c\")"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn treats_an_escaped_operator_as_text() {
        assert_eq!(parse_simple(r"\-a").unwrap(), QueryNode::Term("-a".to_owned()));
        assert_eq!(parse_simple(r"c\+\+").unwrap(), QueryNode::Term("c++".to_owned()));
        assert_eq!(parse_simple(r"lux\*").unwrap(), QueryNode::Term("lux*".to_owned()));
        assert_eq!(parse_simple(r"a\ b").unwrap(), QueryNode::Term("a b".to_owned()));
        assert_eq!(
            parse_simple(r#""say \"hi\"""#).unwrap(),
            QueryNode::Phrase { text: "say \"hi\"".to_owned(), slop: 0 }
        );
    }

    #[test]
    fn rejects_oversized_texts() {
        let nested = format!("{}a{}", "(".repeat(40_000), ")".repeat(40_000));
        assert!(parse_simple(&nested).unwrap_err().message.contains("nests deeper than 100"));
        let changing = "a+b|".repeat(2_000);
        assert!(parse_simple(&changing).unwrap_err().message.contains("nests deeper"));
        assert!(parse_simple(&"a ".repeat(1_025)).unwrap_err().message.contains("1024"));
        // The words in phrases count too.
        assert!(parse_simple(&format!("\"{}\"", "a ".repeat(1_024))).is_ok());
        for text in [format!("\"{}\"", "a ".repeat(1_025)), format!("\"{}\" b", "a ".repeat(1_024))] {
            assert!(parse_simple(&text).unwrap_err().message.contains("1024"));
        }
        assert!(parse_simple(&"a".repeat(100_001)).unwrap_err().message.contains("100000"));
        // Ignored parentheses and quotes do not count as nesting.
        assert_eq!(parsed(&format!("{}a", "(".repeat(50_000))), "a");
        assert_eq!(parsed(&format!("{}a", "\"".repeat(99_999))), "a");
    }

    proptest! {
        #[test]
        fn reads_any_text(text in any::<String>()) {
            parse_simple(&text).unwrap();
        }

        #[test]
        fn reads_any_mix_of_signs(text in r#"[ab \+|\-"()*\\]{0,60}"#) {
            parse_simple(&text).unwrap();
        }

        #[test]
        fn a_word_whose_letters_are_all_escaped_is_that_word(word in r#"[a-z+|\-"()*\\ ]{1,12}"#) {
            let escaped: String = word.chars().flat_map(|letter| ['\\', letter]).collect();
            // Spaces around the whole text are ignored, even if they are escaped.
            prop_assume!(!word.ends_with(' '));
            prop_assert_eq!(parse_simple(&escaped).unwrap(), QueryNode::Term(word));
        }
    }
}
