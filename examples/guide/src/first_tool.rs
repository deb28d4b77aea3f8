//! A first tool.

use bindpost::prelude::*;

/// Counts the words of a text.
#[tool(read_only)]
fn count_words(
    /// The text. Words are separated by white space.
    text: String,
) -> usize {
    text.split_whitespace().count()
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("words", "1.0.0").add(entries![count_words]).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[tokio::test]
    async fn counts_words() -> Result<(), Box<dyn std::error::Error>> {
        assert_eq!(count_words("to be or not to be".to_owned()), 6);

        let mut client = TestClient::connect(&server()?);
        let reply = client.call("count_words", json!({"text": "to be or not to be"})).await?;
        assert_eq!(reply.text(), "6");
        Ok(())
    }
}
