//! The runner: plays conversations over a transport and reports failures.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bindpost_mcp_protocol::{Revision, meta};
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::ConversationTransport;
use super::conversation::{Conversation, ConversationLine, ConversationStep};
use super::matching::{self, SavedValues};

/// The timeout for an expected message.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long `<-- nothing` waits for a message.
const QUIET: Duration = Duration::from_millis(100);
/// How long the end of a conversation waits for an unexpected message.
const LAST_LOOK: Duration = Duration::from_millis(20);
/// The number of conversations that run concurrently.
const AT_ONCE: usize = 32;
/// The methods whose results have cache members, from 2026-07-28.
const CACHEABLE: [&str; 8] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "skills/list",
    "skills/get",
];

/// The members of a message as raw JSON.
type Members = BTreeMap<String, Box<RawValue>>;

/// The failure of a conversation.
#[derive(Clone, Debug)]
pub struct ConversationFailure {
    /// The name of the file.
    pub file: String,
    /// The line number, from 1. It is 0 for the handshake before the first line.
    pub line: usize,
    /// The revision of the run.
    pub revision: Revision,
    /// The transport of the run.
    pub transport: &'static str,
    /// The reason of the failure.
    pub reason: String,
    /// The expected message.
    pub expected: Option<String>,
    /// The received message.
    pub actual: Option<String>,
}

impl fmt::Display for ConversationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConversationFailure { file, line, revision, transport, reason, .. } = self;
        write!(f, "{file}:{line} ({revision} over {transport}): {reason}")?;
        if let Some(expected) = &self.expected {
            write!(f, "\n    expected {expected}")?;
        }
        if let Some(actual) = &self.actual {
            write!(f, "\n    actual   {actual}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConversationFailure {}

/// The report of a run of conversations.
#[derive(Clone, Debug, Default)]
pub struct ConversationReport {
    /// The number of conversations that ran, counted once for each revision.
    pub played: usize,
    /// The conversations that failed.
    pub failures: Vec<ConversationFailure>,
}

impl fmt::Display for ConversationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}")?;
        }
        write!(f, "{} of {} conversations failed", self.failures.len(), self.played)
    }
}

/// Runs every conversation for this transport, once for each of these revisions that it names. `connect`
/// returns a new client of a new server each time.
pub async fn play_all<T: ConversationTransport>(
    conversations: &[Conversation],
    revisions: &[Revision],
    connect: impl AsyncFn(&Conversation) -> io::Result<T>,
) -> ConversationReport {
    let connect = &connect;
    let games = conversations.iter().filter(|conversation| conversation.runs_over(T::NAME)).flat_map(
        |conversation| {
            let revisions = revisions.iter().filter(|revision| conversation.revisions().contains(revision));
            revisions.map(move |&revision| play_one(conversation, revision, connect))
        },
    );
    let games: Vec<_> = games.collect();
    let played = games.len();
    let games = futures_util::stream::iter(games).buffer_unordered(AT_ONCE);
    let mut failures: Vec<ConversationFailure> =
        games.filter_map(async |outcome| outcome.err()).collect().await;
    failures.sort_by(|a, b| (&a.file, a.line, a.revision).cmp(&(&b.file, b.line, b.revision)));
    ConversationReport { played, failures }
}

async fn play_one<T: ConversationTransport>(
    conversation: &Conversation,
    revision: Revision,
    connect: &impl AsyncFn(&Conversation) -> io::Result<T>,
) -> Result<(), ConversationFailure> {
    let failure = |reason: String| conversation.failure::<T>(0, revision, reason);
    let played = async {
        let connected = connect(conversation).await;
        let mut transport = connected.map_err(|error| failure(format!("no connection: {error}")))?;
        conversation.play(revision, &mut transport).await
    };
    // In memory the server runs inside the client. A panic of one must not end the others.
    match AssertUnwindSafe(played).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(_) => Err(failure("it panicked".to_owned())),
    }
}

impl Conversation {
    /// Runs the conversation for one revision, over a new transport.
    pub async fn play<T: ConversationTransport>(
        &self,
        revision: Revision,
        transport: &mut T,
    ) -> Result<(), ConversationFailure> {
        let mut saved = SavedValues::default();
        saved.save("revision", revision.as_str().into());
        let mut game =
            ConversationRun { conversation: self, revision, transport, saved, asked: HashMap::new() };
        let steps = self.steps(revision, T::NAME);
        let mut steps = steps.as_slice();
        if !self.raw && revision.has_handshake() {
            game.perform_handshake().await.map_err(|reason| self.failure::<T>(0, revision, reason))?;
        }
        let mut last = 0;
        while let Some((line, rest)) = steps.split_first() {
            last = line.number;
            let is_unordered =
                |line: &&ConversationLine| matches!(line.step, ConversationStep::ExpectInAnyOrder(_));
            if is_unordered(line) {
                let many = steps.iter().take_while(|line| is_unordered(line)).count();
                let (group, rest) = steps.split_at(many);
                game.expect_in_any_order(group).await?;
                steps = rest;
            } else {
                game.step(line).await?;
                steps = rest;
            }
        }
        match game.receive_within(LAST_LOOK).await {
            Ok(None) => Ok(()),
            Ok(Some(actual)) => {
                let failure = self.failure::<T>(last, revision, "one more message came".to_owned());
                Err(ConversationFailure { actual: Some(actual), ..failure })
            }
            Err(reason) => Err(self.failure::<T>(last, revision, reason)),
        }
    }

    fn failure<T: ConversationTransport>(
        &self,
        line: usize,
        revision: Revision,
        reason: String,
    ) -> ConversationFailure {
        let file = self.file.clone();
        ConversationFailure { file, line, revision, transport: T::NAME, reason, expected: None, actual: None }
    }
}

/// The state of a running conversation.
struct ConversationRun<'a, T> {
    conversation: &'a Conversation,
    revision: Revision,
    transport: &'a mut T,
    saved: SavedValues,
    /// The methods of the sent requests, by their id as raw JSON.
    asked: HashMap<String, String>,
}

impl<T: ConversationTransport> ConversationRun<'_, T> {
    fn failure(&self, line: &ConversationLine, reason: String) -> ConversationFailure {
        self.conversation.failure::<T>(line.number, self.revision, reason)
    }

    async fn step(&mut self, line: &ConversationLine) -> Result<(), ConversationFailure> {
        match &line.step {
            ConversationStep::Send(message) => {
                let message =
                    self.saved.fill_placeholders(message).and_then(|message| self.add_request_meta(message));
                let message = message.map_err(|reason| self.failure(line, reason))?;
                let sent = self.transport.send(&message, self.revision).await;
                sent.map_err(|error| self.failure(line, format!("not sent: {error}")))
            }
            ConversationStep::Expect(expected) => {
                let expected = expected.clone();
                let came = self.next().await;
                let failed = |failure: ConversationFailure, actual: Option<String>| ConversationFailure {
                    expected: Some(expected.clone()),
                    actual,
                    ..failure
                };
                let actual = came.map_err(|reason| failed(self.failure(line, reason), None))?;
                let matched = matching::compare(&expected, &actual, &mut self.saved);
                matched.map_err(|difference| failed(self.failure(line, difference.0), Some(actual)))
            }
            ConversationStep::ExpectInAnyOrder(_) => self.expect_in_any_order(&[line]).await,
            ConversationStep::ExpectNothing => match self.receive_within(QUIET).await {
                Ok(None) => Ok(()),
                Ok(Some(actual)) => {
                    let failure = self.failure(line, "a message came".to_owned());
                    Err(ConversationFailure { actual: Some(actual), ..failure })
                }
                Err(reason) => Err(self.failure(line, reason)),
            },
            ConversationStep::Status(expected) => match self.transport.status() {
                Some(actual) if actual != *expected => {
                    Err(self.failure(line, format!("the status is {actual} instead of {expected}")))
                }
                _ => Ok(()),
            },
            ConversationStep::EndInput => {
                let ended = self.transport.end_input().await;
                ended.map_err(|error| self.failure(line, format!("the input cannot be ended: {error}")))
            }
        }
    }

    async fn expect_in_any_order(&mut self, group: &[&ConversationLine]) -> Result<(), ConversationFailure> {
        let mut open: Vec<(&ConversationLine, &str)> = group
            .iter()
            .filter_map(|line| match &line.step {
                ConversationStep::ExpectInAnyOrder(expected) => Some((*line, expected.as_str())),
                _ => None,
            })
            .collect();
        while let Some((first, _)) = open.first().copied() {
            let expected =
                || Some(open.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n          or "));
            let actual = match self.next().await {
                Ok(actual) => actual,
                Err(reason) => {
                    return Err(ConversationFailure { expected: expected(), ..self.failure(first, reason) });
                }
            };
            let fits =
                open.iter().position(|(_, text)| matching::compare(text, &actual, &mut self.saved).is_ok());
            let Some(fits) = fits else {
                let failure = self.failure(first, "the message is none of those expected".to_owned());
                return Err(ConversationFailure { expected: expected(), actual: Some(actual), ..failure });
            };
            open.remove(fits);
        }
        Ok(())
    }

    /// Receives the next message, in the form for comparison. No message is an error.
    async fn next(&mut self) -> Result<String, String> {
        match self.receive_within(PATIENCE).await? {
            Some(message) => Ok(message),
            None => Err("no message came".to_owned()),
        }
    }

    /// Receives the next message, if one arrives within this time.
    async fn receive_within(&mut self, time: Duration) -> Result<Option<String>, String> {
        let message = match tokio::time::timeout(time, self.transport.receive()).await {
            Err(_) | Ok(Ok(None)) => return Ok(None),
            Ok(Err(error)) => return Err(format!("not received: {error}")),
            Ok(Ok(Some(message))) => message,
        };
        let message = String::from_utf8(message.to_vec()).map_err(|error| error.to_string())?;
        if self.conversation.raw || self.revision.has_handshake() {
            return Ok(Some(message));
        }
        self.strip_result_envelope(&message).map(Some).map_err(|reason| format!("{reason}: {message}"))
    }

    /// Opens the session of a legacy revision.
    async fn perform_handshake(&mut self) -> Result<(), String> {
        let (capabilities, version) = (&self.conversation.client, self.revision.as_str());
        let initialize = json!({"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info(),
        }});
        self.transport
            .send(&initialize.to_string(), self.revision)
            .await
            .map_err(|error| error.to_string())?;
        let answer = self.next().await?;
        let decoded: Value = serde_json::from_str(&answer).unwrap_or_default();
        if decoded["id"] != "handshake" || decoded["result"]["protocolVersion"] != version {
            return Err(format!("the handshake was answered with {answer}"));
        }
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.transport.send(&initialized.to_string(), self.revision).await.map_err(|error| error.to_string())
    }

    /// Adds the envelope to a request in modern revisions, unless the conversation is `raw`. Members that
    /// the file sets are not replaced.
    fn add_request_meta(&mut self, text: String) -> Result<String, String> {
        if self.conversation.raw || self.revision.has_handshake() {
            return Ok(text);
        }
        let mut message: Members = serde_json::from_str(&text)
            .map_err(|error| format!("not a message, which needs `raw`: {error}"))?;
        let (Some(id), Some(method)) = (message.get("id"), message.get("method")) else { return Ok(text) };
        self.asked.insert(id.get().to_owned(), serde_json::from_str(method.get()).unwrap_or_default());
        let mut params: Members = member(&message, "params")?;
        let mut request_meta: Members = member(&params, "_meta")?;
        for (name, value) in [
            (meta::PROTOCOL_VERSION, self.revision.as_str().into()),
            (meta::CLIENT_INFO, client_info()),
            (meta::CLIENT_CAPABILITIES, Value::Object(self.conversation.client.clone())),
        ] {
            if !request_meta.contains_key(name) {
                request_meta.insert(name.to_owned(), raw(&value)?);
            }
        }
        params.insert("_meta".to_owned(), raw(&request_meta)?);
        message.insert("params".to_owned(), raw(&params)?);
        serde_json::to_string(&message).map_err(|error| error.to_string())
    }

    /// Removes the members that every result of 2026-07-28 has, after checking that they are complete.
    fn strip_result_envelope(&self, text: &str) -> Result<String, String> {
        let mut message: Members =
            serde_json::from_str(text).map_err(|error| format!("not a message: {error}"))?;
        if message.contains_key("method") && message.contains_key("id") {
            return Err("a request to the client, which modern revisions do not have".to_owned());
        }
        if !message.contains_key("result") {
            return Ok(text.to_owned());
        }
        let method = message.get("id").and_then(|id| self.asked.get(id.get())).map_or("", String::as_str);
        let mut result: Map<String, Value> = member(&message, "result")?;
        let is_complete = match result.get("resultType").and_then(Value::as_str) {
            None => return Err("a result without its resultType".to_owned()),
            Some(result_type) => result_type == "complete",
        };
        if is_complete {
            result.remove("resultType");
        }
        let mut result_meta: Map<String, Value> = match result.remove("_meta") {
            Some(Value::Object(result_meta)) => result_meta,
            _ => return Err("a result without _meta".to_owned()),
        };
        if result_meta.remove(meta::SERVER_INFO).is_none() {
            return Err("a result without the server info in _meta".to_owned());
        }
        if !result_meta.is_empty() {
            result.insert("_meta".to_owned(), result_meta.into());
        }
        let scope = result.remove("cacheScope");
        if is_complete && CACHEABLE.contains(&method) {
            let holds = result.remove("ttlMs").as_ref().is_some_and(Value::is_u64);
            if !holds || !matches!(scope.as_ref().and_then(Value::as_str), Some("public" | "private")) {
                return Err("a result without valid ttlMs and cacheScope".to_owned());
            }
        } else if scope.is_some() {
            return Err("a result with a cacheScope that it should not have".to_owned());
        }
        message.insert("result".to_owned(), raw(&result)?);
        serde_json::to_string(&message).map_err(|error| error.to_string())
    }
}

fn client_info() -> Value {
    json!({"name": "conversation", "version": "1.0.0"})
}

/// Returns a member that is an object, or an empty object if the member is missing.
fn member<M: serde::de::DeserializeOwned + Default>(members: &Members, name: &str) -> Result<M, String> {
    match members.get(name) {
        None => Ok(M::default()),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|error| format!("`{name}`: {error}")),
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, String> {
    to_raw_value(value).map_err(|error| error.to_string())
}
