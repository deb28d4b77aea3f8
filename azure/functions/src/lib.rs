//! Runs Azure Functions apps as MCP servers: their tools, resources and prompts, in any language.
//!
//! [`Host::start`] prepares an app, starts its workers and discovers its functions. [`Host::serve`] serves
//! it. Start reading in `host.rs`.
#![allow(
    missing_docs,
    reason = "only the program `bindpost` uses this crate; comments explain what the names do not"
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
