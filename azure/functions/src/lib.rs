//! Runs Azure Functions apps as MCP servers: their tools, resources and prompts, in any language.
//!
//! [`Host::start`] makes an app ready, starts its workers and finds out what it offers; [`Host::add_worker`] serves
//! it. `host.rs` is where to start reading.
#![allow(
    missing_docs,
    reason = "the program `bindpost` is its user; what a name does not say, a comment does"
)]

pub mod app;
pub mod bindings;
pub mod blobs;
mod changes;
mod console;
mod custom_handler;
pub mod datum;
mod door;
mod entries;
mod error;
mod front_door;
pub mod function;
mod generation;
mod host;
pub mod invocation;
mod json;
mod keys;
pub mod problem;
mod report;
pub mod setup;
mod watch;
pub mod worker;

pub use door::{AccessPolicy, KeyRequirement};
pub use error::HostError;
pub use host::{Host, HostOptions};
pub use report::{AppReport, AppWarning, ArgumentRow, PromptRow, ResourceRow, ToolRow};
