//! The entries that one caller sees, and how long others may keep what it saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bindpost_mcp_server::protocol::{Resource, Revision};
use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::transport::RequiredAccess;
use bindpost_mcp_server::{
    CacheScope, Caller, EntryView, Identity, ListKind, PromptEntry, ResourceEntry, ResourceListEntry, Server,
    ServerBuilder, TemplateEntry, ToolEntry,
};
use serde_json::{Value, json};

fn staff() -> Caller {
    Identity::new("staff").role("Staff").into()
}

/// A server with two entries of each kind. The names of the second ones contain `staff`.
fn builder() -> ServerBuilder {
    let list = ResourceListEntry::new("list", async || {
        ["list://all", "list://staff"]
            .map(|uri| Resource { uri: uri.to_owned(), name: uri.to_owned(), ..Resource::default() })
            .to_vec()
    });
    Server::builder("shop", "1.0.0")
        .tool(ToolEntry::new("search", async || "found"))
        .tool(ToolEntry::new("staff_restock", async || "ordered").scopes(["restock"]))
        .resource(ResourceEntry::text("text://all", "all", "all"))
        .resource(ResourceEntry::text("text://staff", "staff", "secret"))
        .template(TemplateEntry::new("item://{id}", "item", async || "item"))
        .template(
            TemplateEntry::new("staff://{id}", "staff", async || "secret")
                .complete("id", |_| vec!["secret".to_owned()]),
        )
        .prompt(PromptEntry::new("greet", async || "hello"))
        .prompt(PromptEntry::new("staff_greet", async || "secret"))
        .resource_list(list)
        .show_if(|caller, entry| !entry.name().contains("staff") || caller.has_role("Staff"))
}

fn initialize() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
}

#[tokio::test]
async fn an_entry_that_is_not_shown_is_unknown_to_every_method() {
    let server = builder().build().unwrap();
    for (method, hidden, unknown) in [
        ("tools/call", json!({"name": "staff_restock"}), json!({"name": "nope"})),
        ("resources/read", json!({"uri": "text://staff"}), json!({"uri": "text://nope"})),
        ("resources/read", json!({"uri": "staff://7"}), json!({"uri": "nope://7"})),
        ("resources/subscribe", json!({"uri": "text://staff"}), json!({"uri": "text://nope"})),
        ("prompts/get", json!({"name": "staff_greet"}), json!({"name": "nope"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "staff://{id}"}, "argument": {"name": "id", "value": ""}}),
            json!({"ref": {"type": "ref/resource", "uri": "nope://{id}"}, "argument": {"name": "id", "value": ""}}),
        ),
    ] {
        let mut guest = TestClient::connect_as(&server, Caller::new("guest"));
        guest.request("initialize", initialize()).await.unwrap();
        let [of_hidden, of_unknown] = [&hidden, &unknown].map(ToString::to_string);
        let of_hidden = (guest.request(method, hidden.clone()).await.unwrap_err(), of_hidden);
        let of_unknown = (guest.request(method, unknown).await.unwrap_err(), of_unknown);
        let rename = |text: String| {
            ["staff_restock", "staff_greet", "staff"]
                .iter()
                .fold(text, |text, name| text.replace(name, "nope"))
        };
        assert_eq!(rename(of_hidden.0.to_string()), of_unknown.0.to_string(), "{method} {}", of_hidden.1);
        assert_eq!(of_hidden.0.code, of_unknown.0.code, "{method}");

        let caller = Identity::new("staff").role("Staff").scope("restock");
        let mut member = TestClient::connect_as(&server, caller);
        member.request("initialize", initialize()).await.unwrap();
        member.request(method, hidden).await.unwrap();
    }
}

#[tokio::test]
async fn lists_have_what_the_caller_sees() {
    let server = builder().page_size(1).build().unwrap();
    for (kind, member, all) in [
        (ListKind::Tools, "name", vec!["search", "staff_restock"]),
        (ListKind::Resources, "uri", vec!["text://all", "text://staff", "list://all", "list://staff"]),
        (ListKind::Templates, "uriTemplate", vec!["item://{id}", "staff://{id}"]),
        (ListKind::Prompts, "name", vec!["greet", "staff_greet"]),
    ] {
        let without_staff: Vec<&str> = all.iter().copied().filter(|name| !name.contains("staff")).collect();
        let member_of_staff = Caller::from(Identity::new("staff").role("Staff").scope("restock"));
        // Twice, because pages with all entries are kept.
        for (caller, expected) in
            [(member_of_staff, &all), (Caller::new("guest"), &without_staff)].into_iter().cycle().take(4)
        {
            let listed = server.list_definitions(kind, Revision::V2026_07_28, Some(&caller)).await.unwrap();
            let names: Vec<&str> = listed.iter().map(|entry| entry[member].as_str().unwrap()).collect();
            assert_eq!(&names, expected, "{caller:?}");
        }
    }
    let guest = Caller::ANONYMOUS;
    let visible = server.catalog().visible_to(&guest);
    let names = |views: &mut dyn Iterator<Item = EntryView<'_>>| {
        views.map(|view| view.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&mut visible.tools().map(EntryView::Tool)), "search");
    assert_eq!(names(&mut visible.resources().map(EntryView::Resource)), "text://all");
    assert_eq!(names(&mut visible.templates().map(EntryView::Template)), "item://{id}");
    assert_eq!(names(&mut visible.prompts().map(EntryView::Prompt)), "greet");
}

#[tokio::test]
async fn a_hidden_entry_is_not_suggested() {
    let server = builder().build().unwrap();
    for (method, name) in [("tools/call", "staff_restok"), ("prompts/get", "staff_gret")] {
        for (caller, is_suggested) in [(Caller::new("guest"), false), (staff(), true)] {
            let mut client = TestClient::connect_as(&server, caller);
            client.request("initialize", initialize()).await.unwrap();
            let message = client.request(method, json!({ "name": name })).await.unwrap_err().message;
            assert!(message.starts_with("unknown "), "{message}");
            assert_eq!(message.contains("; did you mean \"staff_"), is_suggested, "{message}");
        }
    }
}

#[tokio::test]
async fn the_rights_that_a_hidden_entry_requires_are_not_told() {
    let server = builder().build().unwrap();
    let call = |name: &str| {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
        match bindpost_mcp_server::protocol::jsonrpc::decode_one(text.to_string().into()) {
            Ok(bindpost_mcp_server::protocol::Message::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    };
    let guest = Caller::new("guest");
    assert_eq!(server.required_access(&call("staff_restock"), &guest), RequiredAccess::Known);
    assert_eq!(server.required_access(&call("nope"), &guest), RequiredAccess::Known);
    let RequiredAccess::Entries(rules) = server.required_access(&call("staff_restock"), &staff()) else {
        panic!("no rule");
    };
    assert_eq!(rules[0].scopes(), ["restock"]);
}

/// Returns the methods and URIs of the notifications that came before the answer to a ping.
async fn notifications(client: &mut TestClient) -> Vec<String> {
    client.send(r#"{"jsonrpc":"2.0","id":"end","method":"ping"}"#).await;
    let mut came = Vec::new();
    loop {
        let message: Value = serde_json::from_slice(&client.next().await.unwrap()).unwrap();
        if message["id"] == "end" {
            return came;
        }
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        came.push(format!("{} {uri}", message["method"].as_str().unwrap()).trim_end().to_owned());
    }
}

#[tokio::test]
async fn changed_views_are_announced_to_their_callers() {
    let closed = Arc::new(AtomicBool::new(false));
    let is_closed = closed.clone();
    let server = Server::builder("shop", "1.0.0")
        .tool(ToolEntry::new("search", async || "found"))
        .resource(ResourceEntry::text("text://all", "all", "all"))
        .show_if(move |caller, _| caller.id() != Some("a") || !is_closed.load(Ordering::Relaxed))
        .build()
        .unwrap();
    let [mut a, mut b] = ["a", "b"].map(|id| TestClient::connect_as(&server, Caller::new(id)));
    for client in [&mut a, &mut b] {
        client.request("initialize", initialize()).await.unwrap();
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client.request("resources/subscribe", json!({"uri": "text://all"})).await.unwrap();
    }
    server.resource_updated("text://all");
    for client in [&mut a, &mut b] {
        assert_eq!(notifications(client).await, ["notifications/resources/updated text://all"]);
    }

    closed.store(true, Ordering::Relaxed);
    server.catalog().announce_view(&Caller::new("a"));
    server.resource_updated("text://all");
    let lists = ["notifications/tools/list_changed", "notifications/resources/list_changed"];
    assert_eq!(notifications(&mut a).await, lists);
    assert_eq!(notifications(&mut b).await, ["notifications/resources/updated text://all"]);

    server.catalog().announce_all_views();
    for client in [&mut a, &mut b] {
        assert_eq!(notifications(client).await, lists);
    }
}

#[tokio::test]
async fn what_depends_on_the_caller_is_not_public_for_caches() {
    let envelope = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let plain = || {
        Server::builder("s", "1")
            .tool(ToolEntry::new("t", async || "x"))
            .resource(ResourceEntry::text("text://fixed", "fixed", "x"))
            .resource(ResourceEntry::new("text://read", "read", async || "x"))
            .cache(Duration::from_secs(60), CacheScope::Public)
    };
    let filtered = plain().show_if(|_, _| true).build().unwrap();
    let plain = plain().build().unwrap();
    for (server, caller, expected) in [
        (&plain, Caller::ANONYMOUS, "public"),
        (&plain, Caller::new("a"), "private"),
        (&plain, Caller::ANONYMOUS, "public"),
        (&filtered, Caller::ANONYMOUS, "private"),
    ] {
        let mut client = match caller.is_authenticated() {
            true => TestClient::connect_as(server, caller.clone()),
            false => TestClient::connect(server),
        };
        for uri in ["text://fixed", "text://read"] {
            let params = json!({"uri": uri, "_meta": envelope});
            let read = client.request("resources/read", params).await.unwrap();
            assert_eq!(
                (&read["cacheScope"], &read["ttlMs"]),
                (&json!(expected), &json!(60_000)),
                "{caller:?}"
            );
        }
    }
    // Pipes show all entries to every caller, so only the filter matters.
    for (server, expected) in [(&plain, "public"), (&filtered, "private")] {
        let mut client = TestClient::connect(server);
        let list = client.request("tools/list", json!({"_meta": envelope})).await.unwrap();
        assert_eq!(list["cacheScope"], expected);
    }
}
