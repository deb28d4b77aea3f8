//! [`TimerTrigger`]: the trigger of a function that runs by a schedule.

use crate::json::ConfigReader;
use crate::timers::schedule::TimerSchedule;

/// A `timerTrigger`.
#[derive(Clone, Debug)]
pub struct TimerTrigger {
    pub parameter: String,
    pub schedule: TimerSchedule,
    /// The schedule as text, with its settings filled in.
    pub text: String,
    /// Runs the function when the app starts.
    pub run_on_startup: bool,
    /// Remembers the last run across restarts.
    pub use_monitor: bool,
}

impl TimerTrigger {
    /// Reads the members of the binding. `setting` looks up app settings, which `%NAME%` in the schedule names.
    /// Returns `None` if the schedule is not valid, which is reported.
    pub(super) fn read(
        parameter: String,
        members: &ConfigReader<'_>,
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> Option<TimerTrigger> {
        let run_on_startup = members.flag("runOnStartup").unwrap_or(false);
        let use_monitor = members.flag("useMonitor").unwrap_or(true);
        let text = members.required_text("schedule")?;
        let text = super::fill_settings(&text, "schedule", members, setting)?;
        let fix = "write six fields (second minute hour day month weekday), such as 0 */5 * * * *, or an interval, \
                   such as 00:05:00";
        let schedule = TimerSchedule::parse(&text)
            .map_err(|error| members.report_problem("schedule", error.to_string(), Some(fix)))
            .ok()?;
        Some(TimerTrigger { parameter, schedule, text, run_on_startup, use_monitor })
    }
}
