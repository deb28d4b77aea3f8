//! Reads time zones: the files of the system's time-zone table (TZif, RFC 9636), and rules in the form of POSIX, with which
//! these files end.

use chrono::{Datelike, Days, NaiveDate};

/// The offsets of a time zone from UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZoneTable {
    /// The offset before the first change, in seconds.
    first: i32,
    /// The times of the changes, in seconds since 1970, and the offsets from then on.
    changes: Vec<(i64, i32)>,
    /// The rule for times after the last change.
    rule: Option<ZoneRule>,
}

/// A yearly rule: `CET-1CEST,M3.5.0,M10.5.0/3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZoneRule {
    standard: i32,
    daylight: Option<DaylightRule>,
}

/// When daylight time begins and ends, and its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DaylightRule {
    offset: i32,
    begin: YearlyTime,
    end: YearlyTime,
}

/// A day of each year and a local time in seconds, which may be on another day.
#[derive(Clone, Debug, PartialEq, Eq)]
struct YearlyTime {
    day: YearlyDay,
    seconds: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum YearlyDay {
    /// `Jn`: day 1 to 365, without February 29.
    WithoutLeapDay(u32),
    /// `n`: day 0 to 365.
    OfYear(u32),
    /// `Mm.w.d`: the weekday `d` (Sunday is 0) of week `w` (5 is the last) of a month.
    Weekday { month: u32, week: u32, weekday: u32 },
}

impl ZoneTable {
    /// Parses a TZif file.
    pub(crate) fn parse(file: &[u8]) -> Option<ZoneTable> {
        let mut reader = ByteReader(file);
        let head = FileHead::read(&mut reader)?;
        let (head, wide) = match head.version {
            0 => (head, false),
            _ => {
                reader.take(head.block_length(4)?)?;
                (FileHead::read(&mut reader)?, true)
            }
        };
        let times = reader.take(head.times.checked_mul(if wide { 8 } else { 4 })?)?;
        let kinds = reader.take(head.times)?;
        let offsets: Vec<i32> = reader
            .take(head.kinds.checked_mul(6)?)?
            .chunks_exact(6)
            .filter_map(|kind| be_i32(kind.get(..4)?))
            .collect();
        let time = |bytes: &[u8]| if wide { be_i64(bytes) } else { be_i32(bytes).map(i64::from) };
        let changes: Option<Vec<(i64, i32)>> = times
            .chunks_exact(if wide { 8 } else { 4 })
            .zip(kinds)
            .map(|(at, kind)| Some((time(at)?, *offsets.get(usize::from(*kind))?)))
            .collect();
        let rule = if wide {
            reader.take(head.rest_length(8)?)?;
            let footer = std::str::from_utf8(reader.0).ok()?.strip_prefix('\n')?;
            let text = footer.split('\n').next().unwrap_or_default();
            if text.is_empty() { None } else { Some(ZoneRule::parse(text)?) }
        } else {
            None
        };
        let changes = changes?;
        if !changes.is_sorted_by_key(|(at, _)| *at) {
            return None;
        }
        Some(ZoneTable { first: *offsets.first()?, changes, rule })
    }

    /// Returns the offset from UTC in seconds at a time in seconds since 1970.
    pub(crate) fn offset_at(&self, at: i64) -> i32 {
        let passed = self.changes.partition_point(|(change, _)| *change <= at);
        match (&self.rule, passed == self.changes.len()) {
            (Some(rule), true) => rule.offset_at(at),
            _ => self.changes.get(passed.wrapping_sub(1)).map_or(self.first, |(_, offset)| *offset),
        }
    }
}

impl From<ZoneRule> for ZoneTable {
    fn from(rule: ZoneRule) -> ZoneTable {
        ZoneTable { first: rule.standard, changes: Vec::new(), rule: Some(rule) }
    }
}

impl ZoneRule {
    /// Parses a rule in the form of POSIX.
    pub(crate) fn parse(text: &str) -> Option<ZoneRule> {
        let rest = zone_name(text)?;
        let (standard, rest) = zone_offset(rest, 24)?;
        // POSIX counts offsets to the west.
        let standard = -standard;
        if rest.is_empty() {
            return Some(ZoneRule { standard, daylight: None });
        }
        let rest = zone_name(rest)?;
        let (offset, rest) = match rest.bytes().next() {
            None | Some(b',') => (standard + 3600, rest),
            Some(_) => zone_offset(rest, 24).map(|(offset, rest)| (-offset, rest))?,
        };
        // Without dates, the rules of the United States are used, as in the C library.
        let dates = if rest.is_empty() { ",M3.2.0,M11.1.0" } else { rest };
        let (begin, end) = dates.strip_prefix(',')?.split_once(',')?;
        let (begin, end) = (YearlyTime::parse(begin)?, YearlyTime::parse(end)?);
        Some(ZoneRule { standard, daylight: Some(DaylightRule { offset, begin, end }) })
    }

    fn offset_at(&self, at: i64) -> i32 {
        let Some(DaylightRule { offset, begin, end }) = &self.daylight else { return self.standard };
        let local = chrono::DateTime::from_timestamp(at.saturating_add(i64::from(self.standard)), 0);
        let Some(year) = local.map(|local| local.year()) else { return self.standard };
        let begin = begin.in_year(year).map(|local| local - i64::from(self.standard));
        let end = end.in_year(year).map(|local| local - i64::from(*offset));
        let (Some(begin), Some(end)) = (begin, end) else { return self.standard };
        let is_daylight = match begin <= end {
            true => (begin..end).contains(&at),
            false => !(end..begin).contains(&at),
        };
        if is_daylight { *offset } else { self.standard }
    }
}

impl YearlyTime {
    fn parse(text: &str) -> Option<YearlyTime> {
        let (day, seconds) = match text.split_once('/') {
            None => (text, 2 * 3600),
            Some((day, time)) => match zone_offset(time, 167)? {
                (seconds, "") => (day, seconds),
                _ => return None,
            },
        };
        let within = |text: &str, least: u32, most: u32| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number| is_number && (least..=most).contains(number))
        };
        let day = if let Some(rest) = day.strip_prefix('M') {
            let mut parts = rest.split('.');
            let (month, week, weekday) = (parts.next()?, parts.next()?, parts.next()?);
            if parts.next().is_some() {
                return None;
            }
            YearlyDay::Weekday {
                month: within(month, 1, 12)?,
                week: within(week, 1, 5)?,
                weekday: within(weekday, 0, 6)?,
            }
        } else if let Some(day) = day.strip_prefix('J') {
            YearlyDay::WithoutLeapDay(within(day, 1, 365)?)
        } else {
            YearlyDay::OfYear(within(day, 0, 365)?)
        };
        Some(YearlyTime { day, seconds })
    }

    /// Returns the local time in a year, in seconds since 1970.
    fn in_year(&self, year: i32) -> Option<i64> {
        let first = NaiveDate::from_ymd_opt(year, 1, 1)?;
        let date = match self.day {
            YearlyDay::OfYear(day) => first.checked_add_days(Days::new(u64::from(day)))?,
            YearlyDay::WithoutLeapDay(day) => {
                let is_later = first.leap_year() && day >= 60;
                first.checked_add_days(Days::new(u64::from(day) - u64::from(!is_later)))?
            }
            YearlyDay::Weekday { month, week, weekday } => {
                let first = NaiveDate::from_ymd_opt(year, month, 1)?;
                let ahead = (7 + weekday - first.weekday().num_days_from_sunday()) % 7;
                let day = 1 + ahead + 7 * (week - 1);
                // Week 5 is the last one, which may be the fourth.
                NaiveDate::from_ymd_opt(year, month, day)
                    .or_else(|| NaiveDate::from_ymd_opt(year, month, day.checked_sub(7)?))?
            }
        };
        Some(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp() + i64::from(self.seconds))
    }
}

/// Returns what follows the name of a zone: three letters or more, or any text in `<>`.
fn zone_name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>').filter(|(name, _)| !name.is_empty()).map(|(_, rest)| rest);
    }
    let rest = text.trim_start_matches(|char: char| char.is_ascii_alphabetic());
    (text.len() - rest.len() >= 3).then_some(rest)
}

/// Parses `[+-]hh[:mm[:ss]]`. Returns the seconds and the rest.
fn zone_offset(text: &str, most_hours: i32) -> Option<(i32, &str)> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut seconds = 0;
    for (unit, most) in [(3600, most_hours), (60, 59), (1, 59)] {
        let after = rest.trim_start_matches(|char: char| char.is_ascii_digit());
        let number: i32 = rest.strip_suffix(after)?.parse().ok().filter(|number| *number <= most)?;
        seconds += number * unit;
        rest = after;
        match rest.strip_prefix(':') {
            Some(more) if unit > 1 => rest = more,
            _ => break,
        }
    }
    Some((sign * seconds, rest))
}

/// The head of a data block.
struct FileHead {
    version: u8,
    times: usize,
    kinds: usize,
    letters: usize,
    leaps: usize,
    standards: usize,
    utcs: usize,
}

impl FileHead {
    fn read(reader: &mut ByteReader<'_>) -> Option<FileHead> {
        if reader.take(4)? != b"TZif" {
            return None;
        }
        let version = *reader.take(1)?.first()?;
        reader.take(15)?;
        let (utcs, standards, leaps) = (reader.count()?, reader.count()?, reader.count()?);
        let (times, kinds, letters) = (reader.count()?, reader.count()?, reader.count()?);
        Some(FileHead { version, times, kinds, letters, leaps, standards, utcs })
    }

    /// Returns the length of the block with times of this many bytes.
    fn block_length(&self, time: usize) -> Option<usize> {
        let changes = self.times.checked_mul(time + 1)?;
        changes.checked_add(self.kinds.checked_mul(6)?)?.checked_add(self.rest_length(time)?)
    }

    /// Returns the length of what follows the kinds of time.
    fn rest_length(&self, time: usize) -> Option<usize> {
        let leaps = self.leaps.checked_mul(time + 4)?;
        self.letters.checked_add(leaps)?.checked_add(self.standards)?.checked_add(self.utcs)
    }
}

struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(be_i32(self.take(4)?)?).ok()
    }
}

fn be_i32(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_be_bytes)
}

fn be_i64(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> i64 {
        chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap().and_utc().timestamp()
    }

    fn offsets(rule: &str, times: &[(&str, i32)]) {
        let rule = ZoneRule::parse(rule).unwrap();
        for (time, hours) in times {
            assert_eq!(rule.offset_at(at(time)), hours * 3600, "{time}");
        }
    }

    #[test]
    fn rules_change_the_offset_twice_a_year() {
        offsets(
            "CET-1CEST,M3.5.0,M10.5.0/3",
            &[
                ("2026-03-29 00:59:59", 1),
                ("2026-03-29 01:00:00", 2),
                ("2026-10-25 00:59:59", 2),
                ("2026-10-25 01:00:00", 1),
            ],
        );
        offsets(
            "PST8PDT,M3.2.0,M11.1.0",
            &[
                ("2018-03-11 09:59:59", -8),
                ("2018-03-11 10:00:00", -7),
                ("2018-11-04 08:59:59", -7),
                ("2018-11-04 09:00:00", -8),
            ],
        );
        // The summer of the southern hemisphere spans the new year.
        offsets(
            "AEST-10AEDT,M10.1.0,M4.1.0/3",
            &[
                ("2026-01-01 00:00:00", 11),
                ("2026-04-04 15:59:59", 11),
                ("2026-04-04 16:00:00", 10),
                ("2026-10-03 16:00:00", 11),
            ],
        );
        offsets("<+03>-3", &[("2026-07-01 00:00:00", 3)]);
        // Standard time in winter, one hour back from summer time.
        offsets("IST-1GMT0,M10.5.0,M3.5.0/1", &[("2026-01-01 00:00:00", 0), ("2026-07-01 00:00:00", 1)]);
        // Day 60 is March 1 in every year with J, and February 29 of a leap year without it.
        offsets("AAA0BBB,J60/0,J300/0", &[("2024-02-29 23:59:59", 0), ("2024-03-01 00:00:00", 1)]);
        offsets("AAA0BBB,59/0,300/0", &[("2024-02-28 23:59:59", 0), ("2024-02-29 00:00:00", 1)]);
    }

    #[test]
    fn other_rules_are_rejected() {
        for text in [
            "",
            "AB1",
            "ABC",
            "ABC1DEF,M3.2.0",
            "ABC1DEF,M13.1.0,M1.1.0",
            "ABC1DEF,M1.6.0,M1.1.0",
            "ABC25",
            "<>1",
            "ABC1DEF,J0,J1",
            "ABC1DEF,1,2/168",
            "ABC1DEF,1,2/1x",
            "ABC1:60",
        ] {
            assert_eq!(ZoneRule::parse(text), None, "{text}");
        }
    }

    /// A file with a narrow and a wide block, like those of the system.
    fn file() -> Vec<u8> {
        let head = |times: u32, kinds: u32, letters: u32| {
            let mut head = b"TZif2".to_vec();
            head.extend([0; 15]);
            [0, 0, 0, times, kinds, letters].iter().for_each(|count| head.extend(count.to_be_bytes()));
            head
        };
        let mut file = head(1, 1, 4);
        file.extend(0_i32.to_be_bytes());
        file.extend([0, 0, 0, 0, 0, 0, 0]);
        file.extend(b"UTC\0");
        file.extend(head(2, 3, 4));
        file.extend(at("1950-01-01 00:00:00").to_be_bytes());
        file.extend(at("2000-01-01 00:00:00").to_be_bytes());
        file.extend([1, 2]);
        for offset in [100_i32, 3600, 7200] {
            file.extend(offset.to_be_bytes());
            file.extend([0, 0]);
        }
        file.extend(b"ABC\0");
        file.extend(b"\nCET-1CEST,M3.5.0,M10.5.0/3\n");
        file
    }

    #[test]
    fn a_file_has_changes_and_then_a_rule() {
        let zone = ZoneTable::parse(&file()).unwrap();
        for (time, offset) in [
            ("1900-01-01 00:00:00", 100),
            ("1949-12-31 23:59:59", 100),
            ("1950-01-01 00:00:00", 3600),
            ("1999-12-31 23:59:59", 3600),
            ("2000-01-01 00:00:00", 3600),
            ("2026-07-01 00:00:00", 7200),
        ] {
            assert_eq!(zone.offset_at(at(time)), offset, "{time}");
        }
    }

    #[test]
    fn an_incomplete_file_is_rejected() {
        let file = file();
        for length in 0..file.len() - "\nCET-1CEST,M3.5.0,M10.5.0/3\n".len() {
            assert_eq!(ZoneTable::parse(&file[..length]), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(at in 0_usize..150, byte in any::<u8>(), time in any::<i64>()) {
            let mut file = file();
            let length = file.len();
            file[at % length] = byte;
            if let Some(zone) = ZoneTable::parse(&file) {
                zone.offset_at(time);
            }
        }

        #[test]
        fn any_rule_is_parsed_or_rejected(rule in "[A-D]{3}[-0-9:]{1,4}[A-D]{0,4}[-,M0-9./J]{0,20}", time in any::<i64>()) {
            if let Some(rule) = ZoneRule::parse(&rule) {
                rule.offset_at(time);
            }
        }
    }
}
