//! Tokens of a real issuer in a separate process, accepted and rejected.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod clocks;
mod http;
mod issuer;
mod keys;
mod logs;
mod requests;
mod rights;
mod strangers;
mod talk;
mod tokens;
