//! Versions: [`PythonVersion`], and [`VersionSpecifier`], which says which versions an app accepts.

use std::fmt;

/// The numbers of a version of Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PythonVersion {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) micro: u32,
}

impl PythonVersion {
    /// Parses `3.11.7` and `3.11`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (numbers, _) = release_numbers(text.trim());
        let &[major, minor, ref rest @ ..] = numbers.as_slice() else { return None };
        Some(Self { major, minor, micro: rest.first().copied().unwrap_or(0) })
    }

    pub(super) fn numbers(self) -> [u32; 3] {
        [self.major, self.minor, self.micro]
    }

    pub(super) fn has_minor_of(self, other: Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

/// Conditions on a version, such as `>=3.11,<3.14`. All of them must hold.
///
/// The operators are those of Python's packages, and `^` and `~` of Poetry. Suffixes of pre-releases are
/// ignored: `>=2.2.0b2` is `>=2.2.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionSpecifier {
    clauses: Vec<VersionClause>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct VersionClause {
    operator: VersionOperator,
    numbers: Vec<u32>,
    /// Whether the version ends with `.*`.
    is_prefix: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionOperator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    /// `~=3.11.2`: at least this version, with the same numbers but for the last one.
    Compatible,
    /// `^3.11` of Poetry: at least this version, with the same first number.
    Caret,
    /// `~3.11` of Poetry: at least this version, with the same first two numbers.
    Tilde,
}

/// The operators, longer ones before their beginnings.
const OPERATORS: [(&str, VersionOperator); 11] = [
    ("===", VersionOperator::Equal),
    ("==", VersionOperator::Equal),
    ("!=", VersionOperator::NotEqual),
    ("<=", VersionOperator::AtMost),
    (">=", VersionOperator::AtLeast),
    ("~=", VersionOperator::Compatible),
    ("<", VersionOperator::Less),
    (">", VersionOperator::Greater),
    ("^", VersionOperator::Caret),
    ("~", VersionOperator::Tilde),
    ("=", VersionOperator::Equal),
];

impl VersionSpecifier {
    /// Returns `None` for a text that is empty or has other operators, such as `||`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let clauses: Vec<VersionClause> = parts.map(VersionClause::parse).collect::<Option<_>>()?;
        (!clauses.is_empty()).then(|| Self { clauses, text: text.trim().to_owned() })
    }

    pub(super) fn matches(&self, version: &[u32]) -> bool {
        self.clauses.iter().all(|clause| clause.matches(version))
    }

    /// Returns whether any version with these first numbers may match. `[2]` stands for all of 2.0 to 2.999.
    pub(super) fn may_match_below(&self, prefix: &[u32]) -> bool {
        const ANY: u32 = 9999;
        let with = |filler: u32| prefix.iter().copied().chain([filler, filler]).collect::<Vec<_>>();
        let bounds = self.clauses.iter().filter(|clause| clause.numbers.starts_with(prefix));
        // A clause can only cut the range at its own version, so these samples are sufficient.
        let samples = bounds.flat_map(|clause| {
            let exact = clause.numbers.clone();
            let next = exact.iter().copied().chain([1]).collect();
            [exact, next]
        });
        [with(0), with(ANY)].into_iter().chain(samples).any(|version| self.matches(&version))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl VersionClause {
    fn parse(text: &str) -> Option<Self> {
        let known = OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)));
        // Poetry writes an exact version without an operator.
        let (operator, version) = known.unwrap_or((VersionOperator::Equal, text));
        let (numbers, rest) = release_numbers(version.trim().trim_start_matches('v'));
        let is_suffix =
            |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c));
        if numbers.is_empty() || !(rest.is_empty() || is_suffix(rest)) || rest.contains(['|', ' ']) {
            return None;
        }
        Some(Self { operator, numbers, is_prefix: rest == ".*" })
    }

    fn matches(&self, version: &[u32]) -> bool {
        let number = |list: &[u32], at: usize| list.get(at).copied().unwrap_or(0);
        let length = self.numbers.len().max(version.len());
        let order = (0..length)
            .map(|at| number(version, at).cmp(&number(&self.numbers, at)))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal);
        let has_first = |count: usize| (0..count).all(|at| number(version, at) == number(&self.numbers, at));
        let is_equal = if self.is_prefix { has_first(self.numbers.len()) } else { order.is_eq() };
        match self.operator {
            VersionOperator::Equal => is_equal,
            VersionOperator::NotEqual => !is_equal,
            VersionOperator::Less => order.is_lt(),
            VersionOperator::AtMost => order.is_le(),
            VersionOperator::Greater => order.is_gt(),
            VersionOperator::AtLeast => order.is_ge(),
            VersionOperator::Compatible => order.is_ge() && has_first(self.numbers.len().saturating_sub(1)),
            VersionOperator::Caret => order.is_ge() && has_first(1),
            VersionOperator::Tilde => order.is_ge() && has_first(self.numbers.len().min(2)),
        }
    }
}

/// Splits a version into its numbers and the rest: `2.2.0b4` into 2, 2, 0 and `b4`.
fn release_numbers(text: &str) -> (Vec<u32>, &str) {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let part = if numbers.is_empty() { rest } else { rest.strip_prefix('.').unwrap_or_default() };
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (digits, after) = part.split_at(end);
        let Ok(number) = digits.parse() else { return (numbers, rest) };
        numbers.push(number);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(specifier: &str, version: &str) -> bool {
        VersionSpecifier::parse(specifier).unwrap().matches(&release_numbers(version).0)
    }

    #[test]
    fn specifiers_match_as_pip_matches_them() {
        for (specifier, version, expected) in [
            (">=3.11", "3.11.0", true),
            (">=3.11", "3.10.13", false),
            (">=3.10,<3.13", "3.12.9", true),
            (">=3.10, <3.13", "3.13.0", false),
            ("==3.12.*", "3.12.4", true),
            ("==3.12.*", "3.13.0", false),
            ("!=3.12.*,>=3.9", "3.12.1", false),
            ("!=3.12.1", "3.12.4", true),
            ("==3.12", "3.12.0", true),
            ("==3.12", "3.12.1", false),
            ("~=3.11", "3.14.0", true),
            ("~=3.11.2", "3.11.7", true),
            ("~=3.11.2", "3.12.0", false),
            ("<=3.12", "3.12.1", false),
            (">3.12", "3.12.1", true),
            ("^3.11", "3.14.0", true),
            ("^3.11", "4.0.0", false),
            ("~3.11", "3.11.9", true),
            ("~3.11", "3.12.0", false),
            ("3.11.*", "3.11.9", true),
            (">=2.2.0b2", "2.2.0", true),
        ] {
            assert_eq!(matches(specifier, version), expected, "{specifier} {version}");
        }
    }

    #[test]
    fn other_texts_are_no_specifiers() {
        for text in ["", " , ", "*", "^3.9 || ^3.11", ">=three", "python"] {
            assert_eq!(VersionSpecifier::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_of_versions_may_match() {
        for (specifier, prefix, expected) in [
            (">=2.1", &[2][..], true),
            (">=2.1", &[1], false),
            ("<2", &[2], false),
            ("<2", &[1, 26], true),
            ("==1.25.0", &[1, 25], true),
            ("==1.25.0", &[1, 26], false),
            ("~=1.25.0", &[1, 26], false),
            (">1.25,<1.25.3", &[1, 25], true),
            ("==1.*", &[2], false),
        ] {
            let found = VersionSpecifier::parse(specifier).unwrap().may_match_below(prefix);
            assert_eq!(found, expected, "{specifier} {prefix:?}");
        }
    }

    #[test]
    fn versions_are_parsed_and_ordered() {
        let version = |text| PythonVersion::parse(text).unwrap();
        assert_eq!(version("3.13.0rc1").to_string(), "3.13.0");
        assert!(version("3.9.18") < version("3.10.1") && version("3.10") == version("3.10.0"));
        assert_eq!(PythonVersion::parse("3"), None);
        assert_eq!(PythonVersion::parse("pypy"), None);
    }
}
