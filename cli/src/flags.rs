//! The whole surface of the program, with its help. Parsing decides nothing.

use clap::{Args, Parser, Subcommand};

/// Turn functions into MCP servers.
#[derive(Debug, Parser)]
#[command(
    name = "bindpost",
    version,
    about = "Turn functions into MCP servers.",
    arg_required_else_help = true
)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a small built-in server: tools, a resource, a prompt, every revision of MCP
    Demo(Demo),
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port", "stateless", "json_only", "allow_host", "allow_origin"])]
    pub(crate) stdio: bool,
    /// The address to serve on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to serve on; 0 takes any free one
    #[arg(long, short, default_value_t = 7071)]
    pub(crate) port: u16,
    /// Serve an address that other machines reach, though nothing asks callers who they are
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// A host name that is served besides the loopback's (repeat for more; `*` for all)
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose pages may call, such as https://example.com (repeat for more)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// No sessions: every request stands alone, in every revision
    #[arg(long)]
    pub(crate) stateless: bool,
    /// Answer with JSON only: no streams, no questions to the client
    #[arg(long)]
    pub(crate) json_only: bool,
}
