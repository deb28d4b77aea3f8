//! Parses durations as .NET writes them: `hh:mm:ss`, `d.hh:mm:ss`, with fractions of a second.

use std::time::Duration;

/// Parses a duration. .NET reads a bare number as days and `24:00:00` as 24 days. Both are almost always
/// mistakes, so they are rejected.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    seconds(text.trim()).ok_or_else(|| format!("{text:?} is not a valid duration"))
}

fn seconds(text: &str) -> Option<Duration> {
    let mut parts = text.split(':');
    let (first, minutes) = (parts.next()?, parts.next()?);
    let (days, hours) = first.split_once('.').unwrap_or(("0", first));
    let (whole, fraction) = match parts.next() {
        Some(last) => last.split_once('.').unwrap_or((last, "0")),
        None => ("0", "0"),
    };
    if parts.next().is_some() {
        return None;
    }
    let minutes = number(hours, 24)?.checked_mul(60)?.checked_add(number(minutes, 60)?)?;
    let day_seconds = number(days, 10_675_200)?.checked_mul(86_400)?;
    let seconds = day_seconds.checked_add(minutes.checked_mul(60)?)?.checked_add(number(whole, 60)?)?;
    Some(Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds(fraction)?))
}

/// Parses a number below a limit. Only digits are accepted.
fn number(text: &str, limit: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number < limit)
}

/// Parses the fraction of a second: at most seven digits, as in .NET.
fn nanoseconds(fraction: &str) -> Option<u64> {
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=7).contains(digits))?;
    Some(number(fraction, 10_000_000)? * 10_u64.pow(9 - digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_dotnet_writes_them() {
        for (text, milliseconds) in [
            ("00:00:10", 10_000),
            ("00:10:00", 600_000),
            ("01:02:03", 3_723_000),
            ("1.00:00:00", 86_400_000),
            ("00:05", 300_000),
            (" 00:00:00.25 ", 250),
            ("00:00:01.0000000", 1_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in [
            "",
            "5",
            "24:00:00",
            "00:60:00",
            "00:00:60",
            "-00:00:01",
            "1:2:3:4",
            "a:b:c",
            "00:00:+1",
            "00:00:01.",
        ] {
            assert_eq!(parse(text), Err(format!("{text:?} is not a valid duration")));
        }
    }
}
