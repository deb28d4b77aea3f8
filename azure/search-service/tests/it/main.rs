//! Tests of the HTTP layer with an engine that echoes its calls, of the whole service, and of the
//! engine alone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

#[cfg(target_os = "linux")]
mod budgets;
#[cfg(target_os = "linux")]
mod child;
mod cors;
mod damage;
mod definitions;
mod documents;
mod engine;
mod english;
mod equivalence;
#[cfg(target_os = "linux")]
mod full_disk;
mod guards;
mod knowledge;
mod neighbours;
mod operations;
mod recorded;
mod refusals;
mod relevance;
mod runs;
mod server;
mod smuggling;
mod text_limits;
mod transport;
mod whole;
