//! One file per command. A command takes plain values, so a test can run it without a shell.

pub(crate) mod demo;
pub(crate) mod exec;
pub(crate) mod openapi;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod search_service;

use std::io::Write as _;
use std::net::IpAddr;

use anyhow::bail;

/// Tells whoever started us. Nobody may be there any more, and that is no reason to stop.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Who is served without being asked who they are: this machine, unless told otherwise; and by which names.
fn check_door(
    host: &str,
    without_auth: bool,
    allow_host: &[String],
    allow_origin: &[String],
) -> anyhow::Result<()> {
    let loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if !loopback && !without_auth {
        bail!(
            "{host} is not a loopback address, and nothing asks callers who they are\n  \
             fix: leave out --host, or say --without-auth if that is what you want"
        );
    }
    if let Some(host) = allow_host.iter().find(|host| host.contains("/") || host.contains(' ')) {
        bail!(
            "--allow-host {host}: not a host name\n  fix: leave out the scheme and the path, as in example.com"
        );
    }
    let is_origin = |origin: &str| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ']))
    };
    if let Some(origin) = allow_origin.iter().find(|origin| !is_origin(origin)) {
        bail!(
            "--allow-origin {origin}: not an origin\n  fix: write it as the browser does: https://example.com"
        );
    }
    Ok(())
}

/// Until somebody has had enough: Ctrl-C, or the signal that ends programs.
async fn until_interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
