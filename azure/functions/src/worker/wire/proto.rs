//! The generated message types of the worker protocol; what they mean is in `proto/functions.proto`.
#![allow(clippy::all, clippy::pedantic, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/azure_functions_rpc_messages.rs"));
