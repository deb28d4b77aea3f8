//! The embedded service and its sample, over REST.

use std::path::Path;

use bindpost_azure_search::{
    EmbeddedOptions, EmbeddedService, SearchClient, SearchServer, ServerOverview, api_key_credential,
    odata_key, remote_client, sample,
};
use serde_json::{Value, json};

use crate::scratch::Scratch;

async fn start(data: &Path) -> EmbeddedService {
    let options = EmbeddedOptions { data: data.to_owned(), port: 0 };
    EmbeddedService::start(options).await.expect("the service starts")
}

async fn get(client: &SearchClient, path: &str) -> Value {
    client.get(path).send().await.unwrap_or_else(|failure| panic!("{path}: {}", failure.to_json())).body
}

async fn search(client: &SearchClient, index: &str, request: Value) -> Value {
    let path = format!("indexes{}/docs/search.post.search", odata_key(index));
    let answer = client.post(path, request.clone()).send().await;
    answer.unwrap_or_else(|failure| panic!("{request}: {}", failure.to_json())).body
}

fn ids(found: &Value) -> Vec<&str> {
    let hits = found["value"].as_array().expect("hits");
    hits.iter().filter_map(|hit| hit["id"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_has_data_for_every_tool() {
    let folder = Scratch::new();
    let service = start(folder.path()).await;
    let client = service.client();
    let made = sample::install(client, service.data()).await.expect("a sample").expect("a new sample");
    assert_eq!(made.made.len(), 8, "{made:?}");

    // Words with stems and synonyms, a scoring profile, a filter over locations, arrays and huts, and facets.
    let found = search(client, "trails", json!({"search": "otter"})).await;
    assert_eq!(ids(&found), ["t02"]);
    let found = search(client, "trails", json!({"search": "refuge", "searchFields": "description"})).await;
    assert!(!ids(&found).is_empty(), "the synonym map is not used: {found}");
    let found = search(
        client,
        "trails-current",
        json!({
            "search": "*", "filter": "huts/any(h: h/staffed and h/beds ge 40) and difficulty eq 'hard'",
            "orderby": "rating desc", "count": true, "facets": ["region", "rating,interval:1"],
            "scoringProfile": "well-rated", "scoringParameters": ["likes-views"]
        }),
    )
    .await;
    assert_eq!(ids(&found), ["t05", "t29"], "{found}");
    assert_eq!(found["@odata.count"], 2);
    let near = json!({"search": "*", "filter": "geo.distance(location, geography'POINT(8.6 46.4)') lt 5"});
    assert!(!ids(&search(client, "trails", near).await).is_empty());
    // Vectors.
    let vector = sample::embed(
        "Otter Creek Boardwalk A level boardwalk through reeds where otters are seen at dusk. Benches every few hundred metres. family wheelchair birds",
    );
    let query =
        json!({"vectorQueries": [{"kind": "vector", "vector": vector, "fields": "embedding", "k": 3}]});
    assert_eq!(ids(&search(client, "trails", query).await).first(), Some(&"t02"));
    // Suggestions.
    let body = json!({"search": "lan", "suggesterName": "names"});
    let suggested = client.post("indexes('trails')/docs/search.post.suggest", body).send().await;
    assert_eq!(suggested.expect("suggestions").body["value"][0]["id"], "t01");
    // An indexer with one bad row.
    let status = get(client, "indexers('trail-reports-indexer')/search.status").await;
    let run = &status["lastResult"];
    assert_eq!((&run["itemsProcessed"], &run["itemsFailed"]), (&json!(12), &json!(1)), "{status}");
    assert!(run["errors"][0]["errorMessage"].as_str().is_some_and(|error| error.contains("stars")), "{run}");
    assert_eq!(
        search(client, "trail-reports", json!({"search": "ice", "count": true})).await["@odata.count"],
        2
    );
    // A knowledge agent.
    let question =
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Where are otters?"}]}]});
    let answer =
        client.post("agents('trail-guide')/retrieve", question).send().await.expect("an answer").body;
    assert_eq!(answer["references"][0]["docKey"], "t02", "{answer}");
    service.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_is_created_once_and_never_beside_other_indexes() {
    let folder = Scratch::new();
    let service = start(folder.path()).await;
    assert!(sample::install(service.client(), service.data()).await.expect("a sample").is_some());
    assert!(sample::install(service.client(), service.data()).await.expect("nothing").is_none());
    service.stop().await.expect("it stops");
    // Existing definitions are kept, even after a restart.
    let service = start(folder.path()).await;
    assert!(sample::install(service.client(), service.data()).await.expect("nothing").is_none());
    assert_eq!(get(service.client(), "indexes('trails')/docs/$count").await, 40);
    // An interrupted sample is completed, and existing definitions are not changed.
    std::fs::write(folder.path().join("sample-unfinished"), "").expect("a file");
    service.client().delete("agents('trail-guide')").send().await.expect("deleted");
    let made = sample::install(service.client(), service.data()).await.expect("a sample").expect("the rest");
    assert_eq!(made.made, ["agents/trail-guide"]);
    service.stop().await.expect("it stops");

    let folder = Scratch::new();
    let service = start(folder.path()).await;
    let own = json!({"name": "own", "fields": [{"name": "id", "type": "Edm.String", "key": true}]});
    service.client().post("indexes", own).send().await.expect("made");
    assert!(sample::install(service.client(), service.data()).await.expect("nothing").is_none());
    let indexes = get(service.client(), "indexes").await;
    assert_eq!(indexes["value"].as_array().map(Vec::len), Some(1));
    service.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_or_a_port_in_use_is_reported_with_a_fix() {
    let folder = Scratch::new();
    let service = start(folder.path()).await;
    let again = EmbeddedService::start(EmbeddedOptions { data: folder.path().to_owned(), port: 0 }).await;
    let error = again.expect_err("the folder is in use").to_string();
    assert!(error.contains("another process has it open") && error.contains("fix:"), "{error}");
    let port = service.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let again = EmbeddedService::start(EmbeddedOptions { data: folder.path().join("other"), port }).await;
    let error = again.expect_err("the port is in use").to_string();
    assert!(error.contains("--service-port") && error.contains(&port.to_string()), "{error}");
    service.stop().await.expect("it stops");
    // Stopping the service releases the folder.
    start(folder.path()).await.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_need_its_key() {
    let folder = Scratch::new();
    let service = start(folder.path()).await;
    let keys = std::fs::read(service.keys_file()).expect("keys");
    let keys: Value = serde_json::from_slice(&keys).expect("JSON");
    let key = keys["adminKeys"][1].as_str().expect("a key");
    let other =
        remote_client(service.url(), api_key_credential(key), "2025-08-01-preview").expect("a client");
    assert!(get(&other, "servicestats").await["counters"].is_object());
    let wrong =
        remote_client(service.url(), api_key_credential("wrong"), "2025-08-01-preview").expect("a client");
    assert_eq!(wrong.get("servicestats").send().await.expect_err("no").status, Some(403));
    service.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_builds() {
    let folder = Scratch::new();
    let service = start(folder.path()).await;
    for read_only in [false, true] {
        let server =
            SearchServer::builder(service.client().clone()).read_only(read_only).build().expect("a server");
        let overview = ServerOverview::from_server(server.server()).await;
        assert!(overview.list_bytes <= 40 * 1024, "{} bytes", overview.list_bytes);
    }
    service.stop().await.expect("it stops");
}
