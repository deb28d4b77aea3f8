use bindpost::{ToolError, tool};

/// Parses an address.
#[tool]
async fn parse_address(text: String) -> Result<String, ToolError> {
    let address: std::net::IpAddr = text.parse()?;
    Ok(address.to_string())
}

fn main() {}
