//! `host.json`: the configuration of the host of an app.

use std::path::Path;
use std::time::Duration;

use bindpost_mcp_server::nearest;
use serde_json::Value;

use super::custom_handler::{ConfigurationProfile, CustomHandlerConfig};
use super::http_config::HttpConfig;
use super::http_tool_config::HttpToolConfig;
use super::language_workers::LanguageWorkers;
use super::log_level::LogLevels;
use super::settings::Settings;
use super::task_config::TaskConfig;
use super::{overrides, read_object, unless_problems};
use crate::json::{ConfigReader, ProblemCollector};
use crate::problem::{AppError, Problem};

const FILE: &str = "host.json";
/// The members of `extensions.mcp`.
const MCP_MEMBERS: [&str; 11] = [
    "serverName",
    "serverVersion",
    "instructions",
    "encryptClientState",
    "messageOptions",
    "system",
    "validateArguments",
    "detectPromptJson",
    "maxRequestBodyBytes",
    "tasks",
    "httpTools",
];

/// The content of `host.json`, with the overrides of the settings applied. Unknown members are ignored.
#[derive(Clone, Debug)]
pub struct HostConfig {
    pub mcp: McpConfig,
    pub http: HttpConfig,
    /// How long a function may run. `None` means no limit.
    pub function_timeout: Option<Duration>,
    pub log_levels: LogLevels,
    pub custom_handler: Option<CustomHandlerConfig>,
    pub language_workers: LanguageWorkers,
    /// Mistakes with which the app still runs.
    pub warnings: Vec<Problem>,
    pub profile: ConfigurationProfile,
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
    /// bindpost only: the tools that run as tasks.
    pub tasks: TaskConfig,
    /// bindpost only: the functions with an HTTP trigger that are tools.
    pub http_tools: HttpToolConfig,
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
            tasks: TaskConfig::default(),
            http_tools: HttpToolConfig::default(),
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
        let mcp = mcp(&root.object("extensions").object("mcp"));
        let profile = ConfigurationProfile::read(&root);
        let http = root.object("extensions").object("http");
        let http = HttpConfig::read(&http, settings, profile.route_prefix());
        let handler = root.object("customHandler");
        let prefix = http.route_prefix.clone();
        let host = HostConfig {
            mcp,
            http,
            function_timeout: function_timeout(&root),
            log_levels: LogLevels::read(&root.object("logging").object("logLevel")),
            custom_handler: CustomHandlerConfig::read(&handler, profile, &prefix),
            language_workers: LanguageWorkers::read(&root.object("languageWorkers")),
            profile,
            warnings: notes.take_warnings(),
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
    for (members, known) in [
        (members, MCP_MEMBERS.as_slice()),
        (&messages, &["useAbsoluteUriForEndpoint"]),
        (&members.object("system"), &["webhookAuthorizationLevel"]),
        (&members.object("tasks"), &TaskConfig::MEMBERS),
    ] {
        warn_of_unknown(members, known);
    }
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
        tasks: TaskConfig::read(&members.object("tasks")),
        http_tools: HttpToolConfig::read(members),
    }
}

/// Warns of members that no setting has. The platform ignores them.
pub(super) fn warn_of_unknown(members: &ConfigReader<'_>, known: &[&str]) {
    for (name, _) in members.iter() {
        if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        let near = nearest::nearest(name, known).or(match known {
            [only] => Some(only),
            _ => None,
        });
        let fix = match near {
            Some(near) => format!("write {near:?}"),
            None => format!("remove it; the settings are {}", known.join(", ")),
        };
        members.report_warning(name, "is not a setting and has no effect", fix);
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
