//! Hooks: functions that run around tool calls, resource reads and prompts.
//!
//! A server without hooks does not run any code of this module: `catalog/` checks [`HookChain::is_empty`]
//! once per operation and passes the handler's own future on. `quota.rs` is a hook of the framework itself.

pub(crate) mod quota;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bindpost_mcp_protocol::{CallToolResult, GetPromptResult, ReadResourceResult};

use crate::auth::Caller;
use crate::call::{HandlerFuture, HandlerOutput};
use crate::catalog::entry_view::EntryView;
use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ResourceEntry, TemplateEntry};
use crate::catalog::tool::ToolEntry;
use crate::error::{ProtocolError, ToolError};
use crate::handler::context::Context;

/// One tool call, resource read or prompt, as a [hook](crate::ServerBuilder::around) sees it.
///
/// The arguments are valid for the schema of the entry, and a hook cannot change them.
#[derive(Debug)]
pub struct Operation {
    context: Context,
    entry: OperationEntry,
}

/// The entry of an operation.
#[derive(Debug)]
pub(crate) enum OperationEntry {
    Tool(Arc<ToolEntry>),
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>),
    Prompt(Arc<PromptEntry>),
}

impl Operation {
    /// Returns the name of the tool or prompt, or the URI that is read.
    pub fn name(&self) -> &str {
        self.context.name()
    }

    /// Returns the authenticated caller.
    pub fn caller(&self) -> &Caller {
        self.context.caller()
    }

    /// Returns the definition of the entry. Its variant is the kind of the operation. A read of a
    /// templated resource has the definition of the template.
    pub fn entry(&self) -> EntryView<'_> {
        match &self.entry {
            OperationEntry::Tool(entry) => (&**entry).into(),
            OperationEntry::Resource(entry) => (&**entry).into(),
            OperationEntry::Template(entry) => (&**entry).into(),
            OperationEntry::Prompt(entry) => (&**entry).into(),
        }
    }

    /// Returns the context of the call: its arguments, its client, progress and cancellation.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// The result of an operation. Its variant is the kind of the operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OperationResult {
    /// The result of a tool call. A failed tool has `is_error` set, or is an `Err` of the hook's `next`.
    Tool(CallToolResult),
    /// The contents of a resource.
    Resource(ReadResourceResult),
    /// The messages of a prompt.
    Prompt(GetPromptResult),
}

impl From<CallToolResult> for OperationResult {
    fn from(result: CallToolResult) -> OperationResult {
        OperationResult::Tool(result)
    }
}

impl From<ReadResourceResult> for OperationResult {
    fn from(result: ReadResourceResult) -> OperationResult {
        OperationResult::Resource(result)
    }
}

impl From<GetPromptResult> for OperationResult {
    fn from(result: GetPromptResult) -> OperationResult {
        OperationResult::Prompt(result)
    }
}

/// The rest of an operation: the hooks that were registered later, then the handler.
pub struct NextHandler {
    chain: HookChain,
    /// The number of hooks that have started.
    started: usize,
    handler: HandlerStart,
}

/// Starts the handler.
type HandlerStart = Box<dyn FnOnce(Context) -> HandlerFuture + Send>;

impl std::fmt::Debug for NextHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NextHandler").field("started", &self.started).finish_non_exhaustive()
    }
}

impl NextHandler {
    /// Runs the later hooks and the handler, and returns their result.
    pub async fn run(self, operation: Operation) -> Result<OperationResult, ToolError> {
        let NextHandler { chain, started, handler } = self;
        let hook = chain.0.as_ref().and_then(|hooks| hooks.get(started)).cloned();
        match hook {
            Some(hook) => hook(operation, NextHandler { chain, started: started + 1, handler }).await,
            None => match handler(operation.context).await? {
                HandlerOutput::Tool(result) => Ok(result.into()),
                HandlerOutput::Resource(result) => Ok(result.into()),
                HandlerOutput::Prompt(result) => Ok(result.into()),
                // No entry with hooks has another output.
                HandlerOutput::Listed(..)
                | HandlerOutput::Completed(_)
                | HandlerOutput::Listened(_)
                | HandlerOutput::TaskResult(..) => {
                    Err(ProtocolError::Internal("the handler has no result for hooks".to_owned()).into())
                }
            },
        }
    }
}

type HookFuture = Pin<Box<dyn Future<Output = Result<OperationResult, ToolError>> + Send>>;
type HookFn = dyn Fn(Operation, NextHandler) -> HookFuture + Send + Sync;

/// The hooks of a server, the outermost first.
#[derive(Clone, Default)]
pub(crate) struct HookChain(Option<Arc<Vec<Arc<HookFn>>>>);

impl std::fmt::Debug for HookChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HookChain").field(&self.0.as_ref().map_or(0, |hooks| hooks.len())).finish()
    }
}

impl HookChain {
    pub(crate) fn push<Fut>(&mut self, hook: impl Fn(Operation, NextHandler) -> Fut + Send + Sync + 'static)
    where
        Fut: Future<Output = Result<OperationResult, ToolError>> + Send + 'static,
    {
        let hook = move |operation, next| -> HookFuture { Box::pin(hook(operation, next)) };
        Arc::make_mut(self.0.get_or_insert_default()).push(Arc::new(hook));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the future of an operation with all hooks around its handler. Nothing runs before the
    /// first poll, because the call may have to wait for its permit.
    pub(crate) fn start(
        &self,
        context: Context,
        entry: OperationEntry,
        handler: impl FnOnce(Context) -> HandlerFuture + Send + 'static,
    ) -> HandlerFuture {
        let next = NextHandler { chain: self.clone(), started: 0, handler: Box::new(handler) };
        Box::pin(async move {
            let operation = Operation { context, entry };
            let is_tool = matches!(operation.entry, OperationEntry::Tool(_));
            let is_prompt = matches!(operation.entry, OperationEntry::Prompt(_));
            match next.run(operation).await? {
                OperationResult::Tool(result) if is_tool => Ok(HandlerOutput::Tool(result)),
                OperationResult::Prompt(result) if is_prompt => Ok(HandlerOutput::Prompt(result)),
                OperationResult::Resource(result) if !is_tool && !is_prompt => {
                    Ok(HandlerOutput::Resource(result))
                }
                _ => {
                    tracing::error!("a hook returned a result of another kind than the operation");
                    Err(ProtocolError::Internal("the result has the wrong kind".to_owned()).into())
                }
            }
        })
    }
}
