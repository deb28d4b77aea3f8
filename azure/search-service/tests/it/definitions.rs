//! Tests of creating, reading, replacing, listing and deleting definitions.

use serde_json::{Value, json};

use crate::server::{Server, index};

const RETURN: (&str, &str) = ("prefer", "return=representation");

/// Returns one definition of each kind except the index, which exists already.
fn definitions() -> Vec<(&'static str, Value)> {
    let skill = json!({
        "@odata.type": "#Microsoft.Skills.Text.SplitSkill",
        "inputs": [{"name": "text", "source": "/document/content"}], "outputs": [{"name": "textItems"}],
    });
    let source = json!({
        "type": "azureblob", "container": {"name": "c"}, "credentials": {"connectionString": "secret"},
    });
    let knowledge = json!({"kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}});
    vec![
        ("indexes", index("x1")),
        ("datasources", source),
        ("skillsets", json!({"skills": [skill]})),
        ("indexers", json!({"dataSourceName": "x1", "targetIndexName": "hotels", "skillsetName": "x1"})),
        ("synonymmaps", json!({"format": "solr", "synonyms": "a,b"})),
        ("aliases", json!({"indexes": ["hotels"]})),
        ("knowledgesources", knowledge),
        ("knowledgebases", json!({"knowledgeSources": [{"name": "x1"}]})),
        ("agents", json!({"knowledgeSources": [{"name": "x1"}], "models": [{"kind": "azureOpenAI"}]})),
    ]
}

fn named(mut body: Value, name: &str) -> Value {
    body["name"] = json!(name);
    body
}

#[tokio::test]
async fn every_kind_has_all_operations_in_both_path_forms() {
    let server = Server::start().await.with_index().await;
    for (collection, body) in definitions() {
        // An alias cannot have the name of an index.
        let name = if collection == "aliases" { "other" } else { "x1" };
        let body = named(body, name);
        let quoted = format!("/{collection}('{name}')");
        let plain = format!("/{collection}/{name}");
        if collection == "agents" {
            server.send("DELETE", &quoted, None).await;
        }
        let made = server.send("POST", &format!("/{collection}"), Some(body.clone())).await;
        assert_eq!(made.status, 201, "{collection}: {made:?}");
        assert_eq!(made.header("etag"), made.json()["@odata.etag"].as_str().unwrap());
        let location = format!("{}{quoted}?api-version=2025-09-01", server.base);
        assert_eq!(made.header("location"), location);
        let context = format!("{}/$metadata#{collection}/$entity", server.base);
        assert_eq!(made.json()["@odata.context"], context);

        let again = server.send("POST", &format!("/{collection}"), Some(body.clone())).await;
        assert_eq!((again.status, again.code().as_str()), (409, "ResourceNameAlreadyInUse"), "{again:?}");
        for address in [&quoted, &plain] {
            let read = server.send("GET", address, None).await;
            assert_eq!((read.status, &read.json()["name"]), (200, &json!(name)), "{address}");
            let mut changed = body.clone();
            changed["description"] = json!("changed");
            let put = server.send_with("PUT", address, &[RETURN], Some(changed)).await;
            assert_eq!((put.status, &put.json()["description"]), (200, &json!("changed")), "{put:?}");
            let quiet = server.send("PUT", address, Some(body.clone())).await;
            assert_eq!((quiet.status, quiet.text.as_str()), (204, ""));
            assert_ne!(quiet.header("etag"), put.header("etag"));
            let reread = server.send("GET", address, None).await;
            assert_eq!(reread.header("etag"), quiet.header("etag"));
        }
    }
    for (collection, _) in definitions().into_iter().rev() {
        if collection == "agents" {
            continue;
        }
        let name = if collection == "aliases" { "other" } else { "x1" };
        let plain = format!("/{collection}/{name}");
        let deleted = server.send("DELETE", &plain, None).await;
        assert_eq!((deleted.status, deleted.text.as_str()), (204, ""), "{collection}");
        assert_eq!(server.send("GET", &plain, None).await.status, 404);
        let again = server.send("DELETE", &format!("/{collection}('{name}')"), None).await;
        assert_eq!((again.status, again.code().as_str()), (404, "ResourceNotFound"));
        let list = server.send("GET", &format!("/{collection}"), None).await.json();
        let left: Vec<_> = list["value"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
        assert!(!left.contains(&json!(name)), "{left:?}");
    }
}

#[tokio::test]
async fn put_creates_a_missing_definition() {
    let server = Server::start().await;
    for address in ["/indexes('a1')", "/indexes/a2"] {
        let made = server.send("PUT", address, Some(json!({"fields": []}))).await;
        assert_eq!(made.status, 201, "{made:?}");
        assert!(address.contains(made.json()["name"].as_str().unwrap()), "{made:?}");
    }
    let wrong = server.send("PUT", "/indexes('a1')", Some(index("b1"))).await;
    assert!(wrong.status == 400 && wrong.message().contains("'b1'"), "{wrong:?}");
}

#[tokio::test]
async fn lists_have_only_selected_members() {
    let server = Server::start().await.with_index().await;
    server.send("POST", "/indexes", Some(index("airports"))).await;
    let all = server.send("GET", "/indexes", None).await.json();
    assert_eq!(all["@odata.context"], format!("{}/$metadata#indexes", server.base));
    assert_eq!(all["value"][0]["name"], "airports");
    assert_eq!(all["value"][1]["fields"][0]["name"], "id");
    let selected = server.send("GET", "/indexes?$select=name", None).await.json();
    let first = selected["value"][0].as_object().unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["@odata.etag", "name"]);
    let none = [("accept", "application/json;odata.metadata=none")];
    let bare = server.send_with("GET", "/indexes", &none, None).await;
    assert!(bare.json().get("@odata.context").is_none());
    assert_eq!(bare.header("content-type"), "application/json; odata.metadata=none; charset=utf-8");
}

#[tokio::test]
async fn etags_guard_changes() {
    let server = Server::start().await.with_index().await;
    let etag = server.send("GET", "/indexes('hotels')", None).await.header("etag").to_owned();
    assert!(etag.starts_with("\"0x8") && etag.ends_with('"'), "{etag}");
    let put = async |headers: &[(&str, &str)]| {
        server.send_with("PUT", "/indexes('hotels')", headers, Some(index("hotels"))).await
    };
    let exists = put(&[("if-none-match", "*")]).await;
    assert_eq!((exists.status, exists.code().as_str()), (412, "PreconditionFailed"));
    assert_eq!(put(&[("if-match", &etag), RETURN]).await.status, 200);
    let stale = put(&[("if-match", &etag), RETURN]).await;
    assert!(stale.status == 412 && stale.message().contains(&etag), "{stale:?}");
    let stale = server.send_with("DELETE", "/indexes('hotels')", &[("if-match", &etag)], None).await;
    assert_eq!(stale.status, 412);
    let missing = server.send_with("DELETE", "/indexes('nope')", &[("if-match", "*")], None).await;
    assert_eq!(missing.status, 412);
    let new = server.send_with("PUT", "/indexes('new')", &[("if-match", "*")], Some(index("new"))).await;
    assert_eq!(new.status, 412);
    let deleted = server.send_with("DELETE", "/indexes('hotels')", &[("if-match", "*")], None).await;
    assert_eq!(deleted.status, 204);
}

#[tokio::test]
async fn a_connection_string_is_never_returned_and_never_lost() {
    let server = Server::start().await;
    let source = json!({
        "name": "ds", "type": "azureblob", "container": {"name": "c"},
        "credentials": {"connectionString": "UseDevelopmentStorage=true;AccountKey=secret"},
    });
    let made = server.send("POST", "/datasources", Some(source)).await;
    assert_eq!(
        (made.status, &made.json()["credentials"]["connectionString"]),
        (201, &Value::Null),
        "{made:?}"
    );
    // A client sends back the definition that it received.
    let put = server.send_with("PUT", "/datasources('ds')", &[RETURN], Some(made.json())).await;
    assert_eq!((put.status, put.text.contains("secret")), (200, false), "{put:?}");
    let list = server.send("GET", "/datasources", None).await;
    assert!(!list.text.contains("secret"), "{list:?}");
    let kept = server
        .resources
        .get(bindpost_azure_search_service::internals::ResourceKind::DataSource, "ds")
        .unwrap();
    assert!(kept.value.to_string().contains("AccountKey=secret"));
}

#[tokio::test]
async fn names_follow_the_rules() {
    let server = Server::start().await;
    for name in ["Hotels", "a", "-a", "a--b", "a b", "a'b", "a/b"] {
        let made = server.send("POST", "/indexes", Some(index(name))).await;
        assert!(made.status == 400 && made.message().contains("lowercase letters"), "{name}: {made:?}");
    }
    let put = server.send("PUT", "/indexes('a%2Fb%27c')", Some(json!({}))).await;
    assert!(put.status == 400 && put.message().contains("'a/b'c'"), "{put:?}");
    let nameless = server.send("POST", "/indexes", Some(json!({"fields": []}))).await;
    assert!(nameless.status == 400 && nameless.message().contains("'name'"), "{nameless:?}");
    let cased = server.with_index().await.send("GET", "/indexes('Hotels')", None).await;
    assert!(cased.status == 404 && cased.message().contains("case-sensitive"), "{cased:?}");
}

#[tokio::test]
async fn agents_and_knowledge_bases_are_the_same_resources() {
    let server = Server::start().await.with_index().await;
    let source =
        json!({"name": "ks", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}});
    assert_eq!(server.send("POST", "/knowledgesources", Some(source)).await.status, 201);
    let agent = json!({"name": "ag", "knowledgeSources": [{"name": "ks"}]});
    assert_eq!(server.send("PUT", "/agents('ag')", Some(agent)).await.status, 201);
    let base = server.send("GET", "/knowledgebases('ag')", None).await;
    assert_eq!(base.status, 200);
    for address in ["/agents('ag')/retrieve", "/knowledgebases/ag/retrieve"] {
        let retrieved = server.send("POST", address, Some(json!({"messages": []}))).await;
        assert_eq!(retrieved.json()["base"], "ag", "{retrieved:?}");
    }
    let status = server.send("GET", "/knowledgesources('ks')/status", None).await;
    assert_eq!(status.json()["name"], "ks");
}
