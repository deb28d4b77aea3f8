//! Serves the operations of an OpenAPI or Swagger document as MCP tools and resources.
//!
//! A [`Document`] holds the parsed Swagger 2.0, OpenAPI 3.0 or 3.1 files, with references resolved and
//! schemas converted to JSON Schema 2020-12. An [`Upstream`] is the service that the document describes:
//! its address, its credential and its limits, or a part of this process, a [`RequestHandler`]. A [`Bridge`] combines the two: the operations that an
//! [`OperationSelection`] selects become entries of an MCP server.
//!
//! Files, in reading order: `document/` (files, references, Swagger 2.0 and OpenAPI 3.x), `operation.rs`, `schema/`
//! (JSON Schema: keywords, merging, subtypes, short forms), `selection.rs`, `bridge/` (one call from its arguments to its
//! result), `entries.rs`, `three_tools/` and `resources.rs` (the entries), `request/`, `reply/`, `paging.rs`, `cursor.rs`,
//! `budget.rs`, `confirm.rs`. Requests are sent by `net/upstream`.

mod bridge;
mod budget;
mod confirm;
mod cursor;
mod document;
mod entries;
mod operation;
mod paging;
mod reply;
mod request;
mod resources;
mod schema;
mod selection;
mod three_tools;

pub use bindpost_net_upstream::{
    Credential, CredentialSource, HandlerFuture, Redirects, RequestHandler, Secret, Upstream,
    UpstreamBuilder, UpstreamError, UpstreamLimits, UpstreamRequest, UpstreamResponse,
};
pub use bridge::{AsksIf, Bridge, BridgeBuilder, BridgeError, BridgedCall, Conceal, ToolForm};
pub use budget::count_fitting;
pub use confirm::confirm;
pub use cursor::{CursorError, CursorSigner};
pub use document::{Document, DocumentError, LoadOptions};
pub use operation::{
    BodyFormat, Operation, OperationResponse, Parameter, ParameterLocation, ParameterStyle, RequestBody,
    ResponseStatus,
};
pub use reply::FailureKind;
pub use request::{RequestError, body_argument, build_request};
pub use schema::{SchemaPurpose, Subtype};
pub use selection::OperationSelection;

/// Compiles the examples in `docs/openapi.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/openapi.md")]
mod guide {}
