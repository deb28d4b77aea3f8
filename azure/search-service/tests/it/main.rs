//! The service over HTTP, with an engine that only says what it was asked and as a whole; and the engine itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

#[cfg(target_os = "linux")]
mod budgets;
#[cfg(target_os = "linux")]
mod child;
mod damage;
mod definitions;
mod documents;
mod engine;
mod english;
mod equivalence;
#[cfg(target_os = "linux")]
mod full_disk;
mod guards;
mod neighbours;
mod operations;
mod recorded;
mod refusals;
mod relevance;
mod server;
mod smuggling;
mod text_limits;
mod transport;
