//! Progress, log messages and cancellation.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindpost::prelude::*;
use tokio::sync::watch;

/// Checks the books of a shelf.
#[tool]
async fn check_shelf(shelf: Vec<String>, context: Context) -> String {
    let mut missing = 0;
    let mut books = context.track(&shelf);
    while let Some(book) = books.next().await {
        if book.is_empty() {
            missing += 1;
            context.warning("a book has no title").await;
        }
    }
    format!("{} books, {missing} without a title", shelf.len())
}

/// Prints a catalog, in three steps of a known length.
#[tool]
async fn print_catalog(context: Context) -> &'static str {
    for (step, name) in ["collect", "sort", "print"].into_iter().enumerate() {
        context.progress(step as f64, Some(3.0), Some(name)).await;
    }
    context.info("the printer is ready").await;
    "printed"
}

/// The file of the catalog.
#[derive(Clone)]
pub struct CatalogFile(PathBuf);

/// Imports the books of a file, one in each line.
#[tool(blocking)]
fn import_books(State(file): State<CatalogFile>, context: Context) -> Result<String, ToolError> {
    let file = File::open(file.0)?;
    let total = file.metadata()?.len() as f64;
    let (mut books, mut bytes) = (0, 0);
    for line in BufReader::new(file).lines() {
        if context.is_cancelled() {
            return Err(ToolError::new("the import was cancelled"));
        }
        bytes += line?.len() + 1;
        books += 1;
        if books % 1000 == 0 {
            context.progress_blocking(bytes as f64, Some(total), None);
        }
    }
    context.info_blocking("the file is read");
    Ok(format!("{books} books"))
}

/// The number of scans that run on the scanner. Others can wait for a change of it.
#[derive(Clone, Default)]
pub struct Scans(Arc<watch::Sender<usize>>);

/// Ends a scan, however its handler ends: with a result, an error, a timeout or a cancellation.
struct RunningScan(Scans);

impl Drop for RunningScan {
    fn drop(&mut self) {
        self.0.0.send_modify(|running| *running -= 1);
    }
}

/// Scans a book. It takes a minute.
#[tool(timeout = "2m")]
async fn scan_book(State(scans): State<Scans>, context: Context) -> &'static str {
    scans.0.send_modify(|running| *running += 1);
    let _running = RunningScan(scans);
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(60)) => "scanned",
        () = context.cancelled() => {
            // A tenth of a second for what has to be awaited: move the scanner back.
            tokio::time::sleep(Duration::from_millis(10)).await;
            "cancelled"
        }
    }
}

pub fn server(scans: Scans, catalog: CatalogFile) -> Result<Server, BuildError> {
    let entries = entries![check_shelf, print_catalog, import_books, scan_book];
    Server::builder("library", "1.0.0").state(scans).state(catalog).add(entries).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::LogLevel;
    use bindpost::testing::{TestClient, TestError};
    use serde_json::json;
    use tokio::time::timeout;

    #[tokio::test]
    async fn progress_and_logs_are_sent() -> Result<(), Box<dyn std::error::Error>> {
        let server = server(Scans::default(), CatalogFile("catalog.csv".into()))?;
        let mut client = TestClient::builder(&server).log_level(LogLevel::Info).connect().await?;
        client.call("print_catalog", ()).await?;
        let steps: Vec<String> = client.progress().into_iter().filter_map(|step| step.message).collect();
        assert_eq!(steps, ["collect", "sort", "print"]);
        assert_eq!(client.logs()[0].data, "the printer is ready");

        let mut client = TestClient::builder(&server).log_level(LogLevel::Warning).connect().await?;
        let reply = client.call("check_shelf", json!({"shelf": ["Dune", "", "Emma"]})).await?;
        assert_eq!(reply.text(), "3 books, 1 without a title");
        let last = client.progress().pop().ok_or("no progress")?;
        assert_eq!((last.progress, last.total), (3.0, Some(3.0)));
        assert_eq!(client.logs()[0].level, LogLevel::Warning);
        Ok(())
    }

    #[tokio::test]
    async fn an_import_reports_its_progress() -> Result<(), Box<dyn std::error::Error>> {
        let path = std::env::temp_dir().join(format!("bindpost-guide-{}.csv", std::process::id()));
        std::fs::write(&path, "Dune\n".repeat(2500))?;
        let server = server(Scans::default(), CatalogFile(path.clone()))?;
        let mut client = TestClient::builder(&server).log_level(LogLevel::Info).connect().await?;
        let reply = client.call("import_books", ()).await?;
        std::fs::remove_file(path)?;
        assert_eq!(reply.text(), "2500 books");
        let steps: Vec<_> = client.progress().into_iter().map(|step| (step.progress, step.total)).collect();
        assert_eq!(steps, [(5_000.0, Some(12_500.0)), (10_000.0, Some(12_500.0))]);
        assert_eq!(client.logs()[0].data, "the file is read");
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_scan_ends() -> Result<(), Box<dyn std::error::Error>> {
        let scans = Scans::default();
        let mut client = TestClient::connect(&server(scans.clone(), CatalogFile("catalog.csv".into()))?);
        let mut running = scans.0.subscribe();
        let mut call = client.start_call("scan_book", ()).await?;
        timeout(Duration::from_secs(5), running.wait_for(|count| *count == 1)).await??;
        call.cancel().await;
        assert_eq!(call.await, Err(TestError::Cancelled));
        timeout(Duration::from_secs(5), running.wait_for(|count| *count == 0)).await??;
        Ok(())
    }
}
