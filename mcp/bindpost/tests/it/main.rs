//! Servers written with the public API, tested through a client.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod attributes;
mod options;
mod schemas;
