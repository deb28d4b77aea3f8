//! A point-of-sale server: orders and a menu, complete except for a database.
//!
//! ```text
//! cargo run -p orders                      on http://127.0.0.1:7071/mcp, without authentication
//! cargo run -p orders -- --port 8080
//! cargo run -p orders -- --stdio           for clients that start it themselves
//! cargo run -p orders -- --keys keys.txt   with API keys
//! cargo run -p orders -- --issuer https://login.example.com --audience api://orders
//! cargo run -p orders -- --entra-tenant ID --audience api://orders
//! ```
//!
//! With `FUNCTIONS_CUSTOMHANDLER_PORT` set it is a custom handler of Azure Functions. `README.md`
//! describes the deployment.

#![allow(missing_docs, unreachable_pub, reason = "a program, not a library")]

mod flags;
mod menu;
mod store;
mod tools;

#[cfg(test)]
mod tests;

use std::io::Write as _;

use bindpost::http::{self, AnyAuthorizer, Authorizer as _, SessionMode};
use bindpost::{BuildError, Options, Server, entries, stdio};
use bindpost_azure_hosting::{ClientPrincipal, Entra, environment, functions};
use clap::Parser as _;

use flags::Flags;
use store::Store;
use tools::OrderTools;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // stdout belongs to the stdio transport.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();

    let options = options(&flags)?;
    let server = server(&options)?;
    if flags.stdio {
        return Ok(stdio::serve_stdio(&server).await?);
    }
    let mut settings = options.settings()?;
    // On Azure it is public, so it does not start there without authentication.
    let platform = functions::configure(&mut settings, environment::variable)?;
    let address = platform.map_or_else(|| options.listen_address().to_owned(), |address| address.to_string());
    let bound = http::bind(address).await?;
    let _ = writeln!(std::io::stderr(), "orders: http://{}{}", bound.local_addr(), settings.path);
    Ok(bound.serve(server, settings).await?)
}

fn server(options: &Options) -> Result<Server, BuildError> {
    let store = Store::with_samples();
    options
        .server()
        .state(store.clone())
        .add(OrderTools { store })
        .add(entries![tools::get_time])
        .add(entries![menu::menu, menu::category, menu::settings, menu::order_summary])
        .build()
}

/// Combines the defaults of this program, the file and the variables, and the command line.
fn options(flags: &Flags) -> anyhow::Result<Options> {
    let mut options = Options::new("POS Server", env!("CARGO_PKG_VERSION"))
        .instructions("This server provides POS and menu management tools.")
        // Stateless: any instance can answer any request, as Azure Functions and load balancers require.
        .sessions(SessionMode::Stateless)
        .allowed_hosts(flags.allow_host.clone())
        .load()?;
    if flags.port.is_some() || flags.host.is_some() {
        let host = flags.host.as_deref().unwrap_or("127.0.0.1");
        options = options.address(format!("{host}:{}", flags.port.unwrap_or(7071)));
    }
    options = options.auth(|auth| {
        auth.api_keys_file = flags.keys.clone().or(auth.api_keys_file.take());
        if let Some(issuer) = &flags.issuer {
            auth.issuers.push(issuer.clone());
            auth.audiences.extend(flags.audience.iter().cloned());
        }
        auth.resource = flags.resource.clone().or(auth.resource.take());
    });
    if flags.platform_identity {
        options = options.trust_platform_identity(true);
    }
    Ok(match platform_authorizer(flags)? {
        Some(authorizer) => options.authorizer(authorizer),
        None => options,
    })
}

/// Returns what accepts the identities of Azure: of App Service authentication, of Entra ID, or of both.
fn platform_authorizer(flags: &Flags) -> anyhow::Result<Option<AnyAuthorizer>> {
    let platform = flags.platform_identity.then(|| AnyAuthorizer::new(ClientPrincipal::new()));
    let Some(tenant) = &flags.entra_tenant else { return Ok(platform) };
    let mut entra = flags.audience.iter().fold(Entra::tenant(tenant), Entra::audience);
    if let Some(mirror) = &flags.entra_mirror {
        entra = entra.metadata_base(mirror);
    }
    let entra = AnyAuthorizer::new(entra.build()?);
    Ok(Some(match platform {
        Some(platform) => AnyAuthorizer::new(platform.or(entra)),
        None => entra,
    }))
}
