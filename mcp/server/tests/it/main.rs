//! All tests of the crate, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod app_pages;
mod callers;
mod cleaning_up;
mod conversations;
mod fixture;
mod hooks;
mod listing;
mod narrowed;
mod patterns;
mod quotas;
mod replaced;
mod skills;
mod stdio;
mod suggestions;
mod test_client;
mod views;
mod watching;
