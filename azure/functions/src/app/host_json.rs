//! `host.json`: the configuration of the host of an app.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::language_workers::LanguageWorkers;
use super::log_level::LogLevels;
use super::settings::Settings;
use super::{overrides, read_object, unless_problems};
use crate::json::{ConfigReader, ProblemCollector};
use crate::problem::{AppError, Problem};

const FILE: &str = "host.json";

/// The content of `host.json`, with the overrides of the settings applied. Unknown members are ignored.
#[derive(Clone, Debug)]
pub struct HostConfig {
    pub mcp: McpConfig,
    /// How long a function may run. `None` means no limit.
    pub function_timeout: Option<Duration>,
    pub log_levels: LogLevels,
    pub custom_handler: Option<CustomHandlerConfig>,
    pub language_workers: LanguageWorkers,
    /// `configurationProfile`. It declares that a custom handler is itself an MCP server.
    pub configuration_profile: Option<String>,
}

/// The section `extensions.mcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpConfig {
    pub server_name: String,
    pub server_version: String,
    pub instructions: Option<String>,
    /// Accepted for compatibility. It has no effect in this host.
    pub encrypt_client_state: bool,
    pub use_absolute_uri_for_endpoint: bool,
    pub webhook_authorization: WebhookAuthorization,
    /// bindpost only: arguments of tools are validated against the schema.
    pub validate_arguments: bool,
    /// bindpost only: a prompt function that returns the JSON of a `GetPromptResult` returns that result.
    pub detect_prompt_json: bool,
    /// bindpost only: the maximum size of a request body, in bytes.
    pub max_request_body_bytes: u64,
}

impl Default for McpConfig {
    fn default() -> McpConfig {
        McpConfig {
            server_name: "Azure Functions MCP server".to_owned(),
            server_version: "1.0.0".to_owned(),
            instructions: None,
            encrypt_client_state: true,
            use_absolute_uri_for_endpoint: false,
            webhook_authorization: WebhookAuthorization::System,
            validate_arguments: false,
            detect_prompt_json: true,
            max_request_body_bytes: 100 * 1024 * 1024,
        }
    }
}

impl McpConfig {
    /// Returns whether callers need no key.
    pub fn is_anonymous(&self) -> bool {
        self.webhook_authorization == WebhookAuthorization::Anonymous
    }
}

/// The authorization level of the MCP endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookAuthorization {
    /// Callers need the system key `mcp_extension`.
    System,
    /// Callers need no key.
    Anonymous,
}

/// The section `customHandler`: a program that handles invocations over HTTP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomHandlerConfig {
    pub default_executable_path: String,
    pub working_directory: Option<String>,
    pub arguments: Vec<String>,
    pub worker_arguments: Vec<String>,
    pub enable_forwarding_http_request: bool,
    pub enable_proxying_http_request: bool,
    /// The member `http`, unchanged.
    pub http: Option<Value>,
    /// The port it listens on. Default: a free port.
    pub port: Option<u16>,
}

impl CustomHandlerConfig {
    /// Returns the program: a file in the app's folder if it exists, otherwise a name to look up on the PATH.
    pub fn program(&self, app: &Path) -> PathBuf {
        let in_app = app.join(&self.default_executable_path);
        if in_app.is_file() { in_app } else { PathBuf::from(&self.default_executable_path) }
    }
    /// Returns the working directory. Default: the app's folder.
    pub fn directory(&self, app: &Path) -> PathBuf {
        self.working_directory.as_ref().map_or_else(|| app.to_owned(), |directory| app.join(directory))
    }
}

impl HostConfig {
    /// Reads the `host.json` of an app.
    pub(super) fn read(folder: &Path, settings: &Settings) -> Result<HostConfig, AppError> {
        let Some(mut object) = read_object(&folder.join(FILE), FILE)? else {
            let problem = Problem::new("does not exist, so this folder is not a function app").in_file(FILE);
            let fix = r#"pass the folder of the app; in a new app, create host.json with {"version": "2.0"}"#;
            return Err(problem.fix(fix).into());
        };
        overrides::apply(&mut object, settings);
        let notes = ProblemCollector::on_file(FILE);
        let root = ConfigReader::new(&object, "", &notes);
        check_version(&root);
        let host = HostConfig {
            mcp: mcp(&root.object("extensions").object("mcp")),
            function_timeout: function_timeout(&root),
            log_levels: LogLevels::read(&root.object("logging").object("logLevel")),
            custom_handler: custom_handler(&root.object("customHandler")),
            language_workers: LanguageWorkers::read(&root.object("languageWorkers")),
            configuration_profile: root.text("configurationProfile"),
        };
        unless_problems(notes, host)
    }
}

fn check_version(root: &ConfigReader<'_>) {
    let fix = Some(r#"write "version": "2.0""#);
    match root.value("version") {
        None => root.report_problem("version", "is required", fix),
        Some(Value::String(version)) if version == "2.0" => {}
        Some(other) => {
            root.report_problem("version", format!("{other} is not a supported version of host.json"), fix)
        }
    }
}

fn mcp(members: &ConfigReader<'_>) -> McpConfig {
    let default = McpConfig::default();
    if members.is_null("messageOptions") {
        members.report_problem(
            "messageOptions",
            "Message options cannot be null.",
            Some("write {}, or remove it"),
        );
    }
    let messages = members.object("messageOptions");
    let flag = |name: &str, default: bool| members.flag(name).unwrap_or(default);
    McpConfig {
        server_name: members.text("serverName").unwrap_or(default.server_name),
        server_version: members.text("serverVersion").unwrap_or(default.server_version),
        instructions: members.text("instructions"),
        encrypt_client_state: flag("encryptClientState", default.encrypt_client_state),
        use_absolute_uri_for_endpoint: messages.flag("useAbsoluteUriForEndpoint").unwrap_or(false),
        webhook_authorization: webhook_authorization(&members.object("system")),
        validate_arguments: flag("validateArguments", default.validate_arguments),
        detect_prompt_json: flag("detectPromptJson", default.detect_prompt_json),
        max_request_body_bytes: members
            .whole_number("maxRequestBodyBytes")
            .unwrap_or(default.max_request_body_bytes),
    }
}

fn webhook_authorization(system: &ConfigReader<'_>) -> WebhookAuthorization {
    let name = "webhookAuthorizationLevel";
    let Some(text) = system.text(name) else { return WebhookAuthorization::System };
    match text.trim().to_ascii_lowercase().as_str() {
        "system" => {}
        "anonymous" => return WebhookAuthorization::Anonymous,
        _ => system.report_problem(
            name,
            format!("{text:?} is not an authorization level"),
            Some("write System or Anonymous"),
        ),
    }
    WebhookAuthorization::System
}

fn function_timeout(root: &ConfigReader<'_>) -> Option<Duration> {
    let name = "functionTimeout";
    match root.text(name).as_deref().map(str::trim) {
        Some("-1") => None,
        Some(_) => root.time(name),
        None => Some(Duration::from_secs(30 * 60)),
    }
}

fn custom_handler(members: &ConfigReader<'_>) -> Option<CustomHandlerConfig> {
    if !members.exists() {
        return None;
    }
    let description = members.object("description");
    let http = members.object("http");
    let proxying = members.flag("enableProxyingHttpRequest").or_else(|| http.flag("enableProxying"));
    Some(CustomHandlerConfig {
        // If it is missing, a problem is reported, and the app does not start.
        default_executable_path: description.required_text("defaultExecutablePath").unwrap_or_default(),
        working_directory: description.text("workingDirectory").filter(|path| !path.trim().is_empty()),
        arguments: description.texts("arguments"),
        worker_arguments: description.texts("workerArguments"),
        enable_forwarding_http_request: members.flag("enableForwardingHttpRequest").unwrap_or(false),
        enable_proxying_http_request: proxying.unwrap_or(false),
        http: members.value("http").cloned(),
        port: members.port("port"),
    })
}
