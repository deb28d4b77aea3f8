//! A document as read: its operations and its definitions.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::operation::Operation;

/// What one or several OpenAPI or Swagger files say, in one shape.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The service's name.
    pub title: String,
    /// The version of its interface.
    pub version: String,
    /// What it is.
    pub description: Option<String>,
    /// Where it is, if the document says so: absolute addresses first.
    pub servers: Vec<String>,
    /// Its operations, in the order of the document.
    pub operations: Vec<Operation>,
    /// Its named schemas. They refer to each other by `#/$defs/NAME`.
    pub definitions: BTreeMap<String, Value>,
    /// What was passed over, and why: a reference that leads nowhere, a pattern that no engine takes.
    pub warnings: Vec<String>,
}

impl Document {
    /// The operation of that id.
    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.id == id)
    }
}

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// What is wrong, where, and how to fix it.
    #[error("{place}: {problem}\n  fix: {fix}")]
    #[allow(missing_docs, reason = "the message says it")]
    Invalid { place: String, problem: String, fix: String },
}
