//! Watches each worker and replaces workers that exit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::start::Worker;
use crate::worker::channel::StreamEnded;
use crate::worker::pool::{SharedPool, WorkerVacancy};
use crate::worker::process::{ProcessExit, StopSignal};

/// How long a process may run after its stream has ended, before it is killed. Usually both end at the same
/// time, and the exit status explains more.
const AFTER_STREAM: Duration = Duration::from_millis(250);
/// How long to read the last messages of a process that has exited.
const AFTER_PROCESS: Duration = Duration::from_millis(250);
/// A worker that requests a restart earlier than this after its start is treated as crashed.
const SETTLED: Duration = Duration::from_secs(10);

/// Why a worker stopped serving.
enum ServingEnd {
    Exited(ProcessExit),
    Stream(String),
    Unresponsive,
    Retired(String),
}

/// Watches a serving worker until it has exited.
pub(crate) async fn supervise(pool: Arc<SharedPool>, worker: Arc<Worker>) {
    let mut retired = worker.retired.subscribe();
    let retired = async {
        match retired.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    };
    let end = tokio::select! {
        exit = worker.process.wait_for_exit() => ServingEnd::Exited(exit),
        reason = worker.channel.wait_for_end() => ServingEnd::Stream(reason),
        () = wait_until_unresponsive(&pool, &worker) => ServingEnd::Unresponsive,
        reason = retired => ServingEnd::Retired(reason),
    };
    {
        let mut state = pool.state();
        state.serving.retain(|it| !Arc::ptr_eq(it, &worker));
        state.retiring.push(Arc::clone(&worker));
    }
    let reason = match end {
        ServingEnd::Exited(exit) => {
            // Messages that it sent before its exit are still handled.
            let _ = tokio::time::timeout(AFTER_PROCESS, worker.channel.wait_for_end()).await;
            handle_exit(&pool, &worker, exit)
        }
        ServingEnd::Stream(reason) => {
            if worker.process.ends_within(AFTER_STREAM).await {
                handle_exit(&pool, &worker, worker.process.exit().unwrap_or_default())
            } else {
                let reason = format!("{reason}; its process was killed");
                worker.process.signal(StopSignal::Kill);
                pool.vacate(&worker, &reason, true);
                reason
            }
        }
        ServingEnd::Unresponsive => {
            // A function may block its worker for as long as it may run, so the worker is not killed.
            let misses = pool.limits.health_misses;
            let reason = format!("it failed {misses} health checks in a row; other calls go to a new worker");
            worker.channel.retire();
            pool.vacate(&worker, &reason, false);
            wait_until_idle(&worker, None).await;
            worker.stop().await;
            reason
        }
        ServingEnd::Retired(reason) => {
            worker.channel.retire();
            pool.vacate(&worker, &reason, false);
            wait_until_idle(&worker, Some(pool.limits.drain)).await;
            // The time limit for its other invocations has passed.
            worker.channel.fail_all(&format!("it was replaced: {reason}"));
            worker.stop().await;
            reason
        }
    };
    worker.channel.fail_all(&reason);
    worker.channel.report_dropped();
    worker.process.wait_for_exit().await;
    pool.state().retiring.retain(|it| !Arc::ptr_eq(it, &worker));
    pool.events.worker_exited(worker.number, &reason);
}

/// Handles the exit of a process. Its console may explain the exit but may contain local paths, so it is not
/// part of the reason.
fn handle_exit(pool: &Arc<SharedPool>, worker: &Arc<Worker>, exit: ProcessExit) -> String {
    let reason = exit.to_string();
    worker.channel.fail_all(&reason);
    let wanted = exit.wants_restart() && worker.since.elapsed() > SETTLED;
    pool.vacate(worker, &reason, !wanted);
    reason
}

/// Waits until a worker is idle, has exited, or has reached the limit, if any.
async fn wait_until_idle(worker: &Worker, limit: Option<Duration>) {
    let idle = async {
        while worker.channel.waiting_count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = idle => {}
        _ = worker.process.wait_for_exit() => {}
        _ = worker.channel.wait_for_end() => {}
        () = tokio::time::sleep(limit.unwrap_or_default()), if limit.is_some() => {}
    }
}

/// Checks the worker's health periodically. Returns when it does not respond while it has invocations.
async fn wait_until_unresponsive(pool: &SharedPool, worker: &Worker) {
    let limits = &pool.limits;
    if !worker.channel.has_capability("WorkerStatus") {
        return std::future::pending().await;
    }
    let mut misses = 0;
    loop {
        worker.channel.report_dropped();
        match tokio::time::timeout(limits.health_interval, worker.channel.status()).await {
            Ok(Ok(())) => {
                misses = 0;
                tokio::time::sleep(limits.health_interval).await;
            }
            Ok(Err(StreamEnded)) => return std::future::pending().await,
            Err(_) => misses += 1,
        }
        if misses >= limits.health_misses && worker.channel.running_count() > 0 {
            return;
        }
    }
}

/// Replaces the worker if it has not answered a cancelled invocation after the grace period.
pub(crate) async fn retire_if_overdue(worker: Arc<Worker>, invocation: Arc<str>, grace: Duration) {
    tokio::time::sleep(grace).await;
    if worker.channel.is_running(&invocation) {
        let reason = "a function did not end after its timeout".to_owned();
        worker.retired.send_if_modified(|retired| {
            let first = retired.is_none();
            retired.get_or_insert(reason);
            first
        });
    }
}

impl SharedPool {
    /// Requests a replacement for a worker.
    fn vacate(&self, worker: &Worker, reason: &str, counted: bool) {
        let mut state = self.state();
        let current = state.generation.as_ref().is_some_and(|it| Arc::ptr_eq(it, &worker.generation));
        if current && !state.stopping {
            state.last_end = reason.to_owned();
            state.vacancies.push_back(WorkerVacancy { reason: Some(reason.to_owned()), counted });
            self.vacancy.notify_one();
        }
    }
}

/// Fills vacancies until the pool stops. The first restart is immediate, later ones are delayed, and their
/// number is limited.
pub(crate) async fn fill_vacancies(pool: Arc<SharedPool>) {
    loop {
        let vacancy = {
            let mut state = pool.state();
            if state.stopping {
                return;
            }
            state.vacancies.pop_front()
        };
        let Some(vacancy) = vacancy else {
            pool.vacancy.notified().await;
            continue;
        };
        let delay = match delay(&pool, &vacancy) {
            Ok(delay) => delay,
            Err(reason) => {
                pool.state().vacancies.clear();
                pool.fail(reason);
                continue;
            }
        };
        if let Some(reason) = &vacancy.reason {
            pool.events.worker_restarting(reason, delay);
        }
        let stopping = async {
            while !pool.state().stopping {
                pool.vacancy.notified().await;
            }
        };
        // A vacancy that is added in the meantime is handled in the next iteration.
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = stopping => return,
        }
        {
            let mut state = pool.state();
            // The app may have changed in the meantime. Then it has its own vacancies.
            if state.serving.len() >= state.wanted {
                continue;
            }
            state.last_start = Some(Instant::now());
        }
        tokio::spawn(start_replacement(Arc::clone(&pool)));
    }
}

/// Returns the delay before a start, or the reason why no worker is started.
fn delay(pool: &SharedPool, vacancy: &WorkerVacancy) -> Result<Duration, String> {
    let limits = &pool.limits;
    let mut state = pool.state();
    let now = Instant::now();
    let mut delay = Duration::ZERO;
    if vacancy.counted {
        while state.restarts.front().is_some_and(|at| now.duration_since(*at) > limits.restart_window) {
            state.restarts.pop_front();
        }
        let processes = state.wanted.max(1);
        let before = state.restarts.len();
        if before >= limits.restarts_per_process.saturating_mul(processes) {
            return Err(format!(
                "workers were restarted {before} times within {} min and keep exiting; the last exit: {}",
                limits.restart_window.as_secs() / 60,
                vacancy.reason.as_deref().unwrap_or("unknown"),
            ));
        }
        state.restarts.push_back(now);
        // The first restart of each process is immediate.
        if let Some(doublings) = (before / processes).checked_sub(1) {
            let factor = 1_u32.checked_shl(u32::try_from(doublings).unwrap_or(u32::MAX)).unwrap_or(u32::MAX);
            delay = limits.restart_delay.saturating_mul(factor).min(limits.restart_delay_max);
        }
    }
    let spacing = state
        .last_start
        .map_or(Duration::ZERO, |at| limits.start_spacing.saturating_sub(now.duration_since(at)));
    Ok(delay.max(spacing))
}

/// Starts one worker of the current generation and makes it load the functions.
async fn start_replacement(pool: Arc<SharedPool>) {
    let (generation, functions) = {
        let state = pool.state();
        (state.generation.clone(), Arc::clone(&state.functions))
    };
    let Some(generation) = generation else { return };
    let started = pool
        .unless_stopped(async {
            let worker = generation.start(pool.next_number()).await?;
            worker.load(&functions).await?;
            Ok(worker)
        })
        .await;
    match started {
        Ok(worker) => pool.add_worker(worker),
        Err(error) => {
            let mut state = pool.state();
            let current = state.generation.as_ref().is_some_and(|it| Arc::ptr_eq(it, &generation));
            if current && !state.stopping {
                state.last_end = error.brief();
                state.vacancies.push_back(WorkerVacancy { reason: Some(error.to_string()), counted: true });
                pool.vacancy.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::events::NoEvents;
    use crate::worker::limits::WorkerLimits;

    fn crash() -> WorkerVacancy {
        WorkerVacancy { reason: Some("exit code 1".into()), counted: true }
    }

    #[test]
    fn restarts_are_first_immediate_then_delayed_then_refused() {
        let limits = WorkerLimits { restarts_per_process: 5, ..WorkerLimits::default() };
        let pool = SharedPool::new(limits, Arc::new(NoEvents));
        pool.state().wanted = 2;
        let delays: Vec<_> = (0..10).map(|_| delay(&pool, &crash()).unwrap().as_secs()).collect();
        assert_eq!(delays, [0, 0, 2, 2, 4, 4, 8, 8, 10, 10]);
        let reason = delay(&pool, &crash()).unwrap_err();
        assert!(reason.contains("restarted 10 times within 30 min"), "{reason}");
        // A planned replacement does not count as a restart.
        let replaced = WorkerVacancy { reason: None, counted: false };
        assert_eq!(delay(&pool, &replaced), Ok(Duration::ZERO));
    }

    #[test]
    fn starts_are_spaced() {
        let pool = SharedPool::new(WorkerLimits::default(), Arc::new(NoEvents));
        pool.state().last_start = Some(Instant::now());
        let delay = delay(&pool, &crash()).unwrap();
        assert!(delay > Duration::from_millis(900) && delay <= Duration::from_secs(1), "{delay:?}");
    }
}
