//! Tests of the calls to the engine and of its responses.

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn get_and_post_are_equivalent() {
    let server = Server::start().await.with_index().await;
    let post = json!({"search": "a b", "count": true, "facets": ["x", "y"], "top": 5, "filter": "id eq '1'"});
    let query = "search=a%20b&$count=true&facet=x&facet=y&$top=5&$filter=id%20eq%20%271%27";
    for index in ["/indexes('hotels')", "/indexes/hotels"] {
        for target in ["docs/search.post.search", "docs/search"] {
            let answer = server.send("POST", &format!("{index}/{target}"), Some(post.clone())).await;
            assert_eq!((answer.status, &answer.json()["parameters"]), (200, &post), "{answer:?}");
            let next =
                format!("{}/indexes('hotels')/docs/search.post.search?api-version=2025-09-01", server.base);
            assert_eq!(answer.json()["@odata.nextLink"], next);
        }
        let answer = server.send("GET", &format!("{index}/docs?{query}"), None).await;
        assert_eq!((answer.status, &answer.json()["parameters"]), (200, &post), "{answer:?}");
        let link = answer.json()["@odata.nextLink"].as_str().unwrap().to_owned();
        let next = server.raw("GET", link.strip_prefix(&server.base).unwrap(), &[], "").await;
        assert_eq!(next.json()["parameters"], post);
    }
}

#[tokio::test]
async fn suggest_and_autocomplete_support_get_and_post() {
    let server = Server::start().await.with_index().await;
    let parameters = json!({"search": "a", "suggesterName": "sg", "fuzzy": true, "top": 3});
    for what in ["suggest", "autocomplete"] {
        for target in [format!("docs/search.post.{what}"), format!("docs/{what}")] {
            let target = format!("/indexes('hotels')/{target}");
            let answer = server.send("POST", &target, Some(parameters.clone())).await.json();
            assert_eq!((&answer["asked"], &answer["parameters"]), (&json!(what), &parameters));
        }
        for target in [format!("docs/search.{what}"), format!("docs/{what}")] {
            let target = format!("/indexes/hotels/{target}?search=a&suggesterName=sg&fuzzy=true&$top=3");
            let answer = server.send("GET", &target, None).await.json();
            assert_eq!((&answer["asked"], &answer["parameters"]), (&json!(what), &parameters));
        }
    }
}

#[tokio::test]
async fn document_keys_may_have_quotes_and_slashes() {
    let server = Server::start().await.with_index().await;
    for (target, key) in [
        ("/indexes('hotels')/docs('a%2Fb%27c')?$select=id,t", "a/b'c"),
        ("/indexes/hotels/docs/a%2Fb%27c?$select=id,t", "a/b'c"),
        ("/indexes('hotels')/docs('a''b')?$select=id,t", "a'b"),
        ("/indexes('hotels')/docs('search')?$select=id,t", "search"),
    ] {
        let answer = server.send("GET", target, None).await.json();
        assert_eq!((&answer["key"], &answer["select"]), (&json!(key), &json!("id,t")), "{target}");
    }
    let missing = server.send("GET", "/indexes('hotels')/docs('missing')", None).await;
    assert_eq!((missing.status, missing.message().as_str()), (404, "no such document"));
}

#[tokio::test]
async fn an_alias_resolves_to_its_index() {
    let server = Server::start().await.with_index().await;
    server.send("POST", "/aliases", Some(json!({"name": "live", "indexes": ["hotels"]}))).await;
    let answer = server.send("GET", "/indexes('live')/docs?search=x", None).await;
    assert_eq!(answer.json()["index"], "hotels");
    assert_eq!(server.send("GET", "/indexes('live')", None).await.json()["name"], "hotels");
    let missing = server.send("GET", "/indexes('nope')/docs?search=x", None).await;
    assert!(missing.status == 404 && missing.message().contains("'nope'"), "{missing:?}");
}

#[tokio::test]
async fn the_other_calls_reach_the_engine() {
    let server = Server::start().await.with_index().await;
    let count = server.send("GET", "/indexes('hotels')/docs/$count", None).await;
    assert_eq!((count.text.as_str(), count.header("content-type")), ("42", "text/plain; charset=utf-8"));
    for target in ["docs/search.index", "docs/index"] {
        let batch =
            server.send("POST", &format!("/indexes('hotels')/{target}"), Some(json!({"value": []}))).await;
        assert_eq!((batch.status, &batch.json()["bytes"]), (207, &json!(12)));
    }
    let analyzed = server.send("POST", "/indexes('hotels')/search.analyze", Some(json!({"text": "a"}))).await;
    assert_eq!(analyzed.json()["request"]["text"], "a");
    let statistics = server.send("GET", "/indexes/hotels/stats", None).await.json();
    assert_eq!((&statistics["documentCount"], &statistics["vectorIndexSize"]), (&json!(3), &json!(5)));
    let service = server.send("GET", "/servicestats", None).await.json();
    assert_eq!(service["counters"]["indexesCount"]["usage"], 1);
    assert_eq!(server.send("GET", "/indexstats", None).await.json()["value"][0]["name"], "hotels");
}

#[tokio::test]
async fn indexers_can_be_run_reset_and_queried() {
    let server = Server::start().await.with_index().await;
    let source = json!({"name": "ds", "type": "azureblob", "container": {"name": "c"},
        "credentials": {"connectionString": "x"}});
    assert_eq!(server.send("POST", "/datasources", Some(source)).await.status, 201);
    let indexer = json!({"name": "ixr", "dataSourceName": "ds", "targetIndexName": "hotels"});
    assert_eq!(server.send("POST", "/indexers", Some(indexer)).await.status, 201);
    for prefix in ["/indexers('ixr')/search.", "/indexers/ixr/"] {
        let run = server.send("POST", &format!("{prefix}run"), None).await;
        assert_eq!((run.status, run.text.as_str()), (202, ""));
        assert_eq!(server.send("POST", &format!("{prefix}reset"), None).await.status, 204);
        assert_eq!(server.send("POST", &format!("{prefix}resync"), Some(json!({}))).await.status, 204);
        let status = server.send("GET", &format!("{prefix}status"), None).await.json();
        assert_eq!((&status["name"], &status["status"]), (&json!("ixr"), &json!("running")));
        let keys = json!({"documentKeys": ["1"]});
        let documents = server.send("POST", &format!("{prefix}resetdocs?overwrite=true"), Some(keys)).await;
        assert!(documents.message().ends_with(r#"{"documentKeys":["1"]} true"#), "{documents:?}");
    }
    let missing = server.send("POST", "/indexers('nope')/search.run", None).await;
    assert!(missing.status == 404 && missing.message().contains("indexer named 'nope'"), "{missing:?}");
}

#[tokio::test]
async fn a_panic_ends_one_request_only() {
    let server = Server::start().await.with_index().await;
    let broken = server.send("GET", "/indexes('hotels')/docs?search=panic", None).await;
    assert_eq!((broken.status, broken.code().as_str()), (500, "InternalServerError"));
    assert!(!broken.text.contains("the engine broke"), "{broken:?}");
    assert_eq!(server.send("GET", "/indexes('hotels')/docs?search=x", None).await.status, 200);
}
