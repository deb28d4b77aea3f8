//! [`TimerPlan`]: decides when a timer runs. It has no clock: every time is passed in.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::schedule::TimerSchedule;
use super::status::{ScheduleStatus, StatusJson};
use super::zone::TimeZone;

/// The reason of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunCause {
    /// Its time has come.
    Schedule,
    /// An occurrence was missed while the app was not running. It was due at this time.
    PastDue(DateTime<Utc>),
    /// The app has started, and the trigger has `runOnStartup`.
    Startup,
    /// A request to the admin address. The schedule and its status do not change.
    Request,
}

/// The schedule of one timer and its status.
#[derive(Clone, Debug)]
pub(crate) struct TimerPlan {
    schedule: TimerSchedule,
    zone: TimeZone,
    /// Whether the status is recorded and shown to the function.
    is_monitored: bool,
    status: ScheduleStatus,
}

/// The value of the trigger, as the platform writes it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TimerInfo {
    schedule: ScheduleInfo,
    schedule_status: Option<StatusJson>,
    is_past_due: bool,
}

#[derive(Serialize)]
struct ScheduleInfo {
    #[serde(rename = "AdjustForDST")]
    adjust_for_dst: bool,
}

impl TimerPlan {
    /// Creates the plan of a timer at the start of the app. `recorded` is the status before the start, if it is
    /// monitored and has run before. Returns also the time of a missed occurrence.
    pub(crate) fn new(
        schedule: TimerSchedule,
        zone: TimeZone,
        use_monitor: bool,
        recorded: Option<ScheduleStatus>,
        now: DateTime<Utc>,
    ) -> (TimerPlan, Option<DateTime<Utc>>) {
        let is_monitored = use_monitor && !schedule.is_below_a_minute();
        let next_after = |at| schedule.next_after(at, &zone);
        let status = match recorded.filter(|_| is_monitored) {
            None => ScheduleStatus { last: None, next: next_after(now), last_updated: Some(now) },
            Some(recorded) => {
                let from = recorded.last.or(recorded.last_updated).unwrap_or(now);
                let expected = next_after(from);
                if expected == recorded.next {
                    recorded
                } else if expected.is_some_and(|expected| now > expected) {
                    // The schedule has changed. An occurrence of the new one before now was not missed.
                    ScheduleStatus { last: None, next: next_after(now), last_updated: Some(now) }
                } else {
                    ScheduleStatus { last: None, next: expected, last_updated: Some(from) }
                }
            }
        };
        let missed = status.next.filter(|next| now > *next);
        (TimerPlan { schedule, zone, is_monitored, status }, missed)
    }

    /// Returns the time of the next run, or `None` if there is none.
    pub(crate) fn next(&self) -> Option<DateTime<Utc>> {
        self.status.next
    }

    /// Returns the status to record, if the timer is monitored.
    pub(crate) fn recorded_status(&self) -> Option<&ScheduleStatus> {
        self.is_monitored.then_some(&self.status)
    }

    /// Computes the next run after a run. Occurrences that the run outlasted are dropped, except for one, which is
    /// run at once.
    pub(crate) fn finish_run(&mut self, began: DateTime<Utc>, cause: RunCause) {
        let from = match (cause, self.status.next) {
            // A clock that was put back during the wait must not repeat the occurrence.
            (RunCause::Schedule, Some(next)) if next > began => next,
            _ => began,
        };
        let next = self.schedule.next_after(from, &self.zone);
        self.status = ScheduleStatus { last: Some(from), next, last_updated: Some(from) };
    }

    /// Returns the value of the trigger as JSON.
    pub(crate) fn trigger_value(&self, cause: RunCause) -> String {
        let info = TimerInfo {
            schedule: ScheduleInfo { adjust_for_dst: self.schedule.adjusts_for_dst() },
            schedule_status: self.recorded_status().map(|status| status.to_json(&self.zone)),
            is_past_due: matches!(cause, RunCause::PastDue(_)),
        };
        serde_json::to_string(&info).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        format!("2026-05-01T{text}Z").parse().unwrap()
    }

    fn started(
        schedule: &str,
        recorded: Option<ScheduleStatus>,
        now: &str,
    ) -> (TimerPlan, Option<DateTime<Utc>>) {
        TimerPlan::new(TimerSchedule::parse(schedule).unwrap(), TimeZone::Utc, true, recorded, time(now))
    }

    fn status(last: Option<&str>, next: &str, last_updated: &str) -> ScheduleStatus {
        ScheduleStatus {
            last: last.map(time),
            next: Some(time(next)),
            last_updated: Some(time(last_updated)),
        }
    }

    #[test]
    fn a_new_timer_waits_for_its_next_occurrence() {
        let (plan, missed) = started("0 0 * * * *", None, "10:15:00");
        assert_eq!((plan.next(), missed), (Some(time("11:00:00")), None));
        assert_eq!(plan.recorded_status(), Some(&status(None, "11:00:00", "10:15:00")));
    }

    #[test]
    fn a_missed_occurrence_is_past_due() {
        // It has run before, or was only recorded at the first start.
        for last in [Some("09:00:00"), None] {
            let recorded = status(last, "10:00:00", "09:00:00");
            let (mut plan, missed) = started("0 0 * * * *", Some(recorded), "12:15:00");
            assert_eq!(missed, Some(time("10:00:00")));
            plan.finish_run(time("12:15:01"), RunCause::PastDue(time("10:00:00")));
            assert_eq!(plan.recorded_status(), Some(&status(Some("12:15:01"), "13:00:00", "12:15:01")));
        }
        let (plan, missed) = started("0 0 * * * *", Some(status(None, "10:00:00", "09:10:00")), "09:59:00");
        assert_eq!((plan.next(), missed), (Some(time("10:00:00")), None));
    }

    #[test]
    fn a_changed_schedule_is_not_past_due() {
        let recorded = status(Some("09:00:00"), "10:00:00", "09:00:00");
        let (plan, missed) = started("0 */20 * * * *", Some(recorded.clone()), "12:15:00");
        assert_eq!(missed, None);
        assert_eq!(plan.recorded_status(), Some(&status(None, "12:20:00", "12:15:00")));
        // Its first occurrence is still to come.
        let (plan, missed) = started("0 30 9 * * *", Some(recorded), "09:15:00");
        assert_eq!(missed, None);
        assert_eq!(plan.recorded_status(), Some(&status(None, "09:30:00", "09:00:00")));
    }

    #[test]
    fn a_long_run_is_followed_by_one_run_and_the_others_are_dropped() {
        let (mut plan, _) = started("0 * * * * *", None, "10:00:30");
        assert_eq!(plan.next(), Some(time("10:01:00")));
        // This run lasts until 10:04:10.
        plan.finish_run(time("10:01:00"), RunCause::Schedule);
        assert_eq!(plan.next(), Some(time("10:02:00")));
        plan.finish_run(time("10:04:10"), RunCause::Schedule);
        assert_eq!(plan.next(), Some(time("10:05:00")));
    }

    #[test]
    fn a_run_before_its_time_does_not_repeat_the_occurrence() {
        let (mut plan, _) = started("0 0 * * * *", None, "10:15:00");
        plan.finish_run(time("10:59:59"), RunCause::Schedule);
        assert_eq!(plan.recorded_status(), Some(&status(Some("11:00:00"), "12:00:00", "11:00:00")));
        plan.finish_run(time("11:30:00"), RunCause::Startup);
        assert_eq!(plan.next(), Some(time("12:00:00")));
    }

    #[test]
    fn the_value_has_the_form_of_the_platform() {
        let (plan, _) = started("0 0 * * * *", None, "10:15:00");
        assert_eq!(
            plan.trigger_value(RunCause::PastDue(time("10:00:00"))),
            r#"{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00","Next":"2026-05-01T11:00:00+00:00","LastUpdated":"2026-05-01T10:15:00+00:00"},"IsPastDue":true}"#
        );
        // Nothing is recorded for short intervals, and for triggers that do not want it.
        let unmonitored = r#"{"Schedule":{"AdjustForDST":false},"ScheduleStatus":null,"IsPastDue":false}"#;
        assert_eq!(started("00:00:30", None, "10:15:00").0.trigger_value(RunCause::Schedule), unmonitored);
        let schedule = TimerSchedule::parse("01:00:00").unwrap();
        let recorded = status(None, "10:00:00", "09:00:00");
        let (plan, missed) = TimerPlan::new(schedule, TimeZone::Utc, false, Some(recorded), time("10:15:00"));
        assert_eq!((plan.next(), missed), (Some(time("11:15:00")), None));
        assert_eq!(plan.trigger_value(RunCause::Schedule), unmonitored);
    }

    #[test]
    fn a_schedule_without_occurrences_never_runs() {
        let (plan, missed) = started("0 0 0 31 2 *", None, "10:15:00");
        assert_eq!((plan.next(), missed), (None, None));
    }
}
