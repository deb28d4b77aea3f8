//! What a Rust developer writes, and what a client sees of it.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod attributes;
mod options;
mod schemas;
