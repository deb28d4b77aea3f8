//! Typed questions to the user: [`Context::elicit`] and [`Context::elicit_url`].

use bindpost_mcp_protocol::client::{ElicitAction, ElicitParams, ElicitResult};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::ask::AskError;
use crate::error::ToolError;
use crate::handler::context::Context;
use crate::handler::form::FormSchema;

/// The answer of the user to an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicitation<T> {
    /// The user submitted the form, or agreed to open the URL.
    Accepted(T),
    /// The user explicitly declined.
    Declined,
    /// The user dismissed the question without a choice.
    Cancelled,
}

impl<T> Elicitation<T> {
    /// Returns the submitted value, if the user accepted.
    pub fn accepted(self) -> Option<T> {
        match self {
            Elicitation::Accepted(value) => Some(value),
            Elicitation::Declined | Elicitation::Cancelled => None,
        }
    }

    /// Returns the submitted value, or an error for the model if the user declined or cancelled.
    pub fn required(self) -> Result<T, ToolError> {
        match self {
            Elicitation::Accepted(value) => Ok(value),
            Elicitation::Declined => Err(ToolError::new("the user declined to answer")),
            Elicitation::Cancelled => Err(ToolError::new("the user cancelled the question")),
        }
    }
}

impl Context {
    /// Asks the user to fill in a form. The fields of `T` are the fields of the form, and the answer is
    /// validated before it is returned.
    ///
    /// A form is flat: texts, numbers, booleans, enums without data, and lists of such enums (from
    /// 2025-11-25). Doc comments become descriptions, and doc comments of variants become their titles.
    /// `#[schemars(length(…), range(…), email)]` limit what the user can enter. An `Option` is optional.
    ///
    /// ```
    /// use bindpost_mcp_server::{Context, Elicitation, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Table {
    ///     /// For how many people?
    ///     #[schemars(range(min = 1, max = 12))]
    ///     guests: u8,
    ///     seat: Seat,
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// enum Seat {
    ///     /// By the window
    ///     Window,
    ///     /// On the terrace
    ///     Terrace,
    /// }
    ///
    /// async fn book(context: Context) -> Result<String, ToolError> {
    ///     match context.elicit::<Table>("Which table would you like?").await? {
    ///         Elicitation::Accepted(table) => Ok(format!("A table for {}", table.guests)),
    ///         Elicitation::Declined => Ok("No table, then.".to_owned()),
    ///         Elicitation::Cancelled => Err(ToolError::new("the user closed the form")),
    ///     }
    /// }
    /// ```
    ///
    /// From 2026-07-28 on the handler runs again from its start to get the answer, so side effects before
    /// the question must be repeatable. If the client cannot show forms, the error is
    /// [`AskError::Unsupported`].
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<Elicitation<T>, AskError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let form = FormSchema::derive::<T>(self.revision()).map_err(AskError::Unclear)?;
        let question = ElicitParams::form(message, form.requested);
        let read = |answer: &ElicitResult| {
            let mut content = Value::Object(answer.content.clone().unwrap_or_default());
            form.check.normalize(&mut content);
            form.check.check(&content)?;
            serde_json::from_value::<T>(content).map_err(|error| error.to_string())
        };
        let answer = self
            .elicit_checked(&T::schema_name(), question, |answer| match answer.action {
                ElicitAction::Accept => read(answer).map(drop),
                ElicitAction::Decline | ElicitAction::Cancel => Ok(()),
            })
            .await?;
        match answer.action {
            ElicitAction::Accept => read(&answer).map(Elicitation::Accepted).map_err(AskError::Invalid),
            ElicitAction::Decline => Ok(Elicitation::Declined),
            ElicitAction::Cancel => Ok(Elicitation::Cancelled),
        }
    }

    /// Asks the user to open a URL, for instance to sign in or to pay (from 2025-11-25). `Accepted` means
    /// that the user agreed to open it, not that the work there is done.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<Elicitation<()>, AskError> {
        let answer = self.elicit_with("url", ElicitParams::url(message, url)).await?;
        Ok(match answer.action {
            ElicitAction::Accept => Elicitation::Accepted(()),
            ElicitAction::Decline => Elicitation::Declined,
            ElicitAction::Cancel => Elicitation::Cancelled,
        })
    }
}
