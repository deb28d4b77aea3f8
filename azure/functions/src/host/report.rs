//! [`AppReport`]: the facts of the start screen, for people and for programs.

use bindpost_mcp_protocol::{Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::Value;

use crate::function::{BlobBinding, Function, InputBinding, OutputBinding, ResourceAddress, Trigger};
use crate::problem::Problem;

/// What an app offers, and which problems it has.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppReport {
    /// The name of the app, which is the name of its folder.
    pub app: String,
    /// The language and its version.
    pub runtime: String,
    /// The tools that the app offers.
    pub tools: Vec<ToolRow>,
    /// The resources and resource templates.
    pub resources: Vec<ResourceRow>,
    /// The prompts that the app offers.
    pub prompts: Vec<PromptRow>,
    /// Facts that the operator should know, such as where blobs are stored.
    pub notices: Vec<String>,
    /// Problems that do not prevent the app from running.
    pub warnings: Vec<AppWarning>,
}

/// A tool of the report.
#[derive(Clone, Debug, Serialize)]
pub struct ToolRow {
    /// The name of the tool.
    pub name: String,
    /// The arguments of the tool.
    pub arguments: Vec<ArgumentRow>,
    /// The function that implements it.
    pub function: String,
    /// The blobs that the function reads and writes.
    pub bindings: Vec<String>,
    /// The hints of the tool's annotations that are true.
    pub hints: Vec<&'static str>,
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
    pub(crate) fn add(&mut self, function: &Function) {
        let name = function.name.clone();
        let bindings = bindings_of(function);
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
        }
    }

    /// Warns of missing descriptions of a tool and its arguments. Models choose by them.
    fn warn_of_missing_words(&mut self, tool: &Tool) {
        if tool.description.as_deref().unwrap_or_default().trim().is_empty() {
            let warning =
                AppWarning::new(format!("tool {} has no description: models choose tools by it", tool.name));
            self.warnings
                .push(warning.fix("give the trigger a description that says what the tool does, and when"));
        }
        let bare: Vec<&str> = tool
            .input_schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(_, property)| {
                property.get("description").and_then(Value::as_str).unwrap_or_default().trim().is_empty()
            })
            .map(|(name, _)| name.as_str())
            .collect();
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
    let inputs = function.inputs.iter().filter_map(|input| match input {
        InputBinding::Blob(binding) => Some(blob("←", binding)),
        InputBinding::ToolProperty { .. } | InputBinding::PromptArgument { .. } => None,
    });
    let outputs = function.outputs.iter().map(|OutputBinding::Blob(binding)| blob("→", binding));
    inputs.chain(outputs).collect()
}

fn arguments_of(schema: &Value) -> Vec<ArgumentRow> {
    let required: Vec<&str> = strings(schema.get("required")).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| ArgumentRow {
            name: name.clone(),
            kind: kind_of(property),
            required: required.contains(&name.as_str()),
        })
        .collect()
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

fn hints_of(hints: &ToolAnnotations) -> Vec<&'static str> {
    let said = [
        (hints.read_only_hint == Some(true), "read-only"),
        (hints.destructive_hint == Some(true), "destructive"),
        (hints.idempotent_hint == Some(true), "idempotent"),
        (hints.open_world_hint == Some(true), "open world"),
    ];
    said.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect()
}
