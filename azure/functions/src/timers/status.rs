//! [`ScheduleStatus`]: when a timer ran last and runs next. [`StatusFile`] keeps it across restarts.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::zone::TimeZone;
use crate::blobs::file_name;
use crate::host::state_folder::ignore_in_git;

/// The folder of the status files in the state folder.
const FOLDER: &str = "timers";
/// How .NET writes a time that is not set, and its last time.
const NEVER: &str = "0001-01-01T00:00:00";
const NO_MORE: &str = "9999-12-31T23:59:59.9999999";

/// When a timer ran last and runs next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScheduleStatus {
    /// The begin of the last run.
    pub(crate) last: Option<DateTime<Utc>>,
    /// The next run. `None` if there is none.
    pub(crate) next: Option<DateTime<Utc>>,
    /// The time from which `next` was computed.
    pub(crate) last_updated: Option<DateTime<Utc>>,
}

/// The status as the platform writes it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StatusJson {
    last: String,
    next: String,
    last_updated: String,
}

impl ScheduleStatus {
    /// Returns the form of the platform, with local times.
    pub(crate) fn to_json(&self, zone: &TimeZone) -> StatusJson {
        let text = |at: Option<DateTime<Utc>>, otherwise: &str| {
            at.map_or_else(|| otherwise.to_owned(), |at| local_text(at, zone))
        };
        StatusJson {
            last: text(self.last, NEVER),
            next: text(self.next, NO_MORE),
            last_updated: text(self.last_updated, NEVER),
        }
    }

    fn from_json(json: &StatusJson) -> Option<ScheduleStatus> {
        let time = |text: &str| match text {
            _ if text.starts_with("0001-01-01T00:00:00") || text.starts_with("9999-12-31T") => Some(None),
            text => DateTime::parse_from_rfc3339(text).ok().map(|at| Some(at.to_utc())),
        };
        Some(ScheduleStatus {
            last: time(&json.last)?,
            next: time(&json.next)?,
            last_updated: time(&json.last_updated)?,
        })
    }
}

/// Writes a time as .NET does: local, with its offset, and with a fraction only if it has one.
pub(crate) fn local_text(at: DateTime<Utc>, zone: &TimeZone) -> String {
    zone.local(at).format("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
}

/// The file with the status of one timer: `.bindpost/timers/<function>.json`.
#[derive(Clone, Debug)]
pub(crate) struct StatusFile {
    state: PathBuf,
    path: PathBuf,
}

impl StatusFile {
    /// Returns the file for a function, in the state folder of its app.
    pub(crate) fn new(state: &Path, function: &str) -> StatusFile {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let name = match function.bytes().all(is_plain) {
            true => function.to_owned(),
            false => file_name::encode(function),
        };
        let path = state.join(FOLDER).join(format!("{name}.json"));
        StatusFile { state: state.to_owned(), path }
    }

    /// Reads the status. Returns `None` if there is none.
    pub(crate) fn read(&self) -> io::Result<Option<ScheduleStatus>> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let json: StatusJson = serde_json::from_slice(&text)?;
        let invalid = || io::Error::new(ErrorKind::InvalidData, "it has a time that is not valid");
        ScheduleStatus::from_json(&json).map(Some).ok_or_else(invalid)
    }

    /// Writes the status. Readers see the old or the new one.
    pub(crate) fn write(&self, status: &ScheduleStatus, zone: &TimeZone) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(&self.state);
        fs::create_dir_all(folder)?;
        ignore_in_git(&self.state)?;
        let draft = self.path.with_extension(format!("json.{}", std::process::id()));
        let text = serde_json::to_vec(&status.to_json(zone))?;
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::timers::zone_file::ZoneRule;
    use crate::worker::PrivateFolder;

    fn time(text: &str) -> Option<DateTime<Utc>> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_status_has_the_form_of_the_platform() {
        let folder = PrivateFolder::create().unwrap();
        let zone = TimeZone::Table(Arc::new(ZoneRule::parse("CET-1CEST,M3.5.0,M10.5.0/3").unwrap().into()));
        let file = StatusFile::new(folder.path(), "Nightly");
        assert_eq!(file.read().unwrap(), None);

        let status = ScheduleStatus {
            last: None,
            next: time("2026-07-01T10:00:00Z"),
            last_updated: time("2026-07-01T09:00:00.250Z"),
        };
        file.write(&status, &zone).unwrap();
        let text = fs::read_to_string(folder.path().join("timers/Nightly.json")).unwrap();
        assert_eq!(
            text,
            r#"{"Last":"0001-01-01T00:00:00","Next":"2026-07-01T12:00:00+02:00","LastUpdated":"2026-07-01T11:00:00.250+02:00"}"#
        );
        assert_eq!(file.read().unwrap(), Some(status));
        let names = fs::read_dir(folder.path().join("timers")).unwrap();
        assert_eq!(names.count(), 1, "no draft is left");

        let status = ScheduleStatus { last: time("2026-01-01T00:00:00Z"), next: None, last_updated: None };
        file.write(&status, &zone).unwrap();
        assert_eq!(file.read().unwrap(), Some(status));
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let folder = PrivateFolder::create().unwrap();
        let file = StatusFile::new(folder.path(), "t");
        file.write(&ScheduleStatus::default(), &TimeZone::Utc).unwrap();
        for text in ["", "{}", "[]", r#"{"Last":"x","Next":"x","LastUpdated":"x"}"#] {
            fs::write(&file.path, text).unwrap();
            assert!(file.read().is_err(), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_function_is_never_a_path() {
        let file = StatusFile::new(Path::new("/app"), "../x/y");
        assert_eq!(file.path, Path::new("/app/timers/%2e.%2fx%2fy.json"));
    }
}
