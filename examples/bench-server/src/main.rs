//! The bindpost server of the benchmarks in `bench/`: three tools, 100 dummy tools, one resource.
//!
//!     cargo run -p bench-server --bin bench-server -- --port 3000               # with sessions
//!     cargo run -p bench-server --bin bench-server -- --stateless --port 3000   # without session ids

use bindpost::http;

fn main() -> anyhow::Result<()> {
    let (settings, port) = bench_server::options()?;
    let server = bench_server::server()?;
    let mut outcome = Ok(());
    bench_common::run(async {
        outcome = async { http::bind(("127.0.0.1", port)).await?.serve(server, settings).await }.await;
    });
    Ok(outcome?)
}
