use proptest::prelude::*;

use super::*;

fn is_field(path: &str) -> bool {
    matches!(path, "title" | "address/city")
}

fn parse(text: &str) -> Result<QueryNode, ApiError> {
    parse_full(text, &is_field)
}

fn parsed(text: &str) -> String {
    print(&parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text).message
}

/// Prints a query in the full syntax, with a sign before each clause: `?` where the mode
/// decides, `|` for should.
fn print(node: &QueryNode) -> String {
    match node {
        QueryNode::All => "*:*".to_owned(),
        QueryNode::Nothing => "NOTHING".to_owned(),
        QueryNode::Term(text) => escape(text),
        QueryNode::Phrase { text, slop } => {
            let slop = if *slop > 0 { format!("~{slop}") } else { String::new() };
            format!("\"{}\"{slop}", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        QueryNode::Prefix(text) => format!("{}*", escape(text)),
        QueryNode::Wildcard(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                WildcardPiece::Text(text) => escape(text),
                WildcardPiece::Any => "*".to_owned(),
                WildcardPiece::One => "?".to_owned(),
            })
            .collect(),
        QueryNode::Fuzzy { text, distance } => format!("{}~{distance}", escape(text)),
        QueryNode::Regex(expression) => format!("/{}/", expression.replace('/', "\\/")),
        QueryNode::Field { path, node } => format!("{path}:{}", print(node)),
        QueryNode::Boost { node, factor } => format!("{}^{factor}", print(node)),
        QueryNode::Clauses(clauses) => {
            let clauses: Vec<_> = clauses
                .iter()
                .map(|clause| {
                    let sign = match clause.occur {
                        ClauseOccur::Default => "",
                        ClauseOccur::Must => "+",
                        ClauseOccur::Should => "|",
                        ClauseOccur::MustNot => "-",
                    };
                    format!("{sign}{}", print(&clause.node))
                })
                .collect();
            format!("({})", clauses.join(" "))
        }
    }
}

fn escape(text: &str) -> String {
    text.chars()
        .flat_map(|letter| (!letter.is_alphanumeric()).then_some('\\').into_iter().chain([letter]))
        .collect()
}

#[test]
fn reads_every_kind_of_clause() {
    for (text, expected) in [
        ("", "*:*"),
        (" * ", "*:*"),
        ("*:*", "*:*"),
        ("hotel", "hotel"),
        ("\"ocean view\"", "\"ocean view\""),
        ("\"ocean view\"~5", "\"ocean view\"~5"),
        ("roam~", "roam~2"),
        ("roam~1", "roam~1"),
        ("roam~7", "roam~2"),
        ("roam~0.8", "roam~0"),
        ("roam~0.5", "roam~2"),
        ("air*", "air*"),
        ("air**", "air*"),
        ("te?t", "te?t"),
        ("t*t*", "t*t*"),
        ("/[mh]otel/", "/[mh]otel/"),
        ("rock^2 electronic", "(rock^2 electronic)"),
        ("\"a b\"~3^0.5", "\"a b\"~3^0.5"),
        ("roam~1^4", "roam~1^4"),
        ("(a b)^2", "(a b)^2"),
        ("title:hotel", "title:hotel"),
        ("title: hotel", "title:hotel"),
        ("title:(a OR b)^3", "title:(|a |b)^3"),
        ("address/city:\"New York\"", "address/city:\"New York\""),
        ("title:/h.*/", "title:/h.*/"),
        ("title:foo^2", "title:foo^2"),
        ("hands-free", "hands\\-free"),
        ("https\\:\\/\\/*", "https\\:\\/\\/*"),
        ("business~analyst", "business\\~analyst"),
        ("a^b", "a\\^b"),
        ("\\u0041bc", "Abc"),
        ("and or not", "(and or not)"),
        ("C++", "C\\+\\+"),
        ("a - b", "(a \\- b)"),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn joins_clauses_as_classic_lucene_does() {
    for (text, expected) in [
        ("a b", "(a b)"),
        ("a AND b", "(+a +b)"),
        ("a && b", "(+a +b)"),
        ("a OR b", "(|a |b)"),
        ("a || b", "(|a |b)"),
        ("a AND b OR c", "(+a +b |c)"),
        ("a OR b AND c", "(|a +b +c)"),
        ("a b OR c", "(a |b |c)"),
        ("a NOT b", "(a -b)"),
        ("a AND NOT b", "(+a -b)"),
        ("a OR NOT b", "(|a -b)"),
        ("+a -b !c", "(+a -b -c)"),
        ("NOT a", "(-a)"),
        ("-(a b)", "(-(a b))"),
        ("(a AND b) OR c", "(|(+a +b) |c)"),
        ("(a)", "a"),
        ("+a", "a"),
        ("NOT(a)", "(-a)"),
        ("ANDROID ORDER NOTE", "(ANDROID ORDER NOTE)"),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn errors_name_the_position_and_the_reason() {
    for (text, expected) in [
        ("hotel AND", "line 1, column 10: the text ends where"),
        ("AND a", "line 1, column 1: an operator needs a clause before it"),
        ("a AND OR b", "column 7: there are two operators in a row"),
        ("a +", "column 4: the text ends"),
        ("hello!", "column 7: the text ends"),
        ("(a b", "column 1: this `(` is never closed"),
        ("a\nb)", "line 2, column 2: this `)` has no matching `(`"),
        ("()", "column 2: a word, a phrase or `(` is missing here"),
        ("x \"a b", "column 3: this quote is never closed"),
        ("x /a b", "column 3: this expression is never closed"),
        ("*abc", "column 1: a word cannot begin with `*` or `?`"),
        ("?abc", "column 1: a word cannot begin"),
        ("title:*", "column 7: a word cannot begin"),
        ("a title:?x", "column 9: a word cannot begin"),
        ("rating:5", "column 1: `rating` is not a searchable field"),
        ("x https://a.b", "column 3: `https` is not a searchable field"),
        ("title:a:b", "column 8: this is a second colon"),
        ("title:", "column 7: the text ends"),
        ("title:[a TO b]", "column 7: ranges are not supported"),
        ("a [1 TO 2}", "column 3: ranges are not supported"),
        ("a^", "column 2: `^` needs a number"),
        ("a^-1", "column 2: `^` needs a number"),
        ("a^1.2.3", "column 2: `^` needs a number"),
        ("a~1.2.3", "column 2: `~` needs a number"),
        ("a\\", "column 2: nothing follows this backslash"),
        ("--a", "column 2: this character is not allowed here"),
        ("~a", "column 1: this character is not allowed here"),
        ("address/city:OR", "column 14: there are two operators in a row"),
    ] {
        let message = refused(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn rejects_oversized_texts() {
    let nested = format!("{}a{}", "(".repeat(40_000), ")".repeat(40_000));
    assert!(refused(&nested).contains("nests deeper than 100"));
    assert!(refused(&"(".repeat(90_000)).contains("nests deeper"));
    let deepest = format!("{}a{}", "-(".repeat(100), ")".repeat(100));
    drop(parse(&deepest).unwrap());
    assert!(refused(&"a ".repeat(1_025)).contains("1024"));
    assert!(refused(&format!("b \"{}\"~2", "a ".repeat(1_024))).contains("1024"));
    assert!(refused(&"a".repeat(100_001)).contains("100000"));
}

fn nodes() -> impl Strategy<Value = QueryNode> {
    let text = "[a-zA-Zäß+&|!(){}\\[\\]^\"~*?:\\\\/ -]{1,6}"
        .prop_filter("operators are not words", |text| !matches!(text.as_str(), "AND" | "OR" | "NOT"));
    let leaf = prop_oneof![
        text.clone().prop_map(QueryNode::Term),
        text.clone().prop_map(QueryNode::Prefix),
        (text.clone(), 0_u32..9).prop_map(|(text, slop)| QueryNode::Phrase { text, slop }),
        (text.clone(), 0_u8..3).prop_map(|(text, distance)| QueryNode::Fuzzy { text, distance }),
        "[a-z.*/]{1,5}".prop_map(QueryNode::Regex),
        text.prop_map(|text| QueryNode::Wildcard(vec![
            WildcardPiece::Text(text),
            WildcardPiece::One,
            WildcardPiece::Any
        ])),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let sign =
            prop_oneof![Just(ClauseOccur::Default), Just(ClauseOccur::Must), Just(ClauseOccur::MustNot)];
        let clause = (sign, inner.clone()).prop_map(|(occur, node)| QueryClause { occur, node });
        prop_oneof![
            prop::collection::vec(clause, 2..4).prop_map(QueryNode::Clauses),
            inner
                .prop_filter("one field or boost is enough", |node| !matches!(node, QueryNode::Boost { .. }))
                .prop_map(|node| QueryNode::Boost { node: Box::new(node), factor: 2.5 }),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_it_printed(node in nodes()) {
        let text = print(&node);
        prop_assert_eq!(parse(&text).expect(&text), node, "{}", text);
    }

    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn never_panics_on_signs(text in r#"[ab1 +\-!&|(){}\[\]^"~*?:\\/.]{0,40}|(title:|AND |NOT |OR |a |\(|\)|\^2|~1){0,20}"#) {
        let _ = parse(&text);
    }
}
