//! The command line.

use clap::Parser;

/// A point-of-sale server: orders and a menu over MCP.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Flags {
    /// The port on 127.0.0.1 [default: 7071]
    #[arg(long)]
    pub port: Option<u16>,
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["port", "keys", "issuer", "platform_identity"])]
    pub stdio: bool,
    /// Listen on this address instead of 127.0.0.1; needs --keys, --issuer or --platform-identity
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
    /// The audience of the tokens
    #[arg(long, value_name = "NAME", requires = "issuer")]
    pub audience: Vec<String>,
    /// The public URL of this server, for the metadata that refers clients to the issuer
    #[arg(long, value_name = "URL")]
    pub resource: Option<String>,
    /// Trust the identity header that the platform in front of this server sets
    #[arg(long)]
    pub platform_identity: bool,
}
