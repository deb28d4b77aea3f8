//! The conversations of `tests/conversations` in memory and over stdio, and tests of the runner itself.

use std::collections::BTreeSet;
use std::io;

use bindpost_mcp_server::protocol::Revision;
use bindpost_mcp_server::testing::{Conversation, ConversationReport, TestClient, play_all};

use crate::fixture;
use crate::stdio::StdioClient;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conversations");

fn all() -> Vec<Conversation> {
    Conversation::read_all(FOLDER).unwrap()
}

/// Checks that at least one conversation ran and that none failed.
fn check(report: &ConversationReport) {
    assert!(report.played > 0, "no conversation ran");
    assert!(report.failures.is_empty(), "{report}");
}

async fn in_memory(conversation: &Conversation) -> io::Result<TestClient> {
    Ok(TestClient::connect(&fixture::server(conversation.server())))
}

// These tests do no real I/O, so they run with paused time.

#[tokio::test(start_paused = true)]
async fn all_conversations_go_as_written_in_memory() {
    check(&play_all(&all(), &Revision::ALL, in_memory).await);
}

#[tokio::test(start_paused = true)]
async fn all_conversations_go_as_written_over_stdio() {
    let over_stdio = async |conversation: &Conversation| -> io::Result<StdioClient> {
        Ok(StdioClient::connect(&fixture::server(conversation.server())))
    };
    check(&play_all(&all(), &Revision::ALL, over_stdio).await);
}

#[test]
fn every_file_is_a_conversation_with_its_own_name_and_description() {
    let files = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
    let all = all();
    let parsed: BTreeSet<String> = all.iter().map(|conversation| conversation.file().to_owned()).collect();
    assert_eq!(parsed, files, "every file here ends in .txt");
    let points: BTreeSet<&str> = all.iter().map(Conversation::shows).collect();
    assert_eq!(points.len(), all.len(), "two conversations have the same description");
    for revision in Revision::ALL {
        for transport in ["memory", "stdio", "sse", "http"] {
            let played = all.iter().filter(|c| c.runs_over(transport) && c.revisions().contains(&revision));
            assert!(played.count() > 10, "{revision} over {transport}");
        }
    }
}

/// Runs a conversation of one revision in memory and returns its failures.
async fn failure(revision: &str, steps: &str) -> String {
    let text = format!("# Fails.\nrevisions {revision}\n{steps}");
    let conversation = Conversation::parse("wrong.txt", &text).unwrap();
    let report = play_all(&[conversation], &Revision::ALL, in_memory).await;
    report.failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const PING: &str = r#"--> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const DISCOVER: &str = r#"--> {"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;

#[tokio::test(start_paused = true)]
async fn a_failure_names_the_line_and_the_difference() {
    let steps = format!("{PING}\n<-- {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{}}}}\n");
    assert_eq!(
        failure("2025-06-18", &steps).await,
        "wrong.txt:4 (2025-06-18 over memory): /id is 1 instead of 2\
         \n    expected {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\
         \n    actual   {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
    );
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_step_can_fail() {
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for (steps, expected) in [
        (format!("<-- {pong}"), "wrong.txt:3 (2025-11-25 over memory): no message came"),
        (format!("{PING}\n<-- nothing"), "wrong.txt:4 (2025-11-25 over memory): a message came"),
        (PING.to_owned(), "wrong.txt:3 (2025-11-25 over memory): one more message came"),
        (format!("{PING}\n<~~ {pong}\n<~~ {pong}"), "no message came"),
        (format!("{PING}\n<~~ {{\"a\":1}}\n<~~ {{\"a\":2}}"), "none of those expected"),
        (r#"--> {"id":"$saved:nothing"}"#.to_owned(), "nothing was saved as \"nothing\""),
        (format!("{PING}\n<-- [stdio] {pong}"), "one more message came"),
    ] {
        let failure = failure("2025-11-25", &steps).await;
        assert!(failure.contains(expected), "{steps}\n{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_revision_is_reported_separately() {
    let steps = format!("{PING}\n<-- [2025-06-18+] {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}");
    let failures = failure("legacy", &steps).await;
    let failed: Vec<&str> = failures.lines().filter(|line| line.starts_with("wrong")).collect();
    assert_eq!(
        failed,
        [
            "wrong.txt:3 (2024-11-05 over memory): one more message came",
            "wrong.txt:3 (2025-03-26 over memory): one more message came",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_modern_expectation_omits_the_common_members_of_results() {
    let exact = format!("{DISCOVER}\n<-- {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"$save:all\"}}\n");
    assert_eq!(failure("modern", &exact).await, "");
    let seen =
        format!("{DISCOVER}\n<-- {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"ttlMs\":\"$any\"}}}}\n");
    assert!(failure("modern", &seen).await.contains("lacks \"ttlMs\""));
}
