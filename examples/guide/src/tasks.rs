//! Tasks: calls that continue after their request.

use std::time::Duration;

use bindpost::TaskLimits;
use bindpost::prelude::*;

/// Rebuilds the index of the catalog. It runs as a task if the client supports tasks.
#[tool(task)]
async fn rebuild_index() -> &'static str {
    tokio::time::sleep(Duration::from_secs(20)).await;
    "the index has 1,200 books"
}

/// Exports the catalog. It becomes a task only if there is much to do.
#[tool]
async fn export(books: u32, context: Context) -> Result<String, ToolError> {
    if books > 100 {
        context.go_on_as_task().await;
    }
    tokio::time::sleep(Duration::from_millis(books.into())).await;
    Ok(format!("exported {books} books"))
}

pub fn server() -> Result<Server, BuildError> {
    // A task and its result are kept for an hour.
    let limits = TaskLimits { lifetime: Duration::from_secs(3600), ..TaskLimits::default() };
    Server::builder("library", "1.0.0").tasks(limits).add(entries![rebuild_index, export]).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn a_task_is_followed_to_its_result() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::builder(&server()?).tasks().connect().await?;
        let mut call = client.start_call("rebuild_index", ()).await?;
        assert!(call.task_id().await.is_some());
        assert_eq!(call.await?.text(), "the index has 1,200 books");

        let mut call = client.start_call("export", json!({"books": 7})).await?;
        assert!(call.task_id().await.is_none());
        assert_eq!(call.await?.text(), "exported 7 books");
        let mut call = client.start_call("export", json!({"books": 700})).await?;
        assert!(call.task_id().await.is_some());
        assert_eq!(call.await?.text(), "exported 700 books");
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_without_tasks_waits() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        assert_eq!(client.call("rebuild_index", ()).await?.text(), "the index has 1,200 books");
        Ok(())
    }
}
