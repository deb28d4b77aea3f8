//! The command line. Flags for authentication can also be set by variables, such as the settings of a function app.

use clap::{ArgGroup, Parser};

/// A point-of-sale server: orders and a menu over MCP.
#[derive(Debug, Parser)]
#[command(version, group(ArgGroup::new("tokens").args(["issuer", "entra_tenant"]).multiple(true)))]
pub struct Flags {
    /// The port on 127.0.0.1 [default: 7071]
    #[arg(long)]
    pub port: Option<u16>,
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["port", "keys", "tokens", "platform_identity"])]
    pub stdio: bool,
    /// Listen on this address instead of 127.0.0.1; needs authentication
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// Additional host name that clients use, such as `orders.example.com`; needs authentication as well
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Require an API key: a file with lines of `name = secret scope scope`
    #[arg(long, value_name = "FILE")]
    pub keys: Option<std::path::PathBuf>,
    /// Require an access token of this issuer
    #[arg(long, value_name = "URL", requires = "audience")]
    pub issuer: Option<String>,
    /// Require an access token of this tenant of Entra ID
    #[arg(long, value_name = "ID", requires = "audience", env = "ORDERS_ENTRA_TENANT")]
    pub entra_tenant: Option<String>,
    /// Read the metadata of Entra ID from this mirror
    #[arg(long, value_name = "URL", requires = "entra_tenant", env = "ORDERS_ENTRA_MIRROR")]
    pub entra_mirror: Option<String>,
    /// The audiences of the tokens
    #[arg(long, value_name = "NAME", requires = "tokens", value_delimiter = ',', env = "ORDERS_AUDIENCES")]
    pub audience: Vec<String>,
    /// The public URL of this server, for the metadata that refers clients to the issuer
    #[arg(long, value_name = "URL")]
    pub resource: Option<String>,
    /// Trust the identity header that App Service authentication, in front of this server, sets
    #[arg(long, env = "ORDERS_PLATFORM_IDENTITY")]
    pub platform_identity: bool,
}
