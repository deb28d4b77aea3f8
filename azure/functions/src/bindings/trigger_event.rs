//! [`TriggerEvent`]: what starts one run of a function.

use super::arguments::Arguments;
use super::binding_data::BindingData;
use super::context::{McpRequest, TriggerContext};
use crate::datum::Datum;
use crate::function::Function;
use crate::worker::StreamSlot;

/// What starts one run of a function, with everything that its bindings take from it.
#[derive(Debug)]
pub enum TriggerEvent<'a> {
    /// An MCP request, with its context JSON, which is the trigger's value.
    Mcp {
        /// The request.
        request: &'a McpRequest<'a>,
        /// Its context.
        context: TriggerContext,
    },
    /// A request or an occurrence of another trigger.
    Named {
        /// The trigger's value.
        value: Datum,
        /// The values for path expressions and for the trigger metadata. Of equal names the first one is used.
        values: Vec<(String, Datum)>,
        /// The request and the response are streamed.
        stream: Option<StreamSlot>,
    },
}

impl<'a> TriggerEvent<'a> {
    /// Creates the event of an MCP request.
    pub fn mcp(request: &'a McpRequest<'a>) -> TriggerEvent<'a> {
        TriggerEvent::Mcp { request, context: request.context() }
    }

    /// Returns the values for path expressions and for the trigger metadata of this function.
    pub fn data<'d>(&'d self, function: &'d Function) -> BindingData<'d> {
        match self {
            TriggerEvent::Mcp { request, context } => {
                BindingData::new(request, context, function.parameter(), &function.name)
            }
            TriggerEvent::Named { values, .. } => BindingData::from_values(values, &function.name),
        }
    }

    /// Returns the arguments of a tool or prompt.
    pub fn arguments(&self) -> Option<&Arguments<'_>> {
        match self {
            TriggerEvent::Mcp { request, .. } => request.arguments(),
            TriggerEvent::Named { .. } => None,
        }
    }

    /// Returns the slot of an event whose request and response are streamed.
    pub(crate) fn stream(&self) -> Option<&StreamSlot> {
        match self {
            TriggerEvent::Mcp { .. } => None,
            TriggerEvent::Named { stream, .. } => stream.as_ref(),
        }
    }

    /// Returns the trigger's value.
    pub fn into_value(self) -> Datum {
        match self {
            TriggerEvent::Mcp { context, .. } => Datum::Text(context.into_string()),
            TriggerEvent::Named { value, .. } => value,
        }
    }
}
