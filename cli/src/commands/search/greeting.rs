//! Output of `bindpost search` when it is ready: a screen for people, or a line of JSON for programs.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use bindpost::protocol::Revision;
use bindpost_azure_search::{EmbeddedService, ServerOverview};
use serde_json::{Value, json};

use crate::screen::{TerminalStyle, table, without_controls};

/// Contents of the start screen.
pub(super) struct SearchStartScreen<'a> {
    /// The base URL of the MCP server, such as `http://127.0.0.1:7071`.
    pub(super) mcp: String,
    /// The URL of the search service.
    pub(super) endpoint: String,
    pub(super) embedded: Option<&'a EmbeddedService>,
    pub(super) api_version: &'a str,
    pub(super) read_only: bool,
    /// Number of operations in the API description.
    pub(super) operations: Option<usize>,
    pub(super) overview: ServerOverview,
    pub(super) indexes: Vec<IndexRow>,
    /// What the sample created, as `collection/name`.
    pub(super) made: Vec<String>,
    pub(super) warnings: Vec<StartWarning>,
    pub(super) ready_ms: u128,
}

/// An index, with its number of documents if the service returns it.
pub(super) struct IndexRow {
    pub(super) name: String,
    pub(super) documents: Option<u64>,
}

/// A problem at the start, with its fix.
pub(super) struct StartWarning {
    message: String,
    fix: Option<String>,
}

impl StartWarning {
    /// Splits off the `fix:` of the text. A given `fix` takes precedence.
    pub(super) fn from_text(text: &str, fix: Option<&str>) -> StartWarning {
        let (message, own) = match text.split_once("fix: ") {
            Some((message, own)) => (message.trim_end(), Some(own)),
            None => (text, None),
        };
        StartWarning { message: message.to_owned(), fix: fix.or(own).map(str::to_owned) }
    }

    pub(super) fn line(&self) -> String {
        let fix = self.fix.as_ref().map(|fix| format!(" (fix: {fix})")).unwrap_or_default();
        format!("{}{fix}", self.message)
    }
}

/// Prints the start screen: on stdout as JSON, or on stderr as text.
pub(super) fn print_start_screen(facts: &SearchStartScreen<'_>, as_json: bool) -> io::Result<()> {
    if as_json {
        let mut out = io::stdout().lock();
        return writeln!(out, "{}", line(facts)).and_then(|()| out.flush());
    }
    super::super::print_stderr(format_args!("{}", screen(facts, TerminalStyle::detect())));
    Ok(())
}

fn line(facts: &SearchStartScreen<'_>) -> Value {
    let ServerOverview { tools, resources, templates, prompts, list_bytes } = &facts.overview;
    let tools: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    let indexes: Vec<Value> =
        facts.indexes.iter().map(|index| json!({"name": index.name, "documents": index.documents})).collect();
    let warnings: Vec<Value> = facts
        .warnings
        .iter()
        .map(|warning| json!({"message": warning.message, "fix": warning.fix}))
        .collect();
    json!({
        "event": "ready", "readyMs": facts.ready_ms,
        "mcp": format!("{}/mcp", facts.mcp), "sse": format!("{}/sse", facts.mcp),
        "service": {
            "url": facts.endpoint, "apiVersion": facts.api_version, "embedded": facts.embedded.is_some(),
            "data": facts.embedded.map(EmbeddedService::data), "keys": facts.embedded.map(EmbeddedService::keys_file),
        },
        "readOnly": facts.read_only, "sample": facts.made, "indexes": indexes, "operations": facts.operations,
        "tools": tools, "resources": resources, "resourceTemplates": templates, "prompts": prompts,
        "toolsListBytes": list_bytes, "warnings": warnings,
    })
}

fn screen(facts: &SearchStartScreen<'_>, paint: TerminalStyle) -> String {
    let mut out = String::new();
    let revisions: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
    let (version, mcp) = (env!("CARGO_PKG_VERSION"), &facts.mcp);
    let _ =
        writeln!(out, "\n  {} {version}   search   ready in {} ms\n", paint.bold("bindpost"), facts.ready_ms);
    let _ = writeln!(out, "  MCP        {mcp}/mcp  streamable HTTP: {}", revisions.join(", "));
    let _ = writeln!(out, "             {mcp}/sse  HTTP+SSE, for old clients");
    let _ = writeln!(
        out,
        "  Service    {}  api-version {}",
        without_controls(&facts.endpoint),
        without_controls(facts.api_version)
    );
    if let Some(embedded) = facts.embedded {
        let data = embedded.data().display().to_string();
        let keys = embedded.keys_file().display().to_string();
        let _ = writeln!(
            out,
            "             embedded, in {}; keys for other clients in {}",
            without_controls(&data),
            without_controls(&keys)
        );
    }
    let changes = match facts.read_only {
        true => "read-only: no tool changes the service",
        false => "read and write; --read-only removes the tools that change the service",
    };
    let _ = writeln!(out, "  Tools      {changes}");
    let overview = &facts.overview;
    let _ = writeln!(
        out,
        "             {} tools in {} bytes of tools/list; {}",
        overview.tools.len(),
        overview.list_bytes,
        match facts.operations {
            Some(count) => format!("three of them call the {count} operations of the description"),
            None => "--tools all offers all".to_owned(),
        }
    );
    if !facts.made.is_empty() {
        let _ = writeln!(
            out,
            "  Sample     created in the empty service: {}",
            without_controls(&facts.made.join(", "))
        );
    }
    out.push('\n');
    for warning in &facts.warnings {
        let _ = writeln!(out, "  {} {}", paint.yellow("!"), without_controls(&warning.message));
        if let Some(fix) = &warning.fix {
            let _ = writeln!(out, "      fix: {}", without_controls(fix));
        }
    }
    if !facts.warnings.is_empty() {
        out.push('\n');
    }

    let indexes = facts.indexes.iter().map(|index| {
        let documents = index.documents.map(|documents| documents.to_string());
        [index.name.clone(), documents.unwrap_or_default()]
    });
    table(&mut out, "INDEXES", ["NAME", "DOCUMENTS"], indexes, paint);
    let tools = overview.tools.iter().map(|tool| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [text(&tool["name"]), hints(&tool["annotations"]), text(&tool["description"])]
    });
    table(&mut out, "TOOLS", ["NAME", "HINTS", "DESCRIPTION"], tools, paint);
    let resources = overview.resources.iter().chain(&overview.templates).map(|uri| [uri.clone()]);
    table(&mut out, "RESOURCES", ["URI"], resources, paint);
    let prompts = overview.prompts.iter().map(|name| [name.clone()]);
    table(&mut out, "PROMPTS", ["NAME"], prompts, paint);
    out
}

/// Returns the tool's hints in one or two words.
fn hints(annotations: &Value) -> String {
    let named = [("readOnlyHint", "read-only"), ("destructiveHint", "destructive")];
    let said = named.iter().filter(|(hint, _)| annotations[*hint] == true).map(|(_, word)| *word);
    said.collect::<Vec<_>>().join(" ")
}
