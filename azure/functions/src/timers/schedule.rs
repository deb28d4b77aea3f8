//! [`TimerSchedule`]: when a timer runs: by an NCRONTAB expression or at a constant interval.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use super::ncrontab::{CronError, CronExpression};
use super::zone::TimeZone;

/// When a timer runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerSchedule {
    /// At the times of an NCRONTAB expression.
    Cron(Box<CronExpression>),
    /// At a constant interval.
    Interval(TimeDelta),
}

/// A text is not a schedule. The first sentence is the platform's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The schedule expression '{text}' was not recognized as a valid cron expression or timespan string.{reason}"
)]
pub struct ScheduleError {
    text: String,
    reason: String,
}

impl TimerSchedule {
    /// Parses an NCRONTAB expression, or a time span like `00:05:00`.
    pub fn parse(text: &str) -> Result<TimerSchedule, ScheduleError> {
        let invalid = |reason: String| ScheduleError { text: text.to_owned(), reason };
        let cron = match CronExpression::parse(text) {
            Ok(cron) => return Ok(TimerSchedule::Cron(Box::new(cron))),
            Err(error) => error,
        };
        match parse_time_span(text.trim()) {
            Some(interval) if interval > TimeDelta::zero() => Ok(TimerSchedule::Interval(interval)),
            Some(_) => Err(invalid(" An interval must be longer than zero.".to_owned())),
            // A text without blanks was not meant as an expression.
            None if matches!(cron, CronError::FieldCount(0 | 1)) => Err(invalid(String::new())),
            None => Err(invalid(format!(" As a cron expression {cron}."))),
        }
    }

    /// Returns the first occurrence strictly after a time, or `None` if there is none.
    pub(crate) fn next_after(&self, after: DateTime<Utc>, zone: &TimeZone) -> Option<DateTime<Utc>> {
        match self {
            TimerSchedule::Cron(cron) => next_in_zone(cron, after, zone),
            TimerSchedule::Interval(interval) => after.checked_add_signed(*interval),
        }
    }

    /// Returns whether occurrences follow each other in less than a minute. Their status is not recorded.
    pub fn is_below_a_minute(&self) -> bool {
        match self {
            TimerSchedule::Cron(cron) => cron.is_below_a_minute(),
            TimerSchedule::Interval(interval) => *interval < TimeDelta::minutes(1),
        }
    }

    /// Returns whether the schedule follows the clock of the zone, which may be put forward or back.
    pub(crate) fn adjusts_for_dst(&self) -> bool {
        matches!(self, TimerSchedule::Cron(_))
    }
}

/// Finds the next occurrence, where the clock of the zone may be put forward or back.
///
/// A time that the clock skips is moved by the length of the gap. In an hour that it repeats, a schedule with
/// intervals runs twice and other schedules run in the first hour only.
fn next_in_zone(cron: &CronExpression, after: DateTime<Utc>, zone: &TimeZone) -> Option<DateTime<Utc>> {
    let repeats = cron.is_interval();
    let mut begin = after;
    let mut offset = zone.offset_at(begin);
    let mut local = local_at(begin, offset)?;
    loop {
        let occurrence = cron.next_after(local)?;
        let at = TimeZone::at_offset(occurrence, offset)?;
        let Some((change, new_offset)) = zone.next_change(begin, at) else {
            if repeats || !is_repeated(occurrence, offset, at, zone) {
                return Some(at);
            }
            local = occurrence;
            continue;
        };
        let (clock_before, clock_after) = (local_at(change, offset)?, local_at(change, new_offset)?);
        if (clock_before..clock_after).contains(&occurrence) {
            // The clock skips the occurrence. A regular one may come before the moved one.
            let regular = cron.next_after(before(clock_after)?);
            let regular = regular.and_then(|local| TimeZone::at_offset(local, new_offset));
            return Some(regular.map_or(at, |regular| regular.min(at)));
        }
        // Point-in-time schedules do not run in the hour that the clock repeats.
        let resumes = if repeats { clock_after } else { clock_after.max(clock_before) };
        (begin, offset, local) = (change, new_offset, before(resumes)?);
    }
}

/// Returns whether the clock showed this time already before, within a day.
fn is_repeated(local: NaiveDateTime, offset: i32, at: DateTime<Utc>, zone: &TimeZone) -> bool {
    let Some(day_before) = at.checked_sub_signed(TimeDelta::days(1)) else { return false };
    let earlier = zone.offset_at(day_before);
    earlier > offset
        && TimeZone::at_offset(local, earlier).is_some_and(|first| zone.offset_at(first) == earlier)
}

fn local_at(at: DateTime<Utc>, offset: i32) -> Option<NaiveDateTime> {
    at.naive_utc().checked_add_signed(TimeDelta::seconds(i64::from(offset)))
}

/// Returns the second before, after which an occurrence at this time is the next.
fn before(local: NaiveDateTime) -> Option<NaiveDateTime> {
    local.checked_sub_signed(TimeDelta::seconds(1))
}

/// Parses a time span as .NET writes it: `[-][d.]hh:mm[:ss[.fffffff]]`, `d:hh:mm:ss` or a number of days. As in .NET,
/// `24:00:00` is 24 days, because its first number is no hour.
fn parse_time_span(text: &str) -> Option<TimeDelta> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let parts: Vec<&str> = text.split(':').collect();
    let (days, hours, minutes, seconds) = match parts.as_slice() {
        [days] => (*days, "0", "0", "0"),
        [first, rest @ .., last] if rest.len() < 2 => {
            let (minutes, seconds) = rest.first().map_or((*last, "0"), |minutes| (*minutes, *last));
            match first.split_once('.') {
                Some((days, hours)) => (days, hours, minutes, seconds),
                // `d:hh:mm`, which needs a third part.
                None if number(first, u32::MAX)? > 23 && rest.len() == 1 => (*first, minutes, seconds, "0"),
                None => ("0", *first, minutes, seconds),
            }
        }
        [days, hours, minutes, seconds] => (*days, *hours, *minutes, *seconds),
        _ => return None,
    };
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=7).contains(digits))?;
    let nanoseconds = i64::from(number(fraction, 9_999_999)?) * 10_i64.pow(9 - digits);
    let whole = i64::from(number(days, 10_675_199)?) * 86_400
        + i64::from(number(hours, 23)?) * 3600
        + i64::from(number(minutes, 59)?) * 60
        + i64::from(number(seconds, 59)?);
    let span = TimeDelta::try_seconds(whole)?.checked_add(&TimeDelta::nanoseconds(nanoseconds))?;
    Some(if is_negative { -span } else { span })
}

/// Parses a number up to a limit. Only digits are accepted.
fn number(text: &str, most: u32) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::timers::zone_file::ZoneRule;

    fn zone(rule: &str) -> TimeZone {
        TimeZone::Table(Arc::new(ZoneRule::parse(rule).unwrap().into()))
    }

    fn pacific() -> TimeZone {
        zone("PST8PDT,M3.2.0,M11.1.0")
    }

    /// Returns the next occurrences as local times with their offsets.
    fn occurrences(schedule: &str, zone: &TimeZone, after: &str, count: usize) -> Vec<String> {
        let schedule = TimerSchedule::parse(schedule).unwrap();
        let after: DateTime<Utc> = DateTime::parse_from_rfc3339(after).unwrap().into();
        let next = |after: &DateTime<Utc>| schedule.next_after(*after, zone);
        let times = std::iter::successors(next(&after), next).take(count);
        times.map(|at| zone.local(at).format("%m-%d %H:%M%:::z").to_string()).collect()
    }

    #[test]
    fn a_skipped_time_is_moved_by_the_length_of_the_gap() {
        let zone = pacific();
        assert_eq!(
            occurrences("0 30 * * * *", &zone, "2018-03-11T00:00:00-08:00", 5),
            ["03-11 00:30-08", "03-11 01:30-08", "03-11 03:30-07", "03-11 04:30-07", "03-11 05:30-07"]
        );
        assert_eq!(
            occurrences("0 30 2 * * *", &zone, "2018-03-10T00:00:00-08:00", 3),
            ["03-10 02:30-08", "03-11 03:30-07", "03-12 02:30-07"]
        );
        assert_eq!(
            occurrences("0 */20 * * * *", &zone, "2018-03-11T01:30:00-08:00", 3),
            ["03-11 01:40-08", "03-11 03:00-07", "03-11 03:20-07"]
        );
        // The gap of half an hour moves 02:20 to 02:50, but 02:40 comes before.
        assert_eq!(
            occurrences(
                "0 20,40 2 * * *",
                &self::zone("LHST-10:30LHDT-11,M10.1.0,M4.1.0"),
                "2026-10-03T12:00:00Z",
                2
            ),
            ["10-04 02:40+11", "10-05 02:20+11"]
        );
    }

    #[test]
    fn schedules_with_intervals_run_through_a_repeated_hour() {
        let zone = pacific();
        assert_eq!(
            occurrences("0 */20 * * * *", &zone, "2018-11-04T00:30:00-07:00", 9),
            [
                "11-04 00:40-07",
                "11-04 01:00-07",
                "11-04 01:20-07",
                "11-04 01:40-07",
                "11-04 01:00-08",
                "11-04 01:20-08",
                "11-04 01:40-08",
                "11-04 02:00-08",
                "11-04 02:20-08"
            ]
        );
        assert_eq!(
            occurrences("0 30 * * * *", &zone, "2018-11-04T00:00:00-07:00", 4),
            ["11-04 00:30-07", "11-04 01:30-07", "11-04 01:30-08", "11-04 02:30-08"]
        );
    }

    #[test]
    fn point_in_time_schedules_run_once_in_a_repeated_hour() {
        let zone = pacific();
        assert_eq!(
            occurrences("0 30 1 * * *", &zone, "2018-11-03T00:00:00-07:00", 3),
            ["11-03 01:30-07", "11-04 01:30-07", "11-05 01:30-08"]
        );
        // After a start in the second hour, the first one counts as done.
        assert_eq!(occurrences("0 30 1 * * *", &zone, "2018-11-04T01:10:00-08:00", 1), ["11-05 01:30-08"]);
        // The platform never runs this one: in January it takes November's first hour for the second one.
        assert_eq!(
            occurrences("0 30 1 4 11 *", &zone, "2018-01-01T00:00:00-08:00", 2),
            ["11-04 01:30-07", "11-04 01:30-08"]
        );
    }

    #[test]
    fn constant_intervals_do_not_follow_the_clock() {
        assert_eq!(
            occurrences("02:00:00", &pacific(), "2018-03-11T01:00:00-08:00", 2),
            ["03-11 04:00-07", "03-11 06:00-07"]
        );
    }

    #[test]
    fn time_spans_are_read_as_dotnet_writes_them() {
        for (text, seconds) in [
            ("00:05:00", 300),
            ("00:05", 300),
            ("1.00:00:00", 86_400),
            ("1.02:03", 93_780),
            ("24:00:00", 24 * 86_400),
            ("25:01:02", 25 * 86_400 + 3720),
            ("1:02:03:04", 93_784),
            ("6", 6 * 86_400),
            (" 00:00:01 ", 1),
        ] {
            let expected = TimerSchedule::Interval(TimeDelta::seconds(seconds));
            assert_eq!(TimerSchedule::parse(text), Ok(expected), "{text}");
        }
        let quarter = TimerSchedule::Interval(TimeDelta::milliseconds(250));
        assert_eq!(TimerSchedule::parse("00:00:00.25"), Ok(quarter));
    }

    #[test]
    fn other_texts_are_rejected_with_the_platforms_message() {
        for (text, reason) in [
            ("", ""),
            ("often", ""),
            ("24:00", ""),
            ("00:60:00", ""),
            ("1:2:3:4:5", ""),
            ("99999999", ""),
            ("00:00:00", " An interval must be longer than zero."),
            ("-00:05:00", " An interval must be longer than zero."),
            (
                "0 0 0 * * 7",
                " As a cron expression the field weekday has \"7\"; write *, or weekdays as numbers from 0 (Sunday) to 6 \
                 or as names, such as 1-5 or Mon-Fri.",
            ),
            (
                "* * * *",
                " As a cron expression it has 4 fields, not 6 (second minute hour day month weekday) or 5 (without the \
                 second).",
            ),
        ] {
            let error = TimerSchedule::parse(text).unwrap_err().to_string();
            let message = format!(
                "The schedule expression '{text}' was not recognized as a valid cron expression or timespan string."
            );
            assert_eq!(error, format!("{message}{reason}"));
        }
    }

    proptest! {
        #[test]
        fn every_occurrence_is_later_and_none_is_left_out(
            minute in prop_oneof![Just("*/7"), Just("0"), Just("30"), Just("15,45"), Just("*/30")],
            hour in prop_oneof![Just("*"), Just("1"), Just("2"), Just("1,2,3"), Just("*/5"), Just("3")],
            rule in prop_oneof![
                Just("PST8PDT,M3.2.0,M11.1.0"),
                Just("CET-1CEST,M3.5.0,M10.5.0/3"),
                Just("AEST-10AEDT,M10.1.0,M4.1.0/3"),
                Just("LHST-10:30LHDT-11,M10.1.0,M4.1.0"),
                Just("UTC0"),
            ],
            // Around the days of the changes.
            start in prop_oneof![
                1_520_500_000_i64..1_520_900_000,
                1_540_600_000_i64..1_541_500_000,
                1_774_600_000_i64..1_775_500_000,
                1_790_900_000_i64..1_791_200_000,
            ],
        ) {
            let text = format!("0 {minute} {hour} * * *");
            let cron = CronExpression::parse(&text).unwrap();
            let zone = zone(rule);
            let after = DateTime::from_timestamp(start, 0).unwrap();
            let next = next_in_zone(&cron, after, &zone).unwrap();
            prop_assert!(next > after);
            let matches = |local: NaiveDateTime| before(local).and_then(|before| cron.next_after(before)) == Some(local);
            // Every minute in between that matches on the clock is one that the clock showed before.
            let mut at = after + TimeDelta::seconds(60 - start.rem_euclid(60));
            while at < next {
                let local = zone.local(at).naive_local();
                let repeated = is_repeated(local, zone.offset_at(at), at, &zone);
                prop_assert!(!matches(local) || (repeated && !cron.is_interval()), "{text}: {local} is before {next}");
                at += TimeDelta::minutes(1);
            }
            // The occurrence itself matches, or the clock skipped it.
            let local = zone.local(next).naive_local();
            let earlier = local_at(next, zone.offset_at(next - TimeDelta::hours(3))).unwrap();
            prop_assert!(matches(local) || matches(earlier), "{text}: {local}");
        }
    }
}
