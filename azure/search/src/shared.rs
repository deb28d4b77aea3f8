//! The state that all tools of the server share.

use std::sync::Arc;

use bindpost_mcp_openapi::{CursorSigner, Document, confirm};
use bindpost_mcp_server::{Context, ToolError};

use crate::service::client::SearchClient;

/// The state that all tools of the server share.
#[derive(Debug)]
pub struct SearchServerState {
    pub client: SearchClient,
    /// The API description of the service: the built-in one, or that of the user.
    pub document: Arc<Document>,
    pub cursors: CursorSigner,
    /// Whether tools that change the service are omitted.
    pub read_only: bool,
    /// Whether the user must confirm deletions and replacements, if the client supports it.
    pub confirms: bool,
    /// Maximum size of one result, in bytes of JSON. Lists are cut between items.
    pub answer_bytes: usize,
}

impl SearchServerState {
    /// Asks the user for confirmation, unless that is disabled.
    pub async fn confirm(&self, context: &Context, question: &str) -> Result<(), ToolError> {
        match self.confirms {
            true => confirm(context, question).await,
            false => Ok(()),
        }
    }
}
