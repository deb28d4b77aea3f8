//! The message types of the worker protocol, generated from `proto/functions.proto`.
#![allow(clippy::all, clippy::pedantic, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/azure_functions_rpc_messages.rs"));
