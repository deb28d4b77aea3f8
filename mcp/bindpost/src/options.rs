//! [`Options`]: all settings of a server except its entries, from Rust code, a
//! file or environment variables.
//!
//! `options/keys.rs` defines every option once, with its name and its meaning. The file, the variables
//! and `docs/options.md` follow that table.

mod app;
mod auth;
mod form;
mod keys;
mod load;
mod mistake;
mod setters;
mod slot;
mod text;
mod tls;
#[cfg_attr(not(feature = "oauth"), path = "options/no_tokens.rs")]
mod tokens;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bindpost_mcp_http::{AnyAuthorizer, AnyListener, Settings};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{CacheScope, Server, ServerBuilder, ServerLimits, TaskLimits};

use app::AppValue;
pub use auth::AuthOptions;
pub use mistake::{OptionMistake, OptionSource, OptionsError};
pub use tls::TlsOptions;
pub use tokens::TokenLimits;

/// The prefix of the environment variables.
const PREFIX: &str = "BINDPOST_";
/// The environment variable that names a file.
const CONFIG: &str = "BINDPOST_CONFIG";

/// All settings of a server except its entries: its name, its capabilities, its limits, its address and
/// its authentication.
///
/// Each option has one name. It is set by the method of that name, by a key of that name in a TOML
/// file, or by an environment variable: `limits.call_timeout` is `BINDPOST_LIMITS__CALL_TIMEOUT`. The
/// last value wins. A value that the program sets before it loads is a default. A value that it sets
/// afterwards, for example from its command line, is final:
///
/// ```
/// use bindpost::Options;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = r#"
///     instructions = "Ask for the order first."
///     allowed_origins = ["https://shop.example"]
///
///     [limits]
///     call_timeout = "5m"
/// "#;
/// let variables = [("BINDPOST_ALLOWED_ORIGINS", "https://a.example, https://b.example")];
///
/// let options = Options::new("orders", "1.0.0")
///     .limits(|limits| limits.call_timeout = Some(Duration::from_secs(30)))
///     .load_toml("bindpost.toml", file)?
///     .load_variables(variables)?
///     .address("127.0.0.1:8080");
///
/// let server = options.server().build()?;
/// let settings = options.settings()?;
/// assert_eq!(settings.allowed_origins, ["https://a.example", "https://b.example"]);
/// # let _ = server;
/// # Ok(())
/// # }
/// ```
///
/// A program usually reads the file that the variable `BINDPOST_CONFIG` names, and then the variables:
///
/// ```no_run
/// use bindpost::Options;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = Options::new("orders", "1.0.0").load()?;
/// let server = options.server().build()?;
/// options.serve(server).await?;
/// # Ok(())
/// # }
/// ```
///
/// An unknown key or an invalid value is an error. All errors are reported at once, each with its
/// source and the expected value.
#[derive(Clone)]
pub struct Options {
    server_name: String,
    server_version: String,
    title: Option<String>,
    description: Option<String>,
    website_url: Option<String>,
    instructions: Option<String>,
    supported_protocol_versions: Vec<Revision>,
    enable_tools: bool,
    enable_resources: bool,
    enable_prompts: bool,
    page_size: usize,
    cache_ttl: Duration,
    cache_scope: CacheScope,
    state_key: Option<[u8; 32]>,
    address: String,
    socket_mode: u32,
    sse: bool,
    sse_path: String,
    sse_message_path: String,
    /// The HTTP settings, without those that depend on several options: `sse_paths`, `tls` and `auth`.
    settings: Settings,
    limits: ServerLimits,
    http: HttpOptions,
    tasks: TaskOptions,
    tls: TlsOptions,
    auth: AuthOptions,
    authorizer: Option<AnyAuthorizer>,
    /// The settings of the program itself.
    app: AppValue,
    /// The file or variable that set a key.
    places: BTreeMap<&'static str, OptionSource>,
}

/// How request bodies and streams are handled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The maximum size of a request body, in bytes. Default: 4 MiB.
    pub max_body: usize,
    /// The timeout for receiving a whole request body. Default: 30 s.
    pub body_timeout: Duration,
    /// The response to a call that runs longer than this becomes a stream. Default: 2 s.
    pub stream_after: Duration,
    /// The interval at which an idle stream sends a keep-alive comment. Default: 15 s.
    pub keep_alive: Duration,
    /// The delay after which a client should reconnect to an interrupted stream. Default: 3 s.
    pub retry: Duration,
}

/// Settings of the tasks extension.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Enables the tasks extension. A tool that runs as a task enables it too.
    pub enabled: bool,
    /// The maximum number of tasks. Default: 1,000.
    pub tasks: usize,
    /// The maximum number of tasks of one caller. Default: 100.
    pub tasks_per_caller: usize,
    /// How long a task is kept after its creation. Default: 10 min.
    pub lifetime: Duration,
    /// The interval at which a client should poll a task. Default: 500 ms.
    pub poll_interval: Duration,
}

/// An option and its current value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionKey {
    /// The name in a file: `limits.call_timeout` is `call_timeout` in the table `[limits]`.
    pub name: &'static str,
    /// The environment variable that sets the option.
    pub variable: String,
    /// The type of the values.
    pub kind: String,
    /// The value in TOML. A secret is replaced by a placeholder.
    pub value: String,
    /// The file or variable that set the option. Values that the program sets later are not recorded.
    pub place: OptionSource,
    /// The description of the option.
    pub meaning: &'static str,
}

impl Default for Options {
    /// Returns the options of a server without a name.
    fn default() -> Options {
        Options::new("MCP Server", "1.0.0")
    }
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        let Settings { max_body, body_timeout, stream_after, keep_alive, retry, .. } = Settings::default();
        HttpOptions { max_body, body_timeout, stream_after, keep_alive, retry }
    }
}

impl Default for TaskOptions {
    fn default() -> TaskOptions {
        let TaskLimits { tasks, tasks_per_caller, lifetime, poll_interval } = TaskLimits::default();
        TaskOptions { enabled: false, tasks, tasks_per_caller, lifetime, poll_interval }
    }
}

impl Options {
    /// Returns the default options of a server with this name and version.
    pub fn new(server_name: impl Into<String>, server_version: impl Into<String>) -> Options {
        let settings = Settings::default();
        let (sse_path, sse_message_path) = settings.sse_paths.clone().unwrap_or_default();
        Options {
            server_name: server_name.into(),
            server_version: server_version.into(),
            title: None,
            description: None,
            website_url: None,
            instructions: None,
            supported_protocol_versions: Revision::ALL.to_vec(),
            enable_tools: true,
            enable_resources: true,
            enable_prompts: true,
            page_size: 1_000,
            cache_ttl: Duration::ZERO,
            cache_scope: CacheScope::Private,
            state_key: None,
            address: "127.0.0.1:7071".to_owned(),
            socket_mode: 0o600,
            sse: true,
            sse_path,
            sse_message_path,
            settings,
            limits: ServerLimits::default(),
            http: HttpOptions::default(),
            tasks: TaskOptions::default(),
            tls: TlsOptions::default(),
            auth: AuthOptions::default(),
            authorizer: None,
            app: AppValue::empty(),
            places: BTreeMap::new(),
        }
    }

    /// Returns every option and its value.
    ///
    /// ```
    /// let options = bindpost::Options::new("orders", "1.0.0");
    /// let timeout = options.keys().into_iter().find(|key| key.name == "limits.call_timeout").unwrap();
    /// assert_eq!(timeout.variable, "BINDPOST_LIMITS__CALL_TIMEOUT");
    /// assert_eq!(timeout.value, "\"1m\"");
    /// ```
    pub fn keys(&self) -> Vec<OptionKey> {
        let mut options = self.clone();
        let describe = |key: &keys::OptionDefinition| {
            let slot = (key.slot)(&mut options);
            let (kind, value, place) = (slot.kind(), slot.to_toml(), self.source_of(key.name));
            OptionKey { name: key.name, variable: key.variable(), kind, value, place, meaning: key.meaning }
        };
        keys::all().map(describe).collect()
    }

    /// Returns a server builder with these options. Its entries have to be added.
    pub fn server(&self) -> ServerBuilder {
        let mut server = Server::builder(&self.server_name, &self.server_version)
            .revisions(self.supported_protocol_versions.iter().copied())
            .limits(self.limits.clone())
            .page_size(self.page_size)
            .cache(self.cache_ttl, self.cache_scope);
        if let Some(title) = &self.title {
            server = server.title(title);
        }
        if let Some(description) = &self.description {
            server = server.description(description);
        }
        if let Some(url) = &self.website_url {
            server = server.website_url(url);
        }
        if let Some(instructions) = &self.instructions {
            server = server.instructions(instructions);
        }
        if let Some(key) = self.state_key {
            server = server.state_key(key);
        }
        if !self.enable_tools {
            server = server.without_tools();
        }
        if !self.enable_resources {
            server = server.without_resources();
        }
        if !self.enable_prompts {
            server = server.without_prompts();
        }
        let TaskOptions { enabled, tasks, tasks_per_caller, lifetime, poll_interval } = self.tasks;
        if enabled {
            server = server.tasks(TaskLimits { tasks, tasks_per_caller, lifetime, poll_interval });
        }
        server
    }

    /// Returns the HTTP settings. Reads the file of API keys, if one is configured. Also reports
    /// invalid values set by the program, and options that contradict each other.
    pub fn settings(&self) -> Result<Settings, OptionsError> {
        let mut mistakes = self.invalid_values();
        let path = |path: &String| if path.len() > 1 { path.trim_end_matches('/') } else { path }.to_owned();
        let (main, sse, message) =
            (path(&self.settings.path), path(&self.sse_path), path(&self.sse_message_path));
        let pairs = [
            ("sse_path", &sse, &main),
            ("sse_message_path", &message, &main),
            ("sse_message_path", &message, &sse),
        ];
        for (key, _, other) in pairs.iter().filter(|(_, one, other)| self.sse && one == other) {
            let what =
                format!("is {other:?}, the same as another path; set different paths, or set `sse` to false");
            mistakes.push(OptionMistake::about(key, self.source_of(key), what));
        }
        let tls = self.tls_files(&mut mistakes);
        let auth = self.authentication(&mut mistakes);
        OptionsError::unless_empty(mistakes)?;
        let HttpOptions { max_body, body_timeout, stream_after, keep_alive, retry } = self.http;
        Ok(Settings {
            path: main,
            sse_paths: self.sse.then_some((sse, message)),
            max_body,
            body_timeout,
            stream_after,
            keep_alive,
            retry,
            tls,
            auth,
            ..self.settings.clone()
        })
    }

    /// Returns the address to listen on. [`bind`](Options::bind) also binds one of a Unix domain socket.
    pub fn listen_address(&self) -> &str {
        &self.address
    }

    /// Serves on the address until SIGTERM or SIGINT, then until every accepted call is answered.
    pub async fn serve(&self, server: Server) -> io::Result<()> {
        let settings = self.settings().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.bind().await?.serve(server, settings).await
    }

    /// Binds the address without serving it yet.
    pub async fn bind(&self) -> io::Result<AnyListener> {
        AnyListener::bind(&self.address, self.socket_mode).await
    }

    /// Returns the invalid values that the program set. Values of files and variables were checked when
    /// they were loaded.
    fn invalid_values(&self) -> Vec<OptionMistake> {
        let mut options = self.clone();
        let wrongs = |key: &'static keys::OptionDefinition| {
            let wrongs = (key.slot)(&mut options).check();
            wrongs
                .into_iter()
                .map(|wrong| OptionMistake::invalid_value(key.name, OptionSource::Program, wrong))
                .collect::<Vec<_>>()
        };
        keys::all().flat_map(wrongs).collect()
    }

    /// Returns the source of a key's value.
    fn source_of(&self, key: &str) -> OptionSource {
        self.places.get(key).cloned().unwrap_or(OptionSource::Program)
    }
}

/// Omits most fields, because some hold secrets.
impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("server_name", &self.server_name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
