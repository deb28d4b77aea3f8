//! The whole surface of the program, with its help. Parsing decides nothing.

use std::ffi::OsString;
use std::path::PathBuf;

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
    /// Run an Azure Functions app as an MCP server: Python, Node, Java or a custom handler
    Run(Run),
    /// Serve an embedded search service with the REST API of Azure AI Search
    SearchService(SearchService),
    /// Become another program that ends when this one's parent does
    #[command(hide = true)]
    Exec(Exec),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The app's folder, where its host.json is
    #[arg(default_value = ".")]
    pub(crate) app: PathBuf,
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port", "require_key", "without_auth", "allow_host", "allow_origin"])]
    pub(crate) stdio: bool,
    /// The address to serve on; one that other machines reach asks for a key
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to serve on; 0 takes any free one [default: local.settings.json's, or 7071]
    #[arg(long, short)]
    pub(crate) port: Option<u16>,
    /// Ask for a key on this machine's own addresses too
    #[arg(long, conflicts_with = "without_auth")]
    pub(crate) require_key: bool,
    /// Serve an address that other machines reach, though nothing asks callers who they are
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// A host name that is served besides the loopback's (repeat for more; `*` for all)
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose pages may call, such as https://example.com (repeat for more)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Believe the headers by which App Service or Container Apps in front names the user (X-MS-CLIENT-PRINCIPAL…)
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) platform_identity: bool,
    /// A folder of language workers to use instead of the built-in ones, such as Core Tools' `workers`
    #[arg(long, value_name = "DIR")]
    pub(crate) workers: Option<PathBuf>,
    /// How many processes run functions [default: FUNCTIONS_WORKER_PROCESS_COUNT, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10))]
    pub(crate) processes: Option<u16>,
    /// Install nothing: no virtual environment, no packages, no build
    #[arg(long)]
    pub(crate) no_install: bool,
    /// Do not start the app again when its files change
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Tell clients what a function says when it fails
    #[arg(long)]
    pub(crate) detailed_errors: bool,
    /// Say what runs as one line of JSON on stdout, instead of the start screen
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchService {
    /// The folder that keeps indexes, documents, keys and certificates
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The address to serve on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to serve on; 0 takes any free one
    #[arg(long, short, default_value_t = 8181)]
    pub(crate) port: u16,
    /// Serve HTTPS too, with a certificate of our own making, for clients that refuse plain HTTP
    #[arg(long)]
    pub(crate) tls: bool,
    /// The port of HTTPS [default: the one after --port, or any]
    #[arg(long, value_name = "PORT", requires = "tls")]
    pub(crate) tls_port: Option<u16>,
    /// A name for the certificate besides localhost (repeat for more)
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_name: Vec<String>,
    /// Ask nobody for a key; on this machine's own addresses only
    #[arg(long)]
    pub(crate) without_keys: bool,
    /// A folder that data sources may name besides DIR/blobs (repeat for more)
    #[arg(long, value_name = "DIR")]
    pub(crate) indexer_folder: Vec<PathBuf>,
    /// Say what runs as one line of JSON on stdout, instead of the start screen
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The process whose end ends the program
    #[arg(long)]
    pub(crate) parent: u32,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
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
