//! [`Bridge`]: serves the operations of a document as entries of an MCP server.

mod builder;
mod call;
mod headers;
mod names;
pub(crate) mod offered;
mod redirect;
pub(crate) mod text;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use bindpost_mcp_protocol::CallToolResult;
use bindpost_mcp_server::nearest::nearest;
use bindpost_mcp_server::{Context, Entry, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use crate::cursor::CursorSigner;
use crate::document::Document;
use crate::operation::Operation;
use crate::schema::SchemaPurpose;
use crate::selection::PathPattern;
use crate::{entries, resources, three_tools};
use bindpost_net_upstream::Upstream;
pub use builder::{BridgeBuilder, BridgeError, Conceal};
pub use call::BridgedCall;
pub(crate) use call::RequestTarget;
use headers::PassedHeaders;
pub use offered::AsksIf;
use offered::OfferedOperation;

/// The operations of a document, served by calling the upstream service. Cheap to clone.
///
/// ```
/// use bindpost_mcp_openapi::{Bridge, Credential, Document, OperationSelection, Upstream, UpstreamLimits};
/// use bindpost_mcp_server::Server;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # fn read() -> Document { Document::default() }
/// let document: Document = read();
/// let upstream = Upstream::new("https://api.example.com/v1", Credential::None, UpstreamLimits::default())?;
/// let bridge = Bridge::builder(document, upstream).select(OperationSelection::all().deny("*admin*")).build();
/// # let Ok(bridge) = bridge else { return Ok(()) };
/// let server = Server::builder("example", "1.0.0").add(bridge.entries()).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bridge(Arc<BridgeState>);

/// The form in which operations are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolForm {
    /// One tool per operation, with whole schemas.
    Whole,
    /// One tool per operation, with short schemas. The whole schemas are resources.
    Short,
    /// Three tools: to find, to describe and to call an operation.
    ThreeTools,
}

impl ToolForm {
    /// Returns the display name: `whole`, `short`, `three tools`.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolForm::Whole => "whole",
            ToolForm::Short => "short",
            ToolForm::ThreeTools => "three tools",
        }
    }
}

#[derive(Debug)]
pub(crate) struct BridgeState {
    pub(crate) document: Arc<Document>,
    pub(crate) upstream: Upstream,
    /// The selected operations, in the order of the document.
    pub(crate) offered: Vec<OfferedOperation>,
    /// The index of each operation, by id and by tool name.
    places: HashMap<String, usize>,
    /// The operations that are not selected. Arguments must not turn another operation's path
    /// into one of these.
    left_out: Vec<(Method, PathPattern)>,
    /// The ids of operations that are excluded only because they are not read-only.
    changing: BTreeSet<String>,
    pub(crate) scheme: String,
    pub(crate) answer_budget: usize,
    pub(crate) confirms: bool,
    pub(crate) conceals: Option<Conceal>,
    /// Members that are removed from responses.
    pub(crate) hidden: Vec<String>,
    pub(crate) enforces_scopes: bool,
    passed: PassedHeaders,
    /// How many bytes of the body of an error response are returned.
    pub(crate) error_body: usize,
    /// Plain text is read as JSON if it is an object and nothing is documented.
    pub(crate) detects_objects: bool,
    pub(crate) cursors: CursorSigner,
    definitions: OnceLock<BTreeSet<String>>,
    warnings: Vec<String>,
    form: ToolForm,
    list_bytes: usize,
    tools: Vec<bindpost_mcp_protocol::Tool>,
}

impl Bridge {
    /// Creates a builder for a bridge between a document and the service that it describes.
    pub fn builder(document: impl Into<Arc<Document>>, upstream: Upstream) -> BridgeBuilder {
        BridgeBuilder::new(document.into(), upstream)
    }

    /// Returns all entries: tools in the form that fits the budget, resources, templates and schemas.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.tools();
        entries.extend(resources::entries(self));
        entries
    }

    /// Returns only the tools, for a server that has resources of its own.
    pub fn tools(&self) -> Vec<Entry> {
        match self.0.form {
            ToolForm::ThreeTools => three_tools::entries(self, &self.0.tools),
            ToolForm::Whole | ToolForm::Short => entries::tools(self, &self.0.tools),
        }
    }

    /// Calls an operation as its tool does: checks the arguments, asks the user for confirmation where
    /// required, and cuts the response to the budget.
    pub async fn call(
        &self,
        operation: &Operation,
        arguments: Map<String, Value>,
        context: &Context,
    ) -> Result<CallToolResult, ToolError> {
        match self.0.find(&operation.id) {
            Some(offered) => self.0.call(offered, arguments, context).await,
            None => Err(ToolError::new(format!("operation {:?} is not served here", operation.id))),
        }
    }

    /// Returns the served operations, in the order of the document.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.0.offered.iter().map(|offered| &offered.operation)
    }

    /// Returns the document.
    pub fn document(&self) -> &Document {
        &self.0.document
    }

    /// Returns the form in which operations are served.
    pub fn form(&self) -> ToolForm {
        self.0.form
    }

    /// Returns the size of `tools/list` in bytes.
    pub fn list_bytes(&self) -> usize {
        self.0.list_bytes
    }

    /// Returns the definitions of the tools. With one tool per operation they are in the order of [`Bridge::operations`].
    pub fn definitions(&self) -> &[bindpost_mcp_protocol::Tool] {
        &self.0.tools
    }

    /// Returns the number of tools.
    pub fn tool_count(&self) -> usize {
        self.0.tools.len()
    }

    /// Returns the warnings, those of the document first.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    pub(crate) fn state(&self) -> &Arc<BridgeState> {
        &self.0
    }
}

impl BridgeState {
    /// Returns the operation with this id or tool name.
    pub(crate) fn find(&self, name: &str) -> Option<&OfferedOperation> {
        self.offered.get(*self.places.get(name)?)
    }

    /// Removes from a response what the operator configured as hidden.
    pub(crate) fn conceal(&self, offered: &OfferedOperation, answer: &mut Value) {
        if let Some(conceal) = self.conceals {
            conceal(&offered.operation, answer);
        }
    }

    /// Removes hidden members from the top level and from the items of lists there.
    pub(crate) fn hide(&self, answer: &mut Value) {
        if self.hidden.is_empty() {
            return;
        }
        let hide = |value: &mut Value| {
            if let Value::Object(members) = value {
                members.retain(|name, _| !self.hidden.contains(name));
            }
        };
        hide(answer);
        match answer {
            Value::Array(items) => items.iter_mut().for_each(hide),
            Value::Object(members) => {
                let lists = members.values_mut().filter_map(Value::as_array_mut);
                lists.flatten().for_each(hide);
            }
            _ => {}
        }
    }

    /// Returns the error for an unknown operation. A denied operation is reported as unknown too.
    pub(crate) fn unknown_operation(&self, name: &str) -> ToolError {
        if self.changing.contains(name) {
            let name = text::visible_text(name);
            return ToolError::new(format!("{name} changes data, and this server is read-only"));
        }
        let known: Vec<&str> = self.offered.iter().map(OfferedOperation::display_id).collect();
        let name: String = name.chars().take(100).collect();
        let name = name.as_str();
        ToolError::new(match nearest(name, &known) {
            Some(meant) => format!("unknown operation {name:?}; did you mean {meant:?}?"),
            None => format!("unknown operation {name:?}; use findOperations to find operations"),
        })
    }

    /// Returns the names of the definitions that selected operations use. Other definitions are not served.
    pub(crate) fn definitions(&self) -> &BTreeSet<String> {
        self.definitions.get_or_init(|| {
            let schemas: Vec<Value> =
                self.offered.iter().flat_map(OfferedOperation::schemas).cloned().collect();
            let all = json!({"anyOf": schemas});
            let mut names = BTreeSet::new();
            // Only the document has the subtypes of discriminators.
            for purpose in [SchemaPurpose::Input, SchemaPurpose::Output] {
                let whole = self.document.whole_schema(&all, purpose);
                let defined = whole.get("$defs").and_then(Value::as_object);
                names.extend(defined.into_iter().flatten().map(|(name, _)| name.clone()));
            }
            let mut found = Vec::new();
            collect_references(&all, &mut found);
            while let Some(name) = found.pop() {
                if let Some(definition) = self.document.definitions.get(&name)
                    && names.insert(name)
                {
                    collect_references(definition, &mut found);
                }
            }
            names.retain(|name| self.document.definitions.contains_key(name));
            names
        })
    }

    /// Returns the whole schema of one definition, if a selected operation uses it.
    pub(crate) fn definition(&self, name: &str) -> Option<Value> {
        if !self.definitions().contains(name) {
            return None;
        }
        let mut whole = self.document.definition(name)?;
        text::clean(&mut whole);
        Some(whole)
    }
}

/// Returns the short form of a schema.
pub(crate) fn short_schema(
    document: &Document,
    schema: &Value,
    purpose: SchemaPurpose,
    scheme: &str,
) -> Value {
    let mut short = document.short_schema(schema, purpose, scheme);
    text::clean(&mut short);
    short
}

/// Collects the definitions that a schema references, at any depth.
fn collect_references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => {
                        let name = reference.strip_prefix("#/$defs/").unwrap_or_default();
                        found.push(name.replace("~1", "/").replace("~0", "~"));
                    }
                    _ => collect_references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}
