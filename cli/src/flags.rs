//! All commands and flags of the program, with their help texts. Parsing has no side effects.

#[path = "flags/search_code.rs"]
mod search_code;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use search_code::{
    ChangeFlags, ExportFlags, ImportFlags, ImportVerb, OutputFormat, PlanFlags, PullFlags, PushFlags,
    SearchAction, ServiceFlags, TestFlags,
};

/// An app may set its port, so `run` has another default.
const RUN_PORT: &str =
    "Port to listen on; 0 chooses a free port [default: the port in local.settings.json, or 7071]";

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
    /// Serve a small built-in server with tools, a resource and a prompt, in every revision of MCP
    Demo(DemoFlags),
    /// Run an Azure Functions app as an MCP server: Python, Node, Java, a custom handler or a self-hosted server
    Run(RunFlags),
    /// Serve an embedded search service with the REST API of Azure AI Search
    SearchService(SearchServiceFlags),
    /// Serve the operations of an OpenAPI or Swagger document as MCP tools and resources
    Openapi(Box<OpenapiFlags>),
    /// Serve Azure AI Search, or the embedded search service with a sample, as an MCP server; or keep
    /// its definitions as files (pull, plan, test, push) and its documents (export, import)
    Search(Box<SearchFlags>),
    /// Replace this process with another program that ends when the parent process ends
    #[command(hide = true)]
    Exec(ExecFlags),
}

/// The flags of every command that serves MCP.
#[derive(Debug, Args)]
pub(crate) struct HttpFlags {
    /// Serve stdin and stdout instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port", "without_auth", "allow_host", "allow_origin"])]
    pub(crate) stdio: bool,
    /// Address to listen on. One that other machines can reach requires keys (`run`) or --without-auth
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 chooses a free port [default: 7071]
    #[arg(long, short)]
    pub(crate) port: Option<u16>,
    /// Serve other machines (--host, --allow-host) without authentication: every caller may call everything
    #[arg(long)]
    pub(crate) without_auth: bool,
    /// Additional host name to serve besides the loopback names; `*` allows all (repeatable). Requires
    /// keys (`run`) or --without-auth
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Origin whose web pages may call the server, such as https://example.com (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
}

#[derive(Debug, Args)]
#[command(mut_arg("port", |port| port.help(RUN_PORT)))]
pub(crate) struct RunFlags {
    /// Folder of the app, which contains its host.json
    #[arg(default_value = ".")]
    pub(crate) app: PathBuf,
    #[command(flatten)]
    pub(crate) http: HttpFlags,
    /// Require a key on loopback addresses too
    #[arg(long, conflicts_with_all = ["without_auth", "stdio"])]
    pub(crate) require_key: bool,
    /// Trust the headers in which App Service or Container Apps pass
    /// the authenticated user (X-MS-CLIENT-PRINCIPAL…)
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) platform_identity: bool,
    /// Folder of language workers to use instead of the built-in workers, such as Core Tools' `workers`
    #[arg(long, value_name = "DIR")]
    pub(crate) workers: Option<PathBuf>,
    /// Number of worker processes [default: FUNCTIONS_WORKER_PROCESS_COUNT, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10))]
    pub(crate) processes: Option<u16>,
    /// Install nothing: no virtual environment, no packages, no build
    #[arg(long)]
    pub(crate) no_install: bool,
    /// Do not restart the app when its files change
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Send the error messages of failed functions to clients
    #[arg(long)]
    pub(crate) detailed_errors: bool,
    /// Print the server's details as one line of JSON on stdout instead of the start screen
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchServiceFlags {
    /// Folder for indexes, documents, keys and certificates
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 chooses a free port
    #[arg(long, short, default_value_t = 8181)]
    pub(crate) port: u16,
    /// Serve HTTPS too, with a self-issued certificate, for clients that reject plain HTTP
    #[arg(long)]
    pub(crate) tls: bool,
    /// HTTPS port [default: the port after --port, or a free port]
    #[arg(long, value_name = "PORT", requires = "tls")]
    pub(crate) tls_port: Option<u16>,
    /// Additional name in the certificate besides localhost (repeatable)
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_name: Vec<String>,
    /// Serve without keys; allowed on loopback addresses only
    #[arg(long)]
    pub(crate) without_keys: bool,
    /// Folder that data sources may use besides DIR/blobs (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) indexer_folder: Vec<PathBuf>,
    /// Print the server's details as one line of JSON on stdout instead of the start screen
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OpenapiFlags {
    /// OpenAPI document: files, or folders of files (Swagger 2.0, OpenAPI 3.0 or 3.1, JSON or YAML)
    #[arg(value_name = "SPEC", required = true)]
    pub(crate) specs: Vec<PathBuf>,
    /// Base URL of the upstream service [default: the server in the document]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Folder that references of the document may point into, besides its own folder (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Serve only operations that match: `*` globs over ids, paths and `METHOD /path` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Exclude operations that match; takes precedence over --include and --tag (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Serve operations with this tag (repeatable)
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Serve only read-only operations
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Fix the value of a parameter in every operation, such as api-version=2025-01-01; callers cannot
    /// set it (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Maximum size of tools/list. Above it, schemas are shortened, and then three tools replace the
    /// tool per operation
    #[arg(long, value_name = "BYTES", default_value_t = 40 * 1024)]
    pub(crate) list_budget: usize,
    /// Maximum size of one result. A larger result is cut between items and continues with a cursor
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024)]
    pub(crate) answer_budget: usize,
    /// Send BINDPOST_UPSTREAM_SECRET to the upstream service in this header
    #[arg(long, value_name = "NAME", group = "credential")]
    pub(crate) key_header: Option<String>,
    /// Send BINDPOST_UPSTREAM_SECRET to the upstream service in this query parameter
    #[arg(long, value_name = "NAME", group = "credential")]
    pub(crate) key_query: Option<String>,
    /// Send BINDPOST_UPSTREAM_SECRET to the upstream service as a bearer token
    #[arg(long, group = "credential")]
    pub(crate) bearer: bool,
    /// Send BINDPOST_UPSTREAM_SECRET to the upstream service as the password of
    /// this user (basic authentication)
    #[arg(long, value_name = "USER", group = "credential")]
    pub(crate) basic: Option<String>,
    /// Send Entra ID tokens for this resource, such as https://api.example.com. The identity is the
    /// managed identity, the identity in AZURE_CLIENT_ID and related variables, or that of `az login`
    #[arg(long, value_name = "RESOURCE", group = "credential")]
    pub(crate) entra: Option<String>,
    /// Forward a header of the caller's request to the upstream service; Authorization is forwarded
    /// only if named here (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_header: Vec<String>,
    /// Delete without asking the user for confirmation
    #[arg(long)]
    pub(crate) without_confirmation: bool,
    /// Allow credentials over plain HTTP to another machine
    #[arg(long)]
    pub(crate) allow_plain: bool,
    #[command(flatten)]
    pub(crate) http: HttpFlags,
    /// Print the server's details as one line of JSON on stdout instead of the start screen
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExecFlags {
    /// Process id of the parent. The program ends when this process ends
    #[arg(long)]
    pub(crate) parent: u32,
    /// Program to run, with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    #[command(flatten)]
    pub(crate) http: HttpFlags,
    /// Serve every revision without sessions
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) stateless: bool,
    /// Respond with JSON only: no streams and no requests to the client
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) json_only: bool,
}

/// The tools that `bindpost search` offers.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum OfferedTools {
    Query,
    Read,
    Manage,
    #[default]
    All,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SearchFlags {
    #[command(subcommand)]
    pub(crate) action: Option<SearchAction>,
    /// URL of the search service, such as https://NAME.search.windows.net. Its key is read from
    /// AZURE_SEARCH_API_KEY [default: the embedded service]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// API version of the search service
    #[arg(long, value_name = "DATE", default_value = bindpost_azure_search::API_VERSION)]
    pub(crate) api_version: String,
    /// API description to use instead of the built-in one: an OpenAPI or Swagger file, or a folder of
    /// such files (repeatable)
    #[arg(long, value_name = "FILE_OR_DIR")]
    pub(crate) spec: Vec<PathBuf>,
    /// Folder that references of --spec may point into, besides its own folder (repeatable)
    #[arg(long, value_name = "DIR", requires = "spec")]
    pub(crate) spec_root: Vec<PathBuf>,
    /// Data folder of the embedded service
    #[arg(long, value_name = "DIR", default_value = ".bindpost/search", conflicts_with = "endpoint")]
    pub(crate) data: PathBuf,
    /// Port of the embedded service's REST API; 0 chooses a free port
    #[arg(long, value_name = "PORT", default_value_t = 0, conflicts_with = "endpoint")]
    pub(crate) service_port: u16,
    /// Do not create the sample in an empty embedded service
    #[arg(long, conflicts_with = "endpoint")]
    pub(crate) no_sample: bool,
    /// Folder of definitions; tools plan, test, pull and push it
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Which tools to offer: `query` searches and reads documents; `read` also reads definitions, status and
    /// diagnoses; `manage` also changes documents and definitions; `all` also calls every other operation of the API
    #[arg(long, value_name = "SET", value_enum, default_value_t)]
    pub(crate) tools: OfferedTools,
    /// Serve only tools that do not change the service
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Delete and replace without asking the user for confirmation
    #[arg(long)]
    pub(crate) without_confirmation: bool,
    /// Maximum size of one result in bytes. Longer lists are cut and continue with a cursor
    #[arg(long, value_name = "BYTES", default_value_t = bindpost_azure_search::ANSWER_BYTES)]
    pub(crate) answer_budget: usize,
    #[command(flatten)]
    pub(crate) http: HttpFlags,
    /// Print the server's details as one line of JSON on stdout instead of the start screen
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parses(arguments: &str) -> bool {
        CliFlags::try_parse_from(arguments.split(' ')).is_ok()
    }

    #[test]
    fn stdio_excludes_the_flags_of_http() {
        CliFlags::command().debug_assert();
        for command in ["demo", "run", "openapi x.json", "search"] {
            assert!(parses(&format!("bindpost {command} --stdio")), "{command}");
            let all = "--host 127.0.0.1 --port 0 --without-auth --allow-host a --allow-origin b";
            assert!(parses(&format!("bindpost {command} {all}")), "{command}");
            for flag in
                ["--host 127.0.0.1", "-p 0", "--without-auth", "--allow-host a", "--allow-origin https://a"]
            {
                assert!(!parses(&format!("bindpost {command} --stdio {flag}")), "{command} {flag}");
            }
        }
        for further in ["demo --stateless", "demo --json-only", "run --require-key", "search --json"] {
            assert!(!parses(&format!("bindpost {further} --stdio")), "{further}");
        }
    }

    #[test]
    fn search_serves_or_works_on_a_folder() {
        for good in [
            "search pull dir --endpoint https://a",
            "search plan dir --format md --check",
            "search test dir --format junit --only a --only b",
            "search push dir --yes --delete-old --allow-downtime --prune",
            "search push dir --rollback",
            "search --tools query",
            "search export hotels f.jsonl.gz --filter x",
            "search import hotels - --action merge-or-upload",
        ] {
            assert!(parses(&format!("bindpost {good}")), "{good}");
        }
        for bad in [
            "search --port 0 pull dir",
            "search pull",
            "search pull dir --endpoint https://a --data b",
            "search push dir --rollback --prune",
            "search plan dir --format xml",
            "search --tools few",
            "search import hotels f --action replace",
        ] {
            assert!(!parses(&format!("bindpost {bad}")), "{bad}");
        }
    }

    #[test]
    fn only_the_port_of_run_has_a_help_of_its_own() {
        let help = |command: &str, flag: &str| {
            let all = CliFlags::command();
            let flag = all.find_subcommand(command).unwrap().get_arguments().find(|arg| arg.get_id() == flag);
            flag.unwrap().get_help().unwrap().to_string()
        };
        for command in ["run", "openapi", "search"] {
            for flag in ["stdio", "host", "without_auth", "allow_host", "allow_origin"] {
                assert_eq!(help(command, flag), help("demo", flag));
            }
        }
        assert!(help("demo", "port").ends_with("[default: 7071]"));
        assert!(help("run", "port").ends_with("[default: the port in local.settings.json, or 7071]"));
    }
}
