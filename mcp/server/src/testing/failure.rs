//! [`TestError`]: why an operation of the test client failed.

use bindpost_mcp_protocol::client::{ELICIT, LIST_ROOTS, SAMPLE};
use bindpost_mcp_protocol::jsonrpc::MISSING_CLIENT_CAPABILITY;
use bindpost_mcp_protocol::{ErrorObject, Revision, meta};
use serde_json::{Value, json};

use super::reply::ToolReply;
use crate::error::ProtocolError;

/// Why an operation of a [`TestClient`](super::TestClient) failed. Displayed, it is the text of the error.
///
/// ```
/// # use bindpost_mcp_server::{Server, ToolEntry, ToolError, testing::{TestClient, TestError}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let brew = ToolEntry::new("brew", async || Err::<String, _>(ToolError::new("the coffee is out")));
/// let server = Server::builder("kitchen", "1.0.0").tool(brew).build()?;
///
/// let mut client = TestClient::connect(&server);
/// let error = client.call("brew", ()).await.unwrap_err();
/// assert!(matches!(error, TestError::Tool(_)));
/// assert_eq!(error.to_string(), "the coffee is out");
///
/// let error = client.call("bake", ()).await.unwrap_err();
/// assert_eq!(error.code(), Some(-32602));
/// assert_eq!(error.to_string(), "unknown tool: bake (-32602)");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The tool ran and failed. The reply has the text that the model reads.
    #[error("{}", .0.text())]
    Tool(ToolReply),
    /// The server answered with a JSON-RPC error.
    #[error("{0}")]
    Protocol(ErrorObject),
    /// The caller may not use the entry. The error is the one that a client gets over HTTP.
    #[error("{error}{}", denial_hint(*.anonymous))]
    Denied {
        /// The JSON-RPC error.
        error: ErrorObject,
        /// Whether the client has no caller.
        anonymous: bool,
    },
    /// The server asked the client, and the client was built without an answer.
    #[error(
        "the server asked for {question}, and this client has no answer: add `.{add}(…)` to \
         `TestClient::builder`"
    )]
    Unanswered {
        /// What the server asked for.
        question: &'static str,
        /// The method of the builder that is missing.
        add: &'static str,
    },
    /// The server repeated its questions too often. Usually it rejects the answers.
    #[error("the server still asks after {rounds} rounds: {questions}")]
    TooManyRounds {
        /// The number of rounds.
        rounds: usize,
        /// The messages of the last questions.
        questions: String,
    },
    /// A value does not have the expected form.
    #[error("{what}: {reason}")]
    Invalid {
        /// The value.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server does not support the revision of the client.
    #[error("the server does not support revision {0}")]
    UnsupportedRevision(Revision),
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The connection has ended.
    #[error("the connection to the server has ended")]
    Disconnected,
}

fn denial_hint(anonymous: bool) -> &'static str {
    if anonymous {
        "; connect with a caller (`TestClient::builder(&server).caller(…)`), or use `.without_auth()`"
    } else {
        ""
    }
}

/// Prints the same text as `Display`, because a test that returns the error prints its debug form.
impl std::fmt::Debug for TestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl TestError {
    /// Returns the code of the JSON-RPC error, if it is one.
    pub fn code(&self) -> Option<i64> {
        self.error_object().map(|error| error.code)
    }

    /// Returns the JSON-RPC error, if it is one.
    pub fn error_object(&self) -> Option<&ErrorObject> {
        match self {
            TestError::Protocol(error) | TestError::Denied { error, .. } => Some(error),
            _ => None,
        }
    }

    pub(super) fn invalid(what: impl Into<String>, reason: impl ToString) -> TestError {
        TestError::Invalid { what: what.into(), reason: reason.to_string() }
    }
}

/// A capability of clients, which a method of the builder declares.
pub(super) struct DeclaredCapability {
    /// The name of the question in errors.
    question: &'static str,
    /// The method of the builder.
    add: &'static str,
    /// The request to the client.
    pub(super) method: &'static str,
    /// What a server requires.
    required: fn() -> Vec<Value>,
}

/// The capabilities that methods of the builder declare.
pub(super) const CAPABILITIES: [DeclaredCapability; 4] = [
    DeclaredCapability {
        question: "elicitation",
        add: "on_elicitation",
        method: ELICIT,
        required: || vec![json!({"elicitation": {}}), json!({"elicitation": {"url": {}}})],
    },
    DeclaredCapability {
        question: "sampling",
        add: "on_sampling",
        method: SAMPLE,
        required: || vec![json!({"sampling": {}})],
    },
    DeclaredCapability {
        question: "roots",
        add: "roots",
        method: LIST_ROOTS,
        required: || vec![json!({"roots": {}})],
    },
    DeclaredCapability {
        question: "the tasks extension",
        add: "tasks",
        method: "tasks/get",
        required: || vec![json!({"extensions": {meta::TASKS_EXTENSION: {}}})],
    },
];

impl DeclaredCapability {
    pub(super) fn unanswered(&self) -> TestError {
        TestError::Unanswered { question: self.question, add: self.add }
    }

    /// Returns whether this error says that the client did not declare the capability.
    pub(super) fn is_missing_in(&self, error: &ErrorObject) -> bool {
        error.code == MISSING_CLIENT_CAPABILITY
            && error
                .data
                .as_ref()
                .is_some_and(|data| (self.required)().iter().any(|it| data["requiredCapabilities"] == *it))
    }

    /// Returns whether this text of a failed tool says that the client did not declare the capability.
    /// Legacy revisions have no error code for it.
    pub(super) fn is_missing_in_text(&self, text: &str) -> bool {
        (self.required)().into_iter().any(|it| ProtocolError::MissingCapability(it).to_string() == text)
    }
}
