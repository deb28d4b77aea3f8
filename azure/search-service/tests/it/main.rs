//! The service over HTTP, with an engine that only says what it was asked.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod definitions;
mod documents;
mod guards;
mod server;
mod transport;
