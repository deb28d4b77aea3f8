//! Scopes of users and roles of applications, over every transport, for every revision.

use bindpost_mcp_http::Auth;
use bindpost_mcp_server::{
    Context, ListVisibility, PromptEntry, ResourceEntry, Server, TaskLimits, TaskSupport, TemplateEntry,
    ToolEntry,
};
use serde_json::{Value, json};

use crate::issuer::TestIssuer;
use crate::requests::{AUDIENCE, tokens};
use crate::talk::{Talk, TestServer, WAYS, Way};

const SCOPES: [&str; 1] = ["orders.write"];
const ROLES: [&str; 1] = ["Orders.Write"];

/// One entry of each kind that needs a scope of a user or a role of an application, and a tool for
/// any caller.
fn guarded() -> Server {
    let item = TemplateEntry::new("guarded://item/{id}", "item", async |_: Context| "an item")
        .complete("id", |_| vec!["1".to_owned()]);
    let order = PromptEntry::new("order", async |_: Context| "Order");
    Server::builder("guarded", "1.0.0")
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("whoami", who))
        .tool(ToolEntry::new("create_order", who).scopes(SCOPES).roles(ROLES))
        .tool(ToolEntry::new("job", who).scopes(SCOPES).roles(ROLES).task(TaskSupport::Required))
        .resource(ResourceEntry::text("guarded://data", "data", "secret").scopes(SCOPES).roles(ROLES))
        .template(item.scopes(SCOPES).roles(ROLES))
        .prompt(order.scopes(SCOPES).roles(ROLES))
        .build()
        .unwrap()
}

async fn who(context: Context) -> String {
    context.caller().claim("sub").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The requests that use a guarded entry.
fn requests(way: Way) -> Vec<(&'static str, Value)> {
    let complete = |reference: Value| json!({"ref": reference, "argument": {"name": "id", "value": ""}});
    let mut all = vec![
        ("tools/call", json!({"name": "create_order", "arguments": {}})),
        ("resources/read", json!({"uri": "guarded://data"})),
        ("resources/read", json!({"uri": "guarded://item/1"})),
        ("prompts/get", json!({"name": "order"})),
        ("completion/complete", complete(json!({"type": "ref/resource", "uri": "guarded://item/{id}"}))),
    ];
    if way == Way::Alone {
        all.push(("tools/call", json!({"name": "job", "arguments": {}})));
    } else {
        all.push(("resources/subscribe", json!({"uri": "guarded://data"})));
    }
    all
}

/// Returns the names in all lists.
async fn listed(talk: &mut Talk<'_>, bearer: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (method, member) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let answer = talk.ask(method, json!({}), Some(bearer)).await;
        let entries = answer.message["result"][member].as_array().unwrap().clone();
        names.extend(entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()));
    }
    names
}

async fn start(issuer: &TestIssuer) -> TestServer {
    let auth = Auth::new(tokens(issuer)).resource(AUDIENCE).listing(ListVisibility::Permitted);
    TestServer::with_auth(guarded(), auth).await
}

/// Tokens without the rights. Each has a part of them or similar claims.
fn without_rights() -> Vec<Value> {
    vec![
        // A user, through an application with other scopes. The roles are those of the user.
        json!({"scp": "other", "roles": ROLES}),
        json!({"scope": "other", "roles": ROLES, "client_id": "till"}),
        json!({"scope": ["other"], "scp": 7, "roles": ROLES}),
        // No scopes were granted, or the client requested none.
        json!({"scope": "", "roles": ROLES}),
        json!({"scope": null, "roles": ROLES}),
        json!({"roles": ROLES, "client_id": "till", "azp": "till"}),
        json!({"roles": ROLES, "idtyp": "user"}),
        json!({"roles": ROLES, "idtyp": 7, "client_id": "alice"}),
        json!({"roles": ROLES, "idtyp": "device", "client_id": "alice"}),
        // In Entra ID the subject of a user differs for each application.
        json!({"roles": ROLES, "oid": "the object of alice"}),
        // An application whose roles are named like the scopes, or that has scopes.
        json!({"sub": "app", "client_id": "app", "roles": SCOPES}),
        json!({"sub": "app", "idtyp": "app", "scp": "orders.write"}),
        json!({"sub": "app", "idtyp": "app", "roles": ["Orders.Read"]}),
    ]
}

fn with_rights() -> Vec<Value> {
    vec![
        json!({"scp": "other orders.write"}),
        json!({"scope": "orders.write", "roles": ["Other"]}),
        json!({"sub": "app", "idtyp": "app", "roles": ["Other", "Orders.Write"]}),
        json!({"sub": "app", "client_id": "app", "roles": ROLES}),
        json!({"sub": "app", "azp": "app", "roles": ROLES}),
        json!({"sub": "app", "appid": "app", "roles": ROLES}),
        json!({"sub": "object", "oid": "object", "roles": ROLES}),
    ]
}

#[tokio::test]
async fn roles_of_a_user_are_no_rights_of_an_application() {
    let issuer = TestIssuer::start().await;
    let server = start(&issuer).await;
    for claims in without_rights() {
        let token = issuer.token(claims.clone()).await;
        for way in WAYS {
            let mut talk = Talk::open(&server, way, Some(&token)).await;
            for (method, params) in requests(way) {
                let refused = talk.ask(method, params, Some(&token)).await;
                let challenge = refused.refused(403);
                assert_eq!(challenge["error"], "insufficient_scope", "{way:?} {method} {claims}");
            }
            assert_eq!(listed(&mut talk, &token).await, ["whoami"], "{way:?} {claims}");
            talk.call("whoami", Some(&token)).await.text();
            match way {
                Way::Alone => {
                    let filter = json!({"notifications": {"resourceSubscriptions": ["guarded://data"]}});
                    talk.ask("subscriptions/listen", filter, Some(&token)).await.refused(403);
                }
                Way::Session("2025-03-26") => {
                    talk.batch(&["whoami", "create_order"], &token).await.refused(403);
                }
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn users_need_scopes_and_applications_need_roles() {
    let issuer = TestIssuer::start().await;
    let server = start(&issuer).await;
    for claims in with_rights() {
        let token = issuer.token(claims.clone()).await;
        for way in WAYS {
            let mut talk = Talk::open(&server, way, Some(&token)).await;
            for (method, params) in requests(way) {
                let answer = talk.ask(method, params, Some(&token)).await;
                assert_eq!(answer.status, 200, "{way:?} {method} {claims} {answer:?}");
                assert!(answer.message["result"].is_object(), "{way:?} {method} {claims} {answer:?}");
            }
            let all = ["whoami", "create_order", "job", "data", "item", "order"];
            assert_eq!(listed(&mut talk, &token).await, all, "{way:?} {claims}");
            if way == Way::Session("2025-03-26") {
                let answers = talk.batch(&["whoami", "create_order"], &token).await;
                assert_eq!(answers.message.as_array().map(Vec::len), Some(2), "{claims}");
            }
        }
    }
}
