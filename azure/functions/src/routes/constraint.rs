//! [`RouteConstraint`]: a condition on a value of a route, `{id:int:min(1)}`.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use regex::{Regex, RegexBuilder};
use uuid::Uuid;

/// The maximum size of a compiled regular expression.
const REGEX_BYTES: usize = 1 << 20;

/// A condition on a value of a route.
#[derive(Clone, Debug)]
pub enum RouteConstraint {
    Int,
    Long,
    Decimal,
    Double,
    Float,
    Bool,
    DateTime,
    Guid,
    Alpha,
    Required,
    MinLength(usize),
    MaxLength(usize),
    Length(usize, usize),
    Min(i64),
    Max(i64),
    Range(i64, i64),
    Regex(Regex),
}

/// The names of all constraints, for error messages.
const NAMES: &str = "int, long, decimal, double, float, bool, datetime, guid, alpha, required, minlength(n), maxlength(n), \
                     length(n), length(n,m), min(n), max(n), range(n,m), regex(expression)";

impl RouteConstraint {
    /// Parses a constraint with its arguments, without the colon: `int`, `range(1,9)`. The error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<RouteConstraint, String> {
        let (name, arguments) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(arguments) => (name, Some(arguments)),
                None => return Err(format!("the constraint '{text}' has no closing parenthesis")),
            },
        };
        let wrong = || Err(format!("the constraint '{text}' has arguments that are not valid"));
        let numbers = || -> Option<Vec<i64>> {
            arguments?.split(',').map(|number| number.trim().parse().ok()).collect()
        };
        let lengths = || -> Option<Vec<usize>> {
            numbers()?.into_iter().map(|number| usize::try_from(number).ok()).collect()
        };
        let constraint = match name.trim().to_ascii_lowercase().as_str() {
            "regex" => return regex(arguments.unwrap_or_default()),
            "minlength" => match lengths().as_deref() {
                Some([least]) => RouteConstraint::MinLength(*least),
                _ => return wrong(),
            },
            "maxlength" => match lengths().as_deref() {
                Some([most]) => RouteConstraint::MaxLength(*most),
                _ => return wrong(),
            },
            "length" => match lengths().as_deref() {
                Some([length]) => RouteConstraint::Length(*length, *length),
                Some([least, most]) if least <= most => RouteConstraint::Length(*least, *most),
                _ => return wrong(),
            },
            "min" => match numbers().as_deref() {
                Some([least]) => RouteConstraint::Min(*least),
                _ => return wrong(),
            },
            "max" => match numbers().as_deref() {
                Some([most]) => RouteConstraint::Max(*most),
                _ => return wrong(),
            },
            "range" => match numbers().as_deref() {
                Some([least, most]) if least <= most => RouteConstraint::Range(*least, *most),
                _ => return wrong(),
            },
            plain => {
                let constraint = match plain {
                    "int" => RouteConstraint::Int,
                    "long" => RouteConstraint::Long,
                    "decimal" => RouteConstraint::Decimal,
                    "double" => RouteConstraint::Double,
                    "float" => RouteConstraint::Float,
                    "bool" => RouteConstraint::Bool,
                    "datetime" => RouteConstraint::DateTime,
                    "guid" => RouteConstraint::Guid,
                    "alpha" => RouteConstraint::Alpha,
                    "required" => RouteConstraint::Required,
                    _ => {
                        return Err(format!(
                            "the constraint '{name}' is not known; the constraints are {NAMES}"
                        ));
                    }
                };
                if arguments.is_some() {
                    return wrong();
                }
                constraint
            }
        };
        Ok(constraint)
    }

    /// Returns whether a value satisfies the constraint. Texts are read as .NET reads them in the invariant culture.
    pub(super) fn accepts(&self, value: &str) -> bool {
        let characters = || value.encode_utf16().count();
        match self {
            RouteConstraint::Int => integer(value).is_some_and(|number| i32::try_from(number).is_ok()),
            RouteConstraint::Long => integer(value).is_some(),
            RouteConstraint::Decimal => is_decimal(value),
            RouteConstraint::Double | RouteConstraint::Float => is_double(value),
            RouteConstraint::Bool => matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "false"),
            RouteConstraint::DateTime => is_date_time(value.trim()),
            RouteConstraint::Guid => Uuid::parse_str(guid_digits(value.trim())).is_ok(),
            RouteConstraint::Alpha => value.bytes().all(|byte| byte.is_ascii_alphabetic()),
            RouteConstraint::Required => !value.is_empty(),
            RouteConstraint::MinLength(least) => characters() >= *least,
            RouteConstraint::MaxLength(most) => characters() <= *most,
            RouteConstraint::Length(least, most) => (*least..=*most).contains(&characters()),
            RouteConstraint::Min(least) => integer(value).is_some_and(|number| number >= *least),
            RouteConstraint::Max(most) => integer(value).is_some_and(|number| number <= *most),
            RouteConstraint::Range(least, most) => {
                integer(value).is_some_and(|number| (*least..=*most).contains(&number))
            }
            RouteConstraint::Regex(regex) => regex.is_match(value),
        }
    }
}

fn regex(expression: &str) -> Result<RouteConstraint, String> {
    let built = RegexBuilder::new(expression).case_insensitive(true).size_limit(REGEX_BYTES).build();
    built.map(RouteConstraint::Regex).map_err(|error| {
        let reason = error.to_string();
        let reason =
            reason.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
        format!("the regular expression '{expression}' is not supported: {reason}")
    })
}

/// Parses an integer with optional white space and sign.
fn integer(value: &str) -> Option<i64> {
    value.trim().parse().ok()
}

/// Returns whether .NET parses the text as a number with an optional fraction: digits may be grouped by commas.
fn is_decimal(value: &str) -> bool {
    let digits = value.trim().trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str, allows_comma: bool| {
        text.bytes().all(|byte| byte.is_ascii_digit() || allows_comma && byte == b',')
    };
    let has_digit = digits.bytes().any(|byte| byte.is_ascii_digit());
    has_digit && !whole.starts_with(',') && is_number(whole, true) && is_number(fraction, false)
}

fn is_double(value: &str) -> bool {
    let text = value.trim();
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.trim_start_matches(['+', '-'])),
        None => (text, "0"),
    };
    let is_exponent = !exponent.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = ["nan", "infinity", "-infinity", "+infinity", "∞", "-∞"];
    is_decimal(number) && is_exponent || is_name.contains(&text.to_lowercase().as_str())
}

/// Returns whether the text is a date in ISO 8601 or in the invariant culture, with or without a time.
fn is_date_time(value: &str) -> bool {
    const DATES: [&str; 4] = ["%Y-%m-%d", "%m/%d/%Y", "%Y/%m/%d", "%m-%d-%Y"];
    const TIMES: [&str; 5] = ["%H:%M", "%H:%M:%S", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p"];
    if DateTime::parse_from_rfc3339(value).is_ok()
        || DATES.iter().any(|form| NaiveDate::parse_from_str(value, form).is_ok())
    {
        return true;
    }
    DATES.iter().any(|date| {
        TIMES.iter().any(|time| {
            [' ', 'T'].iter().any(|between| {
                NaiveDateTime::parse_from_str(value, &format!("{date}{between}{time}")).is_ok()
            })
        })
    })
}

/// Removes the braces or parentheses that .NET allows around a GUID.
fn guid_digits(value: &str) -> &str {
    let braced = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let parenthesized = || value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    braced.or_else(parenthesized).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_accept_what_net_parses() {
        for (constraint, accepted, rejected) in [
            ("int", &["1", "-7", "2147483647"][..], &["2147483648", "1.0", "a", "", "1 2"][..]),
            ("long", &["9223372036854775807"], &["9223372036854775808", "x"]),
            ("decimal", &["1", "-1.50", "1,000.5"], &["1e3", "a", "."]),
            ("double", &["1", "1.5e3", "-2E-3", "NaN"], &["a", "e5", ""]),
            ("float", &["0.5"], &["half"]),
            ("bool", &["true", "FALSE"], &["1", "yes"]),
            (
                "datetime",
                &["2026-11-19", "2026-11-19T05:00:00Z", "11/19/2026 5:30 pm", "2026-11-19 05:00"],
                &["x", "2026-13-01"],
            ),
            (
                "guid",
                &["12345678-1234-1234-1234-123456789abc", "{12345678-1234-1234-1234-123456789ABC}"],
                &["1234"],
            ),
            ("alpha", &["abcXYZ"], &["a1", "ä"]),
            ("required", &["a"], &[""]),
            ("minlength(2)", &["ab", "abc"], &["a"]),
            ("maxlength(2)", &["ab", ""], &["abc"]),
            ("length(2)", &["ab"], &["a", "abc"]),
            ("length(1,3)", &["a", "abc"], &["", "abcd"]),
            ("min(18)", &["18", "200"], &["17", "x"]),
            ("max(120)", &["120", "-1"], &["121"]),
            ("range(1,9)", &["1", "9"], &["0", "10"]),
            ("regex(^\\d{3}-[a-z]+$)", &["123-abc", "123-ABC"], &["12-abc"]),
            ("INT", &["1"], &["a"]),
        ] {
            let parsed = RouteConstraint::parse(constraint).unwrap();
            for value in accepted {
                assert!(parsed.accepts(value), "{constraint} accepts {value:?}");
            }
            for value in rejected {
                assert!(!parsed.accepts(value), "{constraint} rejects {value:?}");
            }
        }
    }

    #[test]
    fn a_constraint_that_is_not_known_or_has_wrong_arguments_is_reported() {
        for (text, reason) in [
            ("number", "the constraint 'number' is not known; the constraints are int, long"),
            ("min(x)", "the constraint 'min(x)' has arguments that are not valid"),
            ("min", "the constraint 'min' has arguments that are not valid"),
            ("int(3)", "the constraint 'int(3)' has arguments that are not valid"),
            ("range(9,1)", "the constraint 'range(9,1)' has arguments"),
            ("length(-1)", "the constraint 'length(-1)' has arguments"),
            ("min(3", "the constraint 'min(3' has no closing parenthesis"),
            ("regex((?=a))", "the regular expression '(?=a)' is not supported: look-around"),
        ] {
            let error = RouteConstraint::parse(text).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
