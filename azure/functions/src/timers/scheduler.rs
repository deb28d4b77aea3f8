//! [`TimerScheduler`]: runs the timers of an app when they are due. Each timer is a task with a plan.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound as _, Utc};
use tokio::sync::{Mutex as Seat, Notify, watch};
use tokio::task::JoinHandle;

use super::plan::{RunCause, TimerPlan};
use super::status::{ScheduleStatus, StatusFile, local_text};
use super::zone::TimeZone;
use crate::bindings::trigger_event::TriggerEvent;
use crate::datum::Datum;
use crate::function::{Function, TimerTrigger, Trigger};
use crate::host::console::{self, ConsoleLogSink};
use crate::invocation::{FunctionRunner, TraceContext};

/// The longest wait without a look at the clock, which may be set and does not run while the machine sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Runs the timers of an app. A reload of the app replaces them.
#[derive(Debug)]
pub(crate) struct TimerScheduler {
    /// The state folder of the app.
    state: PathBuf,
    /// A task of a function holds its seat. So a run of the previous instance of the app ends before the next one
    /// begins.
    seats: Mutex<HashMap<String, Arc<Seat<()>>>>,
    tasks: Mutex<TimerTasks>,
}

/// The tasks of the current timers, and of the previous ones that still run a function.
#[derive(Debug, Default)]
struct TimerTasks {
    stop: watch::Sender<bool>,
    handles: Vec<JoinHandle<()>>,
    /// Requests for a run, by the function's name in lower case. Several before a run are one.
    requests: HashMap<String, Arc<Notify>>,
}

/// The timers of one instance of the app.
#[derive(Clone, Debug)]
pub(crate) struct TimerSet {
    runner: Arc<FunctionRunner>,
    zone: TimeZone,
    functions: Vec<Arc<Function>>,
}

impl TimerSet {
    /// Selects the functions with a timer trigger.
    pub(crate) fn new(runner: Arc<FunctionRunner>, zone: TimeZone, functions: &[Arc<Function>]) -> TimerSet {
        let is_timer = |function: &&Arc<Function>| matches!(function.trigger, Trigger::Timer(_));
        TimerSet { runner, zone, functions: functions.iter().filter(is_timer).cloned().collect() }
    }
}

impl TimerScheduler {
    /// Creates a scheduler without timers, for the app with this state folder.
    pub(crate) fn new(state: PathBuf) -> TimerScheduler {
        TimerScheduler { state, seats: Mutex::default(), tasks: Mutex::default() }
    }

    /// Replaces all timers. `is_startup` runs those that have `runOnStartup`. Runs of the previous timers are
    /// finished.
    pub(crate) fn replace(&self, timers: TimerSet, is_startup: bool) {
        let mut tasks = self.tasks();
        tasks.stop.send_replace(true);
        tasks.stop = watch::Sender::new(false);
        tasks.handles.retain(|handle| !handle.is_finished());
        tasks.requests.clear();
        for function in &timers.functions {
            let Some(timer) = ScheduledTimer::new(&timers, function, &self.state) else { continue };
            let (seat, stop) = (self.seat(&function.name), tasks.stop.subscribe());
            let request = Arc::new(Notify::new());
            tasks.requests.insert(function.name.to_ascii_lowercase(), request.clone());
            tasks.handles.push(tokio::spawn(timer.follow(is_startup, seat, stop, request)));
        }
    }

    /// Runs a timer as soon as it does not run. Returns `false` if there is no timer of this name.
    pub(crate) fn request_run(&self, function: &str) -> bool {
        let tasks = self.tasks();
        let request = tasks.requests.get(&function.to_ascii_lowercase());
        request.map(|request| request.notify_one()).is_some()
    }

    /// Starts no further runs until the timers are replaced.
    pub(crate) fn stop(&self) {
        self.tasks().stop.send_replace(true);
    }

    /// Stops, and waits for the runs that have begun.
    pub(crate) async fn finish(&self, limit: Duration) {
        self.stop();
        let handles = std::mem::take(&mut self.tasks().handles);
        let deadline = tokio::time::Instant::now() + limit;
        for handle in handles {
            if tokio::time::timeout_at(deadline, handle).await.is_err() {
                return;
            }
        }
    }

    fn tasks(&self) -> MutexGuard<'_, TimerTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seat(&self, function: &str) -> Arc<Seat<()>> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.entry(function.to_ascii_lowercase()).or_default().clone()
    }
}

/// One timer with everything that its task needs.
#[derive(Debug)]
struct ScheduledTimer {
    runner: Arc<FunctionRunner>,
    zone: TimeZone,
    file: StatusFile,
    function: Arc<Function>,
    trigger: TimerTrigger,
}

impl ScheduledTimer {
    /// Returns `None` for a function with another trigger.
    fn new(timers: &TimerSet, function: &Arc<Function>, state: &Path) -> Option<ScheduledTimer> {
        let Trigger::Timer(trigger) = &function.trigger else { return None };
        Some(ScheduledTimer {
            runner: timers.runner.clone(),
            zone: timers.zone.clone(),
            file: StatusFile::new(state, &function.name),
            function: function.clone(),
            trigger: trigger.clone(),
        })
    }

    /// Runs the function whenever it is due, until `stop` is set. A run that has begun is finished.
    async fn follow(
        self,
        is_startup: bool,
        seat: Arc<Seat<()>>,
        mut stop: watch::Receiver<bool>,
        request: Arc<Notify>,
    ) {
        let _seat = tokio::select! {
            seat = seat.lock_owned() => seat,
            () = stopped(&mut stop) => return,
        };
        let (mut plan, missed) = self.start(now()).await;
        self.record(&plan).await;
        let mut cause = match missed {
            Some(due) => RunCause::PastDue(due),
            None if is_startup && self.trigger.run_on_startup => RunCause::Startup,
            None => RunCause::Schedule,
        };
        loop {
            if cause == RunCause::Schedule {
                self.log_next(&plan);
                tokio::select! {
                    () = wait_until(plan.next()) => {}
                    () = request.notified() => cause = RunCause::Request,
                    () = stopped(&mut stop) => return,
                }
            }
            let began = now();
            self.run(&plan, cause).await;
            if cause != RunCause::Request {
                plan.finish_run(began, cause);
                self.record(&plan).await;
            }
            if *stop.borrow() {
                return;
            }
            cause = RunCause::Schedule;
        }
    }

    /// Returns the plan from now on, and the time of a missed occurrence.
    async fn start(&self, now: DateTime<Utc>) -> (TimerPlan, Option<DateTime<Utc>>) {
        let TimerTrigger { schedule, use_monitor, .. } = &self.trigger;
        let recorded = match *use_monitor && !schedule.is_below_a_minute() {
            true => self.read_status().await,
            false => None,
        };
        TimerPlan::new(schedule.clone(), self.zone.clone(), *use_monitor, recorded, now)
    }

    async fn read_status(&self) -> Option<ScheduleStatus> {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || file.read()).await.ok()?;
        read.unwrap_or_else(|error| {
            let function = self.function.name.as_str();
            tracing::warn!(target: "function", function, "its status in .bindpost/timers is ignored: {error}");
            None
        })
    }

    async fn record(&self, plan: &TimerPlan) {
        let Some(status) = plan.recorded_status().cloned() else { return };
        let (file, zone) = (self.file.clone(), self.zone.clone());
        let written = tokio::task::spawn_blocking(move || file.write(&status, &zone)).await;
        if let Ok(Err(error)) = written {
            let function = self.function.name.as_str();
            tracing::warn!(
                target: "function", function,
                "its status cannot be written to .bindpost/timers, so a run that is missed while the app does not run \
                 is not noticed: {error}"
            );
        }
    }

    async fn run(&self, plan: &TimerPlan, cause: RunCause) {
        let function = self.function.name.as_str();
        match cause {
            RunCause::PastDue(due) => {
                let due = local_text(due, &self.zone);
                tracing::info!(target: "function", function, "is past due since {due} and runs now");
            }
            RunCause::Startup => tracing::info!(target: "function", function, "runs because the app started"),
            RunCause::Request => tracing::info!(target: "function", function, "runs because of a request"),
            RunCause::Schedule => tracing::debug!(target: "function", function, "runs"),
        }
        let begin = Instant::now();
        let time = self.zone.local(now()).format("%m/%d/%Y %H:%M:%S").to_string();
        let event = TriggerEvent::Named {
            value: Datum::Json(plan.trigger_value(cause)),
            values: vec![("TimerTrigger".to_owned(), Datum::Text(time))],
            stream: None,
        };
        let logs = ConsoleLogSink { levels: &self.runner.log_levels, function };
        match self.runner.run(&self.function, event, TraceContext::default(), &logs).await {
            Ok(_) => {
                let ms = begin.elapsed().as_millis();
                tracing::debug!(target: "function", function, "ran in {ms} ms");
            }
            Err(failure) => console::log_failure(function, &failure),
        }
    }

    /// Logs the next run. Timers that run often are logged for debugging only.
    fn log_next(&self, plan: &TimerPlan) {
        let TimerTrigger { text, schedule, .. } = &self.trigger;
        let function = self.function.name.as_str();
        let next = plan.next().map_or_else(|| "never".to_owned(), |next| local_text(next, &self.zone));
        match schedule.is_below_a_minute() {
            true => tracing::debug!(target: "function", function, "timer {text}: the next run is {next}"),
            false => tracing::info!(target: "function", function, "timer {text}: the next run is {next}"),
        }
    }
}

/// Returns the time in microseconds, which a status file keeps.
fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// Waits until a time of the clock has come, or forever if there is none.
async fn wait_until(next: Option<DateTime<Utc>>) {
    let Some(next) = next else { return std::future::pending().await };
    while let Ok(rest) = (next - now()).to_std()
        && !rest.is_zero()
    {
        tokio::time::sleep(rest.min(LONGEST_WAIT)).await;
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The sender is dropped only with the scheduler.
    let _ = stop.wait_for(|stop| *stop).await;
}
