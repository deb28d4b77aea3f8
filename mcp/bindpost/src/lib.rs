//! Turn functions into MCP servers.
//!
//! ```no_run
//! use bindpost::{Args, Server, ToolEntry, http::Settings};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Sum { a: f64, b: f64 }
//!
//! async fn add(Args(sum): Args<Sum>) -> String {
//!     (sum.a + sum.b).to_string()
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::builder("adder", "1.0.0")
//!         .tool(ToolEntry::new("add", add).description("Adds two numbers"))
//!         .build()?;
//!     let bound = bindpost::http::bind("127.0.0.1:7071").await?;
//!     bound.serve(server, Settings::default()).await?;
//!     Ok(())
//! }
//! ```
//!
//! The same server speaks every revision of the protocol from 2024-11-05 to 2026-07-28 on one
//! address. Over a pipe: [`stdio::serve_stdio`].

pub use bindpost_mcp_http as http;
pub use bindpost_mcp_protocol as protocol;
pub use bindpost_mcp_server::*;
