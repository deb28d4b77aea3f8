//! The server the official conformance suite runs against.
//!
//!     cargo run -p conformance -- --port 3000      # http://127.0.0.1:3000/mcp
//!     cargo run -p conformance -- --axum           # the same, in the router and layers of examples/axum-app
//!     cargo run -p conformance -- --stdio
//!
//! Names, texts and behaviour of the entries are those that the suite requires.

mod media;
mod prompts;
mod resources;
mod tasks;
mod tools;

use anyhow::{Context as _, bail};
use bindpost::http::{self, Endpoint, Settings};
use bindpost::{Server, SkillSet, TaskLimits, stdio};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let options = Options::parse(std::env::args().skip(1))?;
    let server = server()?;
    if options.stdio {
        return Ok(stdio::serve_stdio(&server).await?);
    }
    if options.axum {
        return serve_with_axum(server, options.port).await;
    }
    let bound = http::bind(("127.0.0.1", options.port)).await?;
    eprintln!("listening on http://{}/mcp", bound.local_addr());
    Ok(bound.serve(server, Settings::default()).await?)
}

/// Serves in the app of `examples/axum-app`, beside its REST API.
async fn serve_with_axum(server: Server, port: u16) -> anyhow::Result<()> {
    let endpoint = Endpoint::new(server, axum_app::settings());
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let app = axum_app::router(axum_app::Notes::default(), endpoint.clone());
    Ok(axum_app::serve(listener, app, endpoint, std::future::pending()).await?)
}

fn server() -> anyhow::Result<Server> {
    let server = Server::builder("bindpost-conformance", env!("CARGO_PKG_VERSION"))
        .title("bindpost conformance server")
        .instructions("Every entry is a fixture of the conformance suite.")
        .tasks(TaskLimits::default())
        .skills(SkillSet::from_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/skills")));
    let server = tools::add(server);
    let server = tasks::add(server);
    let server = resources::add(server);
    Ok(prompts::add(server).build()?)
}

struct Options {
    port: u16,
    stdio: bool,
    axum: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Options> {
        let mut options = Options { port: 3000, stdio: false, axum: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--axum" => options.axum = true,
                "--stdio" => options.stdio = true,
                "--port" => {
                    let port = words.next().context("--port needs a number")?;
                    options.port = port.parse().with_context(|| format!("--port {port}: not a port"))?;
                }
                other => bail!("unknown option {other}; use --port N, --axum or --stdio"),
            }
        }
        Ok(options)
    }
}
