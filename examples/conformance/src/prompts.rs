//! Prompts: without arguments, with arguments, with media, and with a question to the user.

use bindpost::protocol::client::ElicitParams;
use bindpost::protocol::{Content, PromptMessage, ResourceContents};
use bindpost::{Args, Context, PromptEntry, ServerBuilder, ToolError};
use serde_json::json;

use crate::media;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embed {
    /// URI of the resource to embed
    resource_uri: String,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .prompt(
            PromptEntry::new("test_simple_prompt", async || "This is a simple prompt for testing.")
                .description("A prompt without arguments"),
        )
        .prompt(
            PromptEntry::new("test_prompt_with_arguments", async |Args(arguments): Args<TwoArguments>| {
                let TwoArguments { arg1, arg2 } = arguments;
                format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
            })
            .description("A prompt with two arguments")
            .complete("arg1", |typed| {
                let known = ["paris", "park", "party"];
                known.iter().filter(|value| value.starts_with(typed)).map(ToString::to_string).collect()
            }),
        )
        .prompt(
            PromptEntry::new("test_prompt_with_embedded_resource", async |Args(embed): Args<Embed>| {
                let resource =
                    ResourceContents::text(embed.resource_uri, "Embedded resource content for testing.");
                vec![
                    PromptMessage::user(Content::resource(resource.with_mime_type("text/plain"))),
                    PromptMessage::user("Please process the embedded resource above."),
                ]
            })
            .description("A prompt with an embedded resource"),
        )
        .prompt(
            PromptEntry::new("test_prompt_with_image", async || {
                vec![
                    PromptMessage::user(Content::image(media::PNG, "image/png")),
                    PromptMessage::user("Please analyze the image above."),
                ]
            })
            .description("A prompt with an image"),
        )
        .prompt(
            PromptEntry::new("test_input_required_result_prompt", asks)
                .description("A prompt that asks the user for context first"),
        )
}

async fn asks(context: Context) -> Result<String, ToolError> {
    let schema =
        json!({"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]});
    let question = ElicitParams::form("What context should the prompt use?", schema);
    let answer = context.elicit_with("user_context", question).await?;
    let given = answer.field("context").and_then(|value| value.as_str()).unwrap_or("none");
    Ok(format!("Use this context: {given}"))
}
