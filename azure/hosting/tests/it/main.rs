//! Tests tokens and identities of Azure over real HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod entra;
#[path = "../../../../mcp/oauth/tests/it/issuer.rs"]
mod issuer;
mod principal;
mod server;
