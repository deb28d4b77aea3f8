//! Runs Azure Functions apps as MCP servers: their tools, resources and prompts, in any language.
//!
//! [`Host::start`] prepares an app, starts its workers and discovers its functions. [`Host::serve`] serves
//! it. Start reading in `host.rs`.
//!
//! Files, in reading order: `host/` (start, serve, reload, access, keys, the report of what runs), `app/` (the files of an
//! app), `setup/` (packages and builds), `function.rs` (a function as the host sees it), `entries.rs` (functions as catalog
//! entries), `timers/` (schedules and their runs), `routes/` (HTTP triggers), `http_tools/` (HTTP functions as tools), `invocation.rs` (one run of a function), `bindings/` (what a function is
//! given and returns), `blobs/` (blob stores), `worker/` (language workers), `custom_handler/` (workers that speak HTTP) and
//! `forward/` (requests that another server on this machine answers) and `self_hosted/` (apps that are servers of their own).
#![allow(
    missing_docs,
    reason = "only the program `bindpost` uses this crate; comments explain what the names do not"
)]

pub mod app;
pub mod bindings;
pub mod blobs;
mod custom_handler;
pub mod datum;
mod entries;
mod error;
mod forward;
pub mod function;
mod host;
mod http_tools;
pub mod invocation;
mod json;
pub mod problem;
pub mod routes;
mod self_hosted;
pub mod setup;
pub mod timers;
pub mod worker;

pub use custom_handler::HandlerStartError;
pub use error::HostError;
pub use host::access::{AccessPolicy, KeyRequirement};
pub use host::report::{
    AppReport, AppWarning, ArgumentRow, HttpRow, PromptRow, ResourceRow, ServerRow, TimerRow, ToolRow,
    WorkerKind, WorkerRow,
};
pub use host::{Host, HostOptions};
