//! Dates of `Edm.DateTimeOffset`: text → milliseconds since 1970, UTC.

use chrono::NaiveDate;

const MINUTE: i64 = 60_000;

/// Parses a date such as `2024-01-31T12:00:00.123+02:00`. Seconds and their fraction are optional.
/// Digits of the fraction after the third are dropped.
pub fn parse(text: &str) -> Option<i64> {
    match read(text) {
        Some((milliseconds, Some(offset))) => Some(milliseconds - offset * MINUTE),
        _ => None,
    }
}

/// Like [`parse`], with an explanation if the text is not a date.
pub(super) fn parse_explained(text: &str) -> Result<i64, String> {
    let shown = super::problem::quoted(text);
    match read(text) {
        Some((milliseconds, Some(offset))) => Ok(milliseconds - offset * MINUTE),
        Some((_, None)) => Err(format!(
            "The date {shown} has no offset from UTC. End it with Z or an offset such as +02:00 \
             (%2B02:00 in a URL)."
        )),
        None if text.len() == 10 => {
            Err(format!("The date {shown} has no time. Write {shown}T00:00:00Z, with Z or an offset."))
        }
        None => Err(format!("{shown} is not a date. Dates are written like 2024-01-31T12:00:00Z.")),
    }
}

/// Returns the local time in milliseconds, and the offset in minutes.
fn read(text: &str) -> Option<(i64, Option<i64>)> {
    let mut rest = text;
    let year = digits(&mut rest, 4)?;
    sign(&mut rest, &['-'])?;
    let month = digits(&mut rest, 2)?;
    sign(&mut rest, &['-'])?;
    let day = digits(&mut rest, 2)?;
    sign(&mut rest, &['T', 't'])?;
    let hour = digits(&mut rest, 2)?;
    sign(&mut rest, &[':'])?;
    let minute = digits(&mut rest, 2)?;
    let (mut second, mut millisecond) = (0, 0);
    if sign(&mut rest, &[':']).is_some() {
        second = digits(&mut rest, 2)?;
        if sign(&mut rest, &['.']).is_some() {
            millisecond = fraction(&mut rest)?;
        }
    }
    if year == 0 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let since = day.signed_duration_since(NaiveDate::default()).num_days();
    let minutes = (since * 24 + i64::from(hour)) * 60 + i64::from(minute);
    Some((minutes * MINUTE + i64::from(second) * 1000 + i64::from(millisecond), offset(rest)?))
}

fn offset(mut rest: &str) -> Option<Option<i64>> {
    match rest {
        "" => return Some(None),
        "Z" | "z" => return Some(Some(0)),
        _ => {}
    }
    let direction = if sign(&mut rest, &['+', '-'])? == '-' { -1 } else { 1 };
    let hours = digits(&mut rest, 2)?;
    sign(&mut rest, &[':'])?;
    let minutes = digits(&mut rest, 2)?;
    // Time zones are at most 14 hours from UTC.
    let total = hours * 60 + minutes;
    (rest.is_empty() && minutes < 60 && total <= 14 * 60).then_some(Some(direction * i64::from(total)))
}

fn sign(rest: &mut &str, one_of: &[char]) -> Option<char> {
    let first = rest.chars().next().filter(|first| one_of.contains(first))?;
    *rest = rest.get(first.len_utf8()..)?;
    Some(first)
}

fn digits(rest: &mut &str, count: usize) -> Option<u32> {
    let (number, after) = rest.split_at_checked(count)?;
    *rest = after;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

fn fraction(rest: &mut &str) -> Option<u32> {
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at_checked(end)?;
    *rest = after;
    let kept = digits.get(..3).unwrap_or(digits);
    let scale = [0, 100, 10, 1].get(kept.len()).copied().filter(|&scale| scale > 0)?;
    Some(kept.parse::<u32>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_normalised_to_utc() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse("1970-01-01T02:00+02:00"), Some(0));
        assert_eq!(parse("1969-12-31T16:00:00.5-08:00"), Some(500));
        assert_eq!(parse("2024-01-31T12:00:00.1239999Z"), Some(1_706_702_400_123));
        assert_eq!(parse("0001-01-01T00:00:00Z"), Some(-62_135_596_800_000));
        assert_eq!(parse("1969-12-31T23:59:59.9999Z"), Some(-1));
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "2024-02-30T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00",
            "2024-01-01",
            "2024-01-01T00:00:00+15:00",
            "2024-01-01T00:00:00+1:00",
            "2024-01-01T00:00:00ZZ",
            "0000-01-01T00:00:00Z",
            "２０２４-01-01T00:00:00Z",
            "",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_missing_offset_is_explained() {
        assert!(parse_explained("2024-01-01T00:00:00").unwrap_err().contains("End it with Z"));
        assert!(parse_explained("2024-01-01").unwrap_err().contains("2024-01-01T00:00:00Z"));
    }
}
