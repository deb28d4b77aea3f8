//! Measures the calls of 63 well-behaved clients, each with its own API key, in quiet phases and while
//! another client misbehaves.
//!
//! Each client makes a call every 20 to 50 ms, so that these calls alone do not saturate the
//! server. The misbehaving client is another process with the lowest priority, so that it does not
//! slow the load generator.
use crate::http::{Checked, Connection, Trouble};
use crate::mcp::{call, ending, is_text, Caller, Ending, Session, LEGACY};
use crate::misbehaviour::Misbehaviour;
use crate::random::Random;
use crate::Options;
use serde_json::{json, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::task::spawn_local;
use tokio::time::sleep;

const CLIENTS: u32 = 63;
const PAUSE: (u64, u64) = (20_000, 50_000);
/// One of this many calls opens a new connection.
const NEW_CONNECTION: u64 = 40;
/// A connection that was used within this time counts as recently used.
const RECENTLY: Duration = Duration::from_millis(500);
/// The delay before a phase is measured, so that the misbehaviour has its full effect.
const LEAD: Duration = Duration::from_secs(2);
/// The delay after a misbehaviour, so that its slow calls have ended.
const SETTLE: Duration = Duration::from_secs(5);

/// The measurements of all clients in the current phase.
#[derive(Default)]
struct Record {
    is_measuring: Cell<bool>,
    /// The durations of calls in microseconds.
    calls: RefCell<Vec<u64>>,
    /// The delays of timers of this process: the lag that the load generator itself adds.
    lags: RefCell<Vec<u64>>,
    connections: Cell<u64>,
    failed: Cell<u64>,
    /// The number of occurrences of each failure.
    failures: RefCell<BTreeMap<String, u64>>,
    phase: Cell<&'static str>,
}

pub async fn run(options: &Options) -> Value {
    let port: u16 = options.number("--mcp");
    let rounds: usize = options.number("--rounds");
    let seconds = Duration::from_secs_f64(options.number("--phase-seconds"));
    let record = Rc::new(Record::default());
    for number in 0..CLIENTS {
        let caller = Caller { port, path: "/mcp".to_owned(), key: Some(number) };
        spawn_local(GoodClient::new(caller, number).run(record.clone()));
    }
    spawn_local(watch_timers(record.clone()));
    sleep(LEAD).await;

    let mut phases = Vec::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for misbehaviour in Misbehaviour::ALL {
            phases.push(phase(&record, "quiet", seconds).await);
            let misbehaving = misbehaviour.start(port);
            record.phase.set(misbehaviour.name());
            sleep(LEAD).await;
            phases.push(phase(&record, misbehaviour.name(), seconds).await);
            end(misbehaving).await;
            sleep(SETTLE).await;
        }
    }
    phases.push(phase(&record, "quiet", seconds).await);
    json!({"phases": phases, "failed": record.failed.get(), "failures": *record.failures.borrow()})
}

impl Misbehaviour {
    fn start(self, port: u16) -> Child {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(program).args([
            "misbehave",
            "--mcp",
            &port.to_string(),
            "--as",
            self.name(),
        ]);
        command.kill_on_drop(true).spawn().expect("the misbehaving client starts")
    }
}

async fn end(mut misbehaving: Child) {
    let ended = misbehaving.try_wait().expect("its state is known");
    assert!(ended.is_none(), "the misbehaving client has ended unexpectedly: {ended:?}");
    misbehaving.kill().await.expect("the misbehaving client can be killed");
}

async fn phase(record: &Record, name: &'static str, length: Duration) -> Value {
    record.phase.set(name);
    let failed = record.failed.get();
    record.connections.set(0);
    record.is_measuring.set(true);
    sleep(length).await;
    record.is_measuring.set(false);
    let (mut calls, mut lags) = (record.calls.take(), record.lags.take());
    let (p50, p99) = (percentile(&mut calls, 0.50), percentile(&mut calls, 0.99));
    let (most, lag) = (percentile(&mut calls, 1.0), percentile(&mut lags, 0.99));
    let failed = record.failed.get() - failed;
    eprintln!("  {name:<12} {} calls, p50 {p50} µs, p99 {p99} µs, most {most} µs, own lag {lag} µs, {failed} failed", calls.len());
    json!({
        "name": name, "calls": calls.len(), "connections": record.connections.get(), "failed": failed,
        "p50_us": p50, "p99_us": p99, "most_us": most, "lag_p99_us": lag,
    })
}

fn percentile(figures: &mut [u64], share: f64) -> u64 {
    figures.sort_unstable();
    let at = (figures.len() as f64 * share).ceil() as usize;
    figures.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

async fn watch_timers(record: Rc<Record>) {
    let pause = Duration::from_millis(5);
    loop {
        let begin = Instant::now();
        sleep(pause).await;
        if record.is_measuring.get() {
            record.lags.borrow_mut().push((begin.elapsed() - pause).as_micros() as u64);
        }
    }
}

/// A well-behaved client. Half of these clients have sessions.
struct GoodClient {
    caller: Caller,
    has_session: bool,
    random: Random,
    connected: Option<(Connection, Option<Session>)>,
    last_call: Instant,
}

impl GoodClient {
    fn new(caller: Caller, number: u32) -> Self {
        let random = Random::new(u64::from(number) + 1);
        Self {
            caller,
            has_session: number.is_multiple_of(2),
            random,
            connected: None,
            last_call: Instant::now(),
        }
    }

    async fn run(mut self, record: Rc<Record>) {
        loop {
            sleep(Duration::from_micros(self.random.between(PAUSE.0, PAUSE.1))).await;
            let called = self.call(&record).await;
            self.last_call = Instant::now();
            match called {
                Ok(Some(took)) if record.is_measuring.get() => {
                    record.calls.borrow_mut().push(took.as_micros() as u64);
                }
                Ok(_) => {}
                Err(trouble) => {
                    self.connected = None;
                    record.failed.set(record.failed.get() + 1);
                    let failure = format!("{}: {trouble}", record.phase.get());
                    *record.failures.borrow_mut().entry(failure).or_default() += 1;
                }
            }
        }
    }

    /// Makes one call and returns its duration, with the connection if it is a new one. Returns `None` if a
    /// session had to be opened first, because the duration is not comparable then.
    async fn call(&mut self, record: &Record) -> Checked<Option<Duration>> {
        let (id, text) = (json!(self.random.below(1 << 40)), self.random.text());
        let is_new = self.random.one_in(NEW_CONNECTION);
        let connected = self.connected.take();
        let counts = connected.is_some();
        let (connection, session) = match connected {
            Some(connected) => connected,
            None => self
                .connect()
                .await
                .map_err(|trouble| Trouble(format!("while it connects again: {trouble}")))?,
        };
        let params = call("echo", json!({"text": text}));
        let request = match &session {
            Some(session) => session.request(&id, "tools/call", params),
            None => self.caller.modern(&id, "tools/call", params),
        };
        let begin = Instant::now();
        let (mut connection, place) = if is_new {
            drop(connection);
            record.connections.set(record.connections.get() + 1);
            (self.caller.connect().await?, "on a new connection")
        } else if !counts {
            (connection, "on one that was opened after a failure")
        } else if begin - self.last_call < RECENTLY {
            (connection, "on one that was used a moment ago")
        } else {
            (connection, "on one that was idle")
        };
        let reply = connection.exchange(self.caller.port, &request).await;
        let took = begin.elapsed();
        let reply = reply.map_err(|trouble| Trouble(format!("{place}: {trouble}")))?;
        match ending(reply, &id)? {
            Ending::Result(result) => is_text(&result, &text)?,
            other => return Err(Trouble(format!("a call ended with {other:?}"))),
        }
        self.connected = Some((connection, session));
        Ok(counts.then_some(took))
    }

    async fn connect(&self) -> Checked<(Connection, Option<Session>)> {
        let mut connection = self.caller.connect().await?;
        if !self.has_session {
            return Ok((connection, None));
        }
        match Session::open(&self.caller, &mut connection, LEGACY, true).await? {
            Ok(session) => Ok((connection, Some(session))),
            Err(status) => Err(Trouble(format!("a session was rejected with status {status}"))),
        }
    }
}
