//! `planIndexChange` with `apply`: in place, and as a blue-green rebuild behind an alias.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::service::{Scripted, Service};
use crate::talk::{ERAS, Era, Talk};

fn index(name: &str) -> Value {
    json!({"name": name, "fields": [
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "title", "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false},
        {"name": "stars", "type": "Edm.Int32"},
        {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [{"name": "beds", "type": "Edm.Int32"}]}
    ]})
}

/// Returns a definition with two changes that need a new index: a filterable title, and stars as strings.
fn wanted(name: &str) -> Value {
    let mut wanted = index(name);
    wanted["fields"][1]["filterable"] = true.into();
    wanted["fields"][2] = json!({"name": "stars", "type": "Edm.String"});
    wanted
}

/// Returns a definition that the documents do not fit.
fn with_numbered_titles(name: &str) -> Value {
    let mut numbered = index(name);
    numbered["fields"][1] = json!({"name": "title", "type": "Edm.Int32"});
    numbered
}

async fn filled(name: &str, documents: usize) -> Service {
    let service = Service::start().await;
    service.done("POST", "indexes", index(name)).await;
    let documents: Vec<Value> = (0..documents)
        .map(|n| json!({"id": format!("k{n:05}"), "title": format!("Hotel {n}"), "stars": n % 5, "rooms": [{"beds": 2}]}))
        .collect();
    for batch in documents.chunks(1000) {
        service.done("POST", &format!("indexes('{name}')/docs/search.index"), json!({"value": batch})).await;
    }
    service
}

async fn alias(service: &Service, name: &str, index: &str) {
    service.done("POST", "aliases", json!({"name": name, "indexes": [index]})).await;
}

async fn names(service: &Service) -> Vec<String> {
    let listed = service.done("GET", "indexes", Value::Null).await;
    listed["value"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_in_place_under_the_etag() {
    let service = filled("hotels", 3).await;
    for (era, text) in ERAS.into_iter().zip(["one", "two"]) {
        let mut talk = Talk::with(&service.server(), era, Some(true)).await;
        let mut body = index("hotels");
        body["description"] = text.into();
        let plan = talk.call("planIndexChange", json!({"indexName": "hotels", "body": body})).await.unwrap();
        assert_eq!(
            (&plan["strategy"], &plan["estimatedDocuments"]),
            (&json!("updateInPlace"), &json!(3)),
            "{plan:#}"
        );
        let step = &plan["steps"][0]["arguments"];
        let mut arguments = json!({"indexName": "hotels", "body": body, "apply": true, "etag": step["etag"]});
        let told = talk.call("planIndexChange", arguments.clone()).await.unwrap();
        assert_eq!(talk.asked.len(), 1);
        let applied = &told["applied"];
        assert_ne!(applied["etag"], step["etag"]);
        assert_eq!(service.done("GET", "indexes('hotels')", Value::Null).await["description"], text);
        // The old ETag is rejected.
        arguments["body"]["description"] = "three".into();
        let conflict = talk.call("planIndexChange", arguments).await.unwrap_err();
        assert_eq!((&conflict["error"], &conflict["currentETag"]), (&json!("conflict"), &applied["etag"]));
    }
    let mut talk = Talk::with(&service.server(), Era::Session, Some(false)).await;
    let mut body = index("hotels");
    body["description"] = "never".into();
    talk.call("planIndexChange", json!({"indexName": "hotels", "body": body, "apply": true}))
        .await
        .unwrap_err();
    assert_eq!(service.done("GET", "indexes('hotels')", Value::Null).await["description"], "two");
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuilds_behind_an_alias_with_all_documents() {
    let service = filled("hotels", 2345).await;
    alias(&service, "live", "hotels").await;
    for (era, (new, keeps)) in ERAS.into_iter().zip([("hotels-v2", true), ("hotels-v3", false)]) {
        let mut talk = Talk::with(&service.server(), era, Some(true)).await;
        // The change alternates, so that each round has one.
        let body = if keeps { wanted("hotels") } else { with_numbered_titles("hotels-v2") };
        let mut arguments = json!({"indexName": "live", "body": body, "keepOld": keeps});
        let plan = talk.call("planIndexChange", arguments.clone()).await.unwrap();
        assert_eq!(
            (&plan["strategy"], &plan["newIndexName"]),
            (&json!("rebuildBehindAlias"), &json!(new)),
            "{plan:#}"
        );
        arguments["apply"] = true.into();
        let called = talk.call("planIndexChange", arguments).await;
        if !keeps {
            // The titles are no numbers, so the rebuild is rolled back.
            let failure = called.unwrap_err();
            assert!(failure["rolledBack"].as_str().unwrap().contains("deleted again"), "{failure:#}");
            assert_eq!(names(&service).await, ["hotels", "hotels-v2"]);
            continue;
        }
        let told = called.unwrap();
        let applied = &told["applied"];
        assert_eq!((&applied["indexName"], &applied["documents"]), (&json!(new), &json!(2345)), "{applied}");
        assert_eq!(talk.asked.len(), 1);
        let progress = talk.progress();
        let steps: Vec<f64> = progress.iter().map(|step| step["progress"].as_f64().unwrap()).collect();
        assert!(steps.len() >= 3 && steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
        assert_eq!(progress.last().unwrap()["total"], 2345.0);
        let one = service.done("GET", "indexes('live')/docs('k02344')", Value::Null).await;
        assert_eq!(
            (&one["title"], &one["stars"], &one["rooms"]),
            (&json!("Hotel 2344"), &json!("4"), &json!([{"beds": 2}]))
        );
        assert_eq!(service.done("GET", "aliases('live')", Value::Null).await["indexes"], json!([new]));
        assert_eq!(names(&service).await, ["hotels", "hotels-v2"]);
        // The same change again has no effect.
        let again = talk
            .call("planIndexChange", json!({"indexName": "live", "body": wanted("live"), "apply": true}))
            .await;
        assert_eq!(again.unwrap()["strategy"], "nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_index_is_deleted_without_keep_old_and_indexers_are_listed() {
    let service = filled("rows", 10).await;
    alias(&service, "live", "rows").await;
    let source = json!({"name": "files", "type": "azureblob", "container": {"name": "rows"},
        "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
    service.done("POST", "datasources", source).await;
    let indexer =
        json!({"name": "loader", "dataSourceName": "files", "targetIndexName": "rows", "disabled": true});
    service.done("POST", "indexers", indexer).await;
    let mut talk = Talk::with(&service.server(), Era::Alone, Some(true)).await;
    let arguments = json!({"indexName": "rows", "body": wanted("rows"), "apply": true, "keepOld": false,
        "newIndexName": "blue", "clientRequestId": "c"});
    let told = talk.call("planIndexChange", arguments).await.unwrap();
    assert_eq!(
        (&told["applied"]["oldIndex"], &told["clientRequestId"]),
        (&json!("deleted"), &json!("c")),
        "{told:#}"
    );
    assert_eq!(names(&service).await, ["blue"]);
    assert!(told["notes"].to_string().contains("loader"), "{told:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_would_lose_data_is_rejected_before_anything_is_created() {
    let service = Service::start().await;
    let mut hidden = index("hotels");
    hidden["fields"][1]["retrievable"] = false.into();
    service.done("POST", "indexes", hidden.clone()).await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let mut body = hidden.clone();
    body["fields"][2]["sortable"] = false.into();
    // First without an alias.
    let plan = talk.call("planIndexChange", json!({"indexName": "hotels", "body": body})).await.unwrap();
    assert_eq!(
        (&plan["strategy"], &plan["notRetrievableFields"]),
        (&json!("rebuildNeedsAlias"), &json!(["title"]))
    );
    alias(&service, "live", "hotels").await;
    let refused =
        talk.call("planIndexChange", json!({"indexName": "hotels", "body": body, "apply": true})).await;
    let failure = refused.unwrap_err();
    assert!(failure["message"].as_str().unwrap().contains("title"), "{failure:#}");
    assert_eq!(failure["plan"]["strategy"], "rebuildBehindAlias");
    assert!(talk.asked.is_empty());
    assert_eq!(names(&service).await, ["hotels"]);
    let wrong = talk
        .call("planIndexChange", json!({"indexName": "hotels", "body": body, "aliasName": "hotels"}))
        .await;
    assert_eq!(wrong.unwrap_err()["error"], "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_name_is_rejected_and_an_interrupted_copy_is_continued() {
    let service = filled("hotels", 5).await;
    alias(&service, "live", "hotels").await;
    service.done("POST", "indexes", index("other")).await;
    service.done("POST", "indexes", wanted("left")).await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let arguments = |new: &str| json!({"indexName": "hotels", "body": wanted("hotels"), "apply": true, "newIndexName": new});
    let taken = talk.call("planIndexChange", arguments("other")).await.unwrap_err();
    assert_eq!(taken["error"], "conflict", "{taken:#}");
    let done = talk.call("planIndexChange", arguments("left")).await.unwrap();
    assert_eq!((&done["applied"]["indexName"], &done["applied"]["documents"]), (&json!("left"), &json!(5)));
}

/// Starts a service with an index of 120 documents behind an alias. `refuse` selects what fails.
async fn scripted(refuse: &'static str) -> (Scripted, Arc<AtomicBool>) {
    let exists = Arc::new(AtomicBool::new(false));
    let (there, uploaded) = (exists.clone(), AtomicUsize::new(0));
    let searched = AtomicUsize::new(0);
    let service = Scripted::start(move |method, path, body| {
        let missing = (404, json!({"error": {"code": "", "message": "not found"}}));
        match (method, path) {
            ("GET", "/indexes('hotels')") => {
                let mut hotels = index("hotels");
                let is_done = uploaded.load(Ordering::SeqCst) == 120 && refuse == "changed";
                hotels["@odata.etag"] = if is_done { "\"8\"" } else { "\"7\"" }.into();
                (200, hotels)
            }
            ("GET", "/indexes") => (200, json!({"value": [{"name": "hotels"}]})),
            ("GET", "/indexers") => (200, json!({"value": []})),
            ("GET", "/aliases") => {
                (200, json!({"value": [{"name": "live", "indexes": ["hotels"], "@odata.etag": "\"1\""}]}))
            }
            ("GET", "/aliases('live')") => {
                let points_to = if refuse == "412" { "else" } else { "hotels" };
                (200, json!({"name": "live", "indexes": [points_to], "@odata.etag": "\"2\""}))
            }
            ("PUT", "/aliases('live')") if refuse == "412" => {
                (412, json!({"error": {"code": "", "message": "changed"}}))
            }
            ("PUT", "/aliases('live')") if refuse == "switch" => {
                (400, json!({"error": {"code": "", "message": "no"}}))
            }
            ("PUT", "/aliases('live')") => (200, body),
            ("PUT", "/indexes('hotels-v2')") => {
                there.store(true, Ordering::SeqCst);
                (201, body)
            }
            ("DELETE", "/indexes('hotels-v2')") => {
                there.store(false, Ordering::SeqCst);
                (204, Value::Null)
            }
            ("GET", "/indexes('hotels')/docs/$count") => (200, json!(120)),
            ("GET", "/indexes('hotels-v2')/docs/$count") => (200, json!(uploaded.load(Ordering::SeqCst))),
            ("POST", "/indexes('hotels')/docs/search.post.search")
                if searched.fetch_add(1, Ordering::SeqCst) == 0 =>
            {
                (429, json!({"error": {"code": "", "message": "too many"}}))
            }
            ("POST", "/indexes('hotels')/docs/search.post.search") => {
                let after = body["filter"].as_str().map_or(0, |filter| {
                    filter.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap() + 1
                });
                let top = usize::try_from(body["top"].as_u64().unwrap()).unwrap().min(if refuse == "slow" {
                    1
                } else {
                    1000
                });
                let page: Vec<Value> =
                    (after..120).take(top).map(|n| json!({"id": format!("k{n:03}")})).collect();
                if refuse == "slow" {
                    std::thread::sleep(Duration::from_millis(50));
                }
                (200, json!({"value": page}))
            }
            ("POST", "/indexes('hotels-v2')/docs/search.index") => {
                let keys: Vec<&str> =
                    body["value"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
                // The service is too busy for all documents of the first batch but one.
                let is_first = uploaded.load(Ordering::SeqCst) == 0;
                let outcome = |(n, key): (usize, &&str)| {
                    let code = if refuse == "upload" && *key == "k100" {
                        400
                    } else if is_first && n > 0 {
                        503
                    } else {
                        201
                    };
                    json!({"key": key, "status": code == 201, "statusCode": code, "errorMessage": "no"})
                };
                let outcomes: Vec<Value> = keys.iter().enumerate().map(outcome).collect();
                let done = outcomes.iter().filter(|one| one["status"] == true).count();
                uploaded.fetch_add(done, Ordering::SeqCst);
                (207, json!({"value": outcomes}))
            }
            _ => missing,
        }
    })
    .await;
    (service, exists)
}

fn rebuild() -> Value {
    json!({"indexName": "hotels", "body": wanted("hotels"), "apply": true})
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_the_service_was_too_busy_for_are_retried() {
    let (service, exists) = scripted("nothing").await;
    let done = Talk::with(&service.server(), Era::Session, Some(true))
        .await
        .call("planIndexChange", rebuild())
        .await
        .unwrap();
    assert_eq!(done["applied"]["documents"], 120, "{done:#}");
    assert!(exists.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_continues_as_a_task_if_the_client_supports_it() {
    let service = filled("hotels", 7).await;
    alias(&service, "live", "hotels").await;
    let can = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}});
    let mut talk = Talk::able(&service.server(), Era::Alone, can).await;
    let call = json!({"name": "planIndexChange", "arguments": rebuild()});
    let task = talk.request("tools/call", call).await.unwrap();
    assert_eq!((talk.asked.len(), &task["resultType"]), (1, &json!("task")), "{task}");
    for _ in 0..600 {
        let now = talk.request("tasks/get", json!({"taskId": task["taskId"]})).await.unwrap();
        if now["status"] == "completed" {
            assert_eq!(now["result"]["structuredContent"]["applied"]["documents"], 7, "{now}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task did not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_before_the_switch_deletes_the_new_index() {
    for what in ["upload", "switch", "changed"] {
        let (service, exists) = scripted(what).await;
        let failure = Talk::with(&service.server(), Era::Session, Some(true))
            .await
            .call("planIndexChange", rebuild())
            .await
            .unwrap_err();
        assert!(failure["rolledBack"].as_str().unwrap().contains("nothing has changed"), "{failure:#}");
        assert!(!exists.load(Ordering::SeqCst), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_that_was_changed_meanwhile_is_not_switched() {
    let (service, exists) = scripted("412").await;
    let failure = Talk::with(&service.server(), Era::Alone, Some(true))
        .await
        .call("planIndexChange", rebuild())
        .await
        .unwrap_err();
    assert_eq!(
        (&failure["error"], &failure["status"], &failure["currentETag"]),
        (&json!("conflict"), &json!(412), &json!("\"2\""))
    );
    assert_eq!((&failure["newIndexName"], &failure["aliasPointsTo"]), (&json!("hotels-v2"), &json!("else")));
    assert!(exists.load(Ordering::SeqCst), "both are kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_rebuild_deletes_the_new_index() {
    let (service, exists) = scripted("slow").await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let id = talk.send("tools/call", json!({"name": "planIndexChange", "arguments": rebuild()})).await;
    assert_eq!(talk.next().await["method"], "notifications/progress");
    assert!(exists.load(Ordering::SeqCst));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    talk.client.send(cancel.to_string()).await;
    for _ in 0..200 {
        if !exists.load(Ordering::SeqCst) {
            assert_eq!(service.asked("PUT /aliases"), 0);
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the new index still exists");
}
