//! All tests of the crate, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod callers;
mod cleaning_up;
mod conversations;
mod fixture;
mod hooks;
mod listing;
mod narrowed;
mod patterns;
mod replaced;
mod stdio;
mod suggestions;
mod watching;
