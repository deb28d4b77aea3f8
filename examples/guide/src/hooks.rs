//! Hooks, quotas, and what each caller sees.

use std::time::{Duration, Instant};

use bindpost::prelude::*;
use bindpost::{CallQuota, Caller, EntryView, NextHandler, Operation, OperationResult};

/// Finds a book.
#[tool(read_only)]
fn find_book(title: String) -> String {
    format!("{title} is on shelf 3")
}

/// Orders a book from another library.
#[tool]
fn order_book(title: String) -> String {
    format!("ordered {title}")
}

/// Counts the money in the till.
#[tool(read_only, meta("library.example/staff" = true))]
fn count_till() -> &'static str {
    "12.50"
}

/// Writes a line for each operation.
async fn audit(operation: Operation, next: NextHandler) -> Result<OperationResult, ToolError> {
    let started = Instant::now();
    let caller = operation.caller().id().unwrap_or("anonymous").to_owned();
    let entry = format!("{} {}", operation.entry().kind(), operation.name());
    let result = next.run(operation).await;
    let outcome = if result.is_ok() { "ok" } else { "error" };
    eprintln!("{caller} used {entry}: {outcome} after {:?}", started.elapsed());
    result
}

/// Rejects changes while the library is closed.
async fn closed_for_changes(operation: Operation, next: NextHandler) -> Result<OperationResult, ToolError> {
    if !operation.entry().is_read_only() {
        return Err(ToolError::new("the library is closed; only look-ups work until 9:00"));
    }
    next.run(operation).await
}

fn is_for_staff(entry: EntryView<'_>) -> bool {
    entry.meta().is_some_and(|meta| meta.contains_key("library.example/staff"))
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("library", "1.0.0")
        .add(entries![find_book, order_book, count_till])
        // The first hook is the outermost.
        .around(audit)
        .quota(CallQuota::new(600, Duration::from_secs(60)))
        .quota(CallQuota::new(3, Duration::from_secs(24 * 3600)).entries(["order_book"]))
        .show_if(|caller: &Caller, entry| !is_for_staff(entry) || caller.has_role("Staff"))
        .build()
}

pub fn closed_server() -> Result<Server, BuildError> {
    let entries = entries![find_book, order_book];
    Server::builder("library", "1.0.0").add(entries).around(closed_for_changes).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::Identity;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[tokio::test]
    async fn a_hook_replaces_the_result() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&closed_server()?);
        assert_eq!(client.call("find_book", json!({"title": "Dune"})).await?.text(), "Dune is on shelf 3");
        let error = client.call("order_book", json!({"title": "Dune"})).await.unwrap_err();
        assert_eq!(error.to_string(), "the library is closed; only look-ups work until 9:00");
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn each_caller_has_a_quota() -> Result<(), Box<dyn std::error::Error>> {
        let server = server()?;
        let mut ada = TestClient::connect_as(&server, Identity::new("ada"));
        for _ in 0..3 {
            ada.call("order_book", json!({"title": "Dune"})).await?;
        }
        let error = ada.call("order_book", json!({"title": "Emma"})).await.unwrap_err();
        let expected = "the quota of 3 calls in 86400 s is used up; try again in 28800 s";
        assert_eq!(error.to_string(), expected);
        let mut bob = TestClient::connect_as(&server, Identity::new("bob"));
        bob.call("order_book", json!({"title": "Dune"})).await?;
        Ok(())
    }

    #[tokio::test]
    async fn readers_do_not_see_the_till() -> Result<(), Box<dyn std::error::Error>> {
        let server = server()?;
        let mut reader = TestClient::connect_as(&server, Identity::new("ada"));
        assert_eq!(reader.list_tools().await?.len(), 2);
        let error = reader.call("count_till", ()).await.unwrap_err();
        assert_eq!(error.to_string(), "unknown tool: count_till (-32602)");
        let mut staff = TestClient::connect_as(&server, Identity::new("bob").role("Staff"));
        assert_eq!(staff.call("count_till", ()).await?.text(), "12.50");
        Ok(())
    }
}
