//! Dates as documents write them, and as milliseconds since 1970 in UTC.

use std::io::Write;

use chrono::{DateTime, Datelike, Timelike};

const FIRST: i64 = -62_135_596_800_000;
const LAST: i64 = 253_402_300_799_999;

/// Parses a date with its offset, such as `2024-01-31T12:00:00Z`. The seconds may be missing. Fractions are truncated
/// to milliseconds. Returns `None` for anything else, and for years outside of 1 to 9999.
pub fn parse_date(text: &str) -> Option<i64> {
    // chrono would also accept a space between date and time.
    if text.as_bytes().get(10) != Some(&b'T') {
        return None;
    }
    let date = match text.split_at_checked(16) {
        Some((minutes, offset)) if offset.starts_with(['Z', 'z', '+', '-']) => {
            DateTime::parse_from_rfc3339(&format!("{minutes}:00{offset}"))
        }
        _ => DateTime::parse_from_rfc3339(text),
    };
    let milliseconds = date.ok()?.timestamp_millis();
    (FIRST..=LAST).contains(&milliseconds).then_some(milliseconds)
}

/// Writes a date in UTC, with milliseconds only if they are not zero. Writes nothing for years that
/// [`parse_date`] rejects.
pub fn write_date(milliseconds: i64, out: &mut Vec<u8>) {
    let Some(date) = DateTime::from_timestamp_millis(milliseconds) else { return };
    let (year, month, day) = (date.year(), date.month(), date.day());
    let (hour, minute, second) = (date.hour(), date.minute(), date.second());
    // Writing to memory cannot fail.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    let rest = date.timestamp_subsec_millis();
    if rest != 0 {
        let _ = write!(out, ".{rest:03}");
    }
    out.push(b'Z');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str) -> Option<String> {
        let mut out = Vec::new();
        write_date(parse_date(text)?, &mut out);
        String::from_utf8(out).ok()
    }

    #[test]
    fn dates_are_normalised_to_utc_with_milliseconds_only_when_needed() {
        assert_eq!(normalised("2024-01-31T13:30:00+01:30").unwrap(), "2024-01-31T12:00:00Z");
        assert_eq!(normalised("2024-01-31T12:00:00.1234567Z").unwrap(), "2024-01-31T12:00:00.123Z");
        assert_eq!(normalised("1969-12-31T23:59:59.999Z").unwrap(), "1969-12-31T23:59:59.999Z");
        assert_eq!(normalised("2024-01-31T13:30+01:30").unwrap(), "2024-01-31T12:00:00Z");
        assert_eq!(normalised("0001-01-01T00:00:00Z").unwrap(), "0001-01-01T00:00:00Z");
        assert_eq!(normalised("9999-12-31T23:59:59.999Z").unwrap(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn dates_without_offset_or_out_of_range_are_rejected() {
        for wrong in [
            "2024-01-31",
            "2024-01-31T12:00:00",
            "2024-01-31 12:00:00Z",
            "2024-02-30T12:00:00Z",
            "2024-01-31T12Z",
            "2024-01-31T12:0Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01T00:00:00Z",
            "",
            "é",
        ] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }
}
