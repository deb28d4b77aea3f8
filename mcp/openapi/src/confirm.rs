//! Asks the user before something is destroyed.

use bindpost_mcp_protocol::client::{ElicitAction, ElicitParams};
use bindpost_mcp_server::{AskError, Context, ToolError};
use serde_json::{Value, json};

/// Asks the user whether to go on, if the client can ask. A client that cannot has to ask by itself: the tool's hints say
/// that it destroys. The handler may run again from its start to find the answer, so do nothing twice before it.
pub async fn confirm(context: &Context, question: &str) -> Result<(), ToolError> {
    let form = json!({
        "type": "object",
        "properties": {"confirm": {"type": "boolean", "title": "Go on", "default": false}},
        "required": ["confirm"]
    });
    match context.elicit("confirm", ElicitParams::form(question, form)).await {
        Ok(answer)
            if answer.action == ElicitAction::Accept
                && answer.field("confirm").and_then(Value::as_bool) == Some(true) =>
        {
            Ok(())
        }
        Ok(_) => {
            Err(ToolError::new("The user did not agree, so nothing was done. Do not try again unasked."))
        }
        Err(AskError::Unsupported(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
