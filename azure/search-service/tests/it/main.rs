//! The service over HTTP: with an engine that only says what it was asked, and as a whole.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod definitions;
mod documents;
mod guards;
mod operations;
mod recorded;
mod server;
mod transport;
