//! Conversions to [`ToolError`]: what `?` accepts in a handler, and which text the model reads.

use std::error::Error;

use crate::call::ask::AskError;
use crate::error::{ProtocolError, ToolError, ToolFailure};

/// The text for errors whose own text may contain paths, addresses or secrets.
const HIDDEN_REASON: &str = "the request failed; the reason is in the log of the server";

/// An error that `?` converts to a [`ToolError`] in a handler.
///
/// A `String` or `&str` is the text that the model reads. The text of other errors, such as
/// [`std::io::Error`], may contain paths or addresses. It goes to the log, and the model reads a
/// general text. [`OrToolError::or_tool_error`] gives any error a text for the model.
///
/// Implement it for an error of your own to decide both:
///
/// ```
/// use bindpost_mcp_server::{IntoToolError, ToolError};
///
/// #[derive(Debug, thiserror::Error)]
/// enum OrderError {
///     #[error("there is no order {0}")]
///     Unknown(u32),
///     #[error("database")]
///     Database(#[from] std::io::Error),
/// }
///
/// impl IntoToolError for OrderError {
///     fn into_tool_error(self) -> ToolError {
///         match self {
///             OrderError::Unknown(_) => ToolError::new(self.to_string()),
///             OrderError::Database(_) => ToolError::with_source("orders are not available now", self),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`?` cannot convert `{Self}` to a `ToolError`",
    label = "the model needs a text for this error: `.or_tool_error(\"…\")?`, with `use bindpost::OrToolError;`",
    note = "or implement `IntoToolError` for `{Self}`, if it is a type of yours",
    note = "`anyhow::Error` needs the feature `anyhow` of `bindpost`"
)]
pub trait IntoToolError {
    /// Converts the error: the text for the model, and the cause for the log.
    fn into_tool_error(self) -> ToolError;
}

impl<E: IntoToolError> From<E> for ToolError {
    fn from(error: E) -> ToolError {
        error.into_tool_error()
    }
}

impl IntoToolError for String {
    fn into_tool_error(self) -> ToolError {
        ToolError::new(self)
    }
}

impl IntoToolError for &str {
    fn into_tool_error(self) -> ToolError {
        ToolError::new(self)
    }
}

impl IntoToolError for ProtocolError {
    fn into_tool_error(self) -> ToolError {
        ToolError(ToolFailure::Protocol(self))
    }
}

impl IntoToolError for AskError {
    fn into_tool_error(self) -> ToolError {
        match self {
            AskError::Unsupported(required) => ProtocolError::MissingCapability(required).into(),
            other => ToolError::new(other.to_string()),
        }
    }
}

macro_rules! hidden_errors {
    ($($Source:ty),* $(,)?) => {$(
        impl IntoToolError for $Source {
            fn into_tool_error(self) -> ToolError {
                ToolError::with_source(HIDDEN_REASON, self)
            }
        }
    )*};
}

hidden_errors!(
    Box<dyn Error + Send + Sync>,
    std::io::Error,
    std::fmt::Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::num::TryFromIntError,
    std::str::ParseBoolError,
    std::str::Utf8Error,
    std::string::FromUtf8Error,
    std::time::SystemTimeError,
    std::env::VarError,
    serde_json::Error,
    tokio::task::JoinError,
    tokio::time::error::Elapsed,
);

/// The text is that of the outermost `context` or `anyhow!`, which the author of the handler wrote. A text
/// of another error goes to the log.
#[cfg(feature = "anyhow")]
impl IntoToolError for anyhow::Error {
    fn into_tool_error(self) -> ToolError {
        let written = self.downcast_ref::<String>().map(String::as_str);
        let written = written.or_else(|| self.downcast_ref::<&'static str>().copied());
        let outermost = self.to_string();
        match written == Some(outermost.as_str()) {
            true => ToolError::with_source(outermost, self),
            false => ToolError::with_source(HIDDEN_REASON, self),
        }
    }
}

/// Gives an error, or a missing value, a text for the model.
///
/// ```
/// use bindpost_mcp_server::{OrToolError, ToolError};
///
/// fn read_menu(day: &str) -> Result<String, ToolError> {
///     let file = ["monday.txt", "tuesday.txt"].into_iter().find(|file| file.starts_with(day));
///     let file = file.or_tool_error("there is no menu for this day")?;
///     std::fs::read_to_string(file).or_tool_error("the menu cannot be read")
/// }
/// # assert_eq!(read_menu("friday").unwrap_err().to_string(), "there is no menu for this day");
/// # assert_eq!(read_menu("monday").unwrap_err().to_string(), "the menu cannot be read");
/// ```
pub trait OrToolError<T> {
    /// Returns the value, or an error with this text for the model. The cause goes to the log.
    fn or_tool_error(self, shown: impl Into<String>) -> Result<T, ToolError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> OrToolError<T> for Result<T, E> {
    fn or_tool_error(self, shown: impl Into<String>) -> Result<T, ToolError> {
        self.map_err(|source| ToolError::with_source(shown, source))
    }
}

impl<T> OrToolError<T> for Option<T> {
    fn or_tool_error(self, shown: impl Into<String>) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::new(shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: impl Into<ToolError>) -> String {
        error.into().to_string()
    }

    #[test]
    fn only_texts_of_the_author_are_shown() {
        assert_eq!(shown("sold out"), "sold out");
        assert_eq!(shown(format!("no order {}", 7)), "no order 7");
        let path = std::fs::read("/no/such/secret").unwrap_err();
        let error: ToolError = path.into();
        assert_eq!(error.to_string(), HIDDEN_REASON);
        // The cause is kept for the log.
        assert!(error.source().is_some_and(|source| source.to_string().contains("No such file")));
        let boxed: Box<dyn Error + Send + Sync> = "account=secret".into();
        assert_eq!(shown(boxed), HIDDEN_REASON);
    }

    #[test]
    fn protocol_errors_stay_protocol_errors() {
        let error: ToolError = ProtocolError::UnknownResource("a://b".to_owned()).into();
        assert!(matches!(error.into_failure(), ToolFailure::Protocol(ProtocolError::UnknownResource(_))));
    }

    #[cfg(feature = "anyhow")]
    #[test]
    fn the_context_of_anyhow_is_shown_and_the_cause_is_not() {
        use anyhow::{Context as _, anyhow};
        assert_eq!(shown(anyhow!("no table is free")), "no table is free");
        assert_eq!(shown(anyhow!("no table for {}", 12)), "no table for 12");
        let cause = || std::io::Error::other("/etc/secret");
        assert_eq!(shown(anyhow::Error::from(cause())), HIDDEN_REASON);
        let with_context = Err::<(), _>(cause()).context("the menu cannot be read").unwrap_err();
        assert_eq!(shown(with_context), "the menu cannot be read");
        // The outermost text counts, even if an inner one was written by the author.
        #[derive(Debug, thiserror::Error)]
        #[error("host=10.1.2.3")]
        struct Outer;
        assert_eq!(shown(anyhow!("inner").context(Outer)), HIDDEN_REASON);
    }
}
