//! [`CronExpression`]: an NCRONTAB expression, and its next occurrence on a clock without a time zone.
//!
//! The rules are those of NCrontab, which the platform uses, not those of cron: day and weekday must both match, a
//! reversed range is swapped, and there is no `?`, `L`, `W`, `#` and `@daily`.

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// A parsed NCRONTAB expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronExpression {
    seconds: FieldValues,
    minutes: FieldValues,
    hours: FieldValues,
    days: FieldValues,
    months: FieldValues,
    weekdays: FieldValues,
}

/// The reason why a text is not an NCRONTAB expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("it has {0} fields, not 6 (second minute hour day month weekday) or 5 (without the second)")]
    FieldCount(usize),
    #[error("the field {field} has {found:?}; write {expected}")]
    Field { field: &'static str, found: String, expected: &'static str },
}

/// The allowed values of a field, as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldValues(u64);

/// A kind of field: its name, range and names of values.
struct FieldKind {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
    expected: &'static str,
}

const SECOND: FieldKind = FieldKind {
    name: "second",
    least: 0,
    most: 59,
    names: &[],
    expected: "*, or numbers from 0 to 59, such as 0, 0,30, 10-20 or */5",
};
const MINUTE: FieldKind = FieldKind { name: "minute", ..SECOND };
const HOUR: FieldKind = FieldKind {
    name: "hour",
    most: 23,
    expected: "*, or numbers from 0 to 23, such as 0, 8,20, 9-17 or */6",
    ..SECOND
};
const DAY: FieldKind = FieldKind {
    name: "day",
    least: 1,
    most: 31,
    expected: "*, or numbers from 1 to 31, such as 1, 1,15 or 1-7",
    ..SECOND
};
const MONTH: FieldKind = FieldKind {
    name: "month",
    least: 1,
    most: 12,
    names: &[
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
    ],
    expected: "*, or months as numbers from 1 to 12 or as names, such as 1-3 or Jan",
};
const WEEKDAY: FieldKind = FieldKind {
    name: "weekday",
    least: 0,
    most: 6,
    names: &["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    expected: "*, or weekdays as numbers from 0 (Sunday) to 6 or as names, such as 1-5 or Mon-Fri",
};

/// The number of years after which days, months and weekdays repeat.
const CALENDAR_YEARS: i32 = 400;

impl CronExpression {
    /// Parses an expression of six fields, or of five fields without the second.
    pub fn parse(text: &str) -> Result<CronExpression, CronError> {
        let fields: Vec<&str> = text.split(' ').filter(|field| !field.is_empty()).collect();
        let (seconds, rest) = match fields.as_slice() {
            [second, rest @ ..] if rest.len() == 5 => (FieldValues::parse(second, &SECOND)?, rest),
            rest => (FieldValues(1), rest),
        };
        let [minute, hour, day, month, weekday] = rest else {
            return Err(CronError::FieldCount(fields.len()));
        };
        Ok(CronExpression {
            seconds,
            minutes: FieldValues::parse(minute, &MINUTE)?,
            hours: FieldValues::parse(hour, &HOUR)?,
            days: FieldValues::parse(day, &DAY)?,
            months: FieldValues::parse(month, &MONTH)?,
            weekdays: FieldValues::parse(weekday, &WEEKDAY)?,
        })
    }

    /// Returns the first occurrence strictly after a time, or `None` if there is none, as on February 30.
    pub fn next_after(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        let from = after.with_nanosecond(0)?.checked_add_signed(chrono::TimeDelta::seconds(1))?;
        if self.matches_date(from.date())
            && let Some(time) = self.time_from(from.time())
        {
            return Some(from.date().and_time(time));
        }
        let date = self.date_from(from.date().checked_add_days(Days::new(1))?)?;
        Some(date.and_time(self.time_from(NaiveTime::MIN)?))
    }

    /// Returns whether the schedule has intervals: two consecutive seconds, minutes or hours. Such a schedule
    /// runs through an hour that the clock repeats. Other schedules run once.
    pub fn is_interval(&self) -> bool {
        [self.seconds, self.minutes, self.hours].into_iter().any(FieldValues::has_consecutive)
    }

    /// Returns whether there are several occurrences in every minute.
    pub fn is_below_a_minute(&self) -> bool {
        let is_full = |values: FieldValues, kind: &FieldKind| values == FieldValues::full(kind);
        self.seconds.0.count_ones() > 1
            && is_full(self.minutes, &MINUTE)
            && is_full(self.hours, &HOUR)
            && is_full(self.days, &DAY)
            && is_full(self.months, &MONTH)
            && is_full(self.weekdays, &WEEKDAY)
    }

    fn matches_date(&self, date: NaiveDate) -> bool {
        self.months.contains(date.month())
            && self.days.contains(date.day())
            && self.weekdays.contains(date.weekday().num_days_from_sunday())
    }

    /// Returns the first matching date from a date on.
    fn date_from(&self, from: NaiveDate) -> Option<NaiveDate> {
        let last_year = from.year().checked_add(CALENDAR_YEARS)?;
        let mut date = from;
        while date.year() <= last_year {
            if !self.months.contains(date.month()) {
                let (year, month) = match date.month() {
                    12 => (date.year() + 1, 1),
                    month => (date.year(), month + 1),
                };
                date = NaiveDate::from_ymd_opt(year, month, 1)?;
            } else if self.matches_date(date) {
                return Some(date);
            } else {
                date = date.succ_opt()?;
            }
        }
        None
    }

    /// Returns the first matching time of a day, from a time on.
    fn time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        let mut hour = self.hours.first_from(from.hour())?;
        let (mut minute, mut second) = (0, 0);
        if hour == from.hour() {
            (minute, second) = (from.minute(), from.second());
        }
        loop {
            if let Some(found) = self.minutes.first_from(minute) {
                if found > minute {
                    second = 0;
                }
                if let Some(second) = self.seconds.first_from(second) {
                    return NaiveTime::from_hms_opt(hour, found, second);
                }
                (minute, second) = (found + 1, 0);
            } else {
                hour = self.hours.first_from(hour + 1)?;
                (minute, second) = (0, 0);
            }
        }
    }
}

impl FieldValues {
    fn parse(text: &str, kind: &FieldKind) -> Result<FieldValues, CronError> {
        let invalid =
            || CronError::Field { field: kind.name, found: text.to_owned(), expected: kind.expected };
        let parts = text.split(',').map(|part| parse_part(part, kind));
        let bits = parts.reduce(|all, part| Some(all? | part?)).flatten();
        bits.map(FieldValues).ok_or_else(invalid)
    }

    fn full(kind: &FieldKind) -> FieldValues {
        FieldValues(bits(kind.least, kind.most, 1))
    }

    fn contains(self, value: u32) -> bool {
        value < u64::BITS && self.0 >> value & 1 == 1
    }

    /// Returns the smallest value that is not below `least`.
    fn first_from(self, least: u32) -> Option<u32> {
        let rest = self.0.checked_shr(least)?;
        (rest != 0).then(|| least + rest.trailing_zeros())
    }

    fn has_consecutive(self) -> bool {
        self.0 & self.0 >> 1 != 0
    }
}

/// Parses one part of a list: `*`, a value or a range, and optionally a step.
fn parse_part(part: &str, kind: &FieldKind) -> Option<u64> {
    let (values, step) = match part.split_once('/') {
        // As on the platform, a step below 1 is 1.
        Some((values, step)) => (values, Some(step.parse::<i32>().ok()?.max(1).unsigned_abs())),
        None => (part, None),
    };
    let (first, last) = match values.split_once('-') {
        _ if values == "*" => (kind.least, kind.most),
        Some((first, last)) => (parse_value(first, kind)?, parse_value(last, kind)?),
        None => {
            let value = parse_value(values, kind)?;
            (value, if step.is_some() { kind.most } else { value })
        }
    };
    Some(bits(first.min(last), first.max(last), step.unwrap_or(1)))
}

/// Parses a number, or the name of a value or the beginning of it.
fn parse_value(text: &str, kind: &FieldKind) -> Option<u32> {
    let is_named =
        |name: &str| name.get(..text.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(text));
    let value = match text.bytes().next()? {
        b'0'..=b'9' => text.parse().ok()?,
        _ => kind.least + u32::try_from(kind.names.iter().position(|name| is_named(name))?).ok()?,
    };
    (kind.least..=kind.most).contains(&value).then_some(value)
}

fn bits(first: u32, last: u32, step: u32) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (first..=last).step_by(step).fold(0, |bits, value| bits | 1 << value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap()
    }

    fn occurrences(expression: &str, after: &str, count: usize) -> Vec<String> {
        let expression = CronExpression::parse(expression).unwrap();
        let next = |after: &NaiveDateTime| expression.next_after(*after);
        std::iter::successors(next(&time(after)), next).take(count).map(|time| time.to_string()).collect()
    }

    #[test]
    fn six_fields_begin_with_the_second_and_five_with_the_minute() {
        assert_eq!(
            occurrences("*/20 59 23 * * *", "2026-12-31 23:59:10", 3),
            ["2026-12-31 23:59:20", "2026-12-31 23:59:40", "2027-01-01 23:59:00"]
        );
        assert_eq!(occurrences("30 1 * * *", "2026-05-01 01:30:00", 1), ["2026-05-02 01:30:00"]);
        assert_eq!(occurrences("  0  0  * * * * ", "2026-05-01 01:30:00", 1), ["2026-05-01 02:00:00"]);
    }

    #[test]
    fn the_next_occurrence_is_strictly_later() {
        let expression = CronExpression::parse("* * * * * *").unwrap();
        let half = time("2026-05-01 00:00:00").with_nanosecond(500_000_000).unwrap();
        assert_eq!(expression.next_after(half), Some(time("2026-05-01 00:00:01")));
        assert_eq!(occurrences("0 0 0 1 1 *", "2026-01-01 00:00:00", 1), ["2027-01-01 00:00:00"]);
    }

    #[test]
    fn day_and_weekday_must_both_match() {
        // Friday the 13th.
        assert_eq!(
            occurrences("0 0 12 13 * 5", "2026-01-01 00:00:00", 3),
            ["2026-02-13 12:00:00", "2026-03-13 12:00:00", "2026-11-13 12:00:00"]
        );
    }

    #[test]
    fn months_without_the_day_are_passed_over() {
        assert_eq!(
            occurrences("0 0 0 31 * *", "2026-01-31 00:00:00", 2),
            ["2026-03-31 00:00:00", "2026-05-31 00:00:00"]
        );
        assert_eq!(occurrences("0 0 0 29 2 *", "2096-03-01 00:00:00", 1), ["2104-02-29 00:00:00"]);
        assert_eq!(occurrences("0 0 0 29 2 1", "2026-01-01 00:00:00", 1), ["2044-02-29 00:00:00"]);
    }

    #[test]
    fn a_day_that_does_not_exist_never_occurs() {
        for expression in ["0 0 0 30 2 *", "0 0 0 31 2,4,6,9,11 *"] {
            assert_eq!(occurrences(expression, "2026-01-01 00:00:00", 1), [""; 0], "{expression}");
        }
    }

    #[test]
    fn ranges_steps_lists_and_names_are_read() {
        for (expression, same) in [
            ("0 0 0 * * 5-1", "0 0 0 * * 1,2,3,4,5"),
            ("0 0 0 * j *", "0 0 0 * 1 *"),
            ("0 0 0 * * mon-FRIday", "0 0 0 * * 1-5"),
            ("0 0 0 * dec,Ju *", "0 0 0 * 6,12 *"),
            ("50/5 * * * * *", "50,55 * * * * *"),
            ("0 10-20/5 * * * *", "0 10,15,20 * * * *"),
            ("0 */40 * * * *", "0 0,40 * * * *"),
            ("0 */0 * * * *", "0 * * * * *"),
            ("0 0 5-5/2 * * *", "0 0 5 * * *"),
            ("0 0 0 1/10,2 * *", "0 0 0 1,2,11,21,31 * *"),
            ("0 0 */99 * * *", "0 0 0 * * *"),
        ] {
            assert_eq!(CronExpression::parse(expression), CronExpression::parse(same), "{expression}");
        }
    }

    #[test]
    fn other_forms_of_cron_are_rejected_with_the_field() {
        for (expression, message) in [
            ("0 0 0 * * 7", "the field weekday has \"7\""),
            ("0 0 0 ? * *", "the field day has \"?\""),
            ("0 0 0 L * *", "the field day has \"L\""),
            ("0 0 0 15W * *", "the field day has \"15W\""),
            ("0 0 0 * * 1#2", "the field weekday has \"1#2\""),
            ("60 * * * * *", "the field second has \"60\""),
            ("* 60 * * * *", "the field minute has \"60\""),
            ("0 0 24 * * *", "the field hour has \"24\""),
            ("0 0 0 0 * *", "the field day has \"0\""),
            ("0 0 0 1 13 *", "the field month has \"13\""),
            ("0 0 0 * * Moon", "the field weekday has \"Moon\""),
            ("0 0 0 * * Mondays", "the field weekday has \"Mondays\""),
            ("0 1,,2 * * * *", "the field minute has \"1,,2\""),
            ("0 ,1 * * * *", "the field minute has \",1\""),
            ("0 */ * * * *", "the field minute has \"*/\""),
            ("0 /5 * * * *", "the field minute has \"/5\""),
            ("0 -5 * * * *", "the field minute has \"-5\""),
            ("0 5- * * * *", "the field minute has \"5-\""),
            ("0 1-2-3 * * * *", "the field minute has \"1-2-3\""),
            ("0 *-5 * * * *", "the field minute has \"*-5\""),
            ("0 1/2/3 * * * *", "the field minute has \"1/2/3\""),
            ("0 99999999999 * * * *", "the field minute has \"99999999999\""),
            ("@daily", "it has 1 fields"),
            ("", "it has 0 fields"),
            ("* * * *", "it has 4 fields"),
            ("* * * * * * *", "it has 7 fields"),
            ("0 0 0 * * é", "the field weekday has \"é\""),
        ] {
            let error = CronExpression::parse(expression).unwrap_err().to_string();
            assert!(error.starts_with(message), "{expression}: {error}");
        }
    }

    #[test]
    fn schedules_with_consecutive_times_are_intervals() {
        for (expression, is_interval, is_below) in [
            ("* * * * * *", true, true),
            ("0 * * * * *", true, false),
            ("0,30 * * * * *", true, true),
            ("0 0-15 0 * * *", true, false),
            ("0 0 1-3 * * 0", true, false),
            ("0 0 0 * * *", false, false),
            ("0 0 0 1 1 *", false, false),
            ("* * * * *", true, false),
            ("0 * * * 0", true, false),
            ("0 1 * * *", false, false),
            // The platform looks at the values, not at the text.
            ("0 */10 1 * * *", false, false),
            ("0 1,2 1 * * *", true, false),
        ] {
            let parsed = CronExpression::parse(expression).unwrap();
            assert_eq!(parsed.is_interval(), is_interval, "{expression}");
            assert_eq!(parsed.is_below_a_minute(), is_below, "{expression}");
        }
    }

    fn field(least: u32, most: u32) -> impl Strategy<Value = String> {
        let value = move || least..=most;
        prop_oneof![
            3 => Just("*".to_owned()),
            2 => value().prop_map(|a| a.to_string()),
            1 => (value(), value()).prop_map(|(a, b)| format!("{a}-{b}")),
            1 => (value(), value(), 1_u32..20).prop_map(|(a, b, step)| format!("{a}-{b}/{step}")),
            1 => (value(), 1_u32..20).prop_map(|(a, step)| format!("{a}/{step}")),
            1 => (1_u32..20).prop_map(|step| format!("*/{step}")),
            1 => prop::collection::vec(value(), 1..4)
                .prop_map(|list| list.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        ]
    }

    /// A second reading of the rules: the values of a field as a list.
    fn values(text: &str, least: u32, most: u32) -> Vec<u32> {
        let part = |part: &str| -> Vec<u32> {
            let (range, step) = part.split_once('/').unwrap_or((part, "1"));
            let (a, b) = match range.split_once('-') {
                None if range == "*" => (least, most),
                None if part.contains('/') => (range.parse().unwrap(), most),
                None => (range.parse().unwrap(), range.parse().unwrap()),
                Some((a, b)) => (a.parse().unwrap(), b.parse().unwrap()),
            };
            (a.min(b)..=a.max(b)).step_by(step.parse().unwrap()).collect()
        };
        text.split(',').flat_map(part).collect()
    }

    proptest! {
        #[test]
        fn the_next_occurrence_is_the_first_time_that_matches(
            second in field(0, 59),
            minute in field(0, 59),
            hour in field(0, 23),
            start in 0_i64..4_000_000_000,
        ) {
            let expression = CronExpression::parse(&format!("{second} {minute} {hour} * * *")).unwrap();
            let after = chrono::DateTime::from_timestamp(start, 0).unwrap().naive_utc();
            let next = expression.next_after(after).unwrap();
            prop_assert!(next > after);
            let (seconds, minutes, hours) = (values(&second, 0, 59), values(&minute, 0, 59), values(&hour, 0, 23));
            let matches = |time: NaiveDateTime| {
                seconds.contains(&time.second()) && minutes.contains(&time.minute()) && hours.contains(&time.hour())
            };
            prop_assert!(matches(next));
            let mut between = after + chrono::TimeDelta::seconds(1);
            while between < next {
                prop_assert!(!matches(between), "{between} is before {next}");
                between += chrono::TimeDelta::seconds(1);
            }
        }

        #[test]
        fn no_matching_day_is_left_out(
            day in field(1, 31),
            month in field(1, 12),
            weekday in field(0, 6),
            start in 0_i64..4_000_000_000,
        ) {
            let expression = CronExpression::parse(&format!("0 0 0 {day} {month} {weekday}")).unwrap();
            let after = chrono::DateTime::from_timestamp(start, 0).unwrap().naive_utc();
            let (days, months, weekdays) = (values(&day, 1, 31), values(&month, 1, 12), values(&weekday, 0, 6));
            let matches = |date: NaiveDate| {
                days.contains(&date.day())
                    && months.contains(&date.month())
                    && weekdays.contains(&date.weekday().num_days_from_sunday())
            };
            let expected = after.date().iter_days().skip(1).take(15_000).find(|date| matches(*date));
            if let Some(expected) = expected {
                prop_assert_eq!(expression.next_after(after), Some(expected.and_time(NaiveTime::MIN)));
            }
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "[0-9*,/a-zA-Z é-]{0,40}") {
            if let Ok(expression) = CronExpression::parse(&text) {
                expression.next_after(time("2026-01-01 00:00:00"));
            }
        }
    }
}
