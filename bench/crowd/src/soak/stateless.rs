//! Load with 2026-07-28, whose requests are stateless: calls, progress, questions, tasks, listeners.
use super::sessions::{no_stream, result, some_request, Expected, ProgressReader};
use super::{client, sleep, World};
use crate::http::{trouble, Checked, Connection};
use crate::mcp::{call, ending, is_text, refused, short, Caller, Ending};
use crate::random::Random;
use serde_json::{json, Value};
use std::rc::Rc;
use tokio::task::JoinHandle;

/// The time for which the server keeps tasks, in milliseconds.
const TASK_LIFETIME: u64 = 10_000;

pub fn clients(world: &Rc<World>) -> Vec<JoinHandle<()>> {
    let mut clients = Vec::new();
    for number in 0..6 {
        let (seed, key) = (300 + u64::from(number), 5 + number);
        let mut connection = None;
        clients.push(client(world, seed, "stateless: request", (20, 80), async move |world, random| {
            request(random, &world.caller(key), &mut connection).await
        }));
    }
    for number in 0..3 {
        let (seed, key) = (400 + u64::from(number), 5 + number);
        clients.push(client(
            world,
            seed,
            "stateless: progress stream",
            (50, 200),
            async move |world, random| progress(world, random, &world.caller(key)).await,
        ));
        clients.push(client(world, seed + 10, "task", (50, 300), async move |world, random| {
            task(random, &world.caller(key)).await
        }));
        clients.push(client(
            world,
            seed + 20,
            "question by result",
            (100, 300),
            async move |world, random| question(random, &world.caller(key)).await,
        ));
        clients.push(client(world, seed + 30, "listener", (50, 300), async move |world, random| {
            listener(world, random, &world.caller(key)).await
        }));
    }
    clients
}

async fn request(
    random: &mut Random,
    caller: &Caller,
    kept: &mut Option<Connection>,
) -> Checked<&'static str> {
    let mut connection = match kept.take() {
        Some(connection) if !random.one_in(20) => connection,
        _ => caller.connect().await?,
    };
    let (id, text) = (json!(random.text()), random.text());
    let (method, params, expected) = match random.below(20) {
        0 => ("server/discover", json!({}), Expected::Nothing),
        _ => some_request(random, &text),
    };
    let reply = connection.exchange(caller.port, &caller.modern(&id, method, params)).await?;
    *kept = Some(connection);
    expected.check(&result!(ending(reply, &id)?))?;
    Ok("answered")
}

/// Makes a call with progress. A client that closes the connection in the middle cancels it.
async fn progress(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let (id, text, messages) = (json!(random.text()), random.text(), random.between(3, 40));
    let mut params =
        call("progress", json!({"text": text, "messages": messages, "ms": random.between(0, 30)}));
    params["_meta"] = json!({"progressToken": 7});
    connection.send(&caller.modern(&id, "tools/call", params)).await?;
    if let Some(outcome) = no_stream(world, &mut connection).await? {
        return Ok(outcome);
    }
    let mut reader = ProgressReader::new(&id, &text, messages);
    if random.one_in(4) {
        for _ in 0..random.below(messages) {
            match connection.event().await? {
                Some(event) => reader.take(&event)?,
                None => return trouble!("the stream ended too early"),
            }
        }
        return Ok("cut by us");
    }
    reader.read_all(&mut connection).await?;
    Ok("answered")
}

/// Sends a request and returns its result.
macro_rules! ask {
    ($connection:expr, $caller:expr, $id:expr, $method:expr, $params:expr) => {{
        let id = json!($id);
        let reply = $connection.exchange($caller.port, &$caller.modern(&id, $method, $params)).await?;
        result!(ending(reply, &id)?)
    }};
}

/// Makes a call that continues as a task: its result is fetched, or it is cancelled, abandoned, or fetched
/// too late.
async fn task(random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let text = random.text();
    let arguments = json!({"text": text, "ms": random.between(10, 1_500)});
    let begun = ask!(connection, caller, "begin", "tools/call", call("job", arguments));
    let Some(task) = begun["taskId"].as_str().map(str::to_owned) else {
        return trouble!("a task was expected: {}", short(&begun));
    };
    let named = json!({"taskId": task});
    match random.below(10) {
        0..=2 => Ok("left"),
        3 => {
            ask!(connection, caller, "cancel", "tasks/cancel", named.clone());
            let shown = ask!(connection, caller, "get", "tasks/get", named);
            match shown["status"].as_str() {
                Some("cancelled") => Ok("cancelled"),
                Some("completed") => Ok("completed before it was cancelled"),
                _ => trouble!("a cancelled task is {}", short(&shown)),
            }
        }
        4 => {
            drop(connection);
            sleep(TASK_LIFETIME + 500).await;
            let mut connection = caller.connect().await?;
            let id = json!("late");
            let reply = connection.exchange(caller.port, &caller.modern(&id, "tasks/get", named)).await?;
            match ending(reply, &id)? {
                Ending::Error(error) if error["code"] == -32602 => Ok("expired"),
                Ending::Refused(status) => Ok(refused(status)),
                other => trouble!("an expired task got {other:?}"),
            }
        }
        _ => loop {
            let shown = ask!(connection, caller, "get", "tasks/get", named.clone());
            match shown["status"].as_str() {
                Some("working") => sleep(random.between(50, 400)).await,
                Some("completed") => {
                    is_text(&shown["result"], &text)?;
                    return Ok("fetched");
                }
                _ => return trouble!("a task is {}", short(&shown)),
            }
        },
    }
}

/// Makes a call that asks the user. The question is a result, and the response is part of the next request.
async fn question(random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let (text, name) = (random.text(), random.text());
    let mut params = call("ask", json!({"text": text}));
    let asked = ask!(connection, caller, "ask", "tools/call", params.clone());
    let state = asked["requestState"].clone();
    if asked["resultType"] != "input_required" || !state.is_string() {
        return trouble!("a question was expected: {}", short(&asked));
    }
    if random.one_in(5) {
        return Ok("left without an answer");
    }
    sleep(random.below(500)).await;
    params["requestState"] = state;
    params["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": name}}});
    let result: Value = ask!(connection, caller, "again", "tools/call", params);
    is_text(&result, &format!("{text}, {name}"))?;
    Ok("answered")
}

/// Checks that a listener is notified of each change of its resource once, and of no other.
async fn listener(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut listening = caller.connect().await?;
    let (id, uri) = (json!(random.text()), format!("soak://items/{}", random.text()));
    let params = json!({"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": true}});
    listening.send(&caller.modern(&id, "subscriptions/listen", params)).await?;
    if let Some(outcome) = no_stream(world, &mut listening).await? {
        return Ok(outcome);
    }
    let mut connection = caller.connect().await?;
    let changes = random.between(1, 5);
    for number in 0..=changes {
        let Some(event) = listening.event().await? else { return trouble!("the stream of a listener ended") };
        let message = event.message()?;
        let (method, is_right) = match number {
            0 => ("notifications/subscriptions/acknowledged", true),
            _ => ("notifications/resources/updated", message["params"]["uri"] == *uri),
        };
        let tag = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        if message["method"] != method || !is_right || *tag != id {
            return trouble!("expected {method} about {uri}, got {}", short(&message));
        }
        if number < changes {
            sleep(random.below(300)).await;
            ask!(connection, caller, "change", "tools/call", call("change", json!({"uri": uri})));
        }
    }
    Ok("all heard, then cut by us")
}
