//! The answers of a test client to questions of the server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bindpost_mcp_protocol::client::{
    ELICIT, ElicitAction, ElicitParams, ElicitResult, LIST_ROOTS, ListRootsResult, OneOrMore, Root, SAMPLE,
    SampleParams, SampleResult, SamplingContent,
};
use bindpost_mcp_protocol::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};
use bindpost_mcp_protocol::{ErrorObject, Role};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::failure::CAPABILITIES;

/// The code of the error for a sampling request that the user rejected.
const USER_REJECTED: i64 = -1;

/// A question to the user, as the closure of
/// [`on_elicitation`](super::TestClientBuilder::on_elicitation) gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitationRequest {
    params: ElicitParams,
}

impl ElicitationRequest {
    /// Returns the text that the user reads.
    pub fn message(&self) -> &str {
        &self.params.message
    }

    /// Returns the schema of the form. A question with a URL has none.
    pub fn schema(&self) -> Option<&Value> {
        self.params.requested_schema.as_ref()
    }

    /// Returns the names of the fields of the form.
    pub fn fields(&self) -> Vec<&str> {
        let properties = self.schema().and_then(|schema| schema["properties"].as_object());
        properties.into_iter().flat_map(Map::keys).map(String::as_str).collect()
    }

    /// Returns the URL that the user is asked to open. A question with a form has none.
    pub fn url(&self) -> Option<&str> {
        self.params.url.as_deref()
    }

    /// Returns all parameters of the request.
    pub fn params(&self) -> &ElicitParams {
        &self.params
    }

    /// Submits the form with these values, or agrees to open the URL with `&()`. The values are not checked
    /// against the form, so that a test can submit invalid ones.
    ///
    /// # Panics
    ///
    /// If the values are not an object.
    pub fn accept(&self, values: &impl Serialize) -> ElicitationAnswer {
        let content = match serde_json::to_value(values) {
            Ok(Value::Object(content)) => Some(content),
            Ok(Value::Null) => None,
            Ok(other) => panic!("the answer to {:?} must be an object: {other}", self.message()),
            Err(error) => panic!("the answer to {:?} is no JSON: {error}", self.message()),
        };
        ElicitationAnswer(ElicitResult { action: ElicitAction::Accept, content, extra: Map::new() })
    }

    /// Declines explicitly.
    pub fn decline(&self) -> ElicitationAnswer {
        let action = ElicitAction::Decline;
        ElicitationAnswer(ElicitResult { action, content: None, extra: Map::new() })
    }

    /// Dismisses the question without a choice.
    pub fn cancel(&self) -> ElicitationAnswer {
        let action = ElicitAction::Cancel;
        ElicitationAnswer(ElicitResult { action, content: None, extra: Map::new() })
    }
}

/// The answer to an [`ElicitationRequest`].
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitationAnswer(ElicitResult);

impl From<ElicitResult> for ElicitationAnswer {
    fn from(result: ElicitResult) -> ElicitationAnswer {
        ElicitationAnswer(result)
    }
}

/// A question to the model, as the closure of [`on_sampling`](super::TestClientBuilder::on_sampling) gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingRequest {
    params: SampleParams,
}

impl SamplingRequest {
    /// Returns the texts of all messages, one per line.
    pub fn text(&self) -> String {
        let contents = self.params.messages.iter().flat_map(|message| message.content.as_slice());
        let texts = contents.filter_map(|content| match content {
            SamplingContent::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the system prompt that the server suggests.
    pub fn system_prompt(&self) -> Option<&str> {
        self.params.system_prompt.as_deref()
    }

    /// Returns the maximum number of tokens to generate.
    pub fn max_tokens(&self) -> u64 {
        self.params.max_tokens
    }

    /// Returns all parameters of the request.
    pub fn params(&self) -> &SampleParams {
        &self.params
    }

    /// Rejects the question, as a user can.
    pub fn reject(&self, reason: impl Into<String>) -> SamplingAnswer {
        SamplingAnswer(Err(ErrorObject::new(USER_REJECTED, reason)))
    }
}

/// The answer to a [`SamplingRequest`]: a text, a whole [`SampleResult`], or a rejection.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingAnswer(Result<SampleResult, ErrorObject>);

impl From<SampleResult> for SamplingAnswer {
    fn from(result: SampleResult) -> SamplingAnswer {
        SamplingAnswer(Ok(result))
    }
}

impl From<String> for SamplingAnswer {
    fn from(text: String) -> SamplingAnswer {
        SamplingAnswer(Ok(SampleResult {
            role: Role::Assistant,
            content: OneOrMore::One(SamplingContent::text(text)),
            model: "test-model".to_owned(),
            stop_reason: Some("endTurn".to_owned()),
            extra: Map::new(),
        }))
    }
}

impl From<&str> for SamplingAnswer {
    fn from(text: &str) -> SamplingAnswer {
        SamplingAnswer::from(text.to_owned())
    }
}

/// A function that answers questions of the type `Q` with an `A`, at once or `async`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer `{Q}`",
    label = "not an answer",
    note = "use a closure with a typed parameter, such as `|form: ElicitationRequest| form.decline()`",
    note = "it may be `async`, and returns what converts to `{A}`"
)]
pub trait QuestionHandler<Q, A, Marker>: Send + 'static {
    /// Answers one question.
    fn answer(&mut self, question: Q) -> Pin<Box<dyn Future<Output = A> + Send>>;
}

/// Marks a function that answers at once.
#[derive(Debug)]
pub struct SyncAnswer;

/// Marks a function that returns a future of its answer.
#[derive(Debug)]
pub struct AsyncAnswer;

impl<Q, A, R, F> QuestionHandler<Q, A, SyncAnswer> for F
where
    F: FnMut(Q) -> R + Send + 'static,
    R: Into<A>,
    A: Send + 'static,
{
    fn answer(&mut self, question: Q) -> Pin<Box<dyn Future<Output = A> + Send>> {
        Box::pin(std::future::ready(self(question).into()))
    }
}

impl<Q, A, Fut, F> QuestionHandler<Q, A, AsyncAnswer> for F
where
    F: FnMut(Q) -> Fut + Send + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Into<A>,
    A: 'static,
{
    fn answer(&mut self, question: Q) -> Pin<Box<dyn Future<Output = A> + Send>> {
        let answer = self(question);
        Box::pin(async move { answer.await.into() })
    }
}

type AnswerFuture = Pin<Box<dyn Future<Output = Result<Value, ErrorObject>> + Send>>;
type AnswerFn = Arc<Mutex<dyn FnMut(Value) -> AnswerFuture + Send>>;

/// The answers that a client was built with.
#[derive(Clone, Default)]
pub(super) struct ClientAnswers {
    elicitation: Option<AnswerFn>,
    sampling: Option<AnswerFn>,
    roots: Option<Vec<Root>>,
}

impl fmt::Debug for ClientAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAnswers")
            .field("elicitation", &self.elicitation.is_some())
            .field("sampling", &self.sampling.is_some())
            .field("roots", &self.roots)
            .finish()
    }
}

impl ClientAnswers {
    pub(super) fn set_elicitation<M>(
        &mut self,
        mut handler: impl QuestionHandler<ElicitationRequest, ElicitationAnswer, M>,
    ) {
        self.elicitation = Some(Arc::new(Mutex::new(move |params| -> AnswerFuture {
            match decode_question(params) {
                Ok(params) => {
                    let answer = handler.answer(ElicitationRequest { params });
                    Box::pin(async move { Ok(json!(answer.await.0)) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })));
    }

    pub(super) fn set_sampling<M>(
        &mut self,
        mut handler: impl QuestionHandler<SamplingRequest, SamplingAnswer, M>,
    ) {
        self.sampling = Some(Arc::new(Mutex::new(move |params| -> AnswerFuture {
            match decode_question(params) {
                Ok(params) => {
                    let answer = handler.answer(SamplingRequest { params });
                    Box::pin(async move { answer.await.0.map(|result| json!(result)) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })));
    }

    pub(super) fn set_roots(&mut self, uris: impl IntoIterator<Item = impl Into<String>>) {
        let roots = uris.into_iter().map(|uri| Root { uri: uri.into(), name: None, extra: Map::new() });
        self.roots = Some(roots.collect());
    }

    /// Returns whether the client answers this request.
    pub(super) fn answers(&self, method: &str) -> bool {
        match method {
            ELICIT => self.elicitation.is_some(),
            SAMPLE => self.sampling.is_some(),
            LIST_ROOTS => self.roots.is_some(),
            _ => false,
        }
    }

    /// Adds the capabilities that the answers need.
    pub(super) fn declare(&self, capabilities: &mut Map<String, Value>) {
        for (method, name, settings) in [
            (ELICIT, "elicitation", json!({"form": {}, "url": {}})),
            (SAMPLE, "sampling", json!({})),
            (LIST_ROOTS, "roots", json!({})),
        ] {
            if self.answers(method) {
                capabilities.insert(name.to_owned(), settings);
            }
        }
    }

    /// Answers a request of the server.
    pub(super) async fn answer(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let handler = match method {
            ELICIT => self.elicitation.clone(),
            SAMPLE => self.sampling.clone(),
            LIST_ROOTS => match &self.roots {
                Some(roots) => return Ok(json!(ListRootsResult { roots: roots.clone(), extra: Map::new() })),
                None => None,
            },
            "ping" => return Ok(json!({})),
            _ => None,
        };
        let Some(handler) = handler else {
            let known = CAPABILITIES.iter().find(|capability| capability.method == method);
            let reason = known.map_or_else(
                || format!("method not found: {method}"),
                |capability| capability.unanswered().to_string(),
            );
            return Err(ErrorObject::new(METHOD_NOT_FOUND, reason));
        };
        let answer = {
            let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
            (*handler)(params)
        };
        answer.await
    }
}

fn decode_question<P: DeserializeOwned>(params: Value) -> Result<P, ErrorObject> {
    serde_json::from_value(params).map_err(|error| ErrorObject::new(INVALID_PARAMS, error.to_string()))
}
