//! Converts function metadata from the wire, and creates load requests.

use std::collections::HashMap;

use super::proto::binding_info;
use super::proto::{BindingInfo, FunctionLoadRequest, RpcFunctionMetadata, StatusResult, status_result};
use crate::app::POWERSHELL;
use crate::function::{BindingDirection, DataType, Function, Trigger};

/// The functions that a worker found in the app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexingResult {
    Functions(Vec<IndexedFunction>),
    /// The worker found no functions, or does not index. The host reads `function.json` files. If there
    /// are none, the console may show the reason: Node's public worker also sends this response when the
    /// entry file threw.
    UseFunctionJson {
        console: Vec<String>,
    },
}

/// One function as a worker describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedFunction {
    pub name: String,
    pub id: String,
    pub directory: String,
    pub script_file: String,
    pub entry_point: String,
    pub language: String,
    /// The bindings, each as a JSON object as in `function.json`.
    pub raw_bindings: Vec<String>,
    /// Properties that are sent back in the load request.
    pub properties: HashMap<String, String>,
    /// Why the worker cannot run this function.
    pub error: Option<String>,
}

impl IndexedFunction {
    pub(crate) fn from_wire(function: RpcFunctionMetadata) -> Self {
        let error =
            function.status.filter(|status| status.exception.is_some()).and_then(|it| failure(Some(it)));
        Self {
            name: function.name,
            id: function.function_id,
            directory: function.directory,
            script_file: function.script_file,
            entry_point: function.entry_point,
            language: function.language,
            raw_bindings: function.raw_bindings,
            properties: function.properties,
            error: error.map(|it| it.message),
        }
    }
}

/// A failure that a worker reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerFailure {
    pub(crate) message: String,
    /// The stack trace. It contains local paths and is only for the log.
    pub(crate) stack: String,
}

/// Returns the failure in a result, or `None` for success. A missing result or status is a failure.
pub(crate) fn failure(result: Option<StatusResult>) -> Option<WorkerFailure> {
    let result = result.unwrap_or_default();
    if result.status == status_result::Status::Success as i32 {
        return None;
    }
    let exception = result.exception.unwrap_or_default();
    let message = [exception.message, result.result]
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| "the worker reported a failure without a message".into());
    Some(WorkerFailure { message, stack: exception.stack_trace })
}

/// Returns the kind of a binding as the worker is told it.
///
/// The PowerShell worker sends only the values of output bindings, except for functions of some triggers of Durable
/// Functions: it returns what they write to the pipeline. A tool without outputs would otherwise return nothing.
fn wire_kind<'a>(language: &str, kind: &'a str) -> &'a str {
    let is_mcp = |kind: &str| {
        ["mcpToolTrigger", "mcpResourceTrigger", "mcpPromptTrigger"]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(kind))
    };
    match language.eq_ignore_ascii_case(POWERSHELL) && is_mcp(kind) {
        true => "activityTrigger",
        false => kind,
    }
}

/// The name of the binding of a return value.
const RESULT: &str = "$return";

/// Returns the binding of the return value, which function.json does not have for MCP triggers. Java workers up to 2.17
/// drop the return value of a function without it.
fn result_binding(function: &Function) -> Option<BindingInfo> {
    let has_result = matches!(function.trigger, Trigger::Tool(_) | Trigger::Resource(_) | Trigger::Prompt(_));
    (has_result && function.source.language == "java").then(|| BindingInfo {
        r#type: "mcpResult".to_owned(),
        direction: binding_info::Direction::Out.into(),
        ..BindingInfo::default()
    })
}

/// Creates the request to load a function.
pub(crate) fn load_request(function: &Function) -> FunctionLoadRequest {
    let source = &function.source;
    let bindings = source.bindings.iter().map(|binding| {
        let direction = match binding.direction {
            BindingDirection::In => binding_info::Direction::In,
            BindingDirection::Out => binding_info::Direction::Out,
            BindingDirection::InOut => binding_info::Direction::Inout,
        };
        let data_type = match binding.data_type {
            DataType::Undefined => binding_info::DataType::Undefined,
            DataType::Text => binding_info::DataType::String,
            DataType::Binary => binding_info::DataType::Binary,
            DataType::Stream => binding_info::DataType::Stream,
        };
        let info = BindingInfo {
            r#type: wire_kind(&source.language, &binding.kind).to_owned(),
            direction: direction.into(),
            data_type: data_type.into(),
            properties: HashMap::new(),
        };
        (binding.name.clone(), info)
    });
    let mut bindings: HashMap<String, BindingInfo> = bindings.collect();
    if let Some(result) = result_binding(function) {
        bindings.entry(RESULT.to_owned()).or_insert(result);
    }
    FunctionLoadRequest {
        function_id: function.id.clone(),
        metadata: Some(RpcFunctionMetadata {
            name: function.name.clone(),
            function_id: function.id.clone(),
            directory: source.directory.clone(),
            script_file: source.script_file.clone(),
            entry_point: source.entry_point.clone(),
            language: source.language.clone(),
            bindings,
            properties: source.properties.clone(),
            ..RpcFunctionMetadata::default()
        }),
        managed_dependency_enabled: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::function::FunctionSource;

    fn loaded(language: &str, bindings: &[Value]) -> Vec<(String, String)> {
        let source = FunctionSource { language: language.to_owned(), ..FunctionSource::default() };
        let function = Function::from_bindings("f", "f", source, bindings, &|_| None).unwrap();
        let bindings = load_request(&function).metadata.unwrap().bindings;
        let mut bindings: Vec<(String, String)> =
            bindings.into_iter().map(|(name, binding)| (name, binding.r#type)).collect();
        bindings.sort();
        bindings
    }

    #[test]
    fn the_result_of_a_java_function_has_a_binding() {
        let pair = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        let tool = json!({"type": "mcpToolTrigger", "name": "c", "toolName": "t"});
        let (result, trigger) = (pair("$return", "mcpResult"), pair("c", "mcpToolTrigger"));
        assert_eq!(loaded("java", std::slice::from_ref(&tool)), [result, trigger.clone()]);
        assert_eq!(loaded("python", std::slice::from_ref(&tool)), std::slice::from_ref(&trigger));
        let blob = json!({"type": "blob", "direction": "out", "name": "$return", "path": "kept/b"});
        assert_eq!(loaded("java", &[tool, blob]), [pair("$return", "blob"), trigger]);
        let timer = json!({"type": "timerTrigger", "name": "t", "schedule": "* * * * * *"});
        assert_eq!(loaded("java", &[timer]), [pair("t", "timerTrigger")]);
    }
}
