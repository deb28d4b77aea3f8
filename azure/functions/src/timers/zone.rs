//! [`TimeZone`]: the time zone of schedules.
//!
//! The settings `WEBSITE_TIME_ZONE` and `TZ` name it, otherwise it is the machine's. Names are looked up in the system's
//! time-zone table.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset, Local, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _, Utc};

use super::zone_file::{ZoneRule, ZoneTable};

/// The settings that name the time zone, in the order of their precedence.
const SETTINGS: [&str; 2] = ["WEBSITE_TIME_ZONE", "TZ"];
/// The folders of the system's time-zone table.
const FOLDERS: [&str; 4] =
    ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];
/// The setting that names another folder.
const FOLDER_SETTING: &str = "TZDIR";

/// The time zone of schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeZone {
    /// Coordinated Universal Time, which has no changes of the clock.
    #[default]
    Utc,
    /// The zone of the machine.
    Machine,
    /// A zone of the system's table.
    Table(Arc<ZoneTable>),
}

/// The setting names a time zone that is not in the system's table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting {setting} names the time zone {name:?}, which this system does not know")]
pub(crate) struct UnknownZone {
    setting: &'static str,
    name: String,
}

impl TimeZone {
    /// Returns the zone that the settings select. `setting` looks up app settings.
    pub(crate) fn resolve(setting: &dyn Fn(&str) -> Option<String>) -> Result<TimeZone, UnknownZone> {
        let named = SETTINGS.into_iter().find_map(|name| {
            let value = setting(name)?;
            let zone = value.trim().trim_start_matches(':');
            (!zone.is_empty()).then(|| (name, zone.to_owned()))
        });
        let Some((setting_name, name)) = named else { return Ok(TimeZone::Machine) };
        if ["utc", "gmt", "etc/utc", "z"].contains(&name.to_ascii_lowercase().as_str()) {
            return Ok(TimeZone::Utc);
        }
        let own = setting(FOLDER_SETTING);
        let folders = own.as_deref().into_iter().chain(FOLDERS);
        let table = folders.filter_map(|folder| read_table(Path::new(folder), &name)).next();
        let table = table.or_else(|| ZoneRule::parse(&name).map(ZoneTable::from));
        match table {
            Some(table) => Ok(TimeZone::Table(Arc::new(table))),
            // `TZ` may also be a path. The C library of the machine reads it.
            None if setting_name == "TZ" && name.starts_with('/') => Ok(TimeZone::Machine),
            None => Err(UnknownZone { setting: setting_name, name }),
        }
    }

    /// Returns the local time of a time.
    pub(crate) fn local(&self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        let offset = FixedOffset::east_opt(self.offset_at(at)).unwrap_or_else(|| Utc.fix());
        at.with_timezone(&offset)
    }

    /// Returns the offset from UTC at a time, in seconds.
    pub(crate) fn offset_at(&self, at: DateTime<Utc>) -> i32 {
        match self {
            TimeZone::Utc => 0,
            TimeZone::Machine => Local.offset_from_utc_datetime(&at.naive_utc()).local_minus_utc(),
            TimeZone::Table(table) => table.offset_at(at.timestamp()),
        }
    }

    /// Returns the time at which the clock of this zone shows `local`, if its offset from UTC is `offset`.
    pub(crate) fn at_offset(local: NaiveDateTime, offset: i32) -> Option<DateTime<Utc>> {
        Some(local.checked_sub_signed(TimeDelta::seconds(i64::from(offset)))?.and_utc())
    }

    /// Returns the first time after `begin` and up to `end` at which the offset changes, and the new offset.
    pub(crate) fn next_change(
        &self,
        begin: DateTime<Utc>,
        end: DateTime<Utc>,
    ) -> Option<(DateTime<Utc>, i32)> {
        if *self == TimeZone::Utc {
            return None;
        }
        let offset = self.offset_at(begin);
        // No zone changes its offset and back within a day.
        let mut before = begin.timestamp();
        let end = end.timestamp();
        let differs = |at: i64| {
            let found = self.offset_at(DateTime::from_timestamp(at, 0)?);
            (found != offset).then_some(found)
        };
        while before < end {
            let mut after = before.saturating_add(86_400).min(end);
            if let Some(mut found) = differs(after) {
                while after - before > 1 {
                    let middle = before + (after - before) / 2;
                    match differs(middle) {
                        Some(offset) => (after, found) = (middle, offset),
                        None => before = middle,
                    }
                }
                return Some((DateTime::from_timestamp(after, 0)?, found));
            }
            before = after;
        }
        None
    }
}

/// Reads a zone from a folder of the system's table. Names are never paths outside of it.
fn read_table(folder: &Path, name: &str) -> Option<ZoneTable> {
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte))
    };
    if !name.split('/').all(is_plain) {
        return None;
    }
    ZoneTable::parse(&fs::read(folder.join(name)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(settings: &[(&str, &str)]) -> Result<TimeZone, UnknownZone> {
        let find = |name: &str| {
            settings.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        TimeZone::resolve(&find)
    }

    fn rule(text: &str) -> TimeZone {
        TimeZone::Table(Arc::new(ZoneRule::parse(text).unwrap().into()))
    }

    #[test]
    fn settings_name_the_zone_or_it_is_the_machines() {
        assert_eq!(resolve(&[]), Ok(TimeZone::Machine));
        assert_eq!(resolve(&[("WEBSITE_TIME_ZONE", " ")]), Ok(TimeZone::Machine));
        assert_eq!(resolve(&[("TZ", "UTC")]), Ok(TimeZone::Utc));
        assert_eq!(resolve(&[("TZ", "AAA5"), ("WEBSITE_TIME_ZONE", "Etc/UTC")]), Ok(TimeZone::Utc));
        assert_eq!(resolve(&[("TZ", "AAA5")]), Ok(rule("AAA5")));
        assert_eq!(resolve(&[("TZ", ":/etc/localtime")]), Ok(TimeZone::Machine));
    }

    #[test]
    fn an_unknown_zone_is_an_error_and_no_path_is_read() {
        for name in [
            "Nowhere/Here",
            "../../etc/passwd",
            "/etc/passwd",
            "Europe/../../../etc/passwd",
            "Europe//Berlin",
        ] {
            let error = resolve(&[("WEBSITE_TIME_ZONE", name)]).unwrap_err().to_string();
            let expected = "the setting WEBSITE_TIME_ZONE names the time zone";
            assert!(error.starts_with(expected) && error.contains(name), "{error}");
        }
    }

    #[test]
    fn changes_are_found_to_the_second() {
        let zone = rule("CET-1CEST,M3.5.0,M10.5.0/3");
        let time = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let found = zone.next_change(time("2026-01-01T00:00:00Z"), time("2026-12-31T00:00:00Z"));
        assert_eq!(found, Some((time("2026-03-29T01:00:00Z"), 7200)));
        let found = zone.next_change(time("2026-03-29T01:00:00Z"), time("2026-10-25T00:59:59Z"));
        assert_eq!(found, None);
        let found = zone.next_change(time("2026-03-29T01:00:00Z"), time("2026-10-25T01:00:00Z"));
        assert_eq!(found, Some((time("2026-10-25T01:00:00Z"), 3600)));
    }

    /// The system's own table is compared with the rule that it ends with.
    #[test]
    fn the_systems_table_is_read() {
        let Ok(TimeZone::Table(table)) = resolve(&[("TZ", "Europe/Berlin")]) else { return };
        let rule: ZoneTable = ZoneRule::parse("CET-1CEST,M3.5.0,M10.5.0/3").unwrap().into();
        for hour in 0..24 * 366 * 3 {
            let at = 1_700_000_000 + hour * 3600;
            assert_eq!(table.offset_at(at), rule.offset_at(at), "{at}");
        }
    }
}
