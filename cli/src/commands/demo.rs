//! `bindpost demo`: a small server with one entry of each kind, to try a client with.

use std::time::Duration;

use bindpost::http::{SessionMode, Settings};
use bindpost::protocol::Revision;
use bindpost::protocol::client::ElicitParams;
use bindpost::{Context, Server, ToolError, entries, prompt, resource, stdio, tool};
use serde_json::{Value, json};

use super::{PORT, bind, check_access_flags, print_stderr, settings};
use crate::flags::DemoFlags;

pub(crate) async fn run(flags: DemoFlags) -> anyhow::Result<()> {
    let server = server()?;
    if flags.http.stdio {
        return Ok(stdio::serve_stdio(&server).await?);
    }
    check_access_flags(&flags.http)?;
    let settings = Settings {
        sessions: if flags.stateless { SessionMode::Off } else { SessionMode::Required },
        json_only: flags.json_only,
        ..settings(&flags.http)
    };
    let bound = bind(&flags.http, PORT).await?;
    let revisions =
        Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ");
    print_stderr(format_args!("bindpost {} demo", env!("CARGO_PKG_VERSION")));
    print_stderr(format_args!(
        "  listening on http://{}/mcp  (streamable HTTP: {revisions})",
        bound.local_addr()
    ));
    if settings.sse_paths.is_some() {
        print_stderr(format_args!(
            "               http://{}/sse  (HTTP+SSE, for old clients)",
            bound.local_addr()
        ));
    }
    Ok(bound.serve(server, settings).await?)
}

/// Builds the demonstration server.
pub(crate) fn server() -> anyhow::Result<Server> {
    let server = Server::builder("bindpost-demo", env!("CARGO_PKG_VERSION"))
        .title("bindpost demo")
        .instructions(
            "A demonstration. Call `add`, watch `count_down` report progress, let `greet` ask for a name.",
        )
        .add(entries![add, count_down, greet, about, squares, summarize])
        .build()?;
    Ok(server)
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Total {
    total: f64,
}

/// Adds two numbers
#[tool(read_only)]
fn add(
    /// The first number
    a: f64,
    /// The second number
    b: f64,
) -> Total {
    Total { total: a + b }
}

/// Counts down, one step per second, and reports progress
#[tool(read_only)]
async fn count_down(
    context: Context,
    /// The number of seconds
    #[arg(minimum = 1, maximum = 30)]
    seconds: u32,
) -> &'static str {
    for done in 0..seconds {
        context.progress(f64::from(done), Some(f64::from(seconds)), None).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    context.progress(f64::from(seconds), Some(f64::from(seconds)), None).await;
    "Lift-off!"
}

/// Asks the user for a name and greets
#[tool(read_only)]
async fn greet(context: Context) -> Result<String, ToolError> {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = context.elicit_with("name", ElicitParams::form("What is your name?", form)).await?;
    Ok(match answer.field("name").and_then(Value::as_str) {
        Some(name) => format!("Hello, {name}!"),
        None => "Hello!".to_owned(),
    })
}

/// What bindpost is
#[resource("demo://about", mime_type = "text/plain")]
fn about() -> &'static str {
    "bindpost turns functions into MCP servers."
}

/// The square of a number
#[resource("demo://squares/{number}", mime_type = "text/plain")]
fn squares(number: f64) -> String {
    (number * number).to_string()
}

/// Summarises a text
#[prompt]
fn summarize(
    /// The text to summarise
    text: String,
    /// The maximum number of words
    #[arg(complete = word_counts)]
    words: Option<String>,
) -> String {
    let words = words.unwrap_or_else(|| "50".to_owned());
    format!("Summarise the following text in at most {words} words:\n\n{text}")
}

fn word_counts(typed: &str) -> Vec<String> {
    ["25", "50", "100"].iter().filter(|count| count.starts_with(typed)).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_demo_server_builds() {
        super::server().unwrap();
    }
}
