//! Testing a server.

use bindpost::prelude::*;

/// Adds two numbers.
#[tool(read_only)]
fn add(a: i64, b: i64) -> Result<i64, &'static str> {
    a.checked_add(b).ok_or("the sum is too large")
}

/// Explains a word.
#[prompt]
fn explain(word: String) -> String {
    format!("Explain {word:?} to a child.")
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("words", "1.0.0").add(entries![add, explain]).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::Revision;
    use bindpost::testing::{TestClient, TestError};
    use serde_json::json;

    #[test]
    fn a_tool_is_a_function() {
        assert_eq!(add(1, 2), Ok(3));
    }

    #[tokio::test]
    async fn a_client_calls_it() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let sum: i64 = client.call_as("add", json!({"a": 1, "b": 2})).await?;
        assert_eq!(sum, 3);
        Ok(())
    }

    #[tokio::test]
    async fn errors_have_a_kind_and_a_text() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        // The tool failed. The model reads the text.
        let error = client.call("add", json!({"a": i64::MAX, "b": 1})).await.unwrap_err();
        assert!(matches!(error, TestError::Tool(_)));
        assert_eq!(error.to_string(), "the sum is too large");
        // The request was wrong. The client gets a JSON-RPC error.
        let error = client.call("subtract", ()).await.unwrap_err();
        assert_eq!(error.code(), Some(-32602));
        Ok(())
    }

    #[tokio::test]
    async fn every_revision_works() -> Result<(), Box<dyn std::error::Error>> {
        let server = server()?;
        for revision in Revision::ALL {
            let mut client = TestClient::builder(&server).revision(revision).connect().await?;
            assert_eq!(client.call("add", json!({"a": 1, "b": 2})).await?.text(), "3");
        }
        Ok(())
    }

    #[tokio::test]
    async fn the_definitions_did_not_change() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let lists = client.snapshot_lists().await?;
        let path = "src/testing_lists.json";
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(path, &lists)?;
        }
        assert_eq!(lists, std::fs::read_to_string(path)?);
        Ok(())
    }
}
