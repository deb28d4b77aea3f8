//! Requests to the client during a call: elicitation, sampling and roots.
//!
//! A handler writes `context.elicit::<T>(…).await` once. In a session the request is sent on the call's
//! stream and the handler waits. From 2026-07-28 a server cannot send requests: the round ends with an
//! `input_required` result. When the client retries with the answers, the handler runs again from its start
//! and finds them. A task waits for `tasks/update`.

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
use crate::error::ProtocolError;
use crate::handler::context::Context;
use crate::handler::schema::CompiledSchema;
use crate::transport::DeliveryTarget;

/// The maximum time for an answer of the client.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why a request to the client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare the capability for this request.
    #[error("the client cannot be asked: it did not declare {0}")]
    Unsupported(Value),
    /// The client cannot receive requests: it has no session, or the response has no stream.
    #[error("the client cannot be asked on this connection; it needs a session and a stream")]
    NoWayBack,
    /// The client answered with an error.
    #[error("the client answered with an error: {0}")]
    Refused(ErrorObject),
    /// The answer does not have the requested form.
    #[error("the client's answer is not valid:\n{0}")]
    Invalid(String),
    /// The request is invalid: clients do not support its method, or its parameters are wrong.
    #[error("{0}")]
    Unclear(String),
    /// The client did not answer in time, or it disconnected.
    #[error("the client did not answer")]
    NoAnswer,
}

/// The requests of a call to the client, and their answers.
#[derive(Debug, Default)]
pub(crate) struct InputRequests {
    pub(crate) answers: Map<String, Value>,
    /// The requests of this round: key, method, parameters.
    pub(crate) wanted: Vec<(String, &'static str, Value)>,
    /// The number of unanswered requests. The timeout of the call does not run meanwhile.
    pub(crate) open: usize,
    /// How often each key was used in this run.
    used: HashMap<String, usize>,
    /// The value that the handler gets back when it runs again.
    memory: Option<Value>,
    /// Whether the request continues an earlier one.
    pub(crate) is_resumed: bool,
}

impl InputRequests {
    /// Returns the key that the client sees. A repeated key gets a number as its suffix. A handler that
    /// runs again repeats the numbering, so it finds each answer.
    fn next_key(&mut self, key: &str) -> String {
        let used = self.used.entry(key.to_owned()).or_default();
        *used += 1;
        if *used == 1 { key.to_owned() } else { format!("{key}-{used}") }
    }
}

impl Context {
    /// Asks the user, with explicit parameters. `key` names the question within this call. A repeated key
    /// is a new question. [`Context::elicit`] derives the form from a type.
    ///
    /// The handler may run again from its start to get the answer, so side effects before it
    /// must be repeatable.
    pub async fn elicit_with(&self, key: &str, question: ElicitParams) -> Result<ElicitResult, AskError> {
        let form = question.requested_schema.as_ref().map(CompiledSchema::compile);
        let form = form.transpose().map_err(AskError::Invalid)?;
        self.elicit_checked(key, question, |answer| match (&form, answer.action) {
            (Some(form), ElicitAction::Accept) => {
                form.check(&Value::Object(answer.content.clone().unwrap_or_default()))
            }
            _ => Ok(()),
        })
        .await
    }

    /// Asks the user and checks the answer.
    pub(crate) async fn elicit_checked(
        &self,
        key: &str,
        mut question: ElicitParams,
        check: impl Fn(&ElicitResult) -> Result<(), String>,
    ) -> Result<ElicitResult, AskError> {
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
        if question.is_url() && revision.has_elicitation_ids() && question.elicitation_id.is_none() {
            question.elicitation_id = Some(crate::server::random_id());
        }
        self.call().ask(key, ELICIT, &question, check).await
    }

    /// Asks the client's model, with explicit parameters. `key` names the question within this call.
    /// [`Context::sample`] builds them.
    pub async fn sample_with(&self, key: &str, question: SampleParams) -> Result<SampleResult, AskError> {
        if self.capabilities().sampling.is_none() {
            return Err(AskError::Unsupported(json!({"sampling": {}})));
        }
        self.call().ask(key, SAMPLE, &question, |_| Ok(())).await
    }

    /// Asks for the root folders of the client.
    pub async fn roots(&self) -> Result<ListRootsResult, AskError> {
        self.roots_with("roots").await
    }

    /// Asks for the root folders of the client. `key` names the question within this call.
    pub async fn roots_with(&self, key: &str) -> Result<ListRootsResult, AskError> {
        if self.capabilities().roots.is_none() {
            return Err(AskError::Unsupported(json!({"roots": {}})));
        }
        self.call().ask(key, LIST_ROOTS, &json!({}), |_| Ok(())).await
    }

    /// Asks several questions at once. Each key has a value `{"method": …, "params": {…}}` as in an
    /// `input_required` result. Returns the results under the same keys.
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

    /// Asks one question, as in [`Context::ask_all`].
    pub(crate) async fn ask_raw(&self, key: &str, question: &Value) -> Result<Value, AskError> {
        fn params<P: DeserializeOwned>(key: &str, params: Value) -> Result<P, AskError> {
            serde_json::from_value(params)
                .map_err(|error| AskError::Unclear(format!("the params of question {key:?}: {error}")))
        }
        fn result(answer: impl Serialize) -> Result<Value, AskError> {
            serde_json::to_value(answer).map_err(|error| AskError::Invalid(error.to_string()))
        }
        let given = question.get("params").cloned().unwrap_or_else(|| json!({}));
        match question.get("method").and_then(Value::as_str) {
            Some(ELICIT) => result(self.elicit_with(key, params(key, given)?).await?),
            Some(SAMPLE) => result(self.sample_with(key, params(key, given)?).await?),
            Some(LIST_ROOTS) => result(self.roots_with(key).await?),
            method => {
                let method = method.unwrap_or("nothing");
                let reason = format!(
                    "question {key:?} has the method {method}; use {ELICIT}, {SAMPLE} or {LIST_ROOTS}"
                );
                Err(AskError::Unclear(reason))
            }
        }
    }

    /// Stores a value that [`Context::remembered`] returns when the handler runs again. The client carries
    /// it, encrypted. A second value starts a new round: the answers so far are discarded.
    pub fn remember(&self, memory: Value) {
        let mut asks = self.call().input_requests();
        if asks.memory.replace(memory).is_some() {
            asks.answers.clear();
        }
        asks.used.clear();
    }

    /// Returns the value that the handler passed to [`Context::remember`] before its last question, if the
    /// handler runs again. In legacy revisions a handler does not run again.
    pub fn remembered(&self) -> Option<Value> {
        self.call().input_requests().memory.clone()
    }

    /// Notifies the client that a URL elicitation is complete (2025-11-25). Other revisions have
    /// no such message.
    pub async fn elicitation_complete(&self, elicitation_id: &str) {
        if self.revision().has_elicitation_ids() {
            let params = json!({"elicitationId": elicitation_id});
            let message = jsonrpc::encode_notification("notifications/elicitation/complete", Some(&params));
            self.call().send(message.into()).await;
        }
    }

    /// Returns the capabilities that the client declared.
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
        // What is no result of the method, the client may repeat. An answer that breaks the form is an error in
        // every revision: the question alone would not tell the user what to change.
        let decode = |answer: Value| serde_json::from_value::<A>(answer).map_err(|error| error.to_string());
        let checked = |answer: A| check(&answer).map(|()| answer).map_err(AskError::Invalid);
        if let Some(task) = self.task() {
            loop {
                let key = self.input_requests().next_key(key);
                let answer = task.request_input(&key, method, &question).await?;
                if let Ok(answer) = decode(answer) {
                    return checked(answer);
                }
            }
        }
        if self.revision().asks_by_result() {
            let key = self.input_requests().next_key(key);
            let answer = self.input_requests().answers.get(&key).cloned();
            if let Some(answer) = answer.and_then(|answer| decode(answer).ok()) {
                return checked(answer);
            }
            {
                let mut asks = self.input_requests();
                asks.answers.remove(&key);
                asks.wanted.push((key, method, question));
            }
            // The round ends here. `RunningCall` sees the request and ends the call.
            return std::future::pending().await;
        }
        let answer = self.ask_session(method, &question).await?;
        checked(decode(answer).map_err(AskError::Invalid)?)
    }

    /// Sends a request to the client of a session and waits for the answer.
    pub(crate) async fn ask_session(&self, method: &str, question: &Value) -> Result<Value, AskError> {
        let session = self.peer().session().ok_or(AskError::NoWayBack)?;
        if matches!(self.delivery(), DeliveryTarget::None) {
            return Err(AskError::NoWayBack);
        }
        let (id, answer) = session.register_request();
        // A listener has no permit, and needs none afterwards.
        let has_permit = self.has_permit();
        let _open = OpenQuestion::new(self);
        let _forget = QuestionGuard { session, id: &id };
        let message = jsonrpc::encode_request(&id, method, question);
        if !self.send(message.into()).await {
            return Err(AskError::NoAnswer);
        }
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        if has_permit {
            self.reacquire_permit().await;
        }
        match answer {
            Ok(Ok(Ok(result))) => {
                serde_json::from_slice(&result).map_err(|error| AskError::Invalid(error.to_string()))
            }
            Ok(Ok(Err(error))) => Err(AskError::Refused(error)),
            Ok(Err(_)) | Err(_) => Err(AskError::NoAnswer),
        }
    }

    /// Reads the answers of a retried request: those of earlier rounds from the sealed state, those of this
    /// round from `inputResponses`.
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
            let mut asks = self.input_requests();
            (asks.memory, asks.is_resumed) = (opened.memory, true);
        }
        if let Some(responses) = params.get("inputResponses") {
            let responses: Map<String, Value> = responses.decode().map_err(|_| {
                ProtocolError::invalid_params(
                    method,
                    "`inputResponses` must be an object with one answer per key",
                )
            })?;
            // With a state, only answers to its questions are accepted. Without one, answers in advance are
            // allowed: the client could as well have waited for the questions.
            answers.extend(
                responses
                    .into_iter()
                    .filter(|(key, _)| asked.as_ref().is_none_or(|asked: &Vec<String>| asked.contains(key))),
            );
        }
        self.input_requests().answers = answers;
        Ok(())
    }

    /// Returns the result that ends a round: the requests to the client and the sealed state.
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

    /// Returns the digest that a state is bound to: the caller, the method, and the parameters that do not
    /// change from round to round.
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

/// Marks a request to the client as unanswered until it is dropped.
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

/// Removes a request to the client from the session when the handler stops waiting for the answer.
struct QuestionGuard<'a> {
    session: &'a crate::peer::session::Session,
    id: &'a bindpost_mcp_protocol::RequestId,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.session.forget_request(self.id);
    }
}
