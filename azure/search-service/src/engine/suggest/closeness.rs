//! Whether a word of a text is what was typed, or begins with it, give or take one mistake.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closeness {
    Far,
    /// The same, or the same but for one mistake.
    Near,
    /// Goes on after what was typed.
    Start,
}

/// One mistake is a letter too many, too few, another one, or two neighbours in the wrong order.
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
        // One mistake may also change the length of the beginning.
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
