//! Suggestions for misspelled names in error messages.

/// Returns the known name with the most similar spelling, if one is similar enough.
///
/// ```
/// use bindpost_mcp_server::nearest::nearest;
///
/// assert_eq!(nearest("orderid", &["orderId", "reason"]), Some("orderId"));
/// assert_eq!(nearest("colour", &["orderId", "reason"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // At most a third of the letters may differ, so names of two letters have no suggestion.
    nearest_within(name, known.iter().copied(), letter_count(name) / 3)
}

/// Says that a name is unknown, with the nearest known one, or with all of them if none is near.
pub(crate) fn describe_unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(meant) => format!("{name:?} is unknown; did you mean {meant:?}?"),
        None if known.is_empty() => format!("{name:?} is unknown; no name is known here"),
        None => format!("{name:?} is unknown; known: {}", known.join(", ")),
    }
}

/// Returns the known name with the fewest edits, if there are at most `most`.
pub fn nearest_within<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Option<&'a str> {
    let near = known.into_iter().map(|candidate| (distance(name, candidate), candidate));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, candidate)| candidate)
}

/// Returns the edit distance: the number of substitutions, insertions, deletions and transpositions of
/// letters. Case and separators do not count, so `allowedOrigins` equals `allowed_origins`.
pub fn distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(&letters(one), &letters(other))
}

/// Returns the number of letters that [`distance`] compares.
pub fn letter_count(name: &str) -> usize {
    letters(name).chars().count()
}

/// Returns the characters that are compared, of the first 100: lower case, without separators.
fn letters(name: &str) -> String {
    let is_letter = |character: &char| !['_', '-', '.'].contains(character);
    name.chars().take(100).filter(is_letter).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_number_of_edits() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("titel", "title", 1),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
