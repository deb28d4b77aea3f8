//! Converts function metadata from the wire, and creates load requests.

use std::collections::HashMap;

use super::proto::binding_info;
use super::proto::{BindingInfo, FunctionLoadRequest, RpcFunctionMetadata, StatusResult, status_result};
use crate::function::{BindingDirection, DataType, Function};

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
            r#type: binding.kind.clone(),
            direction: direction.into(),
            data_type: data_type.into(),
            properties: HashMap::new(),
        };
        (binding.name.clone(), info)
    });
    FunctionLoadRequest {
        function_id: function.id.clone(),
        metadata: Some(RpcFunctionMetadata {
            name: function.name.clone(),
            function_id: function.id.clone(),
            directory: source.directory.clone(),
            script_file: source.script_file.clone(),
            entry_point: source.entry_point.clone(),
            language: source.language.clone(),
            bindings: bindings.collect(),
            properties: source.properties.clone(),
            ..RpcFunctionMetadata::default()
        }),
        managed_dependency_enabled: false,
    }
}
