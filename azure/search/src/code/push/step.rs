//! One step of a push.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::kinds::CodeKind;
use crate::tools::index_change::copy::CopyPaging;

/// A step. Definitions have references to variables instead of secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum PushStep {
    /// Writes a definition, unless it is not the one that was planned with.
    Put {
        kind: CodeKind,
        name: String,
        body: Value,
        /// The definition before the push; none if it is created.
        before: Option<Value>,
        /// Its ETag, if the service has ETags for this kind.
        etag: Option<String>,
        /// Whether the index may be offline for some seconds.
        downtime: bool,
    },
    Delete {
        kind: CodeKind,
        name: String,
        before: Value,
        etag: Option<String>,
    },
    /// Waits until no run of an indexer is under way.
    WaitForIndexer {
        name: String,
    },
    /// Copies all documents, in the order of their keys.
    Copy {
        from: String,
        to: String,
        paging: CopyPaging,
        documents: u64,
    },
    /// Checks that the copy is complete, and that the definition of the old index did not change.
    Verify {
        from: String,
        to: String,
        etag: Option<String>,
    },
}

impl PushStep {
    /// Whether it changes the service.
    pub(super) fn writes(&self) -> bool {
        match self {
            PushStep::Put { .. } | PushStep::Delete { .. } | PushStep::Copy { .. } => true,
            PushStep::WaitForIndexer { .. } | PushStep::Verify { .. } => false,
        }
    }

    /// Whether it cannot be undone: the documents of an index are lost with it.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, PushStep::Delete { kind: CodeKind::Index, .. })
    }
}

impl fmt::Display for PushStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PushStep::Put { kind: CodeKind::Alias, name, body, before, .. } => {
                let target = body.pointer("/indexes/0").and_then(Value::as_str).unwrap_or_default();
                match before {
                    Some(_) => write!(f, "switch the alias {name} to {target}"),
                    None => write!(f, "create the alias {name} of {target}"),
                }
            }
            PushStep::Put { kind: CodeKind::Indexer, name, body, before: Some(before), .. }
                if body.get("disabled") == Some(&Value::Bool(true))
                    && before.get("disabled") != body.get("disabled") =>
            {
                write!(f, "pause indexers/{name}")
            }
            PushStep::Put { kind, name, before: None, .. } => write!(f, "create {}/{name}", kind.folder()),
            PushStep::Put { kind, name, downtime: true, .. } => {
                write!(f, "update {}/{name}, which is offline for some seconds", kind.folder())
            }
            PushStep::Put { kind, name, .. } => write!(f, "update {}/{name}", kind.folder()),
            PushStep::Delete { kind, name, .. } => write!(f, "delete {}/{name}", kind.folder()),
            PushStep::WaitForIndexer { name } => write!(f, "wait for the run of indexers/{name}"),
            PushStep::Copy { from, to, documents, .. } => {
                write!(f, "copy {documents} documents from {from} to {to}")
            }
            PushStep::Verify { from, to, .. } => write!(f, "check that {to} has all documents of {from}"),
        }
    }
}
