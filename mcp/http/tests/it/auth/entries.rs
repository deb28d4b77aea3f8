//! Access rules of entries: anonymous, authenticated, scopes, roles.

use bindpost_mcp_http::{AnonymousAccess, Auth, Authorizer, Denial};
use bindpost_mcp_server::{Caller, HttpRequest, Identity, ListVisibility, Server, ToolEntry};
use serde_json::{Value, json};

use super::*;
use crate::client::{Ask, TestServer};

#[tokio::test]
async fn anonymous_entries_need_no_credentials() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        for credentials in [NO_KEY, WRONG, ALICE] {
            let mut talk = Talk::open(&server, way, credentials).await;
            assert_eq!(talk.call("time", credentials).await.text(), "noon", "{way:?}");
            let read = talk.ask("resources/read", json!({"uri": "menu://open"}), credentials).await;
            assert_eq!(read.message["result"]["contents"][0]["text"], "soup", "{way:?}");
            let got = talk.ask("prompts/get", json!({"name": "hello"}), credentials).await;
            assert_eq!(got.message["result"]["messages"][0]["content"]["text"], "Say hello", "{way:?}");
        }
    }
}

#[tokio::test]
async fn without_an_authorizer_everything_is_open() {
    let server = TestServer::of(mixed(), Settings::default()).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, ALICE).await;
        assert_eq!(talk.call("write", ALICE).await.text(), "anonymous", "{way:?}");
        assert_eq!(talk.call("administer", NO_KEY).await.text(), "anonymous", "{way:?}");
    }
}

#[tokio::test]
async fn a_protected_entry_requires_credentials() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        for (method, params, scopes) in [
            ("tools/call", json!({"name": "whoami"}), None),
            ("tools/call", json!({"name": "write"}), Some("orders.read orders.write")),
            ("tools/call", json!({"name": "administer"}), None),
            ("resources/read", json!({"uri": "menu://staff"}), None),
            ("prompts/get", json!({"name": "order"}), Some("orders.write")),
        ] {
            let answer = talk.ask(method, params, NO_KEY).await;
            let mut expected = parameters(&[("realm", "mcp"), ("header", "x-api-key")]);
            expected.extend(scopes.map(|scopes| ("scope".to_owned(), scopes.to_owned())));
            assert_eq!(answer.refused(401), expected, "{way:?} {method}");
            assert_eq!(challenge(&answer.headers).0, "ApiKey");
            assert_eq!(answer.message["error"]["message"], "authentication is required");
        }
    }
}

#[tokio::test]
async fn invalid_credentials_get_invalid_token() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        let answer = talk.call("write", WRONG).await;
        let expected = parameters(&[
            ("realm", "mcp"),
            ("header", "x-api-key"),
            ("error", "invalid_token"),
            ("scope", "orders.read orders.write"),
            ("error_description", "the API key is not known"),
        ]);
        assert_eq!(answer.refused(401), expected, "{way:?}");
        assert_eq!(answer.message["error"]["message"], "the API key is not known");
    }
}

#[tokio::test]
async fn an_authenticated_caller_may_use_entries_without_scopes() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, ALICE).await;
        assert_eq!(talk.call("whoami", ALICE).await.text(), "key:alice", "{way:?}");
    }
}

#[tokio::test]
async fn missing_scopes_are_403_with_all_required_scopes() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        // One caller has none of the scopes, one has some.
        for credentials in [ALICE, READER] {
            let mut talk = Talk::open(&server, way, credentials).await;
            let answer = talk.call("write", credentials).await;
            let text = "this needs the scopes orders.read orders.write";
            let expected = parameters(&[
                ("realm", "mcp"),
                ("header", "x-api-key"),
                ("error", "insufficient_scope"),
                ("scope", "orders.read orders.write"),
                ("error_description", text),
            ]);
            assert_eq!(answer.refused(403), expected, "{way:?}");
            assert_eq!(answer.message["error"]["message"], text);
        }
        let mut talk = Talk::open(&server, way, READER).await;
        assert_eq!(talk.call("read", READER).await.text(), "key:reader", "{way:?}");
        let mut talk = Talk::open(&server, way, WRITER).await;
        assert_eq!(talk.call("write", WRITER).await.text(), "key:writer", "{way:?}");
        // A scope is not a role.
        let challenge = talk.call("administer", WRITER).await.refused(403);
        assert_eq!(challenge.get("scope"), None);
        assert_eq!(challenge["error"], "insufficient_scope");
    }
}

/// Authenticates every caller as an application.
#[derive(Debug)]
struct Applications;

impl Authorizer for Applications {
    async fn authorize(&self, _: &HttpRequest) -> Result<Caller, Denial> {
        Ok(Identity::new("app").application().role("Orders.Admin").into())
    }
}

#[tokio::test]
async fn an_application_may_use_only_entries_with_its_roles() {
    let server = TestServer::of(mixed(), with(Auth::new(Applications))).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        assert_eq!(talk.call("administer", NO_KEY).await.text(), "app", "{way:?}");
        assert_eq!(talk.call("whoami", NO_KEY).await.text(), "app", "{way:?}");
        // An application cannot use scopes, so the challenge has none.
        let refused = talk.call("read", NO_KEY).await;
        let challenge = refused.refused(403);
        assert_eq!((challenge.get("scope"), &*challenge["error"]), (None, "insufficient_scope"), "{way:?}");
        let text = "this is for users and not for applications that act for themselves";
        assert_eq!(refused.message["error"]["message"], text, "{way:?}");
    }
}

#[tokio::test]
async fn an_unknown_name_looks_like_a_protected_one() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        let there = talk.call("whoami", NO_KEY).await;
        let not_there = talk.call("no such tool", NO_KEY).await;
        assert_eq!(there.refused(401), not_there.refused(401), "{way:?}");
        assert_eq!(there.message, not_there.message, "{way:?}");
        let mut talk = Talk::open(&server, way, ALICE).await;
        assert_eq!(talk.call("no such tool", ALICE).await.message["error"]["code"], -32602, "{way:?}");
    }
}

#[tokio::test]
async fn subscribing_requires_the_access_for_reading() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS.into_iter().filter(|way| *way != Way::Alone) {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        talk.ask("resources/subscribe", json!({"uri": "menu://staff"}), NO_KEY).await.refused(401);
    }
    let listen = |uris: &[&str]| {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        Ask::modern("subscriptions/listen", filter)
    };
    server.send(&listen(&["menu://open", "menu://staff"])).await.refused(401, -32001);
    let mut stream = server.open(&listen(&["menu://open"])).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
}

#[tokio::test]
async fn a_batch_is_rejected_as_a_whole() {
    let server = TestServer::of(mixed(), with_keys()).await;
    let call = |id: u32, tool: &str| {
        let params = json!({"name": tool});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let talk = Talk::open(&server, Way::Session("2025-03-26"), NO_KEY).await;
    let open = json!([call(1, "time"), call(2, "time"), {"jsonrpc": "2.0", "method": "notifications/x"}]);
    let answers = talk.send(&open, NO_KEY).await.json();
    assert_eq!(answers.as_array().unwrap().len(), 2);

    let some = json!([call(1, "time"), call(2, "read"), call(3, "write")]);
    let refused = talk.send(&some, NO_KEY).await;
    assert_eq!(refused.refused(401, -32001)["id"], Value::Null);
    assert_eq!(challenge(&refused.headers).1["scope"], "orders.read orders.write");

    let talk = Talk::open(&server, Way::Session("2025-03-26"), ALICE).await;
    let refused = talk.send(&some, ALICE).await;
    refused.refused(403, -32001);
    assert_eq!(challenge(&refused.headers).1["scope"], "orders.read orders.write");
    let talk = Talk::open(&server, Way::Session("2025-03-26"), WRITER).await;
    assert_eq!(talk.send(&some, WRITER).await.json().as_array().unwrap().len(), 3);

    // An invalid message does not change the access that the other messages require.
    let talk = Talk::open(&server, Way::Session("2025-03-26"), NO_KEY).await;
    talk.send(&json!([7, call(1, "whoami")]), NO_KEY).await.refused(401, -32001);
}

/// Returns all names in a list, over all pages.
async fn listed(talk: &mut Talk<'_>, method: &str, member: &str, credentials: Credentials) -> Vec<String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let answer = talk.ask(method, params, credentials).await;
        let result = &answer.message["result"];
        let page = result[member].as_array().unwrap_or_else(|| panic!("{}", answer.message));
        assert!(page.len() <= 2);
        names.extend(page.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()));
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return names,
        }
    }
}

#[tokio::test]
async fn lists_show_all_entries_or_only_the_permitted_ones() {
    let entries = || {
        Server::builder("pages", "1")
            .page_size(2)
            .tool(ToolEntry::new("a", who))
            .tool(ToolEntry::new("b", who).scopes(["orders.read"]))
            .tool(ToolEntry::new("c", who).anonymous())
            .tool(ToolEntry::new("d", who).scopes(["orders.read", "orders.write"]))
            .tool(ToolEntry::new("e", who))
            .tool(ToolEntry::new("f", who).anonymous())
            .build()
            .unwrap()
    };
    let all = TestServer::of(entries(), with(Auth::new(keys()).opening(AnonymousAccess::Open))).await;
    let permitted =
        TestServer::of(entries(), with(Auth::new(keys()).listing(ListVisibility::Permitted))).await;
    for way in WAYS {
        for (credentials, may) in
            [(NO_KEY, "cf"), (WRONG, "cf"), (ALICE, "acef"), (READER, "abcef"), (WRITER, "abcdef")]
        {
            let mut talk = Talk::open(&all, way, credentials).await;
            assert_eq!(listed(&mut talk, "tools/list", "tools", credentials).await.concat(), "abcdef");
            let mut talk = Talk::open(&permitted, way, credentials).await;
            let names = listed(&mut talk, "tools/list", "tools", credentials).await;
            assert_eq!(names.concat(), may, "{way:?} {credentials:?}");
        }
    }
}

/// Trusts the headers `x-kind`, `x-scopes` and `x-roles`.
#[derive(Debug)]
struct Kinds;

impl Authorizer for Kinds {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        let kind = request.header("x-kind").ok_or_else(Denial::missing)?;
        let words = |name: &str| request.header(name).unwrap_or_default().split_whitespace();
        let identity = match kind {
            "user" => Identity::new(kind).user(),
            "application" => Identity::new(kind).application(),
            _ => Identity::new(kind),
        };
        let identity = words("x-scopes").fold(identity, Identity::scope);
        Ok(words("x-roles").fold(identity, Identity::role).into())
    }
}

#[tokio::test]
async fn user_roles_are_required_besides_scopes() {
    let server = Server::builder("roles", "1")
        .tool(
            ToolEntry::new("refund", who)
                .scopes(["orders.write"])
                .user_roles(["Manager"])
                .roles(["Refund.All"]),
        )
        .tool(ToolEntry::new("close", who).user_roles(["Manager"]))
        .tool(ToolEntry::new("sync", who).roles(["Sync.All"]))
        .build()
        .unwrap();
    let server = TestServer::of(server, with(Auth::new(Kinds))).await;
    const MANAGER: Credentials = &[("x-kind", "user"), ("x-scopes", "orders.write"), ("x-roles", "Manager")];
    const CLERK: Credentials = &[("x-kind", "user"), ("x-scopes", "orders.write"), ("x-roles", "Refund.All")];
    const BARE: Credentials = &[("x-kind", "user"), ("x-roles", "Manager Sync.All")];
    const APP: Credentials = &[("x-kind", "application"), ("x-roles", "Refund.All Manager")];
    const KEY: Credentials = &[("x-kind", "key"), ("x-scopes", "orders.write")];
    let may = [
        (MANAGER, &["refund", "close"][..]),
        (CLERK, &[]),
        (BARE, &["close"]),
        (APP, &["refund"]),
        (KEY, &[]),
    ];
    for way in WAYS {
        for (credentials, permitted) in may {
            let mut talk = Talk::open(&server, way, credentials).await;
            for tool in ["refund", "close", "sync"] {
                let answer = talk.call(tool, credentials).await;
                let status = if permitted.contains(&tool) { 200 } else { 403 };
                assert_eq!(answer.status, status, "{way:?} {tool} {credentials:?}");
            }
        }
        // The challenge has scopes only if some are missing, because a client cannot request roles.
        let mut talk = Talk::open(&server, way, CLERK).await;
        for (credentials, tool, scope, text) in [
            (CLERK, "refund", None, "this needs the role Manager of the user"),
            (BARE, "refund", Some("orders.write"), "this needs the scope orders.write"),
            (KEY, "close", None, "this needs the role Manager of the user"),
            (CLERK, "sync", None, "this is for applications that act for themselves and not for users"),
            (APP, "sync", None, "this needs the role Sync.All of the application"),
        ] {
            if way != Way::Alone {
                talk = Talk::open(&server, way, credentials).await;
            }
            let refused = talk.call(tool, credentials).await;
            assert_eq!(refused.message["error"]["message"], text, "{way:?} {tool} {credentials:?}");
            let challenge = refused.refused(403);
            assert_eq!(challenge.get("scope").map(String::as_str), scope, "{way:?} {tool} {credentials:?}");
        }
    }
}

/// Scopes may come from an untrusted document and become part of a header.
#[tokio::test]
async fn names_of_rights_cannot_break_out_of_a_challenge() {
    let scopes = [
        "a\", error=\"invalid_token",
        "b\r\nset-cookie: session=stolen",
        "c\\",
        "d\", Basic realm=\"x",
        "\u{fc}\u{0}\u{7f}\u{2028}",
    ];
    let roles = ["r\r\nlocation: https://evil.example\r\n\r\n<script>", "\""];
    let server = Server::builder("names", "1")
        .tool(ToolEntry::new("read", who).scopes(scopes))
        .tool(ToolEntry::new("sync", who).scopes(["a"]).roles(roles))
        .tool(ToolEntry::new("open", who).anonymous())
        .build()
        .unwrap();
    let server = TestServer::of(server, with(Auth::new(Kinds).realm("r\", x=\"\r\n"))).await;
    const USER: Credentials = &[("x-kind", "user")];
    const APP: Credentials = &[("x-kind", "application")];
    for way in WAYS {
        for (tool, credentials, status, names) in [
            ("read", NO_KEY, 401, &["realm", "scope"][..]),
            ("read", USER, 403, &["error", "error_description", "realm", "scope"]),
            ("sync", APP, 403, &["error", "error_description", "realm"]),
        ] {
            let mut talk = Talk::open(&server, way, credentials).await;
            let refused = talk.call(tool, credentials).await;
            let parameters = refused.refused(status);
            let mut found: Vec<&str> = parameters.keys().map(String::as_str).collect();
            found.sort_unstable();
            assert_eq!(found, names, "{way:?} {parameters:?}");
            assert!(parameters.values().all(|value| value.chars().all(|letter| matches!(letter, ' '..='~'))));
            if status == 403 {
                assert_eq!(parameters["error"], "insufficient_scope", "{way:?}");
            }
            for smuggled in ["set-cookie", "location"] {
                assert!(!refused.headers.contains_key(smuggled), "{way:?} {:?}", refused.headers);
            }
        }
    }
}
