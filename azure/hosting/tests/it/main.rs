//! Tokens and identities as Azure makes them, over real HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod entra;
#[path = "../../../../mcp/oauth/tests/it/issuer.rs"]
mod issuer;
mod principal;
mod server;
