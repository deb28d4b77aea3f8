//! Finds the files that `main` of package.json names: a path, or a pattern with `*`, `?`, `**`,
//! `[…]` and `{a,b}`.
//!
//! The patterns are those of the Functions worker for Node. Only files match, not folders.

use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of patterns that a pattern such as `{a,b}{a,b}…` expands to.
const MAX_PATTERNS: usize = 256;
/// The maximum number of directory entries to check.
const MAX_ENTRIES: usize = 50_000;

/// Returns the files below `folder` that match the pattern, sorted by path.
pub(super) fn find_matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut search = EntryFileSearch { found: Vec::new(), left: MAX_ENTRIES };
    for pattern in expand_braces(pattern) {
        // A file name may contain characters that are special in a pattern.
        let literal = folder.join(&pattern);
        if literal.is_file() {
            search.found.push(literal);
            continue;
        }
        let segments: Vec<&str> =
            pattern.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")).collect();
        search.walk(folder, &segments);
    }
    search.found.sort();
    search.found.dedup();
    search.found
}

struct EntryFileSearch {
    found: Vec<PathBuf>,
    left: usize,
}

impl EntryFileSearch {
    fn walk(&mut self, folder: &Path, segments: &[&str]) {
        let Some((first, rest)) = segments.split_first() else { return };
        if *first == "**" {
            self.walk(folder, rest);
        } else if !first.contains(['*', '?', '[']) {
            let path = folder.join(first);
            if !rest.is_empty() {
                self.walk(&path, rest);
            } else if path.is_file() {
                self.found.push(path);
            }
            return;
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // As in a shell, a wildcard does not match hidden files.
            if name.starts_with('.') && !first.starts_with('.') {
                continue;
            }
            let path = entry.path();
            if *first == "**" {
                // Links are not followed here, because they may form a cycle.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && name != "node_modules" {
                    self.walk(&path, segments);
                }
            } else if matches(&first.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>()) {
                if !rest.is_empty() {
                    self.walk(&path, rest);
                } else if path.is_file() {
                    self.found.push(path);
                }
            }
        }
    }
}

/// Returns whether a name matches one segment of a pattern.
fn matches(pattern: &[char], name: &[char]) -> bool {
    // `star` is the position to backtrack to: after the last star in the pattern, and after the part of the
    // name that this star matches.
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(p), name.get(n)) {
            (None, None) => return true,
            (Some('*'), _) => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            (Some('?'), Some(_)) => Some(1),
            (Some('['), Some(c)) => class(pattern.get(p..).unwrap_or_default(), *c),
            (Some(expected), Some(c)) if expected == c => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((after, taken))) if taken < name.len() => {
                star = Some((after, taken + 1));
                (p, n) = (after, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Returns the length of the character class at the start of a pattern, if the character is in the class.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
    let members = pattern.get(1..end)?;
    let (is_negated, members) = match members.split_first() {
        Some(('!' | '^', rest)) => (true, rest),
        _ => (false, members),
    };
    let in_range =
        members.windows(3).any(|three| matches!(three, [from, '-', to] if (from..=to).contains(&&c)));
    (is_negated != (in_range || members.contains(&c))).then_some(end + 1)
}

/// Expands the braces of a pattern.
fn expand_braces(pattern: &str) -> Vec<String> {
    let mut open = vec![pattern.to_owned()];
    let mut plain = Vec::new();
    while let Some(pattern) = open.pop() {
        match first_braces(&pattern) {
            Some((before, choices, after)) if open.len() + plain.len() < MAX_PATTERNS => {
                open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
            _ => plain.push(pattern),
        }
    }
    plain
}

/// Splits a pattern at the first pair of braces into the text before, the choices, and the text after.
fn first_braces(pattern: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (before, inside) = pattern.split_once('{')?;
    let mut depth = 0;
    let mut choices = Vec::new();
    let mut begin = 0;
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                choices.push(inside.get(begin..at)?);
                begin = at + 1;
            }
            '}' => {
                choices.push(inside.get(begin..at)?);
                return Some((before, choices, inside.get(at + 1..)?));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, name: &str) -> bool {
        matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
    }

    #[test]
    fn a_segment_matches_as_in_a_shell() {
        assert!(is_match("*.js", "index.js") && is_match("a*b*c", "aXbYbZc") && is_match("*", "x"));
        assert!(is_match("?.js", "a.js") && !is_match("?.js", "ab.js") && !is_match("*.js", "a.ts"));
        assert!(is_match("[a-c]x", "bx") && !is_match("[!a-c]x", "bx") && is_match("[!a-c]x", "dx"));
        assert!(!is_match("a*b*c", "aXbYbZ") && !is_match("", "x") && is_match("**", "x"));
    }

    #[test]
    fn braces_expand_to_all_choices() {
        let mut all = expand_braces("dist/src/{index.js,{a,b}/*.js}");
        all.sort();
        assert_eq!(all, ["dist/src/a/*.js", "dist/src/b/*.js", "dist/src/index.js"]);
        assert_eq!(expand_braces("open{a,b"), ["open{a,b"]);
        assert!(expand_braces(&"{a,b}".repeat(60)).len() <= 2 * MAX_PATTERNS);
    }
}
