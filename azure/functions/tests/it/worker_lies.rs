//! Workers that send false data, flood or answer for others: F37 of the promises. A false message affects at
//! most the call that it names. Other calls and the host continue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_azure_functions::function::FunctionSource;
use bindpost_azure_functions::worker::*;
use serde_json::json;

use super::worker_harness::*;
use super::worker_puppet::{Puppet, Stage, launch};

/// Returns the reason of a call that failed because of a message of its worker.
fn message_reason(error: InvocationError) -> String {
    match error {
        InvocationError::Message { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_for_the_invocation_of_another_worker_is_ignored() {
    for framing in BOTH {
        let mut stage = Stage::set_with(framing, quick(), 2).await;
        let calls = [stage.call(LONG), stage.call(LONG)];
        let (first, second) = stage.puppets.split_at_mut(1);
        let (first, second) = (&mut first[0], &mut second[0]);
        let (of_first, of_second) = (first.invoked().await, second.invoked().await);
        assert_ne!(of_first, of_second);
        // Each answers, logs and fails for the other before it answers its own call.
        for (puppet, own, other) in [(&*first, &of_first, &of_second), (&*second, &of_second, &of_first)] {
            puppet.log(other, "c", "forged");
            puppet.answer(other, "forged");
            puppet.say(json!({"invocationResponse": {
                "invocationId": other, "result": {"status": 0, "exception": {"message": "forged"}},
            }}));
            puppet.answer("", "forged");
            puppet.answer(own, own);
        }
        for call in calls {
            let (id, logs) = (call.id.clone(), call.logs.clone());
            call.returns(&id).await;
            assert_eq!(logs.lock().unwrap().len(), 0);
        }
        assert_eq!(stage.workers.in_flight(), 0);
        assert_eq!(stage.workers.health(), PoolHealth::Serving(2));
    }
}

#[tokio::test]
async fn answers_after_a_timeout_or_a_cancel_change_nothing() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let late = stage.call(Duration::from_millis(200));
        let id = stage.puppets[0].invoked().await;
        assert!(matches!(late.fails().await, InvocationError::TimedOut { .. }));
        assert_eq!(stage.puppets[0].hears("invocationCancel").await["invocationId"], id.as_str());
        let cancelled = stage.call(LONG);
        let cancelled_id = stage.puppets[0].invoked().await;
        cancelled.answer.abort();
        assert_eq!(stage.puppets[0].hears("invocationCancel").await["invocationId"], cancelled_id.as_str());
        for _ in 0..3 {
            stage.puppets[0].answer(&id, "late");
            stage.puppets[0].answer(&cancelled_id, "late");
            stage.puppets[0].log(&id, "c", "late");
        }
        stage.works().await;
        // Each was answered within the grace: its worker stays.
        tokio::time::sleep(Duration::from_millis(700)).await;
        stage.works().await;
        assert_eq!(stage.workers.in_flight(), 0);
        assert!(!stage.heard.lines().iter().any(|line| line.starts_with("exited")));
    }
}

#[tokio::test]
async fn messages_of_a_host_and_a_second_start_are_ignored() {
    for framing in BOTH {
        let mut stage = Stage::set_with(framing, quick(), 2).await;
        let other_id = stage.puppets[1].worker_id.clone();
        let puppet = &stage.puppets[0];
        puppet.start_stream(&puppet.worker_id);
        puppet.start_stream(&other_id);
        puppet.say(json!({"workerTerminate": {"gracePeriod": "1s"}}));
        puppet.say(json!({"invocationRequest": {"invocationId": "x", "functionId": "f"}}));
        puppet.say(json!({"functionLoadRequest": {"functionId": "g"}}));
        puppet.say(json!({"workerInitResponse": {"result": {"status": 0}}}));
        puppet.say(json!({"functionMetadataResponse": {"result": {"status": 0}}}));
        puppet.say(json!({"functionLoadResponse": {"functionId": "f", "result": {"status": 0}}}));
        puppet.say(json!({"workerStatusResponse": {}}));
        for _ in 0..2 {
            let call = stage.call(LONG);
            let id = tokio::select! {
                id = async { stage.puppets[0].hears("invocationRequest").await } => id,
                () = tokio::time::sleep(Duration::from_millis(200)) => {
                    stage.puppets[1].hears("invocationRequest").await
                }
            };
            let id = id["invocationId"].as_str().unwrap().to_owned();
            stage.puppets.iter().for_each(|puppet| puppet.answer(&id, "well"));
            call.returns("well").await;
        }
        assert_eq!(stage.workers.health(), PoolHealth::Serving(2));
    }
}

#[tokio::test]
async fn an_unexpected_stream_is_rejected() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let taken = stage.puppets[0].worker_id.clone();
        for id in [taken.as_str(), "not-minted", "", &"x".repeat(60_000)] {
            let mut stranger = stage.puppets[0].another_stream().await;
            stranger.start_stream(id);
            assert!(stranger.is_sent_away().await);
        }
        // A stream that does not identify itself is rejected, even if it sends much before that.
        let mut stranger = stage.puppets[0].another_stream().await;
        let call = stage.call(LONG);
        let id = stage.puppets[0].invoked().await;
        stranger.answer(&id, "forged");
        stranger.frame(&vec![b'x'; 1 << 20]);
        stranger.start_stream("not-minted");
        assert!(stranger.is_sent_away().await);
        stage.puppets[0].answer(&id, "true");
        call.returns("true").await;
    }
}

/// Returns messages that cannot be decoded, but whose invocation id can be read.
fn unreadable(framing: Framing, id: &str) -> Vec<Vec<u8>> {
    let json = |value: &[u8]| {
        let head = format!(r#"{{"invocationResponse":{{"invocationId":"{id}","returnValue":"#);
        [head.as_bytes(), value, br#","result":{"status":1}}}"#].concat()
    };
    let protobuf = |field_3: &[u8]| {
        let inner = [&[0x0a, u8::try_from(id.len()).unwrap()], id.as_bytes(), field_3].concat();
        let mut message = vec![0x2a];
        prost::encoding::encode_varint(inner.len() as u64, &mut message);
        message.extend(inner);
        message
    };
    match framing {
        Framing::Frames => vec![
            json(br#"{"string":"\ud800"}"#),
            json(b"{\"string\":\"\xff\xfe\"}"),
            json(b"\"no object\""),
            json(b"{\"string\":"),
            json(&[&[b'['; 100_000][..], &[b']'; 100_000]].concat()),
            json(br#"{"bytes":"not base64!"}"#),
            json(br#"{"int":"99999999999999999999"}"#),
            json(br#"{"double":1e999}"#),
        ],
        Framing::Grpc => vec![
            // A text that is not valid UTF-8.
            protobuf(&[0x22, 4, 0x0a, 2, 0xff, 0xfe]),
            // A length beyond the message.
            protobuf(&[0x22, 0xff, 0xff, 0xff, 0xff, 0x0f]),
            // A length that overflows.
            protobuf(&[0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            // Nested groups without an end.
            protobuf(&[0x7b; 100_000]),
            // Wire types that do not exist.
            protobuf(&[0x27, 0x26]),
        ],
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_and_no_other() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let bystander = stage.call(LONG);
        let bystander_id = stage.puppets[0].invoked().await;
        for number in 0..unreadable(framing, "").len() {
            let call = stage.call(LONG);
            let id = stage.puppets[0].invoked().await;
            stage.puppets[0].frame(&unreadable(framing, &id)[number]);
            let reason = message_reason(call.fails().await);
            assert!(reason.contains("cannot be read"), "{framing:?} {number}: {reason}");
            assert!(reason.len() < 1_000, "{framing:?} {number}: {} bytes", reason.len());
        }
        stage.puppets[0].answer(&bystander_id, "well");
        bystander.returns("well").await;
        assert_eq!(stage.workers.health(), PoolHealth::Serving(1));
        assert!(!stage.heard.lines().iter().any(|line| line.starts_with("exited")));
    }
}

/// The parts have two bytes on the wire, but some hundred bytes in memory.
#[tokio::test]
async fn an_answer_of_too_many_parts_is_not_decoded() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let call = stage.call(LONG);
        let id = stage.puppets[0].invoked().await;
        let head = format!(r#"{{"invocationResponse":{{"invocationId":"{id}","outputData":["#);
        stage.puppets[0].frame(&match framing {
            Framing::Frames => [head.as_bytes(), &b"{},".repeat(600_000), b"{}]}}"].concat(),
            Framing::Grpc => {
                let inner =
                    [&[0x0a, u8::try_from(id.len()).unwrap()], id.as_bytes(), &[0x12, 0].repeat(600_000)];
                let inner = inner.concat();
                let mut message = vec![0x2a];
                prost::encoding::encode_varint(inner.len() as u64, &mut message);
                [message, inner].concat()
            }
        });
        let reason = message_reason(call.fails().await);
        assert!(reason.contains("more than 250000 parts"), "{reason}");
        stage.works().await;
    }
}

#[tokio::test]
async fn garbage_that_answers_nothing_is_logged() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        for garbage in [&b""[..], b"\0", b"\xff\xff\xff", b"{}", b"null", b"[]", b"{\"a\":", &[0x80; 64]] {
            stage.puppets[0].frame(garbage);
        }
        stage.works().await;
        let heard = stage.heard.lines();
        assert!(heard.iter().any(|line| line.contains("cannot be read")), "{heard:?}");
        assert!(heard.iter().all(|line| line.len() < 2_000), "{heard:?}");
    }
}

/// No correct worker sends such a length. The following bytes cannot be distinguished from the announced
/// message, and calls that wait for their answers would wait forever.
#[tokio::test]
async fn an_impossible_length_ends_the_stream_and_another_worker_serves() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let call = stage.call(LONG);
        let id = stage.puppets[0].invoked().await;
        let began = Instant::now();
        stage.puppets[0].raw(&stage.puppets[0].header(u32::MAX));
        stage.puppets[0].answer(&id, "swallowed");
        let error = call.fails().await;
        assert!(
            matches!(&error, InvocationError::WorkerExited { reason } if reason.contains("4294967295")),
            "{error}"
        );
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        stage.puppets[0] = stage.replacement(framing).await;
        stage.works().await;
    }
}

#[tokio::test]
async fn a_message_that_is_cut_off_ends_its_worker_with_a_reason() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let call = stage.call(LONG);
        stage.puppets[0].invoked().await;
        stage.puppets[0].raw(&stage.puppets[0].header(1_000));
        stage.puppets[0].raw(b"{\"invocationResponse\":");
        // Dropping it closes its stream in the middle of the message.
        stage.puppets.clear();
        let error = call.fails().await;
        assert!(matches!(&error, InvocationError::WorkerExited { .. }), "{error}");
        let next = stage.replacement(framing).await;
        stage.puppets.push(next);
        stage.works().await;
    }
}

#[tokio::test]
async fn a_worker_that_never_answers_init_is_ended_and_named() {
    for framing in BOTH {
        let scratch = Scratch::new();
        let limits = WorkerLimits { init: Duration::from_millis(500), ..quick() };
        let starting =
            tokio::spawn(WorkerPool::start(launch(framing, &scratch, 1), limits, Arc::new(NoEvents)));
        let mut puppet = Puppet::next(framing, &scratch).await;
        puppet.start_stream(&puppet.worker_id.clone());
        puppet.hears("workerInitRequest").await;
        // It sends various messages, but not the requested answer.
        puppet.say(json!({"functionMetadataResponse": {"result": {"status": 1}}}));
        puppet.log("", "c", "busy");
        let error = starting.await.unwrap().err().unwrap().to_string();
        assert!(error.contains("0.5 s") && error.contains("sh"), "{error}");
        assert!(puppet.is_sent_away().await);
    }
}

/// If the stream ends before the answer, the host does not wait until the limit.
#[tokio::test]
async fn a_worker_that_disconnects_before_it_is_ready_fails_at_once() {
    for framing in BOTH {
        let scratch = Scratch::new();
        let starting =
            tokio::spawn(WorkerPool::start(launch(framing, &scratch, 1), quick(), Arc::new(NoEvents)));
        let mut puppet = Puppet::next(framing, &scratch).await;
        puppet.start().await;
        puppet.hears("functionsMetadataRequest").await;
        drop(puppet);
        let error = tokio::time::timeout(LONG, starting).await.expect("it does not take a minute");
        let error = error.unwrap().err().unwrap().to_string();
        assert!(error.contains("stream"), "{error}");
    }
}

#[tokio::test]
async fn load_answers_for_other_functions_are_ignored() {
    for framing in BOTH {
        let scratch = Scratch::new();
        let limits = WorkerLimits { load: Duration::from_secs(1), ..quick() };
        let starting =
            tokio::spawn(WorkerPool::start(launch(framing, &scratch, 1), limits, Arc::new(NoEvents)));
        let mut puppet = Puppet::next(framing, &scratch).await;
        puppet.start().await;
        puppet.index(&["a", "b"]).await;
        let workers = Arc::new(starting.await.unwrap().unwrap().0);
        let functions = ["a", "b"].map(|id| function(id, id, FunctionSource::default())).to_vec();
        let loading = tokio::spawn({
            let (workers, functions) = (workers.clone(), functions.clone());
            async move { workers.load(functions).await }
        });
        puppet.hears("functionLoadRequest").await;
        puppet.hears("functionLoadRequest").await;
        for id in ["c", "", "a", "a"] {
            puppet.say(json!({"functionLoadResponse": {"functionId": id, "result": {"status": 1}}}));
        }
        let loaded = loading.await.unwrap().unwrap();
        assert_eq!(loaded[0], Ok(()));
        assert!(
            loaded[1].as_ref().is_err_and(|reason| reason.contains("did not load it within 1 s")),
            "{loaded:?}"
        );
    }
}

/// Two functions of one id cannot be distinguished in any answer.
#[tokio::test]
async fn a_second_function_of_the_same_id_is_rejected_and_the_first_one_serves() {
    for framing in BOTH {
        let scratch = Scratch::new();
        let starting =
            tokio::spawn(WorkerPool::start(launch(framing, &scratch, 1), quick(), Arc::new(NoEvents)));
        let mut puppet = Puppet::next(framing, &scratch).await;
        puppet.start().await;
        puppet.index(&["a", "a"]).await;
        let workers = Arc::new(starting.await.unwrap().unwrap().0);
        let functions = ["a", "a"].map(|id| function(id, id, FunctionSource::default())).to_vec();
        let loading = tokio::spawn({
            let (workers, functions) = (workers.clone(), functions.clone());
            async move { workers.load(functions).await }
        });
        puppet.load().await;
        let loaded = tokio::time::timeout(LONG, loading).await.expect("it does not take a minute");
        let loaded = loaded.unwrap().unwrap();
        assert_eq!(loaded[0], Ok(()));
        assert!(loaded[1].as_ref().is_err_and(|reason| reason.contains("same id")), "{loaded:?}");
    }
}

#[tokio::test]
async fn long_log_records_are_truncated() {
    for framing in BOTH {
        let mut stage = Stage::set(framing).await;
        let large = "ü".repeat(200_000);
        let call = stage.call(LONG);
        let id = stage.puppets[0].invoked().await;
        stage.puppets[0].log(&id, &large, &large);
        stage.puppets[0].say(json!({"rpcLog": {
            "invocationId": id, "exception": {"message": large, "stackTrace": large},
        }}));
        stage.puppets[0].answer(&id, "well");
        let logs = call.logs.clone();
        call.returns("well").await;
        let logs = logs.lock().unwrap();
        assert_eq!(logs.len(), 2);
        for log in &*logs {
            let size = log.category.len() + log.message.len() + log.exception.as_ref().map_or(0, String::len);
            assert!(size <= 66 << 10, "{size} bytes");
        }
    }
}

/// Records for invocations that do not exist or belong to another worker go to the console, with its rate
/// limit.
#[tokio::test]
async fn a_flood_of_stray_records_is_dropped_and_counted() {
    const RECORDS: usize = 60_000;
    for framing in BOTH {
        let limits = WorkerLimits { lines_per_second: 100, ..quick() };
        let mut stage = Stage::set_with(framing, limits, 2).await;
        let call = stage.call(LONG);
        let (first, second) = stage.puppets.split_at_mut(1);
        let (owner, other) = tokio::select! {
            _ = first[0].hears("invocationRequest") => (&first[0], &second[0]),
            _ = second[0].hears("invocationRequest") => (&second[0], &first[0]),
        };
        for number in 0..RECORDS {
            other.log(if number % 2 == 0 { &call.id } else { "unknown" }, "c", "stray");
        }
        owner.answer(&call.id, "well");
        let logs = call.logs.clone();
        call.returns("well").await;
        assert_eq!(logs.lock().unwrap().len(), 0, "no record of another worker reaches the call");
        // The next record that passes reports how many were dropped.
        let told = || stage.heard.lines().iter().filter(|line| *line == "log: stray").count();
        let dropped = || -> usize {
            let lines = stage.heard.lines();
            lines.iter().filter_map(|line| line.strip_prefix("dropped ")?.parse::<usize>().ok()).sum()
        };
        let began = Instant::now();
        while told() + dropped() < RECORDS && began.elapsed() < LONG {
            tokio::time::sleep(Duration::from_millis(300)).await;
            other.log("unknown", "c", "one more");
        }
        assert!(told() + dropped() >= RECORDS, "{} + {}", told(), dropped());
        assert!(told() < RECORDS / 10, "{} were told", told());
    }
}

#[tokio::test]
async fn garbage_on_the_console_is_harmless() {
    for framing in BOTH {
        let scratch = Scratch::new();
        let heard = Arc::new(Heard::default());
        let mut launch = launch(framing, &scratch, 1);
        // Random bytes on both pipes, with a start message of the protocol among them, then a normal call.
        let script = launch.arguments[1].to_str().unwrap().to_owned();
        let garbage = r#"printf '\000\377\376\033[2J\r\n{"startStream":{"workerId":"x"}}\nazfuncjsonlog:{\n'; head -c 300000 /dev/urandom; head -c 300000 /dev/urandom >&2; "#;
        launch.arguments[1] = format!("{garbage}{script}").into();
        let starting = tokio::spawn(WorkerPool::start(launch, quick(), heard.clone()));
        let mut puppet = Puppet::next(framing, &scratch).await;
        puppet.start().await;
        puppet.index(&["f"]).await;
        starting.await.unwrap().unwrap();
        assert!(heard.lines().iter().all(|line| line.len() < 300_000));
    }
}
