//! Azure AI Search as an MCP server: tools, resources and prompts over a service in the cloud or the embedded one.

#![allow(missing_docs, reason = "a part of the program; what users start from is documented")]

mod client;
mod failure;
mod shared;

pub use client::{Answer, Call, Client, quoted};
pub use failure::{Failure, Kind};
pub use shared::Shared;
