//! All tests of the crate, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod app;
mod blobs;
// Served apps find their packages through links.
#[cfg(unix)]
mod client;
#[cfg(unix)]
mod examples;
#[cfg(target_os = "linux")]
mod experimental;
mod folder;
#[cfg(unix)]
mod http_functions;
#[cfg(unix)]
mod http_tools;
#[cfg(unix)]
mod java_apps;
#[cfg(unix)]
mod libraries;
mod packages;
#[cfg(unix)]
mod scenarios;
mod scratch;
#[cfg(unix)]
mod self_hosted;
mod self_hosted_config;
#[cfg(unix)]
mod self_hosted_requests;
#[cfg(unix)]
mod self_hosted_starts;
#[cfg(unix)]
mod served;
// Stub programs are shell scripts.
#[cfg(unix)]
mod setup;
#[cfg(unix)]
mod start_errors;
#[cfg(unix)]
mod start_warnings;
#[cfg(unix)]
mod timers;
mod worker_config;
// These tests use real processes and signals.
#[cfg(target_os = "linux")]
mod worker_calls;
#[cfg(target_os = "linux")]
mod worker_faults;
#[cfg(target_os = "linux")]
mod worker_harness;
#[cfg(target_os = "linux")]
mod worker_lies;
#[cfg(target_os = "linux")]
mod worker_pool;
#[cfg(target_os = "linux")]
mod worker_puppet;
#[cfg(target_os = "linux")]
mod worker_recorded;
#[cfg(target_os = "linux")]
mod worker_scripted;
