//! The misbehaving client. It has an API key and the same address as the others.
use crate::http::Checked;
use crate::mcp::{call, Caller, Session, LEGACY, WITH_BATCHES};
use crate::Options;
use serde_json::{json, Value};
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// The number of its key, which follows those of the well-behaved clients.
const KEY: u32 = 63;
/// Connections with slow bodies. All clients together may have 256.
const SLOW_BODIES: usize = 200;
const HALF_HEADS: usize = 300;
/// Connections that send `initialize` again as soon as they get a response.
const FLOODING: usize = 16;
/// 240 slow calls at once: 16 in each of 15 sessions. Those of four sessions have one connection each. The
/// others are sent in batches, because the number of connections is limited.
const SESSIONS_WITH_CALLS: usize = 4;
const SESSIONS_WITH_BATCHES: usize = 11;
const CALLS_OF_A_SESSION: usize = 16;
const SLOW_CALL_MS: u64 = 2_000;
/// The delay before a connection that the server closed is opened again.
const BEFORE_THE_NEXT: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, PartialEq)]
pub enum Misbehaviour {
    SlowBodies,
    HalfHeads,
    Sessions,
    SlowCalls,
    Everything,
}

impl Misbehaviour {
    pub const ALL: [Self; 5] =
        [Self::SlowBodies, Self::HalfHeads, Self::Sessions, Self::SlowCalls, Self::Everything];

    pub fn name(self) -> &'static str {
        match self {
            Self::SlowBodies => "slow bodies",
            Self::HalfHeads => "half heads",
            Self::Sessions => "sessions",
            Self::SlowCalls => "slow calls",
            Self::Everything => "everything",
        }
    }

    fn includes(self, other: Self) -> bool {
        self == other || self == Self::Everything
    }
}

pub async fn run(options: &Options) -> Value {
    let name = options.text("--as");
    let kind = Misbehaviour::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.unwrap_or_else(|| panic!("--as {name:?}: unknown kind of misbehaviour"));
    let caller = Caller { port: options.number("--mcp"), path: "/mcp".to_owned(), key: Some(KEY) };
    if kind.includes(Misbehaviour::SlowBodies) {
        again_and_again(&caller, SLOW_BODIES, slow_body);
    }
    if kind.includes(Misbehaviour::HalfHeads) {
        again_and_again(&caller, HALF_HEADS, half_head);
    }
    if kind.includes(Misbehaviour::Sessions) {
        again_and_again(&caller, FLOODING, flood_of_sessions);
    }
    if kind.includes(Misbehaviour::SlowCalls) {
        again_and_again(&caller, SESSIONS_WITH_CALLS, slow_calls);
        again_and_again(&caller, SESSIONS_WITH_BATCHES, slow_batches);
    }
    std::future::pending().await
}

/// Repeats the same action on each of these connections, whatever the response is.
fn again_and_again<D>(caller: &Caller, connections: usize, deed: D)
where
    D: AsyncFn(&Caller) -> Checked<()> + Copy + 'static,
{
    for number in 0..connections {
        let caller = caller.clone();
        spawn_local(async move {
            sleep(BEFORE_THE_NEXT.mul_f64(number as f64 / connections as f64)).await;
            loop {
                let _ = deed(&caller).await;
                sleep(BEFORE_THE_NEXT).await;
            }
        });
    }
}

/// Sends a body of 2 MiB at a little more than 1 KiB per second.
async fn slow_body(caller: &Caller) -> Checked<()> {
    let mut connection = caller.connect().await?;
    let text = "x".repeat(2 << 20);
    let (head, body) = caller.modern_in_parts(&json!(1), "tools/call", call("upload", json!({"text": text})));
    connection.send(head.as_bytes()).await?;
    for piece in body.as_bytes().chunks(512) {
        connection.send(piece).await?;
        sleep(Duration::from_millis(400)).await;
    }
    Ok(())
}

/// Sends half of a head, and then nothing until the server closes the connection.
async fn half_head(caller: &Caller) -> Checked<()> {
    let mut connection = caller.connect().await?;
    connection.send(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: appl").await?;
    connection.head().await.map(drop)
}

async fn flood_of_sessions(caller: &Caller) -> Checked<()> {
    let mut connection = caller.connect().await?;
    loop {
        let _ = Session::open(caller, &mut connection, LEGACY, false).await?;
    }
}

async fn slow_calls(caller: &Caller) -> Checked<()> {
    let mut connection = caller.connect().await?;
    let Ok(session) = Session::open(caller, &mut connection, LEGACY, true).await? else { return Ok(()) };
    let mut connections = Vec::new();
    for id in 0..CALLS_OF_A_SESSION {
        let mut connection = caller.connect().await?;
        connection.send(&session.request(&json!(id), "tools/call", slow_call())).await?;
        connections.push(connection);
    }
    for mut connection in connections {
        let _ = connection.reply().await;
    }
    Ok(())
}

async fn slow_batches(caller: &Caller) -> Checked<()> {
    let mut connection = caller.connect().await?;
    let Ok(session) = Session::open(caller, &mut connection, WITH_BATCHES, true).await? else {
        return Ok(());
    };
    let batch: Vec<Value> = (0..CALLS_OF_A_SESSION)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": slow_call()}))
        .collect();
    connection.exchange(caller.port, &session.post(&json!(batch))).await.map(drop)
}

fn slow_call() -> Value {
    call("slow", json!({"text": "slow", "ms": SLOW_CALL_MS}))
}
