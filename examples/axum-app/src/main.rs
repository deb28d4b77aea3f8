//! Serves the app on `http://127.0.0.1:7071`: REST at `/notes`, MCP at `/mcp`.
//!
//! ```text
//! cargo run -p axum-app
//! cargo run -p axum-app -- 127.0.0.1:8080
//! ```

use axum_app::{Notes, router, serve, server, settings};
use bindpost::http::Endpoint;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7071".to_owned());
    let notes = Notes::default();
    let listener = TcpListener::bind(address).await?;
    let endpoint = Endpoint::new(server(notes.clone())?, settings());
    // On an address that others can reach, the endpoint needs authentication, which this example lacks.
    endpoint.check_address(&listener.local_addr()?)?;
    eprintln!("listening on http://{}: REST at /notes, MCP at /mcp", listener.local_addr()?);
    let stop = async {
        // Without a handler for the signal, the system ends the process at Ctrl-C.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    serve(listener, router(notes, endpoint.clone()), endpoint, stop).await?;
    Ok(())
}
