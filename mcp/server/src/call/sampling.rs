//! [`SampleRequest`]: a question to the client's language model.

use std::future::IntoFuture;
use std::pin::Pin;

use bindpost_mcp_protocol::Role;
use bindpost_mcp_protocol::client::{
    OneOrMore, SampleParams, SampleResult, SamplingContent, SamplingMessage,
};
use serde_json::{Value, json};

use crate::call::ask::AskError;
use crate::handler::context::Context;

/// The default maximum number of tokens of an answer.
const DEFAULT_TOKENS: u64 = 1024;

/// A question to the client's language model, which is sent by `.await`.
///
/// ```
/// use bindpost_mcp_server::{Context, ToolError};
///
/// async fn summarize(context: Context) -> Result<String, ToolError> {
///     let answer = context
///         .sample("Summarize this order: two teas, one cake.")
///         .system_prompt("You write one short sentence.")
///         .max_tokens(60)
///         .temperature(0.2)
///         .await?;
///     Ok(answer.text().unwrap_or("no summary").to_owned())
/// }
/// ```
#[derive(Debug)]
#[must_use = "a question is sent when it is awaited"]
pub struct SampleRequest<'a> {
    context: &'a Context,
    key: String,
    params: SampleParams,
}

impl Context {
    /// Asks the client's language model. If the client offers none, the error is [`AskError::Unsupported`].
    ///
    /// As with [`Context::elicit`], the handler may run again from its start to get the answer.
    pub fn sample(&self, question: impl Into<String>) -> SampleRequest<'_> {
        let params = SampleParams::user(question, DEFAULT_TOKENS);
        SampleRequest { context: self, key: "sample".to_owned(), params }
    }
}

impl<'a> SampleRequest<'a> {
    /// Sets the maximum number of tokens to generate. Default: 1024.
    pub fn max_tokens(mut self, tokens: u64) -> SampleRequest<'a> {
        self.params.max_tokens = tokens;
        self
    }

    /// Suggests a system prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> SampleRequest<'a> {
        self.params.system_prompt = Some(text.into());
        self
    }

    /// Suggests a sampling temperature.
    pub fn temperature(mut self, temperature: f64) -> SampleRequest<'a> {
        self.params.temperature = Some(temperature);
        self
    }

    /// Adds a message to the conversation, behind the question.
    pub fn message(mut self, role: Role, content: SamplingContent) -> SampleRequest<'a> {
        self.params.messages.push(SamplingMessage { role, content: OneOrMore::One(content), meta: None });
        self
    }

    /// Suggests a model by a part of its name. Earlier suggestions have precedence.
    pub fn model(mut self, name: impl Into<String>) -> SampleRequest<'a> {
        let preferences = self.params.extra.entry("modelPreferences").or_insert_with(|| json!({}));
        if let Some(hints) = preferences
            .as_object_mut()
            .and_then(|preferences| preferences.entry("hints").or_insert_with(|| json!([])).as_array_mut())
        {
            hints.push(json!({"name": name.into()}));
        }
        self
    }

    /// Sets texts at which the generation stops.
    pub fn stop_sequences(self, texts: impl IntoIterator<Item = impl Into<String>>) -> SampleRequest<'a> {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        self.param("stopSequences", json!(texts))
    }

    /// Sets another parameter of `sampling/createMessage`, such as `tools` or `toolChoice`.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<Value>) -> SampleRequest<'a> {
        self.params.extra.insert(name.into(), value.into());
        self
    }
}

impl<'a> IntoFuture for SampleRequest<'a> {
    type Output = Result<SampleResult, AskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.context.sample_with(&self.key, self.params).await })
    }
}
