//! [`AppReport`]: the facts of the start screen, for people and for programs.

use bindpost_mcp_protocol::{Tool, ToolAnnotations, ToolSchema};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::bindings::mcp::property_names;
use crate::function::{BlobBinding, Function, ResourceAddress, Trigger};
use crate::http_tools::HttpTool;
use crate::problem::Problem;
use crate::routes::RouteTable;
use crate::timers::status::local_text;
use crate::timers::zone::TimeZone;

/// What an app offers, and which problems it has.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppReport {
    /// The name of the app, which is the name of its folder.
    pub app: String,
    /// The language and its version.
    pub runtime: String,
    /// The program that runs the functions.
    pub worker: WorkerRow,
    /// The server of a self-hosted app. `None` for an app with functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerRow>,
    /// Where the interpreter comes from, and why it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// The tools that the app offers.
    pub tools: Vec<ToolRow>,
    /// The resources and resource templates.
    pub resources: Vec<ResourceRow>,
    /// The prompts that the app offers.
    pub prompts: Vec<PromptRow>,
    /// The functions that answer HTTP requests.
    pub http: Vec<HttpRow>,
    /// The functions that run by a schedule.
    pub timers: Vec<TimerRow>,
    /// Facts that the operator should know, such as where blobs are stored.
    pub notices: Vec<String>,
    /// Problems that do not prevent the app from running.
    pub warnings: Vec<AppWarning>,
}

/// The program that runs the functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerRow {
    /// Whose program it is.
    pub kind: WorkerKind,
    /// The folder of a public worker, the program of a custom handler, or the command of a self-hosted app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Whose program runs the functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerKind {
    /// The language worker of bindpost.
    #[default]
    BuiltIn,
    /// A language worker of the platform.
    Public,
    /// A program of the app.
    CustomHandler,
    /// A program of the app that is a server of its own.
    SelfHosted,
}

impl WorkerKind {
    /// Returns the words for the start screen.
    pub fn as_words(self) -> &'static str {
        match self {
            WorkerKind::BuiltIn => "built-in worker",
            WorkerKind::Public => "public worker",
            WorkerKind::CustomHandler => "custom handler",
            WorkerKind::SelfHosted => "self-hosted server",
        }
    }
}

/// The server of a self-hosted app, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerRow {
    /// The name of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The revision of MCP that it selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it has sessions.
    pub sessions: bool,
    /// Why the rest is not known: nothing answers MCP requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A tool of the report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolRow {
    /// The name of the tool.
    pub name: String,
    /// The arguments of the tool.
    pub arguments: Vec<ArgumentRow>,
    /// The function that implements it. Empty for a tool of a self-hosted app.
    pub function: String,
    /// The blobs that the function reads and writes.
    pub bindings: Vec<String>,
    /// The hints of the tool's annotations that are true.
    pub hints: Vec<&'static str>,
    /// The methods and the path of its requests, if the function has an HTTP trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
}

/// An argument of a tool or a prompt.
#[derive(Clone, Debug, Serialize)]
pub struct ArgumentRow {
    /// The name of the argument.
    pub name: String,
    /// The type of the argument, or its allowed values.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the argument is required.
    pub required: bool,
}

/// A resource or a resource template.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRow {
    /// The URI or the URI template.
    pub uri: String,
    /// The name of the resource.
    pub name: String,
    /// The media type of the contents.
    pub mime_type: Option<String>,
    /// The function that implements it.
    pub function: String,
    /// The blobs that the function reads and writes.
    pub bindings: Vec<String>,
}

/// A prompt of the report.
#[derive(Clone, Debug, Serialize)]
pub struct PromptRow {
    /// The name of the prompt.
    pub name: String,
    /// The arguments of the prompt.
    pub arguments: Vec<ArgumentRow>,
    /// The function that implements it.
    pub function: String,
}

/// A function that answers HTTP requests.
#[derive(Clone, Debug, Serialize)]
pub struct HttpRow {
    /// The methods that it answers. Empty means all.
    pub methods: Vec<String>,
    /// The route template, with the prefix.
    pub route: String,
    /// `anonymous`, `function` or `admin`.
    pub level: &'static str,
    /// The function that implements it.
    pub function: String,
    /// The blobs that the function reads and writes.
    pub bindings: Vec<String>,
}

/// A function that runs by a schedule.
#[derive(Clone, Debug, Serialize)]
pub struct TimerRow {
    /// The schedule as text.
    pub schedule: String,
    /// The local time of the next run, with its offset from UTC. `None` if there is none.
    pub next: Option<String>,
    /// The function that implements it.
    pub function: String,
    /// The blobs that the function reads and writes.
    pub bindings: Vec<String>,
}

/// A problem that does not prevent the rest of the app from being served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppWarning {
    /// The problem.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl AppWarning {
    pub(crate) fn new(message: impl Into<String>) -> AppWarning {
        AppWarning { message: message.into(), fix: None }
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> AppWarning {
        self.fix = Some(fix.into());
        self
    }
}

impl From<&Problem> for AppWarning {
    fn from(problem: &Problem) -> AppWarning {
        let message = Problem { fix: None, ..problem.clone() }.to_string();
        AppWarning { message, fix: problem.fix.clone() }
    }
}

impl AppReport {
    /// Adds a function without an HTTP trigger. `zone` is the time zone of schedules.
    pub(crate) fn add(&mut self, function: &Function, zone: &TimeZone, now: DateTime<Utc>) {
        let name = function.name.clone();
        let bindings = bindings_of(function);
        self.warnings.extend(function.warnings.iter().map(AppWarning::from));
        match &function.trigger {
            Trigger::Tool(trigger) => {
                let tool = &trigger.tool;
                self.warn_of_missing_words(tool);
                self.tools.push(ToolRow {
                    name: tool.name.clone(),
                    arguments: arguments_of(&tool.input_schema),
                    function: name,
                    bindings,
                    hints: tool.annotations.as_ref().map(hints_of).unwrap_or_default(),
                    http: None,
                });
            }
            Trigger::Resource(trigger) => {
                let (uri, resource) = match &trigger.address {
                    ResourceAddress::One(resource) => (&resource.uri, &resource.name),
                    ResourceAddress::Family(_, template) => (&template.uri_template, &template.name),
                };
                self.resources.push(ResourceRow {
                    uri: uri.clone(),
                    name: resource.clone(),
                    mime_type: trigger.mime_type.clone(),
                    function: name,
                    bindings,
                });
            }
            Trigger::Prompt(trigger) => {
                let arguments = trigger.prompt.arguments.iter().map(|argument| ArgumentRow {
                    name: argument.name.clone(),
                    kind: "string".to_owned(),
                    required: argument.required,
                });
                self.prompts.push(PromptRow {
                    name: trigger.prompt.name.clone(),
                    arguments: arguments.collect(),
                    function: name,
                });
            }
            Trigger::Http(_) => {}
            Trigger::Timer(trigger) => self.timers.push(TimerRow {
                schedule: trigger.text.clone(),
                next: trigger.schedule.next_after(now, zone).map(|next| local_text(next, zone)),
                function: name,
                bindings,
            }),
        }
    }

    /// Adds the functions with an HTTP trigger, in the order in which their routes are tried.
    pub(crate) fn add_routes(&mut self, table: &RouteTable) {
        self.http.extend(table.routes().iter().map(|route| HttpRow {
            methods: route.methods.iter().map(|method| method.as_str().to_owned()).collect(),
            route: format!("/{}", route.text),
            level: route.level.as_str(),
            function: route.function.name.clone(),
            bindings: bindings_of(&route.function),
        }));
    }

    /// Adds the tools by HTTP triggers.
    pub(crate) fn add_http_tools(&mut self, tools: &[HttpTool]) {
        self.tools.extend(tools.iter().map(|tool| ToolRow {
            name: tool.definition.name.clone(),
            arguments: arguments_of(&tool.definition.input_schema),
            function: tool.function.name.clone(),
            bindings: bindings_of(&tool.function),
            hints: tool.definition.annotations.as_ref().map(hints_of).unwrap_or_default(),
            http: Some(tool.operation.clone()),
        }));
    }

    /// Warns of missing descriptions of a tool and its arguments. Models choose by them.
    fn warn_of_missing_words(&mut self, tool: &Tool) {
        if tool.description.as_deref().unwrap_or_default().trim().is_empty() {
            let warning =
                AppWarning::new(format!("tool {} has no description: models choose tools by it", tool.name));
            self.warnings
                .push(warning.fix("give the trigger a description that says what the tool does, and when"));
        }
        let described = |name: &String| {
            let property = tool.input_schema.get("properties").and_then(|properties| properties.get(name));
            let description = property.and_then(|property| property.get("description"));
            !description.and_then(Value::as_str).unwrap_or_default().trim().is_empty()
        };
        let bare: Vec<String> =
            property_names(&tool.input_schema).into_iter().filter(|name| !described(name)).collect();
        if !bare.is_empty() {
            let names = bare.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let warning =
                format!("tool {} has no description for {names}: models choose arguments badly", tool.name);
            self.warnings.push(AppWarning::new(warning).fix("describe each property of the tool"));
        }
    }
}

fn bindings_of(function: &Function) -> Vec<String> {
    let blob = |arrow: &str, binding: &BlobBinding| format!("{arrow} blob {}", binding.path.as_str());
    let inputs = function.read_blobs().map(|binding| blob("←", binding));
    let outputs = function.written_blobs().map(|binding| blob("→", binding));
    inputs.chain(outputs).collect()
}

pub(crate) fn arguments_of(schema: &ToolSchema) -> Vec<ArgumentRow> {
    let required: Vec<&str> = strings(schema.get("required")).collect();
    let row = |name: String| ArgumentRow {
        kind: schema
            .get("properties")
            .and_then(|properties| properties.get(&name))
            .map(kind_of)
            .unwrap_or_default(),
        required: required.contains(&name.as_str()),
        name,
    };
    property_names(schema).into_iter().map(row).collect()
}

fn kind_of(property: &Value) -> String {
    let values: Vec<&str> = strings(property.get("enum")).collect();
    if !values.is_empty() {
        return values.join("|");
    }
    match property.get("type").and_then(Value::as_str) {
        Some("array") => match property.get("items") {
            Some(items) => format!("{}[]", kind_of(items)),
            None => "array".to_owned(),
        },
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

pub(crate) fn hints_of(hints: &ToolAnnotations) -> Vec<&'static str> {
    let said = [
        (hints.read_only_hint == Some(true), "read-only"),
        (hints.destructive_hint == Some(true), "destructive"),
        (hints.idempotent_hint == Some(true), "idempotent"),
        (hints.open_world_hint == Some(true), "open world"),
    ];
    said.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect()
}
