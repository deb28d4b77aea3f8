//! Cancelled handlers: dropped at once, or with time to clean up if they wait for the cancellation.

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{Context, Server, ToolEntry};
use tokio::sync::Semaphore;

const PATIENCE: Duration = Duration::from_secs(30);

/// What a handler did, as permits: begun, cleaned up after an await, dropped.
#[derive(Debug)]
struct Watch {
    begun: Semaphore,
    cleaned: Semaphore,
    dropped: Semaphore,
}

/// Counts the drop of a handler.
struct DropMark(Arc<Watch>);

impl Drop for DropMark {
    fn drop(&mut self) {
        self.0.dropped.add_permits(1);
    }
}

async fn happens(event: &Semaphore) {
    tokio::time::timeout(PATIENCE, event.acquire()).await.expect("timed out").unwrap().forget();
}

fn server() -> (Server, Arc<Watch>) {
    let watch =
        Arc::new(Watch { begun: Semaphore::new(0), cleaned: Semaphore::new(0), dropped: Semaphore::new(0) });
    let [patient, endless, plain] = [(); 3].map(|()| watch.clone());
    let clean = move |context: Context| {
        let watch = patient.clone();
        async move {
            let _mark = DropMark(watch.clone());
            watch.begun.add_permits(1);
            tokio::select! {
                () = std::future::pending() => {}
                () = context.cancelled() => {
                    // A handler that is dropped does not get here.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    watch.cleaned.add_permits(1);
                }
            }
            "cleaned"
        }
    };
    let never_ends = move |context: Context| {
        let watch = endless.clone();
        async move {
            let _mark = DropMark(watch.clone());
            watch.begun.add_permits(1);
            context.cancelled().await;
            std::future::pending::<&str>().await
        }
    };
    let not_watching = move || {
        let watch = plain.clone();
        async move {
            let _mark = DropMark(watch.clone());
            watch.begun.add_permits(1);
            std::future::pending::<&str>().await
        }
    };
    let server = Server::builder("s", "1")
        .tool(ToolEntry::new("clean", clean.clone()).timeout(None))
        .tool(ToolEntry::new("short", clean).timeout(Duration::from_millis(20)))
        .tool(ToolEntry::new("endless", never_ends).timeout(None))
        .tool(ToolEntry::new("plain", not_watching).timeout(None))
        .build()
        .unwrap();
    (server, watch)
}

async fn start(server: &Server, tool: &str) -> TestClient {
    let mut client = TestClient::connect(server);
    let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    client.send(open).await;
    client.next().await.unwrap();
    client
        .send(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#))
        .await;
    client
}

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

#[tokio::test]
async fn a_handler_that_waits_for_the_cancellation_cleans_up() {
    let (server, watch) = server();
    let mut client = start(&server, "clean").await;
    happens(&watch.begun).await;
    client.send(CANCEL).await;
    happens(&watch.cleaned).await;
    happens(&watch.dropped).await;
    // A cancelled request gets no response.
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(client.next().await.unwrap(), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
}

#[tokio::test]
async fn a_handler_that_times_out_cleans_up() {
    let (server, watch) = server();
    let mut client = start(&server, "short").await;
    let answer = client.next().await.unwrap();
    assert!(String::from_utf8_lossy(answer.as_ref()).contains("timed out after 0.02 s"), "{answer:?}");
    happens(&watch.cleaned).await;
}

#[tokio::test]
async fn the_time_to_clean_up_is_limited() {
    let (server, watch) = server();
    let mut client = start(&server, "endless").await;
    happens(&watch.begun).await;
    client.send(CANCEL).await;
    happens(&watch.dropped).await;
}

#[tokio::test]
async fn other_handlers_are_dropped_at_once() {
    let (server, watch) = server();
    let mut client = start(&server, "plain").await;
    happens(&watch.begun).await;
    client.send(CANCEL).await;
    happens(&watch.dropped).await;
    assert_eq!(watch.cleaned.available_permits(), 0);
}
