//! [`BridgeBuilder`]: what an operator says about a bridge, checked once.

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
use crate::upstream::Upstream;

/// How much of `tools/list` and of one answer a model gets, unless told.
const LIST_BUDGET: usize = 40 * 1024;
const ANSWER_BUDGET: usize = 64 * 1024;

/// Hides what is nobody's business in the JSON that an operation answered.
pub type Conceal = fn(&Operation, &mut Value);

/// Makes a [`Bridge`].
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
        }
    }

    /// Which operations are served.
    pub fn select(mut self, selection: OperationSelection) -> BridgeBuilder {
        self.selection = selection;
        self
    }

    /// The scheme of resources; `{scheme}-schema` is that of schemas. `openapi` unless told.
    pub fn scheme(mut self, scheme: impl Into<String>) -> BridgeBuilder {
        self.scheme = scheme.into();
        self
    }

    /// How many bytes `tools/list` may have. Above it schemas become short, and then three tools stand for all.
    pub fn list_budget(mut self, bytes: usize) -> BridgeBuilder {
        self.list_budget = bytes;
        self
    }

    /// How many bytes one answer may have. Above it, it is cut by whole items, with a cursor.
    pub fn answer_budget(mut self, bytes: usize) -> BridgeBuilder {
        self.answer_budget = bytes;
        self
    }

    /// Gives a parameter its value, wherever it occurs. Callers neither see it nor can give another.
    pub fn fixed(mut self, name: impl Into<String>, value: impl Into<Value>) -> BridgeBuilder {
        self.fixed.push((name.into(), value.into()));
        self
    }

    /// What calls of an operation may do, instead of what its verb says.
    pub fn hints(mut self, operation: impl Into<String>, hints: ToolHints) -> BridgeBuilder {
        self.hints.insert(operation.into(), hints);
        self
    }

    /// The user is asked before this operation is called, as before every DELETE.
    pub fn asks(self, operation: impl Into<String>) -> BridgeBuilder {
        self.asks_if(operation, |_| true)
    }

    /// The user is asked before this operation is called with arguments that say so.
    pub fn asks_if(mut self, operation: impl Into<String>, asks: AsksIf) -> BridgeBuilder {
        self.asks.insert(operation.into(), asks);
        self
    }

    /// Hides what is in the JSON of answers and is nobody's business, such as secrets, before anybody sees it.
    pub fn conceals(mut self, conceal: Conceal) -> BridgeBuilder {
        self.conceals = Some(conceal);
        self
    }

    /// Leaves members of these names out of answers, and of the items of their lists: what a service says of itself,
    /// such as its address. Links to next pages are followed first, so that these may be among them.
    pub fn hides(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> BridgeBuilder {
        self.hidden.extend(names.into_iter().map(Into::into));
        self
    }

    /// Only operations that change nothing.
    pub fn read_only(mut self) -> BridgeBuilder {
        self.selection = self.selection.read_only();
        self
    }

    /// Whether the user is asked before something is destroyed, if the client can ask. Yes, unless told.
    pub fn confirms(mut self, yes: bool) -> BridgeBuilder {
        self.confirms = yes;
        self
    }

    /// Callers need the scopes that the document's security requirements name.
    pub fn enforce_scopes(mut self) -> BridgeBuilder {
        self.enforces_scopes = true;
        self
    }

    /// Hands a header of the caller's HTTP request on to the service. `x-tenant-*` stands for several; credentials
    /// (`Authorization`, `Cookie`) are handed on only if they are named in full.
    pub fn pass_header(mut self, name: impl Into<String>) -> BridgeBuilder {
        self.passed.push(name.into());
        self
    }

    /// The bridge, or what is wrong with it.
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
            let meant =
                nearest(id, &ids).map_or("leave it out".to_owned(), |meant| format!("write {meant:?}"));
            warnings.push(format!("hints are given for {id:?}, which is no operation; fix: {meant}"));
        }
        for (name, _) in &self.fixed {
            let mut parameters = operations.iter().flat_map(|operation| &operation.parameters);
            if !parameters.any(|parameter| offered::is_named(parameter, name)) {
                warnings
                    .push(format!("no operation has the parameter {name:?} that is set; fix: leave it out"));
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
                left_out.push((operation.method.clone(), PathPattern::new(&operation.path)));
                continue;
            }
            let name = names.unique_name(&operation.id);
            places.insert(operation.id.clone(), selected.len());
            places.entry(name.clone()).or_insert(selected.len());
            let always: Option<AsksIf> = (operation.method == Method::DELETE).then_some(|_| true);
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
            cursors,
            definitions: OnceLock::new(),
            warnings,
            form: list.form,
            list_bytes: list.bytes,
            tools: list.tools,
        })))
    }
}

/// Why there is no bridge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// Nothing is left to serve.
    #[error(
        "of the document's {0} operations none is selected\n  fix: check tags, patterns, denials and read-only mode"
    )]
    NothingSelected(usize),
    /// A header that cannot be handed on.
    #[error(
        "header {0:?} cannot be handed on: it belongs to one connection, or is no header's name\n  fix: leave it out"
    )]
    Header(String),
    /// A scheme that no URI can have.
    #[error(
        "{0:?} is no scheme of a URI\n  fix: take letters, digits, `+`, `-` and `.`, and start with a letter"
    )]
    Scheme(String),
    /// The system gives no random numbers to sign cursors with.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
}
