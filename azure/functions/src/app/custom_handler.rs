//! [`CustomHandlerConfig`]: the section `customHandler` of `host.json`. [`ConfigurationProfile`]: whether its program is
//! itself a server, to which requests are forwarded.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bindpost_mcp_server::nearest;

use super::host_json::HostConfig;
use super::runtime::WorkerRuntime;
use crate::function::AuthorizationLevel;
use crate::json::ConfigReader;
use crate::routes::template::RouteTemplate;

/// The names of the profiles of self-hosted apps.
const SELF_HOSTED: [&str; 2] = ["mcp-custom-handler", "web-app-custom-handler"];
/// The route of a self-hosted app that names none: every path.
const EVERY_PATH: &str = "{*route}";
/// How long a handler may take until it listens, unless the app has another time.
const INITIALIZATION: Duration = Duration::from_secs(30);

/// The section `customHandler`: a program that handles invocations over HTTP, or serves requests itself.
#[derive(Clone, Debug)]
pub struct CustomHandlerConfig {
    pub default_executable_path: String,
    pub working_directory: Option<String>,
    pub arguments: Vec<String>,
    pub worker_arguments: Vec<String>,
    pub enable_forwarding_http_request: bool,
    pub enable_proxying_http_request: bool,
    /// The port it listens on. Default: a free port.
    pub port: Option<u16>,
    /// How long it may take until it listens.
    pub initialization_timeout: Duration,
    /// `http.routes`: the paths whose requests are forwarded, in the order in which they are tried.
    pub routes: Vec<HandlerRoute>,
}

/// A route whose requests are forwarded to the program.
#[derive(Clone, Debug)]
pub struct HandlerRoute {
    /// The name of the function that the platform creates for it: `http-handler1`. Keys belong to functions.
    pub function: String,
    /// The template as text, with the prefix.
    pub text: String,
    pub template: RouteTemplate,
    pub level: AuthorizationLevel,
}

/// `configurationProfile`: a name for several settings of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigurationProfile {
    #[default]
    Default,
    /// The program of the custom handler is a server, and every request is forwarded to it.
    SelfHosted,
}

impl ConfigurationProfile {
    pub(super) fn read(root: &ConfigReader<'_>) -> ConfigurationProfile {
        let name = "configurationProfile";
        let text = root.text(name).unwrap_or_default();
        let is = |known: &str| text.trim().eq_ignore_ascii_case(known);
        if SELF_HOSTED.iter().any(|known| is(known)) {
            return ConfigurationProfile::SelfHosted;
        }
        if !["", "default"].iter().any(|known| is(known)) {
            let message = format!(
                "Configuration profile '{text}' is not supported. Supported values: '', 'default', \
                 'mcp-custom-handler'."
            );
            let near = nearest::nearest(&text, &SELF_HOSTED).unwrap_or(SELF_HOSTED[0]);
            let fix = format!("write {near:?} if the program of customHandler is a server, or remove it");
            root.report_problem(name, message, Some(&fix));
        }
        ConfigurationProfile::Default
    }

    /// Returns the first part of every route, unless the app has another.
    pub(super) fn route_prefix(self) -> &'static str {
        match self {
            ConfigurationProfile::Default => "api",
            ConfigurationProfile::SelfHosted => "",
        }
    }
}

impl CustomHandlerConfig {
    /// Reads the section. `prefix` is the first part of every route.
    pub(super) fn read(
        members: &ConfigReader<'_>,
        profile: ConfigurationProfile,
        prefix: &str,
    ) -> Option<CustomHandlerConfig> {
        if !members.exists() {
            return None;
        }
        let description = members.object("description");
        let http = members.object("http");
        let proxying = members.flag("enableProxyingHttpRequest").or_else(|| http.flag("enableProxying"));
        let is_self_hosted = profile == ConfigurationProfile::SelfHosted;
        if is_self_hosted && proxying == Some(false) {
            let message =
                "is false, but configurationProfile says that requests are forwarded to the program";
            members.report_problem("enableProxyingHttpRequest", message, Some("remove one of the two"));
        }
        Some(CustomHandlerConfig {
            // If it is missing, a problem is reported, and the app does not start.
            default_executable_path: description.required_text("defaultExecutablePath").unwrap_or_default(),
            working_directory: description.text("workingDirectory").filter(|path| !path.trim().is_empty()),
            arguments: description.texts("arguments"),
            worker_arguments: description.texts("workerArguments"),
            enable_forwarding_http_request: members.flag("enableForwardingHttpRequest").unwrap_or(false),
            enable_proxying_http_request: proxying.unwrap_or(is_self_hosted),
            port: members.port("port"),
            initialization_timeout: members.time("initializationTimeout").unwrap_or(INITIALIZATION),
            routes: routes(&http, is_self_hosted.then_some(EVERY_PATH), prefix),
        })
    }

    /// Returns the program: a file in the app's folder if it exists, otherwise a name to look up on the PATH.
    pub fn program(&self, app: &Path) -> PathBuf {
        let in_app = app.join(&self.default_executable_path);
        if in_app.is_file() { in_app } else { PathBuf::from(&self.default_executable_path) }
    }

    /// Returns the working directory. Default: the app's folder.
    pub fn directory(&self, app: &Path) -> PathBuf {
        self.working_directory.as_ref().map_or_else(|| app.to_owned(), |directory| app.join(directory))
    }

    /// Returns all arguments of the program.
    pub fn all_arguments(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().chain(&self.worker_arguments).map(String::as_str)
    }
}

impl HostConfig {
    /// Returns the program to which requests are forwarded, if the app is a server of its own: its profile says so, or it
    /// has the settings for which the profile is a short form.
    pub fn self_hosted(&self, runtime: &WorkerRuntime) -> Option<&CustomHandlerConfig> {
        let handler = self.custom_handler.as_ref().filter(|_| *runtime == WorkerRuntime::Custom)?;
        let has_routes = handler.enable_proxying_http_request && !handler.routes.is_empty();
        (self.profile == ConfigurationProfile::SelfHosted || has_routes).then_some(handler)
    }
}

/// Reads `http.routes`. `default` is the only route if there is none.
fn routes(http: &ConfigReader<'_>, default: Option<&str>, prefix: &str) -> Vec<HandlerRoute> {
    let default_level = AuthorizationLevel::read(http, "defaultAuthorizationLevel").unwrap_or_default();
    let listed = http.objects("routes");
    let mut routes: Vec<(String, Option<AuthorizationLevel>, &ConfigReader<'_>)> = listed
        .iter()
        .filter_map(|route| {
            Some((
                route.required_text("route")?,
                AuthorizationLevel::read(route, "authorizationLevel"),
                route,
            ))
        })
        .collect();
    if routes.is_empty()
        && let Some(default) = default
    {
        routes.push((default.to_owned(), None, http));
    }
    let mut parsed: Vec<HandlerRoute> = Vec::new();
    for (number, (route, level, reader)) in routes.into_iter().enumerate() {
        let own = route.trim_matches('/');
        let text = if prefix.is_empty() { own.to_owned() } else { format!("{prefix}/{own}") };
        let template = match text.contains(' ') {
            true => Err("Route template cannot contain spaces.".to_owned()),
            false => RouteTemplate::parse(&text),
        };
        match template {
            Ok(template) => parsed.push(HandlerRoute {
                function: format!("http-handler{}", number + 1),
                text,
                template,
                level: level.unwrap_or(default_level),
            }),
            Err(error) => {
                let fix = "write a route such as mcp, or {*route} for every path";
                reader.report_problem("route", format!("{error}, in {text:?}"), Some(fix));
            }
        }
    }
    // The platform tries functions in the order of their names: http-handler10 before http-handler2.
    parsed.sort_by(|one, other| one.function.cmp(&other.function));
    parsed
}
