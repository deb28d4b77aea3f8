//! The same server in an axum router, as `bench/rmcp` is.

use axum::Router;
use axum::serve::ListenerExt as _;
use bindpost::http::Endpoint;
use tokio::net::TcpListener;

fn main() -> anyhow::Result<()> {
    let (settings, port) = bench_server::options()?;
    let app = Router::new().nest_service("/mcp", Endpoint::new(bench_server::server()?, settings));
    let mut outcome = Ok(());
    bench_common::run(async {
        outcome = async {
            let listener = TcpListener::bind(("127.0.0.1", port)).await?;
            // Without the option the server is only slower.
            axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), app).await
        }
        .await;
    });
    Ok(outcome?)
}
