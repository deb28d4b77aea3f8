//! `bindpost run`: an Azure Functions app as an MCP server.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{anyhow, bail};
use bindpost::protocol::Revision;
use bindpost_azure_functions::app::{App, settings::process_environment};
use bindpost_azure_functions::{AccessPolicy, AppReport, Host, HostError, HostOptions, KeyRequirement};
use serde_json::json;

use super::{PORT, bind, check_origins, first_public_name, is_loopback, print_stderr, until_interrupted};
use crate::flags::RunFlags;
use crate::progress::ProgressPrinter;
use crate::screen::{self, StartScreen, TerminalStyle};

pub(crate) async fn run(flags: RunFlags) -> anyhow::Result<()> {
    let begin = Instant::now();
    ignore_file_size_signal();
    let app = App::open(&flags.app, process_environment())?;
    if flags.http.stdio && app.self_hosted().is_some() {
        return Err(without_causes(HostError::SelfHostedStdio));
    }
    let access = access_settings(&flags)?;
    let requires_key = access.requires_key(&app);
    // The port is bound first, so that a port in use fails at once, before workers start.
    let bound = match flags.http.stdio {
        true => None,
        false => Some(bind(&flags.http, app.local.port.unwrap_or(PORT)).await?),
    };
    let options = HostOptions {
        install: !flags.no_install,
        workers: flags.workers.clone(),
        processes: flags.processes.map(usize::from),
        detailed_errors: flags.detailed_errors,
        watch: !flags.no_watch,
        exposed: !flags.http.stdio && !is_private(&flags),
        launcher: launcher(),
    };
    let printer = ProgressPrinter::new();
    // Set-up runs its programs in process groups of their own. An interrupt drops the future, which
    // ends them.
    let host = tokio::select! {
        host = Host::start(app, options, &printer) => host.map_err(without_causes)?,
        () = until_interrupted() => bail!("stopped while starting"),
    };
    match bound {
        None => host.serve_stdio().await.map_err(without_causes),
        Some(bound) => {
            let (report, address) = (host.report(), bound.local_addr());
            let ready = || greet(&flags, &report, address, requires_key, begin);
            host.serve(bound, access, ready).await.map_err(without_causes)
        }
    }
}

/// Converts the error without its sources, because its message contains them already.
fn without_causes(error: HostError) -> anyhow::Error {
    anyhow!("{error}")
}

/// Returns the access policy. Loopback needs no key. Other addresses and other names of `--allow-host`
/// need a key, unless the app or `--without-auth` allows access without one.
fn access_settings(flags: &RunFlags) -> anyhow::Result<AccessPolicy> {
    let http = &flags.http;
    let keys = match flags.require_key {
        true => KeyRequirement::Always,
        false if is_private(flags) || http.without_auth => KeyRequirement::Never,
        false => KeyRequirement::AsTheLevelSays,
    };
    check_origins(http)?;
    Ok(AccessPolicy {
        keys,
        trusts_platform: flags.platform_identity,
        allowed_hosts: http.allow_host.clone(),
        allowed_origins: http.allow_origin.clone(),
    })
}

/// Returns whether only this machine can reach the app.
fn is_private(flags: &RunFlags) -> bool {
    is_loopback(&flags.http.host) && first_public_name(&flags.http.allow_host).is_none()
}

/// Returns the command that starts workers: this program, so that workers end with it even if it is killed.
fn launcher() -> Vec<OsString> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let parent = std::process::id().to_string();
    vec![program.into(), "exec".into(), "--parent".into(), parent.into(), "--".into()]
}

fn greet(
    flags: &RunFlags,
    report: &AppReport,
    address: SocketAddr,
    requires_key: bool,
    begin: Instant,
) -> io::Result<()> {
    let base = format!("http://{address}");
    let ready_ms = begin.elapsed().as_millis();
    let revisions: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
    if flags.json {
        let mut line = serde_json::to_value(report)?;
        line["event"] = json!("ready");
        line["readyMs"] = json!(ready_ms);
        match &report.server {
            None => {
                line["mcp"] = json!(format!("{base}/runtime/webhooks/mcp"));
                line["sse"] = json!(format!("{base}/runtime/webhooks/mcp/sse"));
            }
            // Which transports there are is up to the server.
            Some(_) => line["mcp"] = json!(format!("{base}/mcp")),
        }
        line["requiresKey"] = json!(requires_key);
        let mut out = io::stdout().lock();
        return writeln!(out, "{line}").and_then(|()| out.flush());
    }
    let auth = describe_access(requires_key, address, &flags.http.allow_host);
    let (revisions, style) = (revisions.join(", "), TerminalStyle::detect());
    let facts = StartScreen { report, base: &base, auth, revisions: &revisions, ready_ms, style };
    print_stderr(format_args!("{}", screen::draw(&facts)));
    Ok(())
}

/// Returns the line of the start screen about access.
fn describe_access(requires_key: bool, address: SocketAddr, allowed_hosts: &[String]) -> &'static str {
    match requires_key {
        true => "key required in the header x-functions-key; the keys are in .bindpost/keys of the app",
        // Without a key only known host names are served, so that no web page can use the server by a name of its own.
        false if !address.ip().is_loopback() && allowed_hosts.is_empty() => {
            "open: no key required; for other machines, name the host of their URL with --allow-host"
        }
        false => "open: no key required",
    }
}

/// Ignores SIGXFSZ. A write beyond the file size limit then fails with an error instead
/// of ending the process.
fn ignore_file_size_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // An installed handler replaces the default action. Child processes do not inherit it.
        let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        drop(signal(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_app_on_a_public_address_names_the_flag_that_other_machines_need() {
        let at = |address: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            describe_access(false, address.parse().unwrap(), &hosts)
        };
        assert!(at("0.0.0.0:7071", &[]).ends_with("--allow-host"));
        for (address, hosts) in
            [("127.0.0.1:7071", &[][..]), ("[::1]:7071", &[]), ("0.0.0.0:7071", &["a.example"])]
        {
            assert_eq!(at(address, hosts), "open: no key required");
        }
    }
}
