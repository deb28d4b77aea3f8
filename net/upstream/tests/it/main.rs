//! Tests of the client with a real service and real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap fails the test")]

mod upstream;
mod upstream_faults;
mod upstream_service;
