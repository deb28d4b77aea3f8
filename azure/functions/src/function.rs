//! A function as the host sees it, whoever described it: a worker, or a `function.json`.

mod bindings;

use std::collections::{HashMap, HashSet};

use bindpost_mcp_protocol::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;

use crate::bindings::template::PathTemplate;
use crate::bindings::uri::UriPattern;
use crate::problem::Problem;

/// A function with an MCP trigger.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub id: String,
    pub trigger: Trigger,
    pub inputs: Vec<InputBinding>,
    pub outputs: Vec<OutputBinding>,
    pub source: FunctionSource,
}

/// What a worker is told when it loads the function.
#[derive(Clone, Debug, Default)]
pub struct FunctionSource {
    pub directory: String,
    pub script_file: String,
    pub entry_point: String,
    pub language: String,
    pub properties: HashMap<String, String>,
    pub bindings: Vec<BindingInfo>,
}

/// What a worker is told about one binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingInfo {
    pub name: String,
    /// The JSON member `type`.
    pub kind: String,
    pub direction: BindingDirection,
    pub data_type: DataType,
}

/// Which way data flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BindingDirection {
    #[default]
    In,
    Out,
    InOut,
}

/// How a function wants its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataType {
    #[default]
    Undefined,
    Text,
    Binary,
    Stream,
}

/// What makes a function run.
#[derive(Debug)]
pub enum Trigger {
    Tool(ToolTrigger),
    Resource(ResourceTrigger),
    Prompt(PromptTrigger),
}

/// A call of a tool.
#[derive(Debug)]
pub struct ToolTrigger {
    pub parameter: String,
    pub tool: Tool,
    /// The arguments that must be there, in the order of the schema.
    pub required: Vec<String>,
    pub uses_result_schema: bool,
}

/// A read of a resource.
#[derive(Debug)]
pub struct ResourceTrigger {
    pub parameter: String,
    pub address: ResourceAddress,
    pub mime_type: Option<String>,
}

/// Which URIs a resource trigger answers.
#[derive(Debug)]
pub enum ResourceAddress {
    One(Resource),
    Family(UriPattern, ResourceTemplate),
}

/// A get of a prompt.
#[derive(Debug)]
pub struct PromptTrigger {
    pub parameter: String,
    pub prompt: Prompt,
    /// The arguments that must be there, in the order of the definition.
    pub required: Vec<String>,
    pub uses_result_schema: bool,
}

/// What a function is given besides its trigger.
#[derive(Debug)]
pub enum InputBinding {
    Blob(BlobBinding),
    ToolProperty { name: String, property: String },
    PromptArgument { name: String, argument: String, required: bool },
}

/// Where a function writes; the name may be `$return`.
#[derive(Debug)]
pub enum OutputBinding {
    Blob(BlobBinding),
}

/// A blob that is read or written.
#[derive(Debug)]
pub struct BlobBinding {
    pub name: String,
    pub path: PathTemplate,
    /// The name of the setting that leads to the storage account, `AzureWebJobsStorage` unless given.
    pub connection: String,
    pub data_type: DataType,
}

/// A function that bindpost leaves out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFunction {
    pub name: String,
    pub reason: String,
}

/// Why bindings do not make a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionRejection {
    /// It is none of ours.
    Skipped(SkippedFunction),
    /// It has mistakes.
    Problems(Vec<Problem>),
}

impl Function {
    /// Makes a function of its bindings, each an object of a `function.json`. `source.bindings` is filled
    /// in; `setting` finds app settings.
    pub fn from_bindings(
        name: &str,
        id: &str,
        source: FunctionSource,
        bindings: &[Value],
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Function, FunctionRejection> {
        bindings::build_function(name, id, source, bindings, setting)
    }

    /// The same of raw bindings, each the text of such an object, as workers send them.
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
                    Problem::new(format!("is no JSON: {error}"))
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

    /// The name of the parameter that gets the trigger's value.
    pub fn parameter(&self) -> &str {
        match &self.trigger {
            Trigger::Tool(trigger) => &trigger.parameter,
            Trigger::Resource(trigger) => &trigger.parameter,
            Trigger::Prompt(trigger) => &trigger.parameter,
        }
    }
}

/// A problem for each function that takes the tool, prompt or resource of an earlier one, in any case.
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
        };
        if !is_new {
            let problem = Problem::new(message).of_function(&function.name).at(member);
            problems.push(problem.fix("rename or remove one of the two; upper and lower case do not differ"));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
