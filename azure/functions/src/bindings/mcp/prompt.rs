//! Reads an `mcpPromptTrigger`.

use bindpost_mcp_protocol::{Prompt, PromptArgument};

use super::additions;
use crate::function::PromptTrigger;
use crate::json::{ConfigReader, ProblemCollector};

/// Reads the trigger and reports its problems. A function with problems is not created.
pub(crate) fn read_prompt_trigger(parameter: String, members: &ConfigReader<'_>) -> PromptTrigger {
    let arguments = arguments(members);
    let required =
        arguments.iter().filter(|argument| argument.required).map(|argument| argument.name.clone()).collect();
    let prompt = Prompt {
        name: members.required_text("promptName").unwrap_or_default(),
        title: members.text("title"),
        description: members.text("description"),
        arguments,
        icons: additions::icons(members),
        meta: super::metadata(members),
        extra: Default::default(),
    };
    // MCP has no annotations on prompts. They are only checked, so that mistakes are reported.
    let _ = additions::annotations(members);
    let uses_result_schema = members.flag("useResultSchema").unwrap_or(false);
    PromptTrigger { parameter, prompt, required, uses_result_schema }
}

fn arguments(members: &ConfigReader<'_>) -> Vec<PromptArgument> {
    let Some(value) = super::json_text(members, "promptArguments", "array") else { return Vec::new() };
    let items = super::objects(members, "promptArguments", value).unwrap_or_default();
    let argument = |(index, item)| {
        let notes = ProblemCollector::default();
        let read = ConfigReader::new(item, format!("promptArguments[{index}]"), &notes);
        let argument = PromptArgument {
            name: read.required_text("name").unwrap_or_default(),
            title: read.text("title"),
            description: read.text("description"),
            required: read.flag("required").unwrap_or(false),
            extra: Default::default(),
        };
        members.adopt(notes);
        argument
    };
    items.iter().enumerate().map(argument).collect()
}
