//! Formats points in time as .NET does, with its standard and custom format strings, in UTC and the invariant
//! culture.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A point in time, split into year, month, day and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CivilDateTime {
    year: u64,
    month: usize,
    day: u64,
    weekday: usize,
    hour: u64,
    minute: u64,
    second: u64,
    /// The fraction of a second in units of 100 ns, the resolution of .NET.
    ticks: u32,
}

impl From<SystemTime> for CivilDateTime {
    /// Converts a time. Times before 1970 become 1970, because only a wrong clock has them.
    fn from(time: SystemTime) -> CivilDateTime {
        let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, seconds) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
        // Years that start in March end with the leap day, so that month lengths follow one formula. 400 such
        // years are one cycle of 146,097 days. 719,468 days lie between 0000-03-01 and 1970-01-01.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        CivilDateTime {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month: usize::try_from(month).unwrap_or(1),
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            // 1970 began on a Thursday.
            weekday: usize::try_from((days + 4) % 7).unwrap_or(0),
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            ticks: since_1970.subsec_nanos() / 100,
        }
    }
}

impl CivilDateTime {
    /// Formats the time. Returns `None` if .NET would reject the format.
    pub(crate) fn format(&self, format: &str) -> Option<String> {
        let mut out = String::new();
        self.write(standard(format)?, &mut out)?;
        Some(out)
    }

    fn write(&self, format: &str, out: &mut String) -> Option<()> {
        let mut rest = format;
        while let Some(letter) = rest.chars().next() {
            let after = rest.get(letter.len_utf8()..)?;
            rest = match letter {
                'd' | 'f' | 'F' | 'g' | 'h' | 'H' | 'm' | 'M' | 's' | 't' | 'y' | 'z' => {
                    let after = rest.trim_start_matches(letter);
                    self.write_field(letter, rest.len() - after.len(), out)?;
                    after
                }
                'K' => {
                    out.push('Z');
                    after
                }
                '\'' | '"' => quoted(after, letter, out)?,
                '\\' => {
                    let escaped = after.chars().next()?;
                    out.push(escaped);
                    after.get(escaped.len_utf8()..)?
                }
                // `%` makes a single letter a custom format.
                '%' => {
                    let single = after.chars().next()?;
                    let (single, after) = after.split_at_checked(single.len_utf8())?;
                    self.write(single, out)?;
                    after
                }
                other => {
                    out.push(other);
                    after
                }
            };
        }
        Some(())
    }

    /// Writes the part of the time for a letter that is repeated `count` times.
    fn write_field(&self, letter: char, count: usize, out: &mut String) -> Option<()> {
        let day_name = DAYS.get(self.weekday)?;
        let month_name = MONTHS.get(self.month.checked_sub(1)?)?;
        let month = u64::try_from(self.month).ok()?;
        let number = |value: u64, out: &mut String| {
            _ = if count == 1 { write!(out, "{value}") } else { write!(out, "{value:02}") };
        };
        match (letter, count) {
            ('d', 1 | 2) => number(self.day, out),
            ('d', 3) => out.push_str(day_name.get(..3)?),
            ('d', _) => out.push_str(day_name),
            ('M', 1 | 2) => number(month, out),
            ('M', 3) => out.push_str(month_name.get(..3)?),
            ('M', _) => out.push_str(month_name),
            ('h', _) => number((self.hour + 11) % 12 + 1, out),
            ('H', _) => number(self.hour, out),
            ('m', _) => number(self.minute, out),
            ('s', _) => number(self.second, out),
            ('y', 1 | 2) => number(self.year % 100, out),
            ('y', _) => _ = write!(out, "{:0count$}", self.year),
            ('f' | 'F', 8..) => return None,
            ('f', _) => out.push_str(format!("{:07}", self.ticks).get(..count)?),
            ('F', _) => {
                let digits = format!("{:07}", self.ticks);
                let significant = digits.get(..count)?.trim_end_matches('0');
                if significant.is_empty() && out.ends_with('.') {
                    out.pop();
                }
                out.push_str(significant);
            }
            ('t', 1) => out.push(if self.hour < 12 { 'A' } else { 'P' }),
            ('t', _) => out.push_str(if self.hour < 12 { "AM" } else { "PM" }),
            ('g', _) => out.push_str("A.D."),
            ('z', 1) => out.push_str("+0"),
            ('z', 2) => out.push_str("+00"),
            ('z', _) => out.push_str("+00:00"),
            _ => return None,
        }
        Some(())
    }
}

/// Returns the custom format for a standard format, which is a single letter. Longer formats are returned
/// unchanged.
fn standard(format: &str) -> Option<&str> {
    let mut letters = format.chars();
    let (Some(letter), None) = (letters.next(), letters.next()) else { return Some(format) };
    Some(match letter {
        'd' => "MM/dd/yyyy",
        'D' => "dddd, dd MMMM yyyy",
        'f' => "dddd, dd MMMM yyyy HH:mm",
        'F' | 'U' => "dddd, dd MMMM yyyy HH:mm:ss",
        'g' => "MM/dd/yyyy HH:mm",
        'G' => "MM/dd/yyyy HH:mm:ss",
        'm' | 'M' => "MMMM dd",
        'o' | 'O' => "yyyy-MM-ddTHH:mm:ss.fffffffK",
        'r' | 'R' => "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
        's' => "yyyy-MM-ddTHH:mm:ss",
        't' => "HH:mm",
        'T' => "HH:mm:ss",
        'u' => "yyyy-MM-dd HH:mm:ss'Z'",
        'y' | 'Y' => "yyyy MMMM",
        _ => return None,
    })
}

/// Copies the text up to the closing quote and returns the rest after it. Returns `None` if the quote is
/// missing.
fn quoted<'a>(text: &'a str, quote: char, out: &mut String) -> Option<&'a str> {
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            letter if letter == quote => return Some(letters.as_str()),
            '\\' => out.push(letters.next()?),
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64, nanoseconds: u32) -> CivilDateTime {
        CivilDateTime::from(UNIX_EPOCH + Duration::new(seconds, nanoseconds))
    }

    /// 2026-01-31 08:05:09.0123456, a Saturday.
    fn morning() -> CivilDateTime {
        at(1_769_846_709, 12_345_600)
    }

    /// 2024-02-29 23:59:58, a Thursday.
    fn leap_day() -> CivilDateTime {
        at(1_709_251_198, 0)
    }

    fn check(moment: CivilDateTime, rows: &[(&str, &str)]) {
        for (format, expected) in rows {
            assert_eq!(moment.format(format).as_deref(), Some(*expected), "{format}");
        }
    }

    #[test]
    fn computes_calendar_dates() {
        let rows = [
            (0, "1970-01-01 Thu"),
            (951_782_399, "2000-02-28 Mon"),
            (951_782_400, "2000-02-29 Tue"),
            (951_868_800, "2000-03-01 Wed"),
            (1_735_689_599, "2024-12-31 Tue"),
            (1_735_689_600, "2025-01-01 Wed"),
            (4_107_542_400, "2100-03-01 Mon"),
            (4_107_456_000, "2100-02-28 Sun"),
            (253_402_300_799, "9999-12-31 Fri"),
        ];
        for (seconds, expected) in rows {
            check(at(seconds, 0), &[("yyyy-MM-dd ddd", expected)]);
        }
    }

    #[test]
    fn a_time_before_1970_becomes_1970() {
        let before = CivilDateTime::from(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(before, at(0, 0));
    }

    #[test]
    fn writes_standard_formats() {
        check(
            morning(),
            &[
                ("d", "01/31/2026"),
                ("D", "Saturday, 31 January 2026"),
                ("f", "Saturday, 31 January 2026 08:05"),
                ("F", "Saturday, 31 January 2026 08:05:09"),
                ("g", "01/31/2026 08:05"),
                ("G", "01/31/2026 08:05:09"),
                ("m", "January 31"),
                ("M", "January 31"),
                ("o", "2026-01-31T08:05:09.0123456Z"),
                ("O", "2026-01-31T08:05:09.0123456Z"),
                ("r", "Sat, 31 Jan 2026 08:05:09 GMT"),
                ("R", "Sat, 31 Jan 2026 08:05:09 GMT"),
                ("s", "2026-01-31T08:05:09"),
                ("t", "08:05"),
                ("T", "08:05:09"),
                ("u", "2026-01-31 08:05:09Z"),
                ("U", "Saturday, 31 January 2026 08:05:09"),
                ("y", "2026 January"),
                ("Y", "2026 January"),
            ],
        );
    }

    #[test]
    fn writes_custom_formats() {
        check(
            morning(),
            &[
                ("yyyy-MM-ddTHH-mm-ssK", "2026-01-31T08-05-09Z"),
                ("%d d dd ddd dddd ddddd", "31 31 31 Sat Saturday Saturday"),
                ("%M M MM MMM MMMM MMMMM", "1 1 01 Jan January January"),
                ("%y y yy yyy yyyy yyyyy", "26 26 26 2026 2026 02026"),
                ("%H H HH HHH %h h hh", "8 8 08 08 8 8 08"),
                ("%m m mm %s s ss", "5 5 05 9 9 09"),
                ("f ff fff ffff fffff ffffff fffffff", "0 01 012 0123 01234 012345 0123456"),
                ("ss.F ss.FF ss.FFFFFFF ss-F", "09 09.01 09.0123456 09-"),
                ("%t t tt", "A A AM"),
                ("g gg z zz zzz", "A.D. A.D. +0 +00 +00:00"),
                ("yyyy/MM/dd", "2026/01/31"),
                ("'day' dd \"M\" \\d", "day 31 M d"),
                ("'it\\'s'", "it's"),
                ("é-yyyy", "é-2026"),
            ],
        );
        check(leap_day(), &[("h hh t tt", "11 11 P PM"), ("ss.FFF|f", "58|0"), ("ddd dd.MM.", "Thu 29.02.")]);
        check(at(0, 0), &[("h tt", "12 AM")]);
        check(at(43_200, 0), &[("h tt", "12 PM")]);
    }

    #[test]
    fn rejects_formats_that_dotnet_rejects() {
        for format in ["x", "-", "%", "%%", "ffffffff", "FFFFFFFF", "'open", "\"open", "yyyy\\", "yyyy%"] {
            assert_eq!(morning().format(format), None, "{format}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(seconds in 0..300_000_000_000_u64, format in r#"[dfFghHmMstyzK:/%\\'"a é-]{0,40}"#) {
            _ = at(seconds, 0).format(&format);
        }

        #[test]
        fn days_follow_each_other(day in 0..3_000_000_u64) {
            let (today, tomorrow) = (at(day * 86_400, 0), at((day + 1) * 86_400, 0));
            let first = tomorrow.day == 1;
            prop_assert_eq!((today.weekday + 1) % 7, tomorrow.weekday);
            prop_assert!(first || tomorrow.day == today.day + 1);
            prop_assert!(!first || today.day >= 28);
            prop_assert!(!first || tomorrow.month == today.month % 12 + 1);
        }
    }
}
