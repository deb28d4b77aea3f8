//! Serves the first tool of the guide on `http://127.0.0.1:7071/mcp`.

use guide::first_tool::server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    bindpost::serve(server()?, "127.0.0.1:7071").await?;
    Ok(())
}
