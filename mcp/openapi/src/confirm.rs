//! Asks the user for confirmation before a destructive call.

use bindpost_mcp_protocol::client::{ElicitAction, ElicitParams};
use bindpost_mcp_server::{AskError, Context, ToolError};
use serde_json::{Value, json};

/// Asks the user for confirmation, if the client supports elicitation. A client that does not support it
/// has to ask the user itself, based on the tool's destructive hint. The handler may run again from its
/// start to get the answer, so it must have no side effects before this call.
pub async fn confirm(context: &Context, question: &str) -> Result<(), ToolError> {
    let form = json!({
        "type": "object",
        "properties": {"confirm": {"type": "boolean", "title": "Continue", "default": false}},
        "required": ["confirm"]
    });
    match context.elicit_with("confirm", ElicitParams::form(question, form)).await {
        Ok(answer)
            if answer.action == ElicitAction::Accept
                && answer.field("confirm").and_then(Value::as_bool) == Some(true) =>
        {
            Ok(())
        }
        Ok(_) => Err(ToolError::new(
            "The user did not agree, so nothing was done. Do not retry unless the user asks for it.",
        )),
        Err(AskError::Unsupported(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
