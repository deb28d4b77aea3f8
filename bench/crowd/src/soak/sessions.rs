//! Load with legacy revisions (with sessions, up to 2025-11-25): sessions used, abandoned and used again,
//! streams disconnected and resumed, batches, HTTP+SSE.
use super::{client, sleep, World};
use crate::http::{trouble, Checked, Connection, Event};
use crate::mcp::{
    answer, call, ending, is_text, refused, short, Caller, Ending, Session, LEGACY, WITH_BATCHES,
};
use crate::random::Random;
use serde_json::{json, Value};
use std::rc::Rc;
use tokio::task::JoinHandle;

/// The key of the abandoned sessions. Their number exceeds the limit of one caller, so they evict each
/// other, but never those of other callers.
const LEAVER: u32 = 0;

pub fn clients(world: &Rc<World>) -> Vec<JoinHandle<()>> {
    let mut clients = Vec::new();
    for number in 0..4 {
        let (seed, key) = (100 + u64::from(number), 1 + number);
        clients.push(client(world, seed, "session", (50, 300), async move |world, random| {
            used(world, random, &world.caller(key)).await
        }));
        clients.push(client(world, seed + 10, "session left", (80, 320), async |world, random| {
            left(world, random).await
        }));
        clients.push(client(
            world,
            seed + 20,
            "call cut and resumed",
            (50, 200),
            async move |world, random| resumed_call(world, random, &world.caller(key)).await,
        ));
    }
    for number in 0..3 {
        let (seed, key) = (200 + u64::from(number), 1 + number);
        clients.push(client(
            world,
            seed,
            "GET stream cut and resumed",
            (50, 200),
            async move |world, random| resumed_stream(world, random, &world.caller(key)).await,
        ));
        clients.push(client(world, seed + 10, "session returned to", (100, 500), async |world, random| {
            returned_to(world, random).await
        }));
        clients.push(client(world, seed + 20, "batches", (50, 300), async move |world, random| {
            batches(world, random, &world.caller(key)).await
        }));
        clients.push(client(world, seed + 30, "HTTP+SSE", (50, 300), async move |world, random| {
            http_and_sse(world, random, &world.caller(key)).await
        }));
    }
    clients
}

/// Opens a session. If it is rejected, returns from the action with that outcome.
macro_rules! open {
    ($caller:expr, $connection:expr, $revision:expr, $used:expr) => {
        match Session::open($caller, $connection, $revision, $used).await? {
            Ok(session) => session,
            Err(status) => return Ok(refused(status)),
        }
    };
}

/// Evaluates to the result of an exchange. If it is rejected, returns from the action with that outcome.
macro_rules! result {
    ($ending:expr) => {
        match $ending.result() {
            Ok(result) => result,
            Err(outcome) => return outcome,
        }
    };
}
pub(super) use result;

/// Opens a session, sends a few dozen requests, and ends it by DELETE or abandons it.
async fn used(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let session = open!(caller, &mut connection, LEGACY, true);
    for number in 0..random.between(10, 60) {
        if world.is_over() {
            break;
        }
        let id = json!(number);
        let text = random.text();
        let (method, params, expected) = some_request(random, &text);
        let request = session.request(&id, method, params);
        let reply = connection.exchange(caller.port, &request).await?;
        let result = result!(ending(reply, &id)?);
        expected.check(&result)?;
        world.note("session: request", "answered");
        if random.one_in(20) {
            connection = caller.connect().await?;
        }
        sleep(random.between(10, 60)).await;
    }
    if random.one_in(3) {
        return Ok("used and left");
    }
    let reply = connection.exchange(caller.port, &session.delete()).await?;
    if reply.head.status != 204 {
        return trouble!("DELETE got status {}", reply.head.status);
    }
    let id = json!("after");
    let reply = connection.exchange(caller.port, &session.request(&id, "ping", json!({}))).await?;
    match ending(reply, &id)? {
        Ending::Gone => Ok("used and deleted"),
        other => trouble!("a request in a deleted session got {other:?}"),
    }
}

/// The expected result of a request.
pub(super) enum Expected {
    Text(String),
    Length(usize),
    Member(&'static str),
    Resource(String),
    Nothing,
}

impl Expected {
    pub(super) fn check(&self, result: &Value) -> Checked<()> {
        let is_right = match self {
            Self::Text(text) => return is_text(result, text),
            Self::Length(length) => {
                result["content"][0]["text"].as_str().is_some_and(|text| text.len() == *length)
            }
            Self::Member(name) => result[*name].as_array().is_some_and(|list| !list.is_empty()),
            Self::Resource(text) => result["contents"][0]["text"] == **text,
            Self::Nothing => result.is_object(),
        };
        if is_right {
            Ok(())
        } else {
            trouble!("unexpected result: {}", short(result))
        }
    }
}

/// Returns a request that legacy and modern revisions have, and its expected result.
pub(super) fn some_request(random: &mut Random, text: &str) -> (&'static str, Value, Expected) {
    match random.below(10) {
        0 => ("tools/list", json!({}), Expected::Member("tools")),
        1 => {
            let uri = format!("soak://items/{text}");
            ("resources/read", json!({"uri": uri}), Expected::Resource(format!("item {text}")))
        }
        2 => {
            let bytes = random.between(1_000, 300_000) as usize;
            let arguments = json!({"text": text, "bytes": bytes});
            ("tools/call", call("payload", arguments), Expected::Length(bytes))
        }
        3 => {
            let arguments = json!({"text": text, "ms": random.between(5, 200)});
            ("tools/call", call("slow", arguments), Expected::Text(text.to_owned()))
        }
        4 => ("resources/templates/list", json!({}), Expected::Member("resourceTemplates")),
        _ => ("tools/call", call("echo", json!({"text": text})), Expected::Text(text.to_owned())),
    }
}

/// Opens a session that is never used again.
async fn left(world: &World, random: &mut Random) -> Checked<&'static str> {
    let caller = world.caller(LEAVER);
    let mut connection = caller.connect().await?;
    let only_opened = random.one_in(2);
    open!(&caller, &mut connection, LEGACY, !only_opened);
    Ok(if only_opened { "opened only" } else { "initialized" })
}

/// Uses a session again after a delay, when it may have expired or been evicted.
async fn returned_to(world: &World, random: &mut Random) -> Checked<&'static str> {
    let caller = world.caller(LEAVER);
    let mut connection = caller.connect().await?;
    let session = open!(&caller, &mut connection, LEGACY, true);
    sleep(random.between(1_000, 20_000)).await;
    let (id, text) = (json!("back"), random.text());
    let request = session.request(&id, "tools/call", call("echo", json!({"text": text})));
    match ending(connection.exchange(caller.port, &request).await?, &id)? {
        Ending::Result(result) => is_text(&result, &text).map(|()| "answered"),
        Ending::Gone => Ok("404, expired or evicted"),
        Ending::Refused(status) => Ok(refused(status)),
        Ending::Error(error) => trouble!("an error that is not allowed here: {error}"),
    }
}

/// Reads a call's event stream and checks that no event is missing or duplicated.
pub(super) struct ProgressReader {
    id: Value,
    text: String,
    messages: u64,
    seen: u64,
    last_event: Option<String>,
    answered: bool,
}

impl ProgressReader {
    pub(super) fn new(id: &Value, text: &str, messages: u64) -> Self {
        let (id, text) = (id.clone(), text.to_owned());
        Self { id, text, messages, seen: 0, last_event: None, answered: false }
    }

    pub(super) fn take(&mut self, event: &Event) -> Checked<()> {
        if event.id.is_some() {
            self.last_event.clone_from(&event.id);
        }
        if event.data.is_empty() {
            return Ok(());
        }
        let message = event.message()?;
        if self.answered {
            return trouble!("a message after the response: {}", short(&message));
        }
        if message["method"] == "notifications/progress" {
            self.seen += 1;
            if message["params"]["progress"].as_f64() != Some(self.seen as f64) {
                return trouble!("expected progress {}, got {}", self.seen, short(&message));
            }
            return Ok(());
        }
        match answer(message, &self.id)? {
            Ending::Result(result) if self.seen == self.messages => {
                self.answered = true;
                is_text(&result, &self.text)
            }
            other => trouble!("after {} of {} messages: {other:?}", self.seen, self.messages),
        }
    }

    pub(super) async fn read_all(&mut self, connection: &mut Connection) -> Checked<()> {
        while let Some(event) = connection.event().await? {
            self.take(&event)?;
        }
        if self.answered {
            Ok(())
        } else {
            trouble!("the stream ended after {} of {} messages without a response", self.seen, self.messages)
        }
    }
}

const PAST_DROPPED: &str = "400, its past was dropped for a crowd of uploads";

/// Reads the head of a stream. Without one, returns the outcome if it is allowed: the server may reject the
/// request temporarily, and at its memory limit it drops retained messages.
pub(super) async fn no_stream(world: &World, connection: &mut Connection) -> Checked<Option<&'static str>> {
    let head = connection.head().await?;
    if head.status == 200 && head.is_stream() {
        return Ok(None);
    }
    let body = String::from_utf8_lossy(&connection.whole_body().await?).into_owned();
    match head.status {
        400 if body.contains("event id is not known") && world.may_have_dropped_pasts() => {
            Ok(Some(PAST_DROPPED))
        }
        429 | 503 if head.header("retry-after").is_some() => Ok(Some(refused(head.status))),
        status => trouble!("expected a stream, got status {status}: {body}"),
    }
}

/// Makes a call with progress whose stream is disconnected once or twice. The missing events arrive when it
/// is resumed.
async fn resumed_call(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let session = open!(caller, &mut connection, LEGACY, true);
    for number in 0..random.between(1, 5) {
        if world.is_over() {
            break;
        }
        let (id, text, messages) = (json!(number), random.text(), random.between(6, 20));
        let arguments = json!({"text": text, "messages": messages, "ms": random.between(5, 40)});
        let mut params = call("progress", arguments);
        params["_meta"] = json!({"progressToken": "p"});
        connection.send(&session.request(&id, "tools/call", params)).await?;
        let mut reader = ProgressReader::new(&id, &text, messages);
        let cuts = random.below(3);
        for _ in 0..cuts {
            if let Some(outcome) = no_stream(world, &mut connection).await? {
                return Ok(outcome);
            }
            let until = random.between(reader.seen + 1, reader.seen + 2).min(messages - 1);
            while reader.seen < until || reader.last_event.is_none() {
                match connection.event().await? {
                    Some(event) => reader.take(&event)?,
                    None => return trouble!("the stream ended after {} of {messages} messages", reader.seen),
                }
            }
            connection = caller.connect().await?;
            sleep(random.below(600)).await;
            connection.send(&session.get(reader.last_event.as_deref())).await?;
        }
        if let Some(outcome) = no_stream(world, &mut connection).await? {
            return Ok(outcome);
        }
        reader.read_all(&mut connection).await?;
        let kind = if cuts == 0 { "session: progress stream" } else { "session: stream resumed" };
        world.note(kind, "answered");
    }
    connection.exchange(caller.port, &session.delete()).await?;
    Ok("answered")
}

/// Reads the GET stream of a session. Events that occur while it is disconnected arrive when it is resumed.
async fn resumed_stream(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let session = open!(caller, &mut connection, LEGACY, true);
    let mut stream = caller.connect().await?;
    stream.send(&session.get(None)).await?;
    if let Some(outcome) = no_stream(world, &mut stream).await? {
        return Ok(outcome);
    }
    let mut last_event = None;
    for round in 0..random.between(2, 5) {
        if world.is_over() {
            break;
        }
        let uri = format!("soak://items/{}", random.text());
        let cut = round > 0 && random.one_in(2);
        if cut {
            drop(stream);
            stream = caller.connect().await?;
        }
        for (id, method, params) in [
            ("s", "resources/subscribe", json!({"uri": uri})),
            ("c", "tools/call", call("change", json!({"uri": uri}))),
            ("u", "resources/unsubscribe", json!({"uri": uri})),
        ] {
            let id = json!(id);
            let reply = connection.exchange(caller.port, &session.request(&id, method, params)).await?;
            result!(ending(reply, &id)?);
        }
        if cut {
            sleep(random.below(300)).await;
            stream.send(&session.get(last_event.as_deref())).await?;
            if let Some(outcome) = no_stream(world, &mut stream).await? {
                return Ok(outcome);
            }
        }
        let message = loop {
            let Some(event) = stream.event().await? else { return trouble!("the GET stream ended") };
            if event.id.is_some() {
                last_event = event.id.clone();
            }
            if !event.data.is_empty() {
                break event.message()?;
            }
        };
        if message["method"] != "notifications/resources/updated" || message["params"]["uri"] != *uri {
            return trouble!("expected that {uri} has changed, got {}", short(&message));
        }
        world.note("GET stream: notification", if cut { "after it was cut" } else { "at once" });
    }
    drop(stream);
    connection.exchange(caller.port, &session.delete()).await?;
    Ok("all heard")
}

/// Sends batches of 2025-03-26. The response is one array with a response for each request.
async fn batches(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let session = open!(caller, &mut connection, WITH_BATCHES, true);
    for _ in 0..random.between(2, 8) {
        if world.is_over() {
            break;
        }
        let texts: Vec<String> = (0..random.between(1, 12)).map(|_| random.text()).collect();
        let mut batch = vec![json!({"jsonrpc": "2.0", "method": "notifications/no/such"})];
        for (id, text) in texts.iter().enumerate() {
            let params = match random.below(3) {
                0 => call("slow", json!({"text": text, "ms": random.between(5, 100)})),
                _ => call("echo", json!({"text": text})),
            };
            batch.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        }
        let reply = connection.exchange(caller.port, &session.post(&json!(batch))).await?;
        let Some(answers) = reply.messages.first().and_then(Value::as_array).cloned() else {
            return trouble!("status {} and no array for a batch: {:?}", reply.head.status, reply.messages);
        };
        if answers.len() != texts.len() {
            return trouble!("{} responses to {} requests of a batch", answers.len(), texts.len());
        }
        for (id, text) in texts.iter().enumerate() {
            let of_id: Vec<&Value> = answers.iter().filter(|answer| answer["id"] == id).collect();
            let [only] = of_id[..] else { return trouble!("{} responses with the id {id}", of_id.len()) };
            is_text(&only["result"], text)?;
        }
        world.note("batch", "answered");
        sleep(random.between(20, 200)).await;
    }
    connection.exchange(caller.port, &session.delete()).await?;
    Ok("answered")
}

/// Uses the transport of 2024-11-05: requests by POST, responses on one stream, several calls at once.
async fn http_and_sse(world: &World, random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut stream = caller.connect().await?;
    stream.send(&caller.http("GET", "/sse", "accept: text/event-stream\r\n", "")).await?;
    if let Some(outcome) = no_stream(world, &mut stream).await? {
        return Ok(outcome);
    }
    let Some(opening) = stream.event().await? else { return trouble!("the stream ended immediately") };
    if opening.name.as_deref() != Some("endpoint") {
        return trouble!("the first event is not `endpoint`: {opening:?}");
    }
    let path = opening.data;
    let mut connection = caller.connect().await?;
    let mut post = async |message: Value| -> Checked<()> {
        let request = caller.http("POST", &path, "", &message.to_string());
        let reply = connection.exchange(caller.port, &request).await?;
        match reply.head.status {
            202 => Ok(()),
            status => {
                trouble!("a POST to the pipe got status {status}: {:?}", reply.messages)
            }
        }
    };
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "crowd", "version": "1"}});
    post(json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params})).await?;
    let Some(opened) = stream.event().await? else { return trouble!("the stream ended before initialize") };
    result!(answer(opened.message()?, &json!("open"))?);
    post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    for _ in 0..random.between(3, 10) {
        if world.is_over() {
            break;
        }
        let mut texts: Vec<(u64, String)> = (0..random.between(1, 6)).map(|id| (id, random.text())).collect();
        for (id, text) in &texts {
            let params = call("slow", json!({"text": text, "ms": random.below(60)}));
            post(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await?;
        }
        while !texts.is_empty() {
            let Some(event) = stream.event().await? else {
                return trouble!("the stream ended, {} calls are open", texts.len());
            };
            let message = event.message()?;
            let Some(at) = texts.iter().position(|(id, _)| message["id"] == *id) else {
                return trouble!("a response without an open call: {}", short(&message));
            };
            let (id, text) = texts.swap_remove(at);
            let result = result!(answer(message, &json!(id))?);
            is_text(&result, &text)?;
            world.note("HTTP+SSE: call", "answered");
        }
        sleep(random.between(20, 200)).await;
    }
    Ok("answered")
}
