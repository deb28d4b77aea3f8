//! [`Function`]: a function with its trigger and its bindings, described by a worker or by a `function.json`.
//!
//! `http_trigger.rs` and `timer_trigger.rs` have the triggers that are not MCP triggers. `bindings.rs` reads functions,
//! and `path_arguments.rs` checks the arguments that paths of blobs name.

pub mod http_trigger;
pub mod timer_trigger;

mod bindings;
mod path_arguments;

use std::collections::{HashMap, HashSet};

use bindpost_mcp_protocol::{Prompt, Resource, ResourceTemplate, Tool};
use bindpost_mcp_server::TaskSupport;
use serde_json::Value;

use crate::bindings::template::PathTemplate;
use crate::bindings::uri::UriPattern;
use crate::json::ConfigReader;
use crate::problem::Problem;

pub use self::http_trigger::{AuthorizationLevel, HttpTrigger};
pub use self::timer_trigger::TimerTrigger;

/// A function of an app.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub id: String,
    pub trigger: Trigger,
    pub inputs: Vec<InputBinding>,
    pub outputs: Vec<OutputBinding>,
    pub source: FunctionSource,
    /// Mistakes with which the function is still served.
    pub warnings: Vec<Problem>,
}

/// The data that a worker needs to load the function.
#[derive(Clone, Debug, Default)]
pub struct FunctionSource {
    pub directory: String,
    pub script_file: String,
    pub entry_point: String,
    pub language: String,
    pub properties: HashMap<String, String>,
    pub bindings: Vec<BindingInfo>,
}

/// The description of one binding for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingInfo {
    pub name: String,
    /// The JSON member `type`.
    pub kind: String,
    pub direction: BindingDirection,
    pub data_type: DataType,
}

/// The direction of a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BindingDirection {
    #[default]
    In,
    Out,
    InOut,
}

/// The type in which a function receives its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataType {
    #[default]
    Undefined,
    Text,
    Binary,
    Stream,
}

/// The trigger of a function.
#[derive(Debug)]
pub enum Trigger {
    Tool(ToolTrigger),
    Resource(ResourceTrigger),
    Prompt(PromptTrigger),
    Http(HttpTrigger),
    Timer(TimerTrigger),
}

/// An `mcpToolTrigger`.
#[derive(Debug)]
pub struct ToolTrigger {
    pub parameter: String,
    pub tool: Tool,
    /// The names of the required arguments, in the order of the schema.
    pub required: Vec<String>,
    pub uses_result_schema: bool,
    /// Whether calls run as tasks, if the trigger decides it.
    pub task_support: Option<TaskSupport>,
}

/// An `mcpResourceTrigger`.
#[derive(Debug)]
pub struct ResourceTrigger {
    pub parameter: String,
    pub address: ResourceAddress,
    pub mime_type: Option<String>,
}

/// The URIs that a resource trigger serves.
#[derive(Debug)]
pub enum ResourceAddress {
    One(Resource),
    Family(UriPattern, ResourceTemplate),
}

/// An `mcpPromptTrigger`.
#[derive(Debug)]
pub struct PromptTrigger {
    pub parameter: String,
    pub prompt: Prompt,
    /// The names of the required arguments, in the order of the definition.
    pub required: Vec<String>,
    pub uses_result_schema: bool,
}

/// An input of a function besides its trigger.
#[derive(Debug)]
pub enum InputBinding {
    Blob(BlobBinding),
    ToolProperty { name: String, property: String },
    PromptArgument { name: String, argument: String, required: bool },
}

/// An output of a function. Its name may be `$return`.
#[derive(Debug)]
pub enum OutputBinding {
    Blob(BlobBinding),
    /// The response to the HTTP request of the trigger.
    Http {
        name: String,
    },
}

/// A blob that is read or written.
#[derive(Debug)]
pub struct BlobBinding {
    pub name: String,
    pub path: PathTemplate,
    /// The name of the setting with the storage connection. Defaults to `AzureWebJobsStorage`.
    pub connection: String,
    pub data_type: DataType,
}

/// A function that bindpost does not serve, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFunction {
    pub name: String,
    pub reason: String,
}

/// The reason why bindings do not form a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionRejection {
    /// The function uses triggers or bindings that are not supported.
    Skipped(SkippedFunction),
    /// The bindings are invalid.
    Problems(Vec<Problem>),
}

impl Function {
    /// Builds a function from its bindings, each an object of a `function.json`. Fills in `source.bindings`.
    /// `setting` looks up app settings.
    pub fn from_bindings(
        name: &str,
        id: &str,
        source: FunctionSource,
        bindings: &[Value],
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Function, FunctionRejection> {
        bindings::build_function(name, id, source, bindings, setting)
    }

    /// Builds a function from raw bindings, each the JSON text of such an object, as workers send them.
    pub fn from_raw_bindings(
        name: &str,
        id: &str,
        source: FunctionSource,
        bindings: &[impl AsRef<str>],
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Function, FunctionRejection> {
        let parsed: Result<Vec<Value>, Problem> = bindings
            .iter()
            .enumerate()
            .map(|(index, text)| {
                crate::json::parse(text.as_ref()).map_err(|error| {
                    Problem::new(format!("is not valid JSON: {error}"))
                        .of_function(name)
                        .at(format!("bindings[{index}]"))
                })
            })
            .collect();
        Function::from_bindings(
            name,
            id,
            source,
            &parsed.map_err(|p| FunctionRejection::Problems(vec![p]))?,
            setting,
        )
    }

    /// Returns the name of the parameter that receives the trigger's value.
    pub fn parameter(&self) -> &str {
        match &self.trigger {
            Trigger::Tool(trigger) => &trigger.parameter,
            Trigger::Resource(trigger) => &trigger.parameter,
            Trigger::Prompt(trigger) => &trigger.parameter,
            Trigger::Http(trigger) => &trigger.parameter,
            Trigger::Timer(trigger) => &trigger.parameter,
        }
    }

    /// Returns whether the function reads or writes a blob.
    pub(crate) fn has_blobs(&self) -> bool {
        self.read_blobs().chain(self.written_blobs()).next().is_some()
    }

    /// Returns the blobs that the function reads.
    pub(crate) fn read_blobs(&self) -> impl Iterator<Item = &BlobBinding> {
        self.inputs.iter().filter_map(InputBinding::as_blob)
    }

    /// Returns the blobs that the function writes.
    pub(crate) fn written_blobs(&self) -> impl Iterator<Item = &BlobBinding> {
        self.outputs.iter().filter_map(OutputBinding::as_blob)
    }
}

impl InputBinding {
    fn as_blob(&self) -> Option<&BlobBinding> {
        match self {
            InputBinding::Blob(binding) => Some(binding),
            InputBinding::ToolProperty { .. } | InputBinding::PromptArgument { .. } => None,
        }
    }
}

impl OutputBinding {
    fn as_blob(&self) -> Option<&BlobBinding> {
        match self {
            OutputBinding::Blob(binding) => Some(binding),
            OutputBinding::Http { .. } => None,
        }
    }
}

/// Returns a problem for each function whose tool, prompt or resource an earlier one already has. Case is
/// ignored.
pub fn check_unique<'a>(functions: impl IntoIterator<Item = &'a Function>) -> Vec<Problem> {
    let mut tools = HashSet::new();
    let mut prompts = HashSet::new();
    let mut resources = HashSet::new();
    let mut templates = HashMap::new();
    let mut problems = Vec::new();
    for function in functions {
        let (member, is_new, message) = match &function.trigger {
            Trigger::Tool(ToolTrigger { tool, .. }) => {
                let message = format!("Tool with name '{}' is already registered.", tool.name);
                ("mcpToolTrigger.toolName", tools.insert(tool.name.to_lowercase()), message)
            }
            Trigger::Prompt(PromptTrigger { prompt, .. }) => {
                let message = format!("Prompt with name '{}' is already registered.", prompt.name);
                ("mcpPromptTrigger.promptName", prompts.insert(prompt.name.to_lowercase()), message)
            }
            Trigger::Resource(ResourceTrigger { address: ResourceAddress::One(resource), .. }) => {
                let message = format!("Resource with URI '{}' is already registered.", resource.uri);
                ("mcpResourceTrigger.uri", resources.insert(resource.uri.to_lowercase()), message)
            }
            Trigger::Resource(ResourceTrigger {
                address: ResourceAddress::Family(pattern, template),
                ..
            }) => {
                let new = &template.uri_template;
                let existing = *templates.entry(pattern.normalized()).or_insert(new);
                let message = format!(
                    "A resource template with an equivalent URI pattern is already registered. \
                     Existing: '{existing}', New: '{new}'."
                );
                ("mcpResourceTrigger.uri", std::ptr::eq(existing, new), message)
            }
            Trigger::Http(_) | Trigger::Timer(_) => continue,
        };
        if !is_new {
            let problem = Problem::new(message).of_function(&function.name).at(member);
            problems.push(problem.fix("rename or remove one of the two; upper and lower case are the same"));
        }
    }
    problems
}

/// Fills the settings `%NAME%` into a member of a trigger. Reports a setting that does not exist.
fn fill_settings(
    text: &str,
    member: &str,
    members: &ConfigReader<'_>,
    setting: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let filled = crate::bindings::template::fill_settings(text, setting);
    let fix = "add the setting, or write the value itself";
    filled.map_err(|error| members.report_problem(member, error.to_string(), Some(fix))).ok()
}

#[cfg(test)]
mod tests;
