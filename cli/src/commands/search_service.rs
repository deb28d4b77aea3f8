//! `bindpost search-service`: an embedded search service with the REST API of Azure AI Search.

use std::io::{self, Write as _};

use anyhow::{Context as _, anyhow, bail};
use bindpost_azure_search_service::{SearchService, ServiceOptions};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{is_loopback, print_stderr, until_interrupted};
use crate::flags::SearchServiceFlags as Flags;

pub(crate) async fn run(flags: Flags) -> anyhow::Result<()> {
    if flags.without_keys && !is_loopback(&flags.host) {
        bail!(
            "--host {}: other machines can reach it, and --without-keys lets every caller do everything\n  \
             fix: remove --host or --without-keys",
            flags.host
        );
    }
    if let Some(folder) = flags.indexer_folder.iter().find(|folder| !folder.is_dir()) {
        bail!("--indexer-folder {}: no such folder\n  fix: create it, or correct its name", folder.display());
    }
    // The ports are bound first, so that a port in use fails at once.
    let plain = bind(&flags.host, flags.port).await?;
    let port = plain.local_addr()?.port();
    let secure = match flags.tls {
        // With --port 0 both ports are chosen freely, because the port after the first may be in use.
        true => {
            let next = if flags.port == 0 { 0 } else { port.checked_add(1).unwrap_or(0) };
            Some(bind(&flags.host, flags.tls_port.unwrap_or(next)).await?)
        }
        false => None,
    };
    let service = SearchService::open(ServiceOptions {
        folders: flags.indexer_folder.clone(),
        keys: !flags.without_keys,
        ..ServiceOptions::new(&flags.data)
    });
    let service = service.map_err(|error| anyhow!("{error}"))?;
    let certificates = match &secure {
        Some(_) => Some(service.certificates(&flags.tls_name).map_err(|error| anyhow!("{error}"))?),
        None => None,
    };
    // The upkeep thread runs until this value is dropped at the end of this function.
    let _upkeep = service.start_upkeep().context("cannot start a thread")?;
    let authority = certificates.as_ref().map(|certificates| certificates.authority.display().to_string());
    greet(&flags, &service, &plain, secure.as_ref(), authority.as_deref())?;

    let (stop, stopped) = watch::channel(false);
    let until = |mut stopped: watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    tokio::spawn(async move {
        until_interrupted().await;
        let _ = stop.send(true);
    });
    let plain = service.serve(plain, until(stopped.clone()));
    let ended = match secure.zip(certificates) {
        Some((secure, certificates)) => {
            let secure = service.serve_tls(secure, certificates, until(stopped));
            tokio::try_join!(plain, secure).map(|_| ())
        }
        None => plain.await,
    };
    Ok(ended?)
}

async fn bind(host: &str, port: u16) -> anyhow::Result<TcpListener> {
    bindpost_azure_search_service::bind((host, port)).await.map_err(|error| {
        let fix = match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => {
                "choose another port with --port N, or --port 0 for any"
            }
            _ => "give --host an address of this machine",
        };
        anyhow!("{error}\n  fix: {fix}")
    })
}

/// Prints the addresses and keys. Keys are printed only by the start that creates them. Later they are
/// in a file.
fn greet(
    flags: &Flags,
    service: &SearchService,
    plain: &TcpListener,
    secure: Option<&TcpListener>,
    authority: Option<&str>,
) -> anyhow::Result<()> {
    let url = format!("http://{}", plain.local_addr()?);
    let tls = secure
        .map(|secure| anyhow::Ok(format!("https://localhost:{}", secure.local_addr()?.port())))
        .transpose()?;
    let new_keys = service.keys().filter(|keys| keys.are_new());
    if flags.json {
        let keys = new_keys.map(|keys| json!({"admin": keys.admin_keys(), "query": keys.query_keys()}));
        let said = json!({"url": url, "tlsUrl": tls, "certificateAuthority": authority, "newKeys": keys});
        return Ok(writeln!(io::stdout(), "{said}")?);
    }
    print_stderr(format_args!("bindpost {} search service", env!("CARGO_PKG_VERSION")));
    print_stderr(format_args!("  listening on {url}"));
    if let (Some(tls), Some(authority)) = (tls, authority) {
        print_stderr(format_args!("               {tls}  (clients have to trust {authority})"));
    }
    match (service.keys(), new_keys) {
        (_, Some(keys)) => {
            for key in keys.admin_keys() {
                print_stderr(format_args!("  admin key    {key}"));
            }
            for key in keys.query_keys() {
                print_stderr(format_args!("  query key    {key}"));
            }
            let file = service.data_folder().join("keys.json");
            print_stderr(format_args!(
                "  The keys are shown only this time. They are stored in {}.",
                file.display()
            ));
        }
        (Some(_), None) => {
            print_stderr(format_args!(
                "  keys         in {}",
                service.data_folder().join("keys.json").display()
            ));
        }
        (None, None) => print_stderr(format_args!(
            "  keys         not required: every program on this machine may do everything"
        )),
    }
    Ok(())
}
