//! The command line.

use clap::Parser;

/// A point-of-sale server: orders and a menu over MCP.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Flags {
    /// The port on 127.0.0.1 [default: 7071]
    #[arg(long)]
    pub port: Option<u16>,
    /// Serve stdin and stdout instead of a port
    #[arg(long, conflicts_with_all = ["port", "keys", "issuer", "platform_identity"])]
    pub stdio: bool,
    /// Listen on this address instead of 127.0.0.1; needs --keys, --issuer or --platform-identity
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// Serve under this name too, as clients call it: `orders.example.com`; needs authentication as well
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Ask for an API key: a file with lines of `name = secret scope scope`
    #[arg(long, value_name = "FILE")]
    pub keys: Option<std::path::PathBuf>,
    /// Ask for an access token of this issuer
    #[arg(long, value_name = "URL", requires = "audience")]
    pub issuer: Option<String>,
    /// Whom tokens must be for
    #[arg(long, value_name = "NAME", requires = "issuer")]
    pub audience: Vec<String>,
    /// The address of this server as clients know it, for the metadata that leads them to the issuer
    #[arg(long, value_name = "URL")]
    pub resource: Option<String>,
    /// Trust the identity that the platform in front puts into a header
    #[arg(long)]
    pub platform_identity: bool,
}
