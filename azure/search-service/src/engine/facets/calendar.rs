//! Dates in facets: the start of a day, month or year at a given UTC offset, and the format of a date.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};

use crate::documents::write_date;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CalendarUnit {
    Minute,
    Hour,
    Day,
    /// Starts on Monday.
    Week,
    Month,
    Quarter,
    Year,
}

/// A calendar interval with an offset, such as `interval:month,timeoffset:-01:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalendarInterval {
    pub unit: CalendarUnit,
    /// How many milliseconds local time is ahead of UTC.
    pub offset: i64,
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl CalendarInterval {
    /// Returns the start of the interval that contains a moment. Both are milliseconds since 1970 in UTC.
    pub(crate) fn start(self, moment: i64) -> i64 {
        let local = moment.saturating_add(self.offset);
        let start = match self.unit {
            CalendarUnit::Minute => floor(local, MINUTE),
            CalendarUnit::Hour => floor(local, HOUR),
            CalendarUnit::Day => floor(local, DAY),
            _ => self.start_of_days(local).unwrap_or(local),
        };
        start.saturating_sub(self.offset)
    }

    /// Returns the start of an interval whose length varies or that is not aligned with 1970. Returns
    /// `None` outside the range of the calendar.
    fn start_of_days(self, local: i64) -> Option<i64> {
        let date = DateTime::<Utc>::from_timestamp_millis(local)?.date_naive();
        let first = match self.unit {
            CalendarUnit::Week => {
                date.checked_sub_days(Days::new(date.weekday().num_days_from_monday().into()))?
            }
            CalendarUnit::Month => NaiveDate::from_ymd_opt(date.year(), date.month(), 1)?,
            CalendarUnit::Quarter => NaiveDate::from_ymd_opt(date.year(), date.month0() / 3 * 3 + 1, 1)?,
            _ => NaiveDate::from_ymd_opt(date.year(), 1, 1)?,
        };
        Some(first.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis())
    }
}

fn floor(value: i64, step: i64) -> i64 {
    value.saturating_sub(value.rem_euclid(step))
}

/// Formats a date as `2024-01-31T12:00:00Z`. Milliseconds are written only if they are not zero.
pub(crate) fn render_date(moment: i64) -> String {
    let mut date = Vec::new();
    write_date(moment, &mut date);
    String::from_utf8(date).unwrap_or_default()
}

/// Parses `-01:00`, `+0130` or `2` into milliseconds.
pub(super) fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    let (hours, minutes) = match (digits.split_once(':'), digits.len()) {
        (Some(parts), _) => parts,
        (None, 4) => digits.split_at_checked(2)?,
        (None, _) => (digits, "0"),
    };
    let number = |part: &str| match part.len() {
        1 | 2 if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse::<i64>().ok(),
        _ => None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * HOUR + minutes * MINUTE))
}
