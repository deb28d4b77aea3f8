//! Ask the client in the middle of a call: its user, its model, its folders.
//!
//! A handler writes `context.elicit("name", …).await` once. With a session the question goes out as
//! a request on the call's stream and the handler waits. From 2026-07-28 on there is no way to send
//! a request: the round ends with an `input_required` result, and when the client comes back with the
//! answers the handler runs again from its start, this time finding them. A task waits for
//! `tasks/update`.

use std::collections::HashMap;
use std::time::Duration;

use bindpost_mcp_protocol::client::{
    ELICIT, ElicitAction, ElicitParams, ElicitResult, LIST_ROOTS, ListRootsResult, SAMPLE, SampleParams,
    SampleResult,
};
use bindpost_mcp_protocol::lifecycle::ClientCapabilities;
use bindpost_mcp_protocol::{ErrorObject, jsonrpc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::call::seal::RequestState;
use crate::error::{ProtocolError, ToolError};
use crate::handler::context::Context;
use crate::handler::schema::CompiledSchema;
use crate::transport::DeliveryTarget;

/// How long a user may take to answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why a question got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client has not declared that it can be asked this.
    #[error("the client cannot be asked: it did not declare {0}")]
    Unsupported(Value),
    /// There is no way back to the client: no session, or answers without streams.
    #[error("the client cannot be asked on this connection; it needs a session and a stream")]
    NoWayBack,
    /// The client refused or failed.
    #[error("the client answered with an error: {0}")]
    Refused(ErrorObject),
    /// The answer is not what was asked for.
    #[error("the client's answer is not valid: {0}")]
    Invalid(String),
    /// The question is not one that a client understands.
    #[error("{0}")]
    Unclear(String),
    /// No answer came in time, or the client is gone.
    #[error("the client did not answer")]
    NoAnswer,
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> ToolError {
        match error {
            AskError::Unsupported(required) => ProtocolError::MissingCapability(required).into(),
            other => ToolError::new(other.to_string()),
        }
    }
}

/// What a call has asked, and what it was answered.
#[derive(Debug, Default)]
pub(crate) struct InputRequests {
    pub(crate) answers: Map<String, Value>,
    /// Questions of this round: key, method, parameters.
    pub(crate) wanted: Vec<(String, &'static str, Value)>,
    /// Questions the client is thinking about; the call's time stands still meanwhile.
    pub(crate) open: usize,
    /// How often each key was used in this run.
    used: HashMap<String, usize>,
    /// What the handler wants to find again when it runs again.
    memory: Option<Value>,
}

impl InputRequests {
    /// The key as the client sees it: asked once more, the same question gets a number behind its key.
    /// A handler that runs again counts again, and finds each answer where it was.
    fn next_key(&mut self, key: &str) -> String {
        let used = self.used.entry(key.to_owned()).or_default();
        *used += 1;
        if *used == 1 { key.to_owned() } else { format!("{key}-{used}") }
    }
}

impl Context {
    /// Asks the user. `key` names the question within this call; asked once more under the same key, it is
    /// a new question.
    ///
    /// The handler may run again from its start to find the answer, so do nothing twice before it.
    pub async fn elicit(&self, key: &str, question: ElicitParams) -> Result<ElicitResult, AskError> {
        let revision = self.revision();
        let can = self.capabilities();
        let fits = if question.is_url() {
            can.elicits_by_url() && revision.has_url_elicitation()
        } else {
            can.elicits_by_form() && revision.has_elicitation()
        };
        if !fits {
            let how = if question.is_url() { json!({"url": {}}) } else { json!({}) };
            return Err(AskError::Unsupported(json!({"elicitation": how})));
        }
        let mut question = question;
        if question.is_url() && revision.has_elicitation_ids() && question.elicitation_id.is_none() {
            question.elicitation_id = Some(crate::server::random_id());
        }
        let form = question.requested_schema.as_ref().map(CompiledSchema::compile);
        let form = form.transpose().map_err(AskError::Invalid)?;
        self.call()
            .ask(key, ELICIT, &question, |answer: &ElicitResult| match (&form, answer.action) {
                (Some(form), ElicitAction::Accept) => {
                    form.check(&Value::Object(answer.content.clone().unwrap_or_default()))
                }
                _ => Ok(()),
            })
            .await
    }

    /// Asks the client's model. `key` names the question within this call.
    pub async fn sample(&self, key: &str, question: SampleParams) -> Result<SampleResult, AskError> {
        if self.capabilities().sampling.is_none() {
            return Err(AskError::Unsupported(json!({"sampling": {}})));
        }
        self.call().ask(key, SAMPLE, &question, |_| Ok(())).await
    }

    /// Asks for the folders the client works in. `key` names the question within this call.
    pub async fn roots(&self, key: &str) -> Result<ListRootsResult, AskError> {
        if self.capabilities().roots.is_none() {
            return Err(AskError::Unsupported(json!({"roots": {}})));
        }
        self.call().ask(key, LIST_ROOTS, &json!({}), |_| Ok(())).await
    }

    /// Asks several questions at once, as a program writes them: by their keys, each `{"method": …, "params":
    /// {…}}` as in an `input_required` result. Gives the results under the same keys.
    ///
    /// ```no_run
    /// # async fn example(context: bindpost_mcp_server::Context) -> Result<(), bindpost_mcp_server::ToolError> {
    /// let questions = serde_json::json!({"folders": {"method": "roots/list"}});
    /// let answers = context.ask_all(questions.as_object().unwrap()).await?;
    /// println!("{}", answers["folders"]["roots"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ask_all(&self, questions: &Map<String, Value>) -> Result<Map<String, Value>, AskError> {
        let asked = questions.iter().map(async |(key, question)| {
            let answer = self.ask_raw(key, question).await?;
            Ok((key.clone(), answer))
        });
        futures_util::future::try_join_all(asked).await.map(Map::from_iter)
    }

    async fn ask_raw(&self, key: &str, question: &Value) -> Result<Value, AskError> {
        fn params<P: DeserializeOwned>(key: &str, params: Value) -> Result<P, AskError> {
            serde_json::from_value(params)
                .map_err(|error| AskError::Unclear(format!("the params of question {key:?}: {error}")))
        }
        fn result(answer: impl Serialize) -> Result<Value, AskError> {
            serde_json::to_value(answer).map_err(|error| AskError::Invalid(error.to_string()))
        }
        let given = question.get("params").cloned().unwrap_or_else(|| json!({}));
        match question.get("method").and_then(Value::as_str) {
            Some(ELICIT) => result(self.elicit(key, params(key, given)?).await?),
            Some(SAMPLE) => result(self.sample(key, params(key, given)?).await?),
            Some(LIST_ROOTS) => result(self.roots(key).await?),
            method => {
                let method = method.unwrap_or("nothing");
                let reason = format!(
                    "question {key:?} has the method {method}; use {ELICIT}, {SAMPLE} or {LIST_ROOTS}"
                );
                Err(AskError::Unclear(reason))
            }
        }
    }

    /// Keeps something for when the handler runs again to find the answers to what it asks next; see
    /// [`Context::remembered`]. The client carries it, sealed. Answers to what was asked before the last
    /// time are forgotten: this is a new round.
    pub fn remember(&self, memory: Value) {
        let mut asks = self.call().input_requests();
        if asks.memory.replace(memory).is_some() {
            asks.answers.clear();
        }
        asks.used.clear();
    }

    /// What the handler gave to [`Context::remember`] before its last question, if this is a run to take up
    /// the answers. In revisions with sessions a handler does not run again, and there is nothing.
    pub fn remembered(&self) -> Option<Value> {
        self.call().input_requests().memory.clone()
    }

    /// Tells the client that what a URL elicitation asked for is done (2025-11-25); other revisions have
    /// no such message.
    pub async fn elicitation_complete(&self, elicitation_id: &str) {
        if self.revision().has_elicitation_ids() {
            let params = json!({"elicitationId": elicitation_id});
            let message = jsonrpc::encode_notification("notifications/elicitation/complete", Some(&params));
            self.call().send(message.into()).await;
        }
    }

    /// What the client can be asked.
    pub fn can_ask(&self) -> ClientCapabilities {
        self.capabilities()
    }
}

impl Call {
    async fn ask<A: DeserializeOwned>(
        &self,
        key: &str,
        method: &'static str,
        question: &impl Serialize,
        check: impl Fn(&A) -> Result<(), String>,
    ) -> Result<A, AskError> {
        let question =
            serde_json::to_value(question).map_err(|error| AskError::Invalid(error.to_string()))?;
        let decode = |answer: Value| {
            let answer: A = serde_json::from_value(answer).map_err(|error| error.to_string())?;
            check(&answer).map(|()| answer)
        };
        if let Some(task) = self.task() {
            // An answer that does not fit is asked for again.
            loop {
                let key = self.input_requests().next_key(key);
                match task.request_input(&key, method, &question).await.map(decode) {
                    Some(Ok(answer)) => return Ok(answer),
                    Some(Err(_)) => {}
                    None => return Err(AskError::NoAnswer),
                }
            }
        }
        if self.revision().asks_by_result() {
            let key = self.input_requests().next_key(key);
            let answer = self.input_requests().answers.get(&key).cloned();
            if let Some(answer) = answer.and_then(|answer| decode(answer).ok()) {
                return Ok(answer);
            }
            {
                let mut asks = self.input_requests();
                asks.answers.remove(&key);
                asks.wanted.push((key, method, question));
            }
            // The round ends here: whoever drives the call sees what is wanted and lets it go.
            return std::future::pending().await;
        }
        let answer = self.ask_session(method, &question).await?;
        decode(answer).map_err(AskError::Invalid)
    }

    /// Sends a request to the client and waits for its answer.
    async fn ask_session(&self, method: &'static str, question: &Value) -> Result<Value, AskError> {
        let session = self.peer().session().ok_or(AskError::NoWayBack)?;
        if matches!(self.delivery(), DeliveryTarget::None) {
            return Err(AskError::NoWayBack);
        }
        let (id, answer) = session.register_request();
        let _open = OpenQuestion::new(self);
        let _forget = QuestionGuard { session, id: &id };
        let message = jsonrpc::encode_request(&id, method, question);
        if !self.send(message.into()).await {
            return Err(AskError::NoAnswer);
        }
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        self.reacquire_permit().await;
        match answer {
            Ok(Ok(Ok(result))) => {
                serde_json::from_slice(&result).map_err(|error| AskError::Invalid(error.to_string()))
            }
            Ok(Ok(Err(error))) => Err(AskError::Refused(error)),
            Ok(Err(_)) | Err(_) => Err(AskError::NoAnswer),
        }
    }

    /// Takes up the answers a client brings back: those of earlier rounds from the sealed state, those
    /// of this round from `inputResponses`.
    pub(crate) fn resume(&self, method: &'static str) -> Result<(), ProtocolError> {
        let params = self.params();
        let mut answers = Map::new();
        let mut asked = None;
        if let Some(state) = params.get("requestState").filter(|state| !state.is_null()) {
            let state = state.as_text();
            let opened =
                state.and_then(|state| self.server().sealer.open(&state, &self.binding_digest(method)));
            let opened = opened.ok_or_else(|| {
                let reason = "`requestState` does not belong to this request: it was altered, has expired, \
                              was used before, or was given to another caller";
                ProtocolError::invalid_params(method, reason)
            })?;
            (answers, asked) = (opened.answers, Some(opened.asked));
            self.input_requests().memory = opened.memory;
        }
        if let Some(responses) = params.get("inputResponses") {
            let responses: Map<String, Value> = responses.decode().map_err(|_| {
                ProtocolError::invalid_params(
                    method,
                    "`inputResponses` must be an object with one answer per key",
                )
            })?;
            // Who brings a state answers what it was asked, and nothing else. Without one these are answers in
            // advance; the client could as well have waited for the question.
            answers.extend(
                responses
                    .into_iter()
                    .filter(|(key, _)| asked.as_ref().is_none_or(|asked: &Vec<String>| asked.contains(key))),
            );
        }
        self.input_requests().answers = answers;
        Ok(())
    }

    /// The result that ends a round: what is wanted, and the state to bring back.
    pub(crate) fn input_required(&self, method: &'static str) -> Result<Value, ProtocolError> {
        let asks = self.input_requests();
        let wanted: Map<String, Value> = asks
            .wanted
            .iter()
            .map(|(key, method, question)| (key.clone(), json!({"method": method, "params": question})))
            .collect();
        let asked = wanted.keys().cloned().collect();
        let carried = RequestState { answers: asks.answers.clone(), asked, memory: asks.memory.clone() };
        let state = self.server().sealer.seal(carried, &self.binding_digest(method));
        let state =
            state.ok_or_else(|| ProtocolError::Internal("the state could not be sealed".to_owned()))?;
        Ok(json!({"inputRequests": wanted, "requestState": state}))
    }

    /// What a state is bound to: the caller, the method, and the parameters without those that change
    /// from round to round.
    fn binding_digest(&self, method: &str) -> Vec<u8> {
        let mut params: Map<String, Value> = self.params().decode().unwrap_or_default();
        for changing in ["_meta", "inputResponses", "requestState"] {
            params.remove(changing);
        }
        let caller = self.caller().id().unwrap_or_default();
        let mut digest = Sha256::new();
        for part in [method, caller, &Value::Object(params).to_string()] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.finalize().to_vec()
    }
}

/// Counts a question as open while it is held.
struct OpenQuestion<'a>(&'a Call);

impl<'a> OpenQuestion<'a> {
    fn new(call: &'a Call) -> OpenQuestion<'a> {
        call.input_requests().open += 1;
        call.release_permit();
        OpenQuestion(call)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.input_requests().open -= 1;
    }
}

/// Forgets the question when the handler stops waiting for its answer.
struct QuestionGuard<'a> {
    session: &'a crate::peer::session::Session,
    id: &'a bindpost_mcp_protocol::RequestId,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.session.forget_request(self.id);
    }
}
