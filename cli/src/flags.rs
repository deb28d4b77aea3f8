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
pub(crate) struct CliFlags {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Serve a small built-in server: tools, a resource, a prompt, every revision of MCP
    Demo(DemoFlags),
    /// Run an Azure Functions app as an MCP server: Python, Node, Java or a custom handler
    Run(RunFlags),
    /// Serve an embedded search service with the REST API of Azure AI Search
    SearchService(SearchServiceFlags),
    /// Serve the operations of an OpenAPI or Swagger document as MCP tools and resources
    Openapi(Box<OpenapiFlags>),
    /// Serve Azure AI Search, or the embedded search service with a sample, as an MCP server
    Search(SearchFlags),
    /// Become another program that ends when this one's parent does
    #[command(hide = true)]
    Exec(ExecFlags),
}

#[derive(Debug, Args)]
pub(crate) struct RunFlags {
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
    /// Serve other machines (--host, --allow-host) without authentication: every caller may call everything
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// A host name that is served besides the loopback's (repeat for more; `*` for all); asks for a key
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
pub(crate) struct SearchServiceFlags {
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
pub(crate) struct OpenapiFlags {
    /// The document: files, or folders of files (Swagger 2.0, OpenAPI 3.0 or 3.1, JSON or YAML)
    #[arg(value_name = "SPEC", required = true)]
    pub(crate) specs: Vec<PathBuf>,
    /// Where the service is [default: the document's own server]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// A folder that references of the document may lead to, besides its own (repeat for more)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Serve operations that fit: `*` globs over ids, paths and `METHOD /path` (repeat for more)
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Never serve operations that fit, in no way (repeat for more)
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Serve operations with this tag (repeat for more)
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Serve only operations that change nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Give a parameter its value wherever it occurs, such as api-version=2025-01-01; callers cannot (repeat for more)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// How large tools/list may be; above it schemas become short, and then three tools stand for all
    #[arg(long, value_name = "BYTES", default_value_t = 40 * 1024)]
    pub(crate) list_budget: usize,
    /// How large one answer may be; above it, it is cut by whole items, with a cursor
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024)]
    pub(crate) answer_budget: usize,
    /// Send BINDPOST_UPSTREAM_SECRET to the service in this header
    #[arg(long, value_name = "NAME", group = "credential")]
    pub(crate) key_header: Option<String>,
    /// Send BINDPOST_UPSTREAM_SECRET to the service in this parameter of the query
    #[arg(long, value_name = "NAME", group = "credential")]
    pub(crate) key_query: Option<String>,
    /// Send BINDPOST_UPSTREAM_SECRET to the service as a bearer token
    #[arg(long, group = "credential")]
    pub(crate) bearer: bool,
    /// Send BINDPOST_UPSTREAM_SECRET to the service as this user's password
    #[arg(long, value_name = "USER", group = "credential")]
    pub(crate) basic: Option<String>,
    /// Send tokens of Entra ID for this resource, such as https://api.example.com: of the managed identity, of the one that
    /// AZURE_CLIENT_ID and its like name, or of `az login`
    #[arg(long, value_name = "RESOURCE", group = "credential")]
    pub(crate) entra: Option<String>,
    /// Hand a header of the caller's request on to the service; Authorization too, if named (repeat for more)
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_header: Vec<String>,
    /// Do not ask the user before something is deleted
    #[arg(long)]
    pub(crate) without_confirmation: bool,
    /// Send a credential over plain HTTP to another machine
    #[arg(long)]
    pub(crate) allow_plain: bool,
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port", "without_auth", "allow_host", "allow_origin", "json"])]
    pub(crate) stdio: bool,
    /// The address to serve on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to serve on; 0 takes any free one
    #[arg(long, short, default_value_t = 7071)]
    pub(crate) port: u16,
    /// Serve other machines (--host, --allow-host) without authentication: every caller may call everything
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// A host name that is served besides the loopback's (repeat for more; `*` for all); needs --without-auth
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose pages may call, such as https://example.com (repeat for more)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Say what runs as one line of JSON on stdout, instead of the start screen
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExecFlags {
    /// The process whose end ends the program
    #[arg(long)]
    pub(crate) parent: u32,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port", "stateless", "json_only", "allow_host", "allow_origin"])]
    pub(crate) stdio: bool,
    /// The address to serve on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to serve on; 0 takes any free one
    #[arg(long, short, default_value_t = 7071)]
    pub(crate) port: u16,
    /// Serve other machines (--host, --allow-host) without authentication: every caller may call everything
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// A host name that is served besides the loopback's (repeat for more; `*` for all); needs --without-auth
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

#[derive(Debug, Args)]
pub(crate) struct SearchFlags {
    /// The service to serve, such as https://NAME.search.windows.net; its key is in AZURE_SEARCH_API_KEY [default: the embedded service]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// The version of the service's interface
    #[arg(long, value_name = "DATE", default_value = bindpost_azure_search::API_VERSION)]
    pub(crate) api_version: String,
    /// A description of the interface to use instead of the built-in one: an OpenAPI or Swagger file, or a folder of them (repeat for more)
    #[arg(long, value_name = "FILE_OR_DIR")]
    pub(crate) spec: Vec<PathBuf>,
    /// A folder that references of --spec may lead to, besides its own (repeat for more)
    #[arg(long, value_name = "DIR", requires = "spec")]
    pub(crate) spec_root: Vec<PathBuf>,
    /// The folder that the embedded service keeps everything in
    #[arg(long, value_name = "DIR", default_value = ".bindpost/search", conflicts_with = "endpoint")]
    pub(crate) data: PathBuf,
    /// The port of the embedded service's REST interface; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = 0, conflicts_with = "endpoint")]
    pub(crate) service_port: u16,
    /// Make no sample in an embedded service that is empty
    #[arg(long, conflicts_with = "endpoint")]
    pub(crate) no_sample: bool,
    /// Offer nothing that changes the service
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Do not ask the user before something is destroyed
    #[arg(long)]
    pub(crate) without_confirmation: bool,
    /// As much as one answer may hold, in bytes; longer lists are cut and go on with a cursor
    #[arg(long, value_name = "BYTES", default_value_t = bindpost_azure_search::ANSWER_BYTES)]
    pub(crate) answer_budget: usize,
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port", "without_auth", "allow_host", "allow_origin", "json"])]
    pub(crate) stdio: bool,
    /// The address to serve on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to serve on; 0 takes any free one
    #[arg(long, short, default_value_t = 7071)]
    pub(crate) port: u16,
    /// Serve other machines (--host, --allow-host) without authentication: every caller may call everything
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// A host name that is served besides the loopback's (repeat for more; `*` for all); needs --without-auth
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose pages may call, such as https://example.com (repeat for more)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Say what runs as one line of JSON on stdout, instead of the start screen
    #[arg(long)]
    pub(crate) json: bool,
}
