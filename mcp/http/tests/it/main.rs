//! All tests of the crate, in one binary.

mod auth;
mod bad_input;
mod budget;
mod capabilities;
mod client;
mod conversations;
mod drain;
mod fairness;
mod health;
mod ladder;
mod listener;
mod logs;
mod matrix;
mod mount;
mod sessions;
mod smuggling;
mod streams;
#[cfg(target_os = "linux")]
mod systemd;
mod tasks;
mod tls;
#[cfg(unix)]
mod unix;
