//! The bridge from outside: real documents, a real service behind, real MCP in front.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod documents;
mod documents_bad;
mod requests;
mod schemas;
mod upstream;
mod upstream_faults;
mod upstream_service;
