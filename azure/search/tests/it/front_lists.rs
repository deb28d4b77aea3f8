//! Lists of definitions: pages, selected members, size limit.

use serde_json::{Value, json};

use crate::service::{Service, server};
use crate::talk::{ERAS, Era, Talk};

fn map(name: &str) -> Value {
    json!({"synonymMapName": name, "body": {"format": "solr", "synonyms": "a, b"}})
}

async fn with_maps(talk: &mut Talk, count: usize) {
    for at in 0..count {
        talk.call("createOrUpdateSynonymMap", map(&format!("map-{at:02}"))).await.unwrap();
    }
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().filter_map(|item| item["name"].as_str()).collect()
}

#[tokio::test]
async fn pages_continue_after_a_name_when_definitions_are_added_or_deleted() {
    for era in ERAS {
        let service = Service::start().await;
        let mut talk = Talk::start(&service.server(), era).await;
        with_maps(&mut talk, 5).await;
        let first = talk.call("listSynonymMaps", json!({"limit": 2, "select": "name"})).await.unwrap();
        assert_eq!(names(&first), ["map-00", "map-01"]);
        assert_eq!((&first["hasMore"], &first["total"]), (&json!(true), &json!(5)));
        talk.call("createOrUpdateSynonymMap", map("a-new-one")).await.unwrap();
        talk.call("deleteSynonymMap", json!({"synonymMapName": "map-01"})).await.unwrap();
        // The selection is kept on the next page too.
        let second = json!({"limit": 2, "cursor": first["nextCursor"]});
        let second = talk.call("listSynonymMaps", second).await.unwrap();
        assert_eq!(second["items"], json!([{"name": "map-02"}, {"name": "map-03"}]));
        let last = talk.call("listSynonymMaps", json!({"cursor": second["nextCursor"]})).await.unwrap();
        assert_eq!((names(&last), &last["hasMore"]), (vec!["map-04"], &json!(false)));
        assert!(last.get("nextCursor").is_none(), "{last}");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_list() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    with_maps(&mut talk, 2).await;
    let page = talk.call("listSynonymMaps", json!({"limit": 1})).await.unwrap();
    for cursor in [page["nextCursor"].as_str().unwrap(), "50", ""] {
        let error = talk.call("listIndexes", json!({"cursor": cursor})).await.unwrap_err();
        assert_eq!(error["error"], "invalid_request", "{error:#}");
    }
    let error = talk.call("listSynonymMaps", json!({"limit": 201})).await.unwrap_err();
    assert!(error.as_str().unwrap().contains("/limit"), "{error}");
}

#[tokio::test]
async fn members_are_selected_by_the_service_or_by_the_server() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Alone).await;
    talk.call(
        "createOrUpdateIndex",
        json!({"indexName": "hotels", "body": crate::service::hotels("hotels")}),
    )
    .await
    .unwrap();
    talk.call("createOrUpdateAlias", json!({"aliasName": "inns", "body": {"indexes": ["hotels"]}}))
        .await
        .unwrap();
    let indexes = talk.call("listIndexes", json!({"select": "name"})).await.unwrap();
    assert_eq!(indexes["items"], json!([{"name": "hotels"}]));
    let aliases = talk.call("listAliases", json!({"select": "indexes"})).await.unwrap();
    assert_eq!(aliases["items"], json!([{"name": "inns", "indexes": ["hotels"]}]));
    let whole = talk.call("listIndexes", json!({"select": "*"})).await.unwrap();
    assert_eq!(whole["items"][0]["fields"].as_array().unwrap().len(), 5);
    let fields = talk.call("listIndexes", json!({"select": "fields"})).await.unwrap();
    assert!(fields["items"][0]["fields"][0]["type"].is_string(), "{fields}");
    // The API description contains the members.
    let whole = bindpost_azure_search::SearchServer::builder(service.shared().client).build().unwrap();
    let mut talk = Talk::start(whole.server(), Era::Alone).await;
    talk.call("listIndexes", json!({"select": "fields, @odata.etag"})).await.unwrap();
    talk.call("listKnowledgeSources", json!({"select": "searchIndexParameters"})).await.unwrap();
    for (list, select) in [("listIndexes", "feilds"), ("listAliases", "name, indexs")] {
        let error = talk.call(list, json!({"select": select})).await.unwrap_err();
        assert!(["write fields", "write indexes"].contains(&error["fix"].as_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn a_list_shows_the_brief_form_by_default() {
    let service = Service::start().await;
    service.with_indexer(json!({})).await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let alias = json!({"aliasName": "other", "body": {"indexes": ["rows"]}});
    talk.call("createOrUpdateAlias", alias).await.unwrap();
    with_maps(&mut talk, 1).await;
    for (list, expected) in [
        ("listIndexes", json!({"name": "rows", "fields": ["id", "n"]})),
        ("listIndexers", json!({"name": "loader", "dataSourceName": "files", "targetIndexName": "rows"})),
        ("listAliases", json!({"name": "other", "indexes": ["rows"]})),
        ("listSynonymMaps", json!({"name": "map-00"})),
    ] {
        let mut page = talk.call(list, json!({})).await.unwrap();
        let item = page["items"][0].as_object_mut().unwrap();
        assert!(item.remove("@odata.etag").unwrap().is_string(), "{list}");
        assert_eq!(Value::Object(item.clone()), expected, "{list}");
    }
    let page = talk.call("listDataSources", json!({})).await.unwrap();
    assert!(page["items"][0]["type"].is_string() && page["items"][0]["container"].is_string(), "{page}");
    assert!(page["items"][0].get("credentials").is_none(), "{page}");
}

#[tokio::test]
async fn a_result_contains_complete_items_within_its_size_limit() {
    let service = Service::start().await;
    let mut shared = service.shared();
    shared.answer_bytes = 2048;
    let mut talk = Talk::start(&server(shared), Era::Session).await;
    with_maps(&mut talk, 20).await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let arguments = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = talk.call("listSynonymMaps", arguments).await.unwrap();
        assert!(page.to_string().len() <= 2048, "{page}");
        seen.extend(names(&page).into_iter().map(str::to_owned));
        if page["hasMore"] == false {
            break;
        }
        cursor = page["nextCursor"].clone();
    }
    let expected: Vec<String> = (0..20).map(|at| format!("map-{at:02}")).collect();
    assert_eq!(seen, expected);
}
