//! Quotas for each caller.

use std::time::Duration;

use bindpost_mcp_server::protocol::Revision;
use bindpost_mcp_server::testing::{ElicitationRequest, TestClient};
use bindpost_mcp_server::{
    CallQuota, Caller, Context, Elicitation, Identity, PromptEntry, ResourceEntry, Server, ServerBuilder,
    ToolEntry, ToolError,
};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

fn builder() -> ServerBuilder {
    Server::builder("s", "1")
        .tool(ToolEntry::new("a", async || "a"))
        .tool(ToolEntry::new("b", async || "b"))
        .resource(ResourceEntry::text("text://r", "r", "r"))
        .prompt(PromptEntry::new("p", async || "p"))
}

async fn call(server: &Server, caller: &Caller, tool: &str) -> Result<String, String> {
    let reply = TestClient::connect_as(server, caller.clone()).call(tool, ()).await;
    reply.map(|reply| reply.text()).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_its_own_quota_for_all_entries_together() {
    let server = builder().quota(CallQuota::new(2, MINUTE)).build().unwrap();
    let [alice, bob] = ["alice", "bob"].map(Caller::new);
    assert_eq!(call(&server, &alice, "a").await.as_deref(), Ok("a"));
    assert_eq!(call(&server, &alice, "b").await.as_deref(), Ok("b"));
    let error = call(&server, &alice, "a").await.unwrap_err();
    assert_eq!(error, "the quota of 2 calls in 60 s is used up; try again in 30 s");
    for (method, params) in
        [("resources/read", json!({"uri": "text://r"})), ("prompts/get", json!({"name": "p"}))]
    {
        let mut client = TestClient::connect_as(&server, alice.clone());
        let error = client.request(method, params).await.unwrap_err();
        assert_eq!((error.code, error.data), (429, Some(json!({"retryAfterMs": 30_000}))), "{method}");
    }
    assert_eq!(call(&server, &bob, "a").await.as_deref(), Ok("a"));

    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(call(&server, &alice, "a").await.as_deref(), Ok("a"));
    assert!(call(&server, &alice, "a").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_quota_may_be_for_some_entries_and_callers() {
    let server = builder()
        .quota(CallQuota::new(1, MINUTE).entries(["a"]).applies_if(|caller, _| !caller.has_role("Admin")))
        .build()
        .unwrap();
    let alice = Caller::new("alice");
    assert!(call(&server, &alice, "a").await.is_ok());
    assert!(call(&server, &alice, "a").await.is_err());
    let admin = Caller::from(Identity::new("root").role("Admin"));
    for _ in 0..3 {
        assert!(call(&server, &alice, "b").await.is_ok());
        assert!(call(&server, &admin, "a").await.is_ok());
    }

    let server = builder().quota(CallQuota::new(1, MINUTE).each_entry()).build().unwrap();
    for tool in ["a", "b"] {
        assert!(call(&server, &alice, tool).await.is_ok());
        assert!(call(&server, &alice, tool).await.is_err());
    }
}

#[tokio::test]
async fn a_rejected_call_uses_nothing() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Sum {
        a: f64,
    }
    let double =
        ToolEntry::new("double", async |bindpost_mcp_server::Args(sum): bindpost_mcp_server::Args<Sum>| {
            (2.0 * sum.a).to_string()
        });
    let quota = CallQuota::new(1, MINUTE);
    let server = Server::builder("s", "1").tool(double).quota(quota).build().unwrap();
    let mut client = TestClient::connect(&server);
    for _ in 0..3 {
        let error = client.call("double", json!({"a": "two"})).await.unwrap_err().to_string();
        assert!(error.contains("Invalid arguments"), "{error}");
    }
    assert_eq!(client.call("double", json!({"a": 2})).await.unwrap().text(), "4");
}

#[tokio::test]
async fn a_call_that_asks_counts_once() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Confirmation {
        sure: bool,
    }
    let send = ToolEntry::new("send", async |context: Context| -> Result<String, ToolError> {
        Ok(match context.elicit::<Confirmation>("Send it?").await? {
            Elicitation::Accepted(Confirmation { sure: true }) => "sent".to_owned(),
            _ => "not sent".to_owned(),
        })
    });
    let server = Server::builder("s", "1").tool(send).quota(CallQuota::new(2, MINUTE)).build().unwrap();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut client = TestClient::builder(&server)
            .caller(Identity::new(revision.as_str()))
            .revision(revision)
            .on_elicitation(|form: ElicitationRequest| form.accept(&json!({"sure": true})))
            .connect()
            .await
            .unwrap();
        for _ in 0..2 {
            assert_eq!(client.call("send", ()).await.unwrap().text(), "sent");
        }
        let error = client.call("send", ()).await.unwrap_err().to_string();
        assert!(error.starts_with("the quota of 2 calls"), "{revision}: {error}");
    }
}

#[tokio::test]
async fn a_question_that_is_never_answered_counts() {
    let ask = ToolEntry::new("ask", async |context: Context| context.elicit::<bool>("?").await.map(|_| ()));
    let ask = ask.input_schema(json!({"type": "object"}));
    let server = Server::builder("s", "1").tool(ask).quota(CallQuota::new(2, MINUTE)).build().unwrap();
    let form = json!({"elicitation": {}});
    let mut client = TestClient::builder(&server).revision(Revision::V2026_07_28).connect().await.unwrap();
    let mut texts = Vec::new();
    for id in 1..=3 {
        let params = json!({"name": "ask", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": form,
        }});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        client.send(request.to_string()).await;
        texts.push(String::from_utf8(client.next().await.unwrap().to_vec()).unwrap());
    }
    assert!(texts[..2].iter().all(|text| !text.contains("quota")), "{texts:?}");
    assert!(texts[2].contains("the quota of 2 calls"), "{texts:?}");
}

#[test]
fn a_quota_for_an_unknown_entry_is_a_mistake() {
    let error = builder().quota(CallQuota::new(1, MINUTE).entries(["a", "send"])).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "quota \"send\": no entry has this name; use `applies_if` for entries that are added later"
    );
}
