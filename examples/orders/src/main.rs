//! A point-of-sale server: orders and a menu, with everything that a real one has but the database.
//!
//! ```text
//! cargo run -p orders                      on http://127.0.0.1:7071/mcp, open to this machine
//! cargo run -p orders -- --port 8080
//! cargo run -p orders -- --stdio           for clients that start it themselves
//! cargo run -p orders -- --keys keys.txt   with API keys
//! cargo run -p orders -- --issuer https://login.example.com --audience api://orders
//! ```
//!
//! With `FUNCTIONS_CUSTOMHANDLER_PORT` set it is a custom handler of Azure Functions: `README.md` says how to
//! deploy it.

#![allow(missing_docs, unreachable_pub, reason = "a program, not a library")]

mod flags;
mod menu;
mod store;
mod tools;

use std::io::Write as _;

use anyhow::Context as _;
use bindpost::http::{self, AnyAuthorizer, ApiKeys, Auth, Authorizer as _, SessionMode, Settings};
use bindpost::oauth::{Issuer, Tokens};
use bindpost::{Server, entries, stdio};
use bindpost_azure_hosting::{ClientPrincipal, functions};
use clap::Parser as _;

use flags::Flags;
use store::Store;
use tools::OrderTools;

fn server() -> Result<Server, bindpost::BuildError> {
    let store = Store::with_samples();
    Server::builder("POS Server", env!("CARGO_PKG_VERSION"))
        .instructions("This server provides POS and menu management tools.")
        .state(store.clone())
        .add(OrderTools { store })
        .add(entries![tools::get_time])
        .add(entries![menu::menu, menu::category, menu::settings, menu::order_summary])
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // stdout belongs to the stdio transport.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    let server = server()?;
    if flags.stdio {
        return Ok(stdio::serve_stdio(&server).await?);
    }
    let environment = |name: &str| std::env::var(name).ok();
    let port = functions::custom_handler_port(environment)?.unwrap_or(flags.port);
    let host = flags.host.as_deref().unwrap_or("127.0.0.1");
    let settings = Settings {
        // Any instance can answer any request: that is how Azure Functions and load balancers want it.
        sessions: SessionMode::Stateless,
        auth: authorizer(&flags)?.map(|authorizer| {
            let auth = Auth::new(authorizer);
            match flags.resource.clone() {
                Some(resource) => auth.resource(resource),
                None => auth,
            }
        }),
        trust_platform_identity: flags.platform_identity,
        allowed_hosts: [functions::allowed_hosts(environment), flags.allow_host].concat(),
        ..Settings::default()
    };
    let bound = http::bind((host, port)).await?;
    let _ = writeln!(std::io::stderr(), "orders: http://{}{}", bound.local_addr(), settings.path);
    Ok(bound.serve(server, settings).await?)
}

/// Who asks, as the flags say; `None` for whoever is on this machine.
fn authorizer(flags: &Flags) -> anyhow::Result<Option<AnyAuthorizer>> {
    let mut authorizers = Vec::new();
    if let Some(file) = &flags.keys {
        let keys = ApiKeys::from_file(file).with_context(|| format!("--keys {}", file.display()))?;
        authorizers.push(AnyAuthorizer::new(keys));
    }
    if let Some(issuer) = &flags.issuer {
        let tokens = Tokens::builder().issuer(Issuer::new(issuer));
        let tokens = flags.audience.iter().fold(tokens, |tokens, audience| tokens.audience(audience));
        authorizers.push(AnyAuthorizer::new(tokens.build().context("--issuer")?));
    }
    if flags.platform_identity {
        authorizers.push(AnyAuthorizer::new(ClientPrincipal::new()));
    }
    Ok(authorizers.into_iter().reduce(|one, other| AnyAuthorizer::new(one.or(other))))
}
