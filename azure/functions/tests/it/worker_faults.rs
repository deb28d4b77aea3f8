//! Workers that crash, hang, flood or lose their stream: F01 to F05 and F37 of the promises.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_azure_functions::datum::Datum;
use bindpost_azure_functions::invocation::Invocation;
use bindpost_azure_functions::worker::*;
use rustix::process::Signal;
use tokio::io::AsyncBufReadExt as _;

use super::worker_harness::*;
use super::worker_scripted::Step;

/// F01: every invocation of a killed worker gets one error. The others get none. A new worker serves.
#[tokio::test]
async fn a_crash_ends_only_the_invocations_of_that_worker() {
    for framing in BOTH {
        let functions = script(&[("slow", &[Step::Sleep(1_500), Step::ReturnPid]), ("echo", &[])]);
        let running = start_with(framing, functions, quick(), 2).await;
        let calls: Vec<_> = (0..100).map(|_| running.spawn("slow", "", LONG)).collect();
        until("all run", || running.workers.in_flight() == 100).await;
        let killed = running.scratch.pids()[0];
        signal(killed, Signal::KILL);
        let (mut exited, mut answered) = (0, 0);
        for call in calls {
            match call.await.unwrap() {
                Ok(outcome) => {
                    assert_ne!(outcome.returned, Datum::Text(killed.to_string()));
                    answered += 1;
                }
                Err(error) => {
                    assert_eq!(error.to_string(), "worker exited: signal 9, SIGKILL");
                    exited += 1;
                }
            }
        }
        assert_eq!((exited, answered), (50, 50));
        until("two serve again", || running.workers.health() == PoolHealth::Serving(2)).await;
        assert_eq!(running.text("echo", "a").await, "a");
        let heard = running.heard.lines();
        assert!(heard.contains(&"exited 1: signal 9, SIGKILL".to_owned()), "{heard:?}");
        assert!(heard.iter().any(|line| line.starts_with("restarting in ")), "{heard:?}");
    }
}

#[tokio::test]
async fn an_exit_in_a_function_is_named() {
    for framing in BOTH {
        let running = start(framing, script(&[("exit", &[Step::Exit(7)]), ("echo", &[])])).await;
        let error = running.invoke("exit", "").await.unwrap_err();
        assert_eq!(error, InvocationError::WorkerExited { reason: "exit code 7".into() });
        // This one waits for the replacement.
        assert_eq!(running.text("echo", "a").await, "a");
    }
}

/// F02: a worker that exits at each start is restarted with delays, and only a limited number of times.
#[tokio::test]
async fn a_crash_loop_ends_with_the_budget() {
    let mut crashing = script(&[("exit", &[Step::Exit(1)])]);
    crashing.exit_from = Some((2, 4));
    let limits = WorkerLimits { start_spacing: Duration::from_millis(300), ..quick() };
    let running = start_with(Framing::Grpc, crashing, limits, 1).await;
    let began = Instant::now();
    running.invoke("exit", "").await.unwrap_err();
    let reason = running.workers.wait_for_failure().await;
    assert!(reason.contains("restarted 3 times") && reason.contains("exit code 4"), "{reason}");
    assert!(reason.contains("exiting as the script says"), "{reason}");
    assert_eq!(running.scratch.pids().len(), 4);
    // There are two delays between the three restarts.
    assert!(began.elapsed() >= Duration::from_millis(600));
    assert_eq!(running.workers.health(), PoolHealth::Failed(reason.clone()));
    let error = running.invoke("exit", "").await.unwrap_err();
    let brief = "workers keep exiting; the last one: exit code 4, before it was ready".to_owned();
    assert_eq!(error, InvocationError::NoWorker { reason: brief });
    assert!(running.heard.lines().contains(&format!("failed: {reason}")));

    // The app is repaired.
    let repaired = script(&[("echo", &[])]);
    let fresh = running.workers.prepare(launch(Framing::Grpc, &running.scratch, repaired)).await.unwrap();
    let functions = functions(&fresh.indexing);
    let echo = functions[0].clone();
    running.workers.replace_all(fresh, functions).await.unwrap();
    assert_eq!(running.workers.health(), PoolHealth::Serving(1));
    let invocation = Invocation { function: echo, ..running.invocation("exit", "back") };
    let outcome = running.workers.invoke(invocation, LONG, |_| {}).await.unwrap();
    assert_eq!(outcome.returned, Datum::Text("back".into()));
}

/// F02: an invocation does not wait forever for a worker.
#[tokio::test]
async fn an_invocation_waits_only_so_long_for_a_worker() {
    let mut script = script(&[("exit", &[Step::Exit(1)])]);
    script.at_start = vec![Step::Sleep(300)];
    let limits = WorkerLimits { wait_for_worker: Duration::from_millis(100), ..quick() };
    let running = start_with(Framing::Frames, script, limits, 1).await;
    running.invoke("exit", "").await.unwrap_err();
    let error = running.invoke("exit", "").await.unwrap_err();
    assert!(
        matches!(&error, InvocationError::NoWorker { reason } if reason.contains("exit code 1")),
        "{error}"
    );
}

/// F03: an invocation ends at its timeout. A worker that still hangs is replaced, and its other invocations
/// finish.
#[tokio::test]
async fn a_hung_function_times_out_and_its_worker_is_replaced() {
    for framing in BOTH {
        let functions = script(&[
            ("hang", &[Step::Hang]),
            ("slow", &[Step::Sleep(1_500), Step::ReturnPid]),
            ("pid", &[Step::ReturnPid]),
        ]);
        let running = start(framing, functions).await;
        let old = running.text("pid", "").await;
        let other = running.spawn("slow", "", LONG);
        let timeout = Duration::from_millis(300);
        let invocation = running.invocation("hang", "");
        let id = invocation.id.clone();
        let began = Instant::now();
        let error = running.workers.invoke(invocation, timeout, |_| {}).await.unwrap_err();
        assert_eq!(error, InvocationError::TimedOut { after: timeout });
        assert!(began.elapsed() >= timeout);
        until("another serves", || running.workers.worker_details().iter().any(|(number, _)| number.0 == 2))
            .await;
        assert!(running.scratch.notes("notes").contains(&format!("cancel {id}")));
        assert_ne!(running.text("pid", "").await, old);
        assert_eq!(other.await.unwrap().unwrap().returned, Datum::Text(old.clone()));
        until("the old one has exited", || !is_alive(old.parse().unwrap())).await;
    }
}

#[tokio::test]
async fn a_late_answer_keeps_the_worker() {
    let running = start(Framing::Grpc, script(&[("slow", &[Step::Sleep(400)]), ("echo", &[])])).await;
    let error =
        running.workers.invoke(running.invocation("slow", ""), Duration::from_millis(200), |_| {}).await;
    assert!(matches!(error, Err(InvocationError::TimedOut { .. })));
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(running.text("echo", "a").await, "a");
    assert_eq!(running.scratch.pids().len(), 1);
}

/// F03: a stopped process does not even obey SIGTERM.
#[tokio::test]
async fn a_stopped_worker_is_killed_and_replaced() {
    for framing in BOTH {
        let limits = WorkerLimits { terminate: Duration::from_millis(200), ..quick() };
        let running = start_with(framing, script(&[("echo", &[])]), limits, 1).await;
        let stopped = running.scratch.pids()[0];
        stop(stopped).await;
        let timeout = Duration::from_millis(300);
        let error =
            running.workers.invoke(running.invocation("echo", ""), timeout, |_| {}).await.unwrap_err();
        assert_eq!(error, InvocationError::TimedOut { after: timeout });
        until("the stopped one has exited", || !is_alive(stopped)).await;
        assert_eq!(running.text("echo", "a").await, "a");
    }
}

/// A function that blocks its worker may run as long as any other. Later calls go to another worker.
#[tokio::test]
async fn a_worker_that_fails_health_checks_gets_no_more_calls_and_ends_when_it_has_answered() {
    for framing in BOTH {
        let limits = WorkerLimits { health_interval: Duration::from_millis(200), ..quick() };
        let running = Arc::new(start_with(framing, script(&[("echo", &[])]), limits, 1).await);
        let stopped = running.scratch.pids()[0];
        stop(stopped).await;
        // Without calls it may be slow.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(is_alive(stopped));
        let patient = Arc::clone(&running);
        let patient = tokio::spawn(async move { patient.text("echo", "late").await });
        until("another one is started", || running.scratch.pids().len() == 2).await;
        assert_eq!(running.text("echo", "a").await, "a");
        assert!(is_alive(stopped) && !patient.is_finished());
        signal(stopped, rustix::process::Signal::CONT);
        assert_eq!(patient.await.unwrap(), "late");
        until("it has exited", || !is_alive(stopped)).await;
    }
}

/// F04: 200 MB of lines and one line of 100 MB. Memory is measured in a process that runs nothing else.
#[test]
fn a_log_flood_does_not_grow_the_host() {
    const ALONE: &str = "BINDPOST_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "worker_faults::a_log_flood_does_not_grow_the_host"])
            .env(ALONE, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let functions = script(&[
            ("flood", &[Step::Print(2_000_000, 100), Step::PrintWithoutEnd(100 << 20)]),
            ("echo", &[]),
        ]);
        let running = start(Framing::Frames, functions).await;
        assert_eq!(running.text("echo", "a").await, "a");
        let before = peak_memory();
        running.invoke("flood", "").await.unwrap();
        let dropped = || -> u64 {
            let heard = running.heard.lines();
            heard.iter().filter_map(|line| line.strip_prefix("dropped ")?.parse::<u64>().ok()).sum()
        };
        until("the drops are reported", || dropped() > 1_900_000).await;
        let grown = peak_memory() - before;
        assert!(grown <= 32 << 10, "the host grew by {grown} KiB");
        let reports = running.heard.lines().iter().filter(|line| line.starts_with("dropped")).count();
        assert!(reports < 60, "once a second, not {reports} times");
        assert_eq!(running.text("echo", "b").await, "b");
    });
}

/// F36: workers end with the host, even those that outlive their stream, if the launcher requests it from the
/// kernel.
///
/// The host of this test is a separate process, which is killed.
#[tokio::test]
async fn workers_end_with_a_host_that_is_killed() {
    const ALONE: &str = "BINDPOST_TEST_ALONE";
    let setpriv = std::path::Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return;
    }
    if std::env::var_os(ALONE).is_some() {
        let scratch = Scratch::new();
        let mut script = script(&[("echo", &[])]);
        (script.ignore_terminate, script.ignore_sigterm) = (true, true);
        let mut launch = launch(Framing::Grpc, &scratch, script);
        launch.launcher =
            [setpriv.as_os_str(), "--pdeathsig".as_ref(), "KILL".as_ref()].map(Into::into).to_vec();
        // This thread of the runtime may end long before the program.
        let start = move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            let started = runtime.block_on(WorkerPool::start(launch, quick(), std::sync::Arc::new(NoEvents)));
            std::mem::forget(runtime);
            started.unwrap()
        };
        let (workers, _) = std::thread::spawn(start).join().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let pid = scratch.pids()[0];
        println!("alive {} {pid} {}", is_alive(pid), scratch.path().display());
        std::thread::sleep(LONG);
        drop(workers);
        return;
    }
    let mut host = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "worker_faults::workers_end_with_a_host_that_is_killed"])
        .env(ALONE, "1")
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(host.stdout.take().unwrap()).lines();
    let line = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some((_, line)) = line.split_once("alive ") {
            break line.to_owned();
        }
    };
    let [alive, pid, folder] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert_eq!(alive, "true", "a worker outlives the thread that asked for it");
    let pid = pid.parse().unwrap();
    assert!(is_alive(pid));
    host.kill().await.unwrap();
    until("the worker has exited", || !is_alive(pid)).await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// Returns the peak memory of this process in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// F05: if the stream ends while the process runs, the process is killed and replaced.
#[tokio::test]
async fn a_cut_stream_is_the_end_of_its_worker() {
    for framing in BOTH {
        let functions = script(&[
            ("cut", &[Step::Sleep(100), Step::Cut, Step::Hang]),
            ("slow", &[Step::Hang]),
            ("echo", &[]),
        ]);
        let running = start(framing, functions).await;
        let other = running.spawn("slow", "", LONG);
        let error = running.invoke("cut", "").await.unwrap_err();
        let reason = "worker exited: the worker closed its stream; its process was killed";
        assert_eq!(error.to_string(), reason);
        assert_eq!(other.await.unwrap().unwrap_err().to_string(), reason);
        assert_eq!(running.text("echo", "a").await, "a");
        until("the old one has exited", || !is_alive(running.scratch.pids()[0])).await;
        assert_eq!(running.scratch.pids().len(), 2);
    }
}

/// F01 repeated: a thousand invocations, twenty kills, exactly one answer each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_invocation_gets_exactly_one_answer() {
    let limits = WorkerLimits { restarts_per_process: 100, restart_delay: Duration::ZERO, ..quick() };
    let running = start_with(Framing::Frames, script(&[("sleep", &[Step::SleepInput])]), limits, 3).await;
    let calls: Vec<_> = (0..1_000)
        .map(|number| {
            let workers = running.workers.clone();
            let millis = (number * 7 % 100).to_string();
            let invocation = running.invocation("sleep", &millis);
            tokio::spawn(async move {
                // Spread over the time of the kills.
                tokio::time::sleep(Duration::from_millis(number * 4)).await;
                match workers.invoke(invocation, LONG, |_| {}).await {
                    Ok(outcome) => {
                        assert_eq!(outcome.returned, Datum::Text(millis));
                        true
                    }
                    Err(InvocationError::WorkerExited { .. }) => false,
                    Err(error) => panic!("{error}"),
                }
            })
        })
        .collect();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        until("one serves", || !running.workers.worker_details().is_empty()).await;
        if let Some((_, about)) = running.workers.worker_details().first() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(about.pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    let mut answers = 0;
    for call in calls {
        answers += usize::from(call.await.unwrap());
    }
    assert!(answers > 500, "{answers}");
    assert_eq!(running.workers.in_flight(), 0);
    until("all serve again", || running.workers.health() == PoolHealth::Serving(3)).await;
}
