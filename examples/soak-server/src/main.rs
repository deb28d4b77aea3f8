//! The MCP server that `cargo xtask soak` and `cargo xtask neighbours` put under load.
//!
//!     cargo run -p soak-server -- --port 3000 --keys 64 --short-lives
//!
//! `--keys N` requires one of N API keys. The key of client 7 is `secret-of-client-7`. With
//! `--short-lives` sessions, streams and tasks expire within seconds instead of minutes, so that each
//! of them expires many times in one run, and fewer bytes are kept for clients. All other limits are
//! the defaults.

mod tools;

use std::time::Duration;

use anyhow::{Context as _, bail};
use bindpost::http::{self, ApiKeys, Auth, SessionLimits, Settings};
use bindpost::{Server, ServerLimits, TaskLimits};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut settings = Settings::default();
    let mut limits = ServerLimits::default();
    let mut task_limits = TaskLimits::default();
    if options.short_lives {
        settings.session_limits = SessionLimits {
            idle: Duration::from_secs(15),
            opening: Duration::from_secs(5),
            stream_kept: Duration::from_secs(10),
            sweep: Duration::from_secs(1),
            ..SessionLimits::default()
        };
        limits.held_bytes = 48 * 1024 * 1024;
        task_limits.lifetime = Duration::from_secs(10);
    }
    if options.keys > 0 {
        let keys = (0..options.keys).fold(ApiKeys::new(), |keys, number| {
            keys.key(format!("client-{number}"), format!("secret-of-client-{number}"))
        });
        settings.auth = Some(Auth::new(keys));
    }
    let server = Server::builder("soak", env!("CARGO_PKG_VERSION")).limits(limits).tasks(task_limits);
    let server = tools::add(server).build()?;
    let bound = http::bind(("127.0.0.1", options.port)).await?;
    eprintln!("listening on http://{}/mcp", bound.local_addr());
    Ok(bound.serve(server, settings).await?)
}

struct Options {
    port: u16,
    keys: usize,
    short_lives: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Options> {
        let mut options = Options { port: 3000, keys: 0, short_lives: false };
        while let Some(word) = words.next() {
            let mut number = || {
                let value = words.next().with_context(|| format!("{word} needs a number"))?;
                value.parse::<u16>().with_context(|| format!("{word} {value}: not a number up to 65535"))
            };
            match word.as_str() {
                "--port" => options.port = number()?,
                "--keys" => options.keys = number()?.into(),
                "--short-lives" => options.short_lives = true,
                other => bail!("unknown option {other}; use --port N, --keys N and --short-lives"),
            }
        }
        Ok(options)
    }
}
