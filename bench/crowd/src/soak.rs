//! Mixed load for minutes. Every request gets exactly one response, with the right id and the right
//! content, or an error that is allowed for that action. Actions are counted by kind and outcome. Anything
//! else is a violation.
mod functions;
mod processes;
mod search;
mod sessions;
mod stateless;
mod uploads;

use crate::http::{Checked, Trouble};
use crate::mcp::Caller;
use crate::random::Random;
use crate::Options;
use serde_json::{json, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{spawn_local, JoinHandle};

/// The number of violations that are reported in full.
const SHOWN: usize = 40;
/// The time for actions to finish after the end of the load.
const LAST_ACTIONS: Duration = Duration::from_secs(60);

/// The state that all clients share.
pub struct World {
    mcp: u16,
    search: u16,
    host: Caller,
    end: Instant,
    counts: RefCell<BTreeMap<(&'static str, &'static str), u64>>,
    violations: RefCell<Vec<String>>,
    violated: Cell<u64>,
    /// The times when a worker of the host was killed.
    kills: RefCell<Vec<Instant>>,
    /// The last time when many large bodies were sent at once.
    crowded: Cell<Option<Instant>>,
}

impl World {
    /// A client of the MCP server.
    fn caller(&self, key: u32) -> Caller {
        Caller { port: self.mcp, path: "/mcp".to_owned(), key: Some(key) }
    }

    fn note(&self, kind: &'static str, outcome: &'static str) {
        *self.counts.borrow_mut().entry((kind, outcome)).or_default() += 1;
    }

    fn violation(&self, kind: &'static str, trouble: &Trouble) {
        self.note(kind, "VIOLATED");
        self.violated.set(self.violated.get() + 1);
        let mut violations = self.violations.borrow_mut();
        if violations.len() < SHOWN {
            eprintln!("violation: {kind}: {trouble}");
            violations.push(format!("{kind}: {trouble}"));
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Returns whether the server may recently have reached its memory limit. It then drops retained
    /// messages of streams.
    fn may_have_dropped_pasts(&self) -> bool {
        self.crowded.get().is_some_and(|at| at.elapsed() < Duration::from_secs(10))
    }

    /// Returns whether a worker was killed since this time.
    fn was_killed_since(&self, begin: Instant) -> bool {
        let noticed = Duration::from_secs(1);
        self.kills.borrow().iter().any(|kill| *kill + noticed >= begin)
    }
}

/// Starts a client that repeats an action, with a pause of some milliseconds. The action
/// returns its outcome.
fn client<A>(
    world: &Rc<World>,
    seed: u64,
    kind: &'static str,
    pause: (u64, u64),
    mut action: A,
) -> JoinHandle<()>
where
    A: AsyncFnMut(&World, &mut Random) -> Checked<&'static str> + 'static,
{
    let world = world.clone();
    spawn_local(async move {
        let mut random = Random::new(seed);
        // Clients do not start at the same time.
        sleep(random.below(1_000)).await;
        while !world.is_over() {
            match action(&world, &mut random).await {
                Ok(outcome) => world.note(kind, outcome),
                Err(trouble) => world.violation(kind, &trouble),
            }
            sleep(random.between(pause.0, pause.1)).await;
        }
    })
}

async fn sleep(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

pub async fn run(options: &Options) -> Value {
    let seconds: u64 = options.number("--seconds");
    let begin = Instant::now();
    let world = Rc::new(World {
        mcp: options.number("--mcp"),
        search: options.number("--search"),
        host: Caller { port: options.number("--host"), path: options.text("--host-path"), key: None },
        end: begin + Duration::from_secs(seconds),
        counts: RefCell::default(),
        violations: RefCell::default(),
        violated: Cell::default(),
        kills: RefCell::default(),
        crowded: Cell::default(),
    });
    let processes = processes::parse(&options.text("--pids"));
    if let Err(trouble) = search::prepare(&world).await {
        world.violation("search: prepare", &trouble);
    }
    let watcher = spawn_local(processes::watch(world.clone(), processes));
    let mut clients = sessions::clients(&world);
    clients.extend(stateless::clients(&world));
    clients.extend(uploads::clients(&world));
    clients.extend(search::clients(&world));
    clients.extend(functions::clients(&world));
    let series = watcher.await.expect("the watcher does not panic");
    let last = tokio::time::Instant::now() + LAST_ACTIONS;
    for client in clients {
        match tokio::time::timeout_at(last, client).await {
            Ok(Ok(())) => {}
            Ok(Err(panicked)) => world.violation("client", &Trouble(panicked.to_string())),
            Err(_) => world.violation("client", &Trouble("a client did not finish".to_owned())),
        }
    }
    let counts = world.counts.borrow();
    let counts = counts.iter().map(|((kind, outcome), count)| json!([kind, outcome, count]));
    json!({
        "counts": counts.collect::<Vec<_>>(),
        "violations": *world.violations.borrow(),
        "violated": world.violated.get(),
        "kills": world.kills.borrow().len(),
        "memory": series,
    })
}
