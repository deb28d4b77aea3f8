//! The commands, one file each. A command takes plain values, so a test can run it without a shell.

pub(crate) mod demo;
pub(crate) mod exec;
pub(crate) mod openapi;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod search_service;

use std::io::Write as _;
use std::net::IpAddr;

use anyhow::{anyhow, bail};
use bindpost::http::{self, BoundListener, Settings};

use crate::flags::HttpFlags;

/// The default port. It is the port of Core Tools.
const PORT: u16 = 7071;

/// Prints a line to stderr. A closed stderr is ignored: it is no reason to stop.
fn print_stderr(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Checks the access flags. Without authentication, only loopback addresses and loopback names of
/// `--allow-host` are accepted, unless `--without-auth` is given.
fn check_access_flags(flags: &HttpFlags) -> anyhow::Result<()> {
    let HttpFlags { host, without_auth, allow_host, .. } = flags;
    if !is_loopback(host) && !without_auth {
        bail!(
            "--host {host}: other machines can reach it, and without authentication every caller may call everything\n  \
             fix: remove --host, or add --without-auth if that is intended"
        );
    }
    if let Some(host) = allow_host.iter().find(|host| host.contains(['/', ' '])) {
        bail!(
            "--allow-host {host}: not a host name\n  fix: write the name without scheme and path, as in example.com"
        );
    }
    if let Some(host) = first_public_name(allow_host).filter(|_| !without_auth) {
        bail!(
            "--allow-host {host}: other machines use that name, and without authentication every caller may call \
             everything\n  fix: remove --allow-host, or add --without-auth if that is intended"
        );
    }
    check_origins(flags)
}

/// Checks the values of `--allow-origin`.
fn check_origins(flags: &HttpFlags) -> anyhow::Result<()> {
    let is_origin = |origin: &str| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ']))
    };
    if let Some(origin) = flags.allow_origin.iter().find(|origin| !is_origin(origin)) {
        bail!(
            "--allow-origin {origin}: not an origin\n  fix: write it as the browser does: https://example.com"
        );
    }
    Ok(())
}

/// Listens on the address of the flags. Without `--port`, the port is `default_port`.
async fn bind(flags: &HttpFlags, default_port: u16) -> anyhow::Result<BoundListener> {
    http::bind((flags.host.as_str(), flags.port.unwrap_or(default_port)))
        .await
        .map_err(|error| anyhow!("{error}\n  fix: choose another port with --port N, or --port 0 for any"))
}

/// Returns the HTTP settings of the flags.
fn settings(flags: &HttpFlags) -> Settings {
    Settings {
        allowed_hosts: flags.allow_host.clone(),
        allowed_origins: flags.allow_origin.clone(),
        open_to_all: flags.without_auth,
        ..Settings::default()
    }
}

/// Returns whether the address is a loopback address.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns the first of these names that is not a loopback name. A port is ignored. `*` is not a
/// loopback name.
fn first_public_name(names: &[String]) -> Option<&str> {
    let is_own = |name: &str| {
        let port = name.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let name = port.map_or(name, |(name, _)| name);
        ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
    };
    names.iter().map(String::as_str).find(|name| !is_own(name))
}

/// Waits for Ctrl-C or the termination signal.
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
