//! `bindpost openapi`: the operations of an OpenAPI document as an MCP server.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use bindpost::{Server, stdio};
use bindpost_azure_hosting::identity::EntraCredential;
use bindpost_mcp_openapi::{Bridge, Credential, Document, LoadOptions, OperationSelection, Secret, Upstream};
use serde_json::{Value, json};

use super::{PORT, bind, check_access_flags, is_loopback, print_stderr, settings};
use crate::flags::OpenapiFlags;
use crate::screen::without_controls;

/// Environment variable of the secret. It is not a flag, because every user can list the flags of processes.
const SECRET: &str = "BINDPOST_UPSTREAM_SECRET";
/// Maximum number of warnings on the start screen. The number of further warnings is printed.
const MAX_WARNINGS: usize = 10;

pub(crate) async fn run(flags: OpenapiFlags) -> anyhow::Result<()> {
    if !flags.http.stdio {
        check_access_flags(&flags.http)?;
    }
    let secret = std::env::var(SECRET).ok().filter(|secret| !secret.is_empty());
    let credential = credential(&flags, secret)?;
    let fixed = flags.set.iter().map(|setting| parse_setting(setting)).collect::<anyhow::Result<Vec<_>>>()?;
    let options = LoadOptions { roots: flags.root.clone(), ..LoadOptions::default() };
    if let Some(address) =
        flags.specs.iter().find(|spec| spec.to_str().is_some_and(|spec| spec.contains("://")))
    {
        bail!(
            "{}: not a local file or folder\n  fix: download the document and pass the path of the file",
            address.display()
        );
    }
    let document = Document::load(&flags.specs, &options).map_err(|error| anyhow!("{error}"))?;
    let base = base(&flags, &document)?;
    check_plain(&flags, &base, &credential)?;
    let upstream = Upstream::builder(&base).credential(credential);
    let upstream = if flags.allow_plain { upstream.allow_plain() } else { upstream };
    let upstream = if flags.base_url.is_none() { upstream.named_by_document() } else { upstream };
    let upstream = upstream.build().map_err(|error| {
        anyhow!(
            "{}: {error}\n  fix: give --base-url an address such as https://api.example.com",
            printable(&base)
        )
    })?;
    let (title, version) = (document.title.clone(), document.version.clone());
    let mut builder = Bridge::builder(document, upstream)
        .select(selection(&flags))
        .list_budget(flags.list_budget)
        .answer_budget(flags.answer_budget)
        .confirms(!flags.without_confirmation);
    for (name, value) in fixed {
        builder = builder.fixed(name, value);
    }
    for name in &flags.pass_header {
        builder = builder.pass_header(name);
    }
    let bridge = builder.build().map_err(|error| anyhow!("{error}"))?;
    let server = server(&bridge, &title, &version)?;
    if flags.http.stdio {
        greet(&flags, &bridge, &title, &base, None)?;
        return Ok(stdio::serve_stdio(&server).await?);
    }
    let bound = bind(&flags.http, PORT).await?;
    greet(&flags, &bridge, &title, &base, Some(bound.local_addr()))?;
    Ok(bound.serve(server, settings(&flags.http)).await?)
}

fn server(bridge: &Bridge, title: &str, version: &str) -> anyhow::Result<Server> {
    let name: String =
        title.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let name = name.trim_matches('-').to_lowercase();
    let name = if name.is_empty() { "openapi".to_owned() } else { name };
    let version = if version.is_empty() { env!("CARGO_PKG_VERSION") } else { version };
    let server = Server::builder(name, version).title(printable(title)).add(bridge.entries()).build();
    server.map_err(|error| anyhow!("{error}"))
}

fn selection(flags: &OpenapiFlags) -> OperationSelection {
    let mut selection = OperationSelection::all();
    for pattern in &flags.include {
        selection = selection.include(pattern);
    }
    for pattern in &flags.exclude {
        selection = selection.deny(pattern);
    }
    for tag in &flags.tag {
        selection = selection.tag(tag);
    }
    if flags.read_only { selection.read_only() } else { selection }
}

/// Returns the credential for the upstream service.
fn credential(flags: &OpenapiFlags, secret: Option<String>) -> anyhow::Result<Credential> {
    let wanted =
        flags.bearer || flags.key_header.is_some() || flags.key_query.is_some() || flags.basic.is_some();
    let passes = |name: &str| flags.pass_header.iter().any(|passed| passed.eq_ignore_ascii_case(name));
    if (flags.bearer || flags.basic.is_some() || flags.entra.is_some()) && passes("authorization") {
        bail!(
            "--pass-header Authorization conflicts with --bearer, --basic and --entra, which send the same header\n  \
             fix: remove one of them"
        );
    }
    if let Some(resource) = &flags.entra {
        let lookup = |name: &str| std::env::var(name).ok();
        let tokens = EntraCredential::for_resource(resource, &lookup);
        return Ok(Credential::Source(Arc::new(tokens.map_err(|error| anyhow!("{error}"))?)));
    }
    let secret = match (secret, wanted) {
        (Some(secret), true) => secret,
        (None, true) => bail!("no secret for the upstream service\n  fix: set {SECRET} in the environment"),
        (Some(_), false) => bail!(
            "{SECRET} is set, but no flag says how to send it\n  \
             fix: add --bearer, --key-header NAME, --key-query NAME or --basic USER, or unset {SECRET}"
        ),
        (None, false) => return Ok(Credential::None),
    };
    if secret.chars().any(char::is_control) {
        bail!(
            "{SECRET} contains a line break or another control character, which is invalid in a header\n  \
             fix: set it to the secret alone"
        );
    }
    let secret = Secret::new(secret);
    Ok(match (&flags.key_header, &flags.key_query, &flags.basic) {
        (Some(name), _, _) => {
            let header = name.parse().map_err(|_| {
                anyhow!("--key-header {name}: invalid header name\n  fix: write it as in X-Api-Key")
            })?;
            Credential::Header(header, secret)
        }
        (_, Some(name), _) => Credential::Query(name.clone(), secret),
        (_, _, Some(user)) => Credential::Basic(user.clone(), secret),
        _ => Credential::Bearer(secret),
    })
}

/// Parses `NAME=VALUE`.
fn parse_setting(setting: &str) -> anyhow::Result<(String, Value)> {
    match setting.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.into())),
        _ => bail!("--set {setting}: invalid value\n  fix: write NAME=VALUE, as in api-version=2025-01-01"),
    }
}

/// Returns the base URL of the upstream service: that of `--base-url`, or that of the document.
fn base(flags: &OpenapiFlags, document: &Document) -> anyhow::Result<String> {
    let is_address = |url: &&String| url.starts_with("http://") || url.starts_with("https://");
    match &flags.base_url {
        Some(url) if is_address(&url) => Ok(url.clone()),
        Some(url) => bail!(
            "--base-url {url}: not a URL\n  fix: write it with its scheme, as in https://api.example.com"
        ),
        None => match document.servers.iter().find(|url| is_address(url) && !url.contains('{')) {
            Some(url) => Ok(url.clone()),
            None => bail!("the document has no absolute server URL\n  fix: set it with --base-url https://…"),
        },
    }
}

/// Rejects credentials over plain HTTP to another machine, because the network could read them.
fn check_plain(flags: &OpenapiFlags, base: &str, credential: &Credential) -> anyhow::Result<()> {
    let Some(rest) = base.strip_prefix("http://") else { return Ok(()) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let sends = !matches!(credential, Credential::None) || !flags.pass_header.is_empty();
    if sends && !is_loopback(host) && !flags.allow_plain {
        bail!(
            "{base} is plain HTTP to another machine: the credential would be sent unencrypted\n  \
             fix: use https://, or add --allow-plain if that is intended"
        );
    }
    Ok(())
}

/// Replaces control characters of a text of the document and truncates it, for the terminal.
fn printable(text: &str) -> String {
    without_controls(text).chars().take(400).collect()
}

fn greet(
    flags: &OpenapiFlags,
    bridge: &Bridge,
    title: &str,
    base: &str,
    address: Option<SocketAddr>,
) -> anyhow::Result<()> {
    let url = address.map(|address| format!("http://{address}/mcp"));
    let operations = bridge.operations().count();
    if flags.json {
        let said = json!({
            "url": url,
            "operations": operations,
            "tools": bridge.tool_count(),
            "listBytes": bridge.list_bytes(),
            "form": bridge.form().as_str(),
            "warnings": bridge.warnings(),
        });
        let mut out = io::stdout().lock();
        return Ok(writeln!(out, "{said}").and_then(|()| out.flush())?);
    }
    print_stderr(format_args!("bindpost {} openapi: {}", env!("CARGO_PKG_VERSION"), printable(title)));
    print_stderr(format_args!("  service      {}", printable(base)));
    print_stderr(format_args!(
        "  operations   {operations}, {}: {} tools, {} bytes of tools/list",
        bridge.form().as_str(),
        bridge.tool_count(),
        bridge.list_bytes()
    ));
    for warning in bridge.warnings().iter().take(MAX_WARNINGS) {
        print_stderr(format_args!("  warning      {}", printable(warning)));
    }
    let more = bridge.warnings().len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        print_stderr(format_args!("               and {more} more warnings; --json lists all"));
    }
    match url {
        Some(url) => print_stderr(format_args!("  listening on {url}")),
        None => print_stderr(format_args!("  serving      stdin and stdout")),
    }
    Ok(())
}
