//! The samples of `docs/guide`, one file for each chapter. `cargo xtask tidy` checks that the code in the
//! chapters is the code in these files.

#![allow(missing_docs, reason = "the chapters explain the samples")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail wherever it likes"))]

pub mod arguments;
pub mod asking;
pub mod auth;
pub mod deploying;
pub mod extensions;
pub mod first_tool;
pub mod hooks;
pub mod mounting;
pub mod progress;
pub mod prompts;
pub mod resources;
pub mod results;
pub mod state;
pub mod tasks;
pub mod testing;
