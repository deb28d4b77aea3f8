//! Deploying.

use bindpost::Options;
use bindpost::prelude::*;

/// Tells when the library is open.
#[tool(read_only, anonymous)]
fn opening_hours() -> &'static str {
    "9 to 18"
}

pub fn server(options: &Options) -> Result<Server, BuildError> {
    options.server().add(entries![opening_hours]).build()
}

/// A program whose settings are in its environment.
pub async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::new("library", env!("CARGO_PKG_VERSION")).load()?;
    let server = server(&options)?;
    options.serve(server).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("deploying.toml");

    #[test]
    fn the_file_of_the_guide_is_valid() -> Result<(), Box<dyn std::error::Error>> {
        let options = Options::new("library", "1.0.0").load_toml("deploying.toml", FILE)?;
        assert!(options.settings()?.auth.is_some());
        Ok(())
    }

    #[tokio::test]
    async fn without_authentication_it_does_not_start() -> Result<(), Box<dyn std::error::Error>> {
        let variables = [("BINDPOST_ADDRESS", "0.0.0.0:0")];
        let options = Options::new("library", "1.0.0").load_variables(variables)?;
        let error = options.serve(server(&options)?).await.unwrap_err().to_string();
        assert!(error.contains("has no authentication"), "{error}");
        Ok(())
    }
}
