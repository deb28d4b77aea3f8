//! `bindpost demo`: a small server with one entry of each kind, to try a client with.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{anyhow, bail};
use bindpost::http::{self, SessionMode, Settings};
use bindpost::protocol::Revision;
use bindpost::protocol::client::ElicitParams;
use bindpost::{
    Args, Context, Json, PromptEntry, ResourceEntry, Server, TemplateEntry, ToolEntry, ToolError, stdio,
};
use serde_json::{Value, json};

use crate::flags::Demo;

pub(crate) async fn run(flags: Demo) -> anyhow::Result<()> {
    let server = server()?;
    if flags.stdio {
        return Ok(stdio::serve_stdio(&server).await?);
    }
    let loopback = flags.host == "localhost" || flags.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if !loopback && !flags.without_auth {
        bail!(
            "{} is not a loopback address, and nothing asks callers who they are\n  \
             fix: leave out --host, or say --without-auth if that is what you want",
            flags.host
        );
    }
    if let Some(host) = flags.allow_host.iter().find(|host| host.contains("/") || host.contains(' ')) {
        bail!(
            "--allow-host {host}: not a host name\n  fix: leave out the scheme and the path, as in example.com"
        );
    }
    let is_origin = |origin: &str| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ']))
    };
    if let Some(origin) = flags.allow_origin.iter().find(|origin| !is_origin(origin)) {
        bail!(
            "--allow-origin {origin}: not an origin\n  fix: write it as the browser does: https://example.com"
        );
    }
    let settings = Settings {
        allowed_hosts: flags.allow_host,
        allowed_origins: flags.allow_origin,
        sessions: if flags.stateless { SessionMode::Off } else { SessionMode::Required },
        json_only: flags.json_only,
        ..Settings::default()
    };
    let bound = http::bind((flags.host.as_str(), flags.port))
        .await
        .map_err(|error| anyhow!("{error}\n  fix: choose another port with --port N, or --port 0 for any"))?;
    let revisions =
        Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ");
    say(format_args!("bindpost {} demo", env!("CARGO_PKG_VERSION")));
    say(format_args!("  listening on http://{}/mcp  (streamable HTTP: {revisions})", bound.local_addr()));
    if settings.sse_paths.is_some() {
        say(format_args!("               http://{}/sse  (HTTP+SSE, for old clients)", bound.local_addr()));
    }
    Ok(bound.serve(server, settings).await?)
}

/// Tells whoever started us. Nobody may be there any more, and that is no reason to stop.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    /// The first number
    a: f64,
    /// The second number
    b: f64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Total {
    total: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Countdown {
    /// From how many seconds to count down
    #[schemars(range(min = 1, max = 30))]
    seconds: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Summary {
    /// The text to summarise
    text: String,
    /// In how many words
    words: Option<String>,
}

/// The demonstration server.
pub(crate) fn server() -> anyhow::Result<Server> {
    let server = Server::builder("bindpost-demo", env!("CARGO_PKG_VERSION"))
        .title("bindpost demo")
        .instructions(
            "A demonstration. Call `add`, watch `count_down` report progress, let `greet` ask for a name.",
        )
        .tool(
            ToolEntry::new("add", async |Args(Sum { a, b }): Args<Sum>| Json(Total { total: a + b }))
                .description("Adds two numbers")
                .read_only(),
        )
        .tool(
            ToolEntry::new("count_down", count_down)
                .description("Counts down, a second at a time, and tells how far it is")
                .read_only(),
        )
        .tool(ToolEntry::new("greet", greet).description("Asks the user for a name and greets").read_only())
        .resource(
            ResourceEntry::text("demo://about", "about", "bindpost turns functions into MCP servers.")
                .description("What bindpost is")
                .mime_type("text/plain"),
        )
        .template(
            TemplateEntry::new("demo://squares/{number}", "squares", square)
                .description("The square of a number")
                .mime_type("text/plain"),
        )
        .prompt(
            PromptEntry::new("summarize", async |Args(Summary { text, words }): Args<Summary>| {
                let words = words.unwrap_or_else(|| "50".to_owned());
                format!("Summarise the following text in at most {words} words:\n\n{text}")
            })
            .description("Summarises a text")
            .complete("words", |typed| {
                ["25", "50", "100"].iter().filter(|n| n.starts_with(typed)).map(ToString::to_string).collect()
            }),
        )
        .build()?;
    Ok(server)
}

async fn count_down(context: Context, Args(Countdown { seconds }): Args<Countdown>) -> &'static str {
    for done in 0..seconds {
        context.progress(f64::from(done), Some(f64::from(seconds)), None).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    context.progress(f64::from(seconds), Some(f64::from(seconds)), None).await;
    "Lift-off!"
}

async fn greet(context: Context) -> Result<String, ToolError> {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = context.elicit("name", ElicitParams::form("What is your name?", form)).await?;
    Ok(match answer.field("name").and_then(Value::as_str) {
        Some(name) => format!("Hello, {name}!"),
        None => "Hello, whoever you are!".to_owned(),
    })
}

async fn square(context: Context) -> Result<String, ToolError> {
    let text = context.variable("number").unwrap_or_default();
    let number: f64 = text.parse().map_err(|_| ToolError::new(format!("{text:?} is not a number")))?;
    Ok((number * number).to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_demo_server_builds() {
        super::server().unwrap();
    }
}
