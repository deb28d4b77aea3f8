//! Tests of the bridge from outside, with real documents, a real upstream service and real MCP clients.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap fails the test")]

mod argument_fuzz;
mod bridge_answers;
mod bridge_asking;
mod bridge_forms;
mod bridge_paging;
mod bridge_pets;
mod bridge_resources;
mod bridge_rights;
mod bridge_selection;
mod documents;
mod documents_bad;
mod hostile_answers;
mod hostile_documents;
mod hostile_wire;
mod in_process;
mod masking;
mod packages;
mod published;
mod published_pets;
mod redirects;
mod requests;
mod schemas;
#[allow(dead_code, reason = "each crate uses a part of it")]
#[path = "../../../../net/upstream/tests/it/upstream_service.rs"]
mod upstream_service;
