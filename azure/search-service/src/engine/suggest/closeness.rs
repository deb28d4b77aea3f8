//! Compares a word of a text with the typed word, or its prefix, with at most one mistake.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closeness {
    Far,
    /// The words are equal, or equal except for one mistake.
    Near,
    /// The word starts with the typed text.
    Start,
}

/// Compares a token with a typed word. One mistake is an added, a missing or a different letter, or two
/// swapped adjacent letters.
pub(super) fn closeness(typed: &str, token: &str, may_go_on: bool, mistakes: bool) -> Closeness {
    if token == typed {
        return Closeness::Near;
    }
    if may_go_on && token.starts_with(typed) {
        return Closeness::Start;
    }
    if !mistakes {
        return Closeness::Far;
    }
    let typed: Vec<char> = typed.chars().collect();
    let token: Vec<char> = token.chars().take(typed.len() + 2).collect();
    let near = match may_go_on {
        false => within_one(&typed, &token),
        // One mistake may also change the length of the prefix.
        true => (typed.len().saturating_sub(1)..=typed.len() + 1)
            .any(|length| token.get(..length).is_some_and(|start| within_one(&typed, start))),
    };
    if near { Closeness::Near } else { Closeness::Far }
}

fn within_one(one: &[char], other: &[char]) -> bool {
    let same = one.iter().zip(other).take_while(|(left, right)| left == right).count();
    let (one, other) = (one.get(same..).unwrap_or_default(), other.get(same..).unwrap_or_default());
    match (one, other) {
        ([], rest) | (rest, []) => rest.len() <= 1,
        ([_, one_rest @ ..], [_, other_rest @ ..])
            if one_rest == other_rest || one_rest == other || one == other_rest =>
        {
            true
        }
        ([a, b, one @ ..], [c, d, other @ ..]) => a == d && b == c && one == other,
        _ => false,
    }
}
