//! The flags of `bindpost search pull`, `plan`, `test`, `push`, `export` and `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What `bindpost search` does instead of serving.
#[derive(Debug, Subcommand)]
pub(crate) enum SearchAction {
    /// Write the definitions of a service to a folder, without secrets
    Pull(PullFlags),
    /// Show what differs between a folder and a service, and what each change needs
    Plan(PlanFlags),
    /// Run the judged queries of a folder on the embedded service; exit with 1 if one fails
    Test(TestFlags),
    /// Apply a folder to a service: behind aliases, with ETags, and rolled back if a step fails
    Push(PushFlags),
    /// Write the documents of an index to a file of JSON Lines
    Export(ExportFlags),
    /// Load a file of JSON Lines into an index
    Import(ImportFlags),
}

/// Which service a command uses.
#[derive(Debug, Args)]
pub(crate) struct ServiceFlags {
    /// URL of the search service, such as https://NAME.search.windows.net. Its key is read from
    /// AZURE_SEARCH_API_KEY [default: the embedded service of --data]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// API version of the search service [default: that of the folder, or 2025-08-01-preview]
    #[arg(long, value_name = "DATE")]
    pub(crate) api_version: Option<String>,
    /// Data folder of the embedded service
    #[arg(long, value_name = "DIR", default_value = ".bindpost/search", conflicts_with = "endpoint")]
    pub(crate) data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PullFlags {
    /// Folder of the definitions; it is created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    /// Write a sample of N documents of each index too, and queries that must find them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) documents: usize,
    /// Delete files of definitions that the service does not have
    #[arg(long)]
    pub(crate) prune: bool,
}

/// What a plan may do.
#[derive(Debug, Args)]
pub(crate) struct ChangeFlags {
    /// Delete definitions that the folder does not have, with the documents of indexes
    #[arg(long)]
    pub(crate) prune: bool,
    /// Allow changes during which an index is offline for some seconds
    #[arg(long)]
    pub(crate) allow_downtime: bool,
    /// Delete other versions of an index, such as the one that a rebuild replaces
    #[arg(long)]
    pub(crate) delete_old: bool,
    /// Write definitions with secrets even if nothing else differs
    #[arg(long)]
    pub(crate) update_secrets: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanFlags {
    /// Folder of the definitions
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    #[command(flatten)]
    pub(crate) changes: ChangeFlags,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Exit with 2 if there is anything to do
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestFlags {
    /// Folder of the definitions
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// File of judged queries to run, without its extension (repeatable) [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Run the queries on this service instead of the embedded one. Nothing is changed there
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// API version of --endpoint [default: that of the folder]
    #[arg(long, value_name = "DATE", requires = "endpoint")]
    pub(crate) api_version: Option<String>,
    /// Write what the queries reach to search.json, as what they must reach from now on
    #[arg(long)]
    pub(crate) accept: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct PushFlags {
    /// Folder of the definitions
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    #[command(flatten)]
    pub(crate) changes: ChangeFlags,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Push only if the plan still has this fingerprint
    #[arg(long, value_name = "HEX")]
    pub(crate) fingerprint: Option<String>,
    /// Undo the last push of this folder to this service
    #[arg(long, conflicts_with_all = ["prune", "allow_downtime", "delete_old", "update_secrets", "fingerprint"])]
    pub(crate) rollback: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    /// Index, or an alias of it
    #[arg(value_name = "INDEX")]
    pub(crate) index: String,
    /// File of JSON Lines; with the extension .gz it is compressed
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    /// OData filter of the documents, such as "rating ge 4"
    #[arg(long, value_name = "ODATA")]
    pub(crate) filter: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Begin again instead of continuing an interrupted export
    #[arg(long)]
    pub(crate) restart: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportFlags {
    /// Index, or an alias of it
    #[arg(value_name = "INDEX")]
    pub(crate) index: String,
    /// File of JSON Lines, compressed if its extension is .gz; - reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    /// What is done with each document
    #[arg(long, value_enum, default_value_t = ImportVerb::Upload)]
    pub(crate) action: ImportVerb,
    /// Stop when more than N documents were rejected
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) max_errors: u64,
    /// Begin again instead of continuing an interrupted import
    #[arg(long)]
    pub(crate) restart: bool,
}

/// A form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// One JSON value
    Json,
    /// Markdown, for the summary of a CI run
    Md,
    /// JUnit XML, for the test report of a CI run
    Junit,
}

/// What an import does with each document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportVerb {
    /// Replace it as a whole
    Upload,
    /// Change its members; it must exist
    Merge,
    /// Change its members, or create it
    MergeOrUpload,
    /// Delete it
    Delete,
}
