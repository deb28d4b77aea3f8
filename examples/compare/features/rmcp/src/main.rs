//! The feature server on rmcp: `cargo run -- open 8080`.
#![expect(deprecated, reason = "sampling, logging and resource subscriptions of the legacy revisions")]

mod auth;
mod open;
mod selftest;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::routing::get;
use axum::{Router, middleware};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, stdio};
use rmcp::{ServerHandler, ServiceExt};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::auth::Desk;
use crate::open::{Library, Shared};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let mode = args.next().context("the mode is missing")?;
    let port = args.next().map(|port| port.parse()).transpose()?;
    let shared = Arc::<Shared>::default();
    match (mode.as_str(), port) {
        ("open", Some(port)) => {
            let page = Router::new().route("/page", get(|| async { "a page" }));
            serve(port, move || Library::new(shared.clone()), |mcp| mcp.merge(page)).await
        }
        ("auth", Some(port)) => {
            let guard = middleware::from_fn(auth::authenticate);
            serve(port, || Desk, |mcp| mcp.layer(guard)).await
        }
        ("stdio", _) => {
            Library::new(shared).serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        ("selftest", _) => {
            println!("{}", selftest::run().await);
            Ok(())
        }
        _ => anyhow::bail!("unknown mode: {mode}"),
    }
}

/// Serves handlers at `/mcp`, until a SIGTERM comes and the running calls have ended.
async fn serve<H: ServerHandler>(
    port: u16,
    handler: impl Fn() -> H + Send + Sync + 'static,
    mount: impl FnOnce(Router) -> Router,
) -> anyhow::Result<()> {
    let config = StreamableHttpServerConfig::default();
    let sessions = config.cancellation_token.clone();
    let service: StreamableHttpService<_, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(handler()), Arc::default(), config);
    let app = mount(Router::new().route_service("/mcp", service));

    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = async move {
        terminate.recv().await;
        // Cancelled sessions would lose their calls. They have some time to end.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            sessions.cancel();
        });
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
    Ok(())
}
