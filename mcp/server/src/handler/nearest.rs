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
    let wanted = letters(name);
    // At most a third of the letters may differ, so names of two letters have no suggestion.
    let most = wanted.len() / 3;
    let near = known.iter().map(|candidate| (distance(&wanted, &letters(candidate)), *candidate));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, candidate)| candidate)
}

/// Returns the characters that are compared: lower case, without separators. So
/// `allowedOrigins` equals `allowed_origins`.
pub fn letters(name: &str) -> Vec<char> {
    let is_letter = |character: &char| !['_', '-', '.'].contains(character);
    name.chars().take(100).filter(is_letter).flat_map(char::to_lowercase).collect()
}

/// Returns the edit distance: the number of substitutions, insertions, deletions and transpositions.
pub fn distance(one: &[char], other: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=other.len()).collect();
    let mut above_that: Vec<usize> = Vec::new();
    let mut before = None;
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let cost = |row: &[usize], at: usize| row.get(at).map_or(usize::MAX, |cost| cost + 1);
            let same = above.get(j).copied().filter(|_| a == b).unwrap_or(usize::MAX);
            let steps = [same, cost(&above, j), cost(&above, j + 1), cost(&row, j)];
            let mut best = steps.into_iter().min().unwrap_or(usize::MAX);
            let last = j.checked_sub(1);
            if let Some(last) = last.filter(|last| other.get(*last) == Some(a) && before == Some(b)) {
                best = best.min(cost(&above_that, last));
            }
            row.push(best);
        }
        above_that = std::mem::replace(&mut above, row);
        before = Some(a);
    }
    above.last().copied().unwrap_or_default()
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
            assert_eq!(distance(&letters(one), &letters(other)), expected, "{one} {other}");
        }
    }
}
