//! Tests of the server with an MCP client and the embedded search service.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod code;
mod diagnose;
mod embedded;
mod evaluate;
mod explain;
mod failures;
mod filter;
mod front;
mod front_documents;
mod front_lists;
mod hostile;
mod identity;
mod index_change;
mod index_change_rules;
mod indexer_runs;
mod masking;
mod operations;
mod operations_asked;
mod operations_called;
mod profile;
mod prompts;
mod resources;
mod scratch;
mod service;
mod stage;
mod swagger;
mod talk;
mod tool_sets;
#[allow(dead_code, reason = "each crate uses a part of it")]
#[path = "../../../../net/upstream/tests/it/upstream_service.rs"]
mod upstream_service;
