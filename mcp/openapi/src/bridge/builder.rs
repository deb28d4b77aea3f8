//! [`BridgeBuilder`]: the configuration of a bridge and its validation.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use bindpost_mcp_server::ToolHints;
use bindpost_mcp_server::nearest::nearest;
use http::Method;
use serde_json::Value;

use super::headers::PassedHeaders;
use super::names::ToolNames;
use super::offered::{self, AsksIf, OfferedOperation};
use super::{Bridge, BridgeState};
use crate::cursor::CursorSigner;
use crate::document::Document;
use crate::entries;
use crate::operation::Operation;
use crate::selection::{OperationSelection, PathPattern};
use bindpost_net_upstream::Upstream;

/// The default budgets of `tools/list` and of one response, in bytes.
const LIST_BUDGET: usize = 40 * 1024;
const ANSWER_BUDGET: usize = 64 * 1024;

/// Removes confidential values from the JSON response of an operation.
pub type Conceal = fn(&Operation, &mut Value);

/// Builds a [`Bridge`].
#[derive(Debug)]
pub struct BridgeBuilder {
    document: Arc<Document>,
    upstream: Upstream,
    selection: OperationSelection,
    scheme: String,
    list_budget: usize,
    answer_budget: usize,
    fixed: Vec<(String, Value)>,
    hints: HashMap<String, ToolHints>,
    asks: HashMap<String, AsksIf>,
    confirms: bool,
    conceals: Option<Conceal>,
    hidden: Vec<String>,
    enforces_scopes: bool,
    passed: Vec<String>,
    error_body: usize,
    detects_objects: bool,
}

impl BridgeBuilder {
    pub(super) fn new(document: Arc<Document>, upstream: Upstream) -> BridgeBuilder {
        BridgeBuilder {
            document,
            upstream,
            selection: OperationSelection::all(),
            scheme: "openapi".to_owned(),
            list_budget: LIST_BUDGET,
            answer_budget: ANSWER_BUDGET,
            fixed: Vec::new(),
            hints: HashMap::new(),
            asks: HashMap::new(),
            confirms: true,
            conceals: None,
            hidden: Vec::new(),
            enforces_scopes: false,
            passed: Vec::new(),
            error_body: 0,
            detects_objects: false,
        }
    }

    /// Sets which operations are served.
    pub fn select(mut self, selection: OperationSelection) -> BridgeBuilder {
        self.selection = selection;
        self
    }

    /// Sets the URI scheme of resources. Schemas use `{scheme}-schema`. Default: `openapi`.
    pub fn scheme(mut self, scheme: impl Into<String>) -> BridgeBuilder {
        self.scheme = scheme.into();
        self
    }

    /// Sets the maximum size of `tools/list` in bytes. Above it, schemas are shortened first, and then
    /// three tools replace all others.
    pub fn list_budget(mut self, bytes: usize) -> BridgeBuilder {
        self.list_budget = bytes;
        self
    }

    /// Sets the maximum size of a response in bytes. A larger response is cut at a whole item
    /// and gets a cursor.
    pub fn answer_budget(mut self, bytes: usize) -> BridgeBuilder {
        self.answer_budget = bytes;
        self
    }

    /// Sets a fixed value for a parameter of all operations. Callers do not see the parameter and cannot
    /// override it.
    pub fn fixed(mut self, name: impl Into<String>, value: impl Into<Value>) -> BridgeBuilder {
        self.fixed.push((name.into(), value.into()));
        self
    }

    /// Sets the hints of an operation, instead of those derived from its verb.
    pub fn hints(mut self, operation: impl Into<String>, hints: ToolHints) -> BridgeBuilder {
        self.hints.insert(operation.into(), hints);
        self
    }

    /// Asks the user for confirmation before this operation is called, as before every DELETE.
    pub fn asks(self, operation: impl Into<String>) -> BridgeBuilder {
        self.asks_if(operation, |_| true)
    }

    /// Asks the user for confirmation before this operation is called, if `asks` returns
    /// true for the arguments.
    pub fn asks_if(mut self, operation: impl Into<String>, asks: AsksIf) -> BridgeBuilder {
        self.asks.insert(operation.into(), asks);
        self
    }

    /// Sets a function that removes confidential values, such as secrets, from JSON responses before
    /// callers get them.
    pub fn conceals(mut self, conceal: Conceal) -> BridgeBuilder {
        self.conceals = Some(conceal);
        self
    }

    /// Removes members with these names from responses and from the items of their lists, for example the
    /// address of the service. Links to next pages are read before the removal, so they may be among
    /// these members.
    pub fn hides(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> BridgeBuilder {
        self.hidden.extend(names.into_iter().map(Into::into));
        self
    }

    /// Serves only read-only operations.
    pub fn read_only(mut self) -> BridgeBuilder {
        self.selection = self.selection.read_only();
        self
    }

    /// Sets whether the user is asked for confirmation before destructive calls, if the client supports
    /// it. Default: true.
    pub fn confirms(mut self, yes: bool) -> BridgeBuilder {
        self.confirms = yes;
        self
    }

    /// Requires callers to have the scopes in the document's security requirements.
    pub fn enforce_scopes(mut self) -> BridgeBuilder {
        self.enforces_scopes = true;
        self
    }

    /// Forwards a header of the caller's HTTP request to the service. A pattern such as `x-tenant-*`
    /// matches several. Credentials (`Authorization`, `Cookie`) are forwarded only if they
    /// are named in full.
    pub fn pass_header(mut self, name: impl Into<String>) -> BridgeBuilder {
        self.passed.push(name.into());
        self
    }

    /// Includes the body of an error response in the tool's error, at most this many bytes, instead of a message from it.
    /// Use it for services whose errors contain nothing confidential. Default: 0.
    pub fn error_body(mut self, bytes: usize) -> BridgeBuilder {
        self.error_body = bytes;
        self
    }

    /// Reads plain text as JSON if it is a JSON object and the document describes no response of the operation.
    pub fn detect_objects(mut self) -> BridgeBuilder {
        self.detects_objects = true;
        self
    }

    /// Builds the bridge.
    pub fn build(self) -> Result<Bridge, BridgeError> {
        let document = self.document;
        let mut letters = self.scheme.bytes();
        let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|letter| letter.is_ascii_alphanumeric() || b"+-.".contains(&letter));
        if !is_scheme {
            return Err(BridgeError::Scheme(self.scheme));
        }
        let passed = PassedHeaders::new(&self.passed).map_err(BridgeError::Header)?;
        let cursors = CursorSigner::new().map_err(|error| BridgeError::NoRandomness(error.to_string()))?;
        let operations = &document.operations;
        let mut warnings = document.warnings.clone();
        warnings.extend(self.selection.unmatched_patterns(operations));
        let ids: Vec<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();
        for id in self.hints.keys().chain(self.asks.keys()).filter(|id| !ids.contains(&id.as_str())) {
            let meant = nearest(id, &ids).map_or("remove it".to_owned(), |meant| format!("write {meant:?}"));
            warnings.push(format!("hints are set for {id:?}, but no operation has this id; fix: {meant}"));
        }
        for (name, _) in &self.fixed {
            let mut parameters = operations.iter().flat_map(|operation| &operation.parameters);
            if !parameters.any(|parameter| offered::is_named(parameter, name)) {
                warnings.push(format!("no operation has the fixed parameter {name:?}; fix: remove it"));
            }
        }

        let count = operations.len();
        let mut names = ToolNames::default();
        let (mut selected, mut left_out, mut places) = (Vec::new(), Vec::new(), HashMap::new());
        let mut changing = BTreeSet::new();
        for operation in operations {
            let hints = self.hints.get(&operation.id).copied().unwrap_or(operation.hints);
            if !self.selection.selects(operation, hints) {
                if self.selection.selects(operation, ToolHints { read_only: true, ..hints }) {
                    changing.insert(operation.id.clone());
                }
                let pattern = PathPattern::new(&operation.path);
                left_out.extend(operation.methods().map(|method| (method.clone(), pattern.clone())));
                continue;
            }
            let name = names.unique_name(&operation.id);
            places.insert(operation.id.clone(), selected.len());
            places.entry(name.clone()).or_insert(selected.len());
            let may_delete = operation.methods().any(|method| *method == Method::DELETE);
            let always: Option<AsksIf> = may_delete.then_some(|_| true);
            let asks = always.or_else(|| self.asks.get(&operation.id).copied());
            selected.push(OfferedOperation::new(
                &document,
                operation.clone(),
                name,
                hints,
                asks,
                &self.fixed,
            ));
        }
        if selected.is_empty() {
            return Err(BridgeError::NothingSelected(count));
        }
        let list = entries::build_tool_list(&document, &selected, &self.scheme, self.list_budget);
        Ok(Bridge(Arc::new(BridgeState {
            document,
            upstream: self.upstream,
            offered: selected,
            places,
            left_out,
            changing,
            scheme: self.scheme,
            answer_budget: self.answer_budget,
            confirms: self.confirms,
            conceals: self.conceals,
            hidden: self.hidden,
            enforces_scopes: self.enforces_scopes,
            passed,
            error_body: self.error_body,
            detects_objects: self.detects_objects,
            cursors,
            definitions: OnceLock::new(),
            warnings,
            form: list.form,
            list_bytes: list.bytes,
            tools: list.tools,
        })))
    }
}

/// The reason why a bridge cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// No operation is selected.
    #[error(
        "of the document's {0} operations none is selected\n  fix: check tags, patterns, denied operations and read-only mode"
    )]
    NothingSelected(usize),
    /// A header that cannot be forwarded.
    #[error(
        "header {0:?} cannot be forwarded: it belongs to one connection, or is not a valid name\n  fix: remove it"
    )]
    Header(String),
    /// An invalid URI scheme.
    #[error(
        "{0:?} is not a valid URI scheme\n  fix: use letters, digits, `+`, `-` and `.`, and start with a letter"
    )]
    Scheme(String),
    /// The operating system returned no random numbers for the key that signs cursors.
    #[error("the operating system returned no random numbers: {0}")]
    NoRandomness(String),
}
