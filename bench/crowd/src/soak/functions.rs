//! Load on the function app `examples/snippets-node`, whose workers are killed from time to time. A call
//! that runs when a worker is killed may fail, with a clear error under its own id.
use super::{client, World};
use crate::http::{trouble, Checked, Connection};
use crate::mcp::{call, ending, is_text, refused, short, Caller, Ending, Session, LEGACY};
use crate::random::Random;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;
use tokio::task::JoinHandle;

/// The number of snippet names that one client uses.
const NAMES: u64 = 40;
const FAILED: &str = "failed, its worker was killed";

pub fn clients(world: &Rc<World>) -> Vec<JoinHandle<()>> {
    let mut clients = Vec::new();
    for number in 0..6 {
        let has_session = number % 2 == 0;
        let mut app = AppClient {
            caller: world.host.clone(),
            number,
            has_session,
            connected: None,
            saved: HashMap::new(),
        };
        let kind = if has_session { "function app: session" } else { "function app: stateless" };
        clients.push(client(world, 800 + number, kind, (20, 120), async move |world, random| {
            let outcome = app.act(world, random).await;
            if outcome.is_err() {
                app.connected = None;
            }
            outcome
        }));
    }
    clients
}

struct AppClient {
    caller: Caller,
    number: u64,
    has_session: bool,
    connected: Option<(Connection, Option<Session>)>,
    /// The possible texts of each snippet: one, or two if it is unknown whether the last one was saved.
    saved: HashMap<String, Vec<String>>,
}

impl AppClient {
    async fn act(&mut self, world: &World, random: &mut Random) -> Checked<&'static str> {
        if random.one_in(40) {
            self.leave().await?;
        }
        let name = format!("snippet-{}-{}", self.number, random.below(NAMES));
        match random.below(5) {
            0 | 1 => self.save(world, &name, random.text()).await,
            2 => self.get(world, &name).await,
            3 => {
                let text = random.text();
                let words = [text.as_str(), "other"];
                let params = call("count_words", json!({"text": format!("{text} {text} x"), "words": words}));
                let counts = json!({text.as_str(): 2, "other": 0});
                self.call(world, params, |result| {
                    let said = result["content"][0]["text"]
                        .as_str()
                        .and_then(|text| serde_json::from_str(text).ok());
                    if said == Some(counts) {
                        Ok(())
                    } else {
                        trouble!("wrong counts: {}", short(result))
                    }
                })
                .await
            }
            _ => {
                let text = random.text();
                let params = call("badge", json!({"label": "soak", "value": text}));
                self.call(world, params, |result| is_text(result, &format!("soak: {text}"))).await
            }
        }
    }

    async fn save(&mut self, world: &World, name: &str, text: String) -> Checked<&'static str> {
        let params = call("save_snippet", json!({"snippetname": name, "snippet": text}));
        let outcome = self.call(world, params, |result| is_text(result, &format!("Saved {name}."))).await;
        let known =
            self.saved.entry(name.to_owned()).or_insert_with(|| vec![format!("There is no snippet {name}.")]);
        if !matches!(outcome, Ok("answered")) {
            known.push(text);
        } else {
            *known = vec![text];
        }
        outcome
    }

    async fn get(&mut self, world: &World, name: &str) -> Checked<&'static str> {
        let none = vec![format!("There is no snippet {name}.")];
        let known = self.saved.get(name).cloned().unwrap_or(none);
        let params = call("get_snippet", json!({"snippetname": name}));
        let mut read = String::new();
        let outcome = self.call(world, params, |result| {
            read = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            if result["isError"] != true && known.contains(&read) {
                Ok(())
            } else {
                trouble!("snippet {name} should be one of {known:?}, and is {}", short(result))
            }
        });
        let outcome = outcome.await?;
        if outcome == "answered" {
            self.saved.insert(name.to_owned(), vec![read]);
        }
        Ok(outcome)
    }

    /// Calls a tool. It may fail only if a worker was killed during the call.
    async fn call(
        &mut self,
        world: &World,
        params: Value,
        check: impl FnOnce(&Value) -> Checked<()>,
    ) -> Checked<&'static str> {
        let begin = Instant::now();
        let (mut connection, session) = match self.connected.take() {
            Some(connected) => connected,
            None => {
                let mut connection = self.caller.connect().await?;
                let session = match self.has_session {
                    false => None,
                    true => match Session::open(&self.caller, &mut connection, LEGACY, true).await? {
                        Ok(session) => Some(session),
                        Err(status) => return Ok(refused(status)),
                    },
                };
                (connection, session)
            }
        };
        let id = json!("call");
        let request = match &session {
            Some(session) => session.request(&id, "tools/call", params),
            None => self.caller.modern(&id, "tools/call", params),
        };
        let reply = connection.exchange(self.caller.port, &request).await?;
        self.connected = Some((connection, session));
        let killed = world.was_killed_since(begin);
        match ending(reply, &id)? {
            Ending::Result(result) if result["isError"] == true && killed => {
                let says_so = result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty());
                if says_so {
                    Ok(FAILED)
                } else {
                    trouble!("a failed call has no message: {}", short(&result))
                }
            }
            Ending::Result(result) => check(&result).map(|()| "answered"),
            Ending::Refused(status) => Ok(refused(status)),
            Ending::Error(error) if killed && error["message"].is_string() => Ok(FAILED),
            other => trouble!("{other:?}, and no worker was killed"),
        }
    }

    /// Ends the session and closes the connection.
    async fn leave(&mut self) -> Checked<()> {
        if let Some((mut connection, Some(session))) = self.connected.take() {
            let reply = connection.exchange(self.caller.port, &session.delete()).await?;
            if reply.head.status != 204 {
                return trouble!("DELETE got status {}", reply.head.status);
            }
        }
        Ok(())
    }
}
