//! What every tool of the server works with.

use std::sync::Arc;

use bindpost_mcp_openapi::{CursorSigner, Document, confirm};
use bindpost_mcp_server::{Context, ToolError};

use crate::client::SearchClient;

/// What every tool of the server works with.
#[derive(Debug)]
pub struct SearchServerState {
    pub client: SearchClient,
    /// The description of the service's interface: the built-in one, or the user's.
    pub document: Arc<Document>,
    pub cursors: CursorSigner,
    /// Nothing that changes the service is offered.
    pub read_only: bool,
    /// The user is asked before something is destroyed, if the client can ask.
    pub confirms: bool,
    /// As much as one answer may hold, in bytes of JSON; lists are cut by whole items.
    pub answer_bytes: usize,
}

impl SearchServerState {
    /// Asks the user, unless that is switched off.
    pub async fn confirm(&self, context: &Context, question: &str) -> Result<(), ToolError> {
        match self.confirms {
            true => confirm(context, question).await,
            false => Ok(()),
        }
    }
}
