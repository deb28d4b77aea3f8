//! Every operation of a description, called through `callOperation` on the embedded service with its
//! sample. Every response is validated against the description.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bindpost_azure_search::{EmbeddedOptions, EmbeddedService, SearchServer, api, sample};
use bindpost_mcp_openapi::{Bridge, Document, SchemaPurpose, ToolForm, Upstream};
use bindpost_mcp_server::Server;
use serde_json::{Value, json};

use crate::operations::real;
use crate::scratch::Scratch;
use crate::swagger::compile;
use crate::talk::{Era, Talk};

/// The only operation that the service rejects, as docs/search-service.md describes: folders have no
/// permissions to resync.
const REFUSED: &str = "Indexers_Resync";

/// The kinds of definitions: the prefix of the operation ids, the name argument, and one definition.
fn kinds() -> [(&'static str, &'static str, Value); 8] {
    let field = |name: &str, key: bool| json!({"name": name, "type": "Edm.String", "key": key});
    let split = json!({
        "@odata.type": "#Microsoft.Skills.Text.SplitSkill", "name": "split", "context": "/document",
        "inputs": [{"name": "text", "source": "/document/note"}], "outputs": [{"name": "textItems"}],
    });
    let model = json!({"kind": "azureOpenAI", "azureOpenAIParameters":
        {"resourceUri": "https://example.invalid", "deploymentId": "none", "modelName": "gpt-4o-mini"}});
    [
        (
            "Indexes",
            "indexName",
            json!({"name": "one", "fields": [field("id", true), field("text", false)],
                "analyzers": [{"@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "own",
                    "tokenizer": "own-words", "tokenFilters": ["lowercase"]}],
                "tokenizers": [{"@odata.type": "#Microsoft.Azure.Search.PatternTokenizer", "name": "own-words"}]}),
        ),
        ("Aliases", "aliasName", json!({"name": "other", "indexes": ["trails"]})),
        ("SynonymMaps", "synonymMapName", json!({"name": "one", "format": "solr", "synonyms": "hut, cabin"})),
        (
            "DataSources",
            "dataSourceName",
            json!({"name": "one", "type": "azureblob", "container": {"name": "trail-reports"},
                "credentials": {"connectionString": "UseDevelopmentStorage=true"}}),
        ),
        ("Skillsets", "skillsetName", json!({"name": "one", "skills": [split]})),
        (
            "Indexers",
            "indexerName",
            json!({"name": "one", "dataSourceName": "trail-reports-files", "targetIndexName": "trail-reports",
                "disabled": true, "schedule": {"interval": "PT2H"},
                "parameters": {"configuration": {"parsingMode": "delimitedText", "firstLineContainsHeaders": true}}}),
        ),
        (
            "KnowledgeSources",
            "sourceName",
            json!({"name": "one", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "trails"}}),
        ),
        (
            "KnowledgeAgents",
            "agentName",
            json!({"name": "one", "models": [model], "knowledgeSources": [{"name": "trails-knowledge"}]}),
        ),
    ]
}

/// A client of the server, and the schemas of its responses.
struct Tour {
    talk: Talk,
    document: Document,
    /// Output schemas, from `describeOperation` and from a tool list with one tool per operation.
    promised: BTreeMap<String, Vec<Value>>,
    described: BTreeSet<String>,
    called: BTreeSet<String>,
}

impl Tour {
    /// Calls an operation and validates its response against the description.
    async fn call(&mut self, id: &str, arguments: Value) -> Value {
        let answer = self.ask(id, arguments.clone()).await;
        let answer = answer.unwrap_or_else(|failure| panic!("{id} {arguments}: {failure}"));
        let operation = self.document.operation(id).expect("the operation exists");
        if let Some(schema) = operation.success().and_then(|success| success.schema.as_ref()) {
            let whole = self.document.whole_schema(schema, SchemaPurpose::Output);
            // Numbers and strings are returned as the value of an object.
            let is_bare = whole["type"] != "object" && whole.get("properties").is_none();
            let told = if is_bare && answer.get("value").is_some() { &answer["value"] } else { &answer };
            let errors: Vec<String> =
                compile(&whole, id).iter_errors(told).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{id}: {errors:?} in {answer}");
        }
        if !self.described.contains(id) {
            let told =
                self.talk.call("describeOperation", json!({"operation": id})).await.expect("the description");
            let schema = Some(told["outputSchema"].clone()).filter(Value::is_object);
            self.promised.entry(id.to_owned()).or_default().extend(schema);
            self.described.insert(id.to_owned());
        }
        for schema in self.promised.get(id).into_iter().flatten() {
            let errors: Vec<String> =
                compile(schema, id).iter_errors(&answer).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{id}: {errors:?} in {answer}");
        }
        answer
    }

    async fn ask(&mut self, id: &str, arguments: Value) -> Result<Value, Value> {
        self.called.insert(id.to_owned());
        self.talk.call("callOperation", json!({"operation": id, "arguments": arguments})).await
    }

    /// Waits until the sample's indexer is idle and returns its status.
    async fn idle(&mut self) -> Value {
        for _ in 0..300 {
            let status =
                self.call("Indexers_GetStatus", json!({"indexerName": "trail-reports-indexer"})).await;
            if status["lastResult"]["status"] != "inProgress" {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the indexer does not finish")
    }
}

/// Creates one definition of each kind and changes it.
async fn definitions(tour: &mut Tour) {
    for (kind, argument, body) in kinds() {
        let name = &body["name"];
        let made = tour.call(&format!("{kind}_Create"), json!({"body": body})).await;
        assert_eq!(made["name"], *name, "{made}");
        let shown = tour.call(&format!("{kind}_Get"), json!({argument: name})).await;
        assert_eq!(shown["@odata.etag"], made["@odata.etag"]);
        let all = tour.call(&format!("{kind}_List"), json!({})).await;
        let all = all["value"].as_array().expect("a list");
        assert!(all.len() >= if kind == "Skillsets" { 1 } else { 2 }, "{kind}: {all:?}");
        assert!(all.iter().any(|one| one["name"] == *name));
        // A definition from a response can be sent back unchanged.
        let condition = json!({argument: name, "body": shown, "If-Match": shown["@odata.etag"]});
        let changed = tour.call(&format!("{kind}_CreateOrUpdate"), condition).await;
        assert_ne!(changed["@odata.etag"], made["@odata.etag"], "{kind}");
    }
}

async fn documents(tour: &mut Tour) {
    let count = tour.call("Documents_Count", json!({"indexName": "trails"})).await;
    assert_eq!(count, json!({"value": 40}));
    let one = tour.call("Documents_Get", json!({"indexName": "trails", "key": "t02"})).await;
    assert_eq!(one["name"], "Otter Creek Boardwalk");
    let batch = json!({"value": [
        {"@search.action": "mergeOrUpload", "id": "x1", "text": "a new one"},
        {"@search.action": "merge", "id": "missing", "text": "none"},
    ]});
    let done = tour.call("Documents_Index", json!({"indexName": "one", "body": batch})).await;
    assert_eq!(done["value"][0]["status"], true, "{done}");
    assert_eq!(done["value"][1]["statusCode"], 404, "{done}");

    let query = json!({"indexName": "trails", "search": "hut", "filter": "rating gt 3", "count": true,
        "facet": ["region", "rating,interval:1"], "highlight": ["description"], "orderby": ["rating desc"],
        "select": ["id", "name", "rating"], "top": 5, "scoringProfile": "well-rated",
        "scoringParameter": ["likes-views"]});
    let by_get = tour.call("Documents_SearchGet", query).await;
    let vector =
        json!({"kind": "vector", "vector": sample::embed("otter creek"), "fields": "embedding", "k": 3});
    let body = json!({"search": "hut", "filter": "rating gt 3", "count": true, "orderby": "rating desc",
        "facets": ["region", "rating,interval:1"], "highlight": "description", "select": "id,name,rating", "top": 5,
        "scoringProfile": "well-rated", "scoringParameters": ["likes-views"]});
    let by_post = tour.call("Documents_SearchPost", json!({"indexName": "trails", "body": body})).await;
    assert!(by_get["@odata.count"].as_u64().is_some_and(|count| count > 0), "{by_get}");
    assert_eq!(by_get["value"], by_post["value"]);
    assert!(by_get["@search.facets"]["region"].is_array());
    let body = json!({"search": "otter", "vectorQueries": [vector], "debug": "vector"});
    tour.call("Documents_SearchPost", json!({"indexName": "trails", "body": body})).await;
    // Partial: without a model the result is that of keywords, and contains the reason.
    let body = json!({"search": "otter", "queryType": "semantic", "semanticConfiguration": "reading",
        "answers": "extractive", "captions": "extractive"});
    let partly = tour.call("Documents_SearchPost", json!({"indexName": "trails", "body": body})).await;
    assert_eq!(partly["@search.semanticPartialResponseType"], "baseResults");

    let typed = json!({"search": "lan", "suggesterName": "names"});
    let mut query = typed.clone();
    query["indexName"] = json!("trails");
    for name in ["Suggest", "Autocomplete"] {
        let by_get = tour.call(&format!("Documents_{name}Get"), query.clone()).await;
        let arguments = json!({"indexName": "trails", "body": typed});
        let by_post = tour.call(&format!("Documents_{name}Post"), arguments).await;
        assert!(by_get["value"].as_array().is_some_and(|found| !found.is_empty()), "{by_get}");
        assert_eq!(by_get, by_post);
    }
}

async fn service(tour: &mut Tour) {
    let statistics = tour.call("Indexes_GetStatistics", json!({"indexName": "trails"})).await;
    assert_eq!(statistics["documentCount"], 40);
    let summary = tour.call("GetIndexStatsSummary", json!({})).await;
    assert_eq!(summary["value"].as_array().map(Vec::len), Some(3));
    let counters = tour.call("GetServiceStatistics", json!({})).await;
    assert_eq!(counters["counters"]["indexesCount"]["usage"], 3);
    let text = json!({"text": "The Huts", "analyzer": "en.lucene"});
    let words = tour.call("Indexes_Analyze", json!({"indexName": "trails", "body": text})).await;
    assert_eq!(words["tokens"][0]["token"], "hut");
    let question = json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Where are otters?"}]}]});
    let answer =
        tour.call("KnowledgeRetrieval_Retrieve", json!({"agentName": "trail-guide", "body": question})).await;
    assert_eq!(answer["references"][0]["docKey"], "t02");
}

async fn indexers(tour: &mut Tour) {
    let indexer = json!({"indexerName": "trail-reports-indexer"});
    tour.idle().await;
    tour.call("Indexers_Reset", indexer.clone()).await;
    tour.call("Indexers_Run", indexer.clone()).await;
    let status = tour.idle().await;
    assert_eq!(status["lastResult"]["itemsFailed"], 1, "{status}");
    let keys =
        json!({"indexerName": "trail-reports-indexer", "overwrite": true, "body": {"documentKeys": ["r01"]}});
    tour.call("Indexers_ResetDocs", keys).await;
    let skills = json!({"skillsetName": "one", "body": {"skillNames": ["split"]}});
    tour.call("Skillsets_ResetSkills", skills).await;
    let options = json!({"indexerName": "trail-reports-indexer", "body": {"options": ["permissions"]}});
    let refused = tour.ask(REFUSED, options).await.expect_err("the operation is rejected");
    assert_eq!(
        (&refused["error"], &refused["status"]),
        (&json!("invalid_request"), &json!(400)),
        "{refused}"
    );
}

/// Deletes the created definitions. Each deletion needs confirmation.
async fn deletions(tour: &mut Tour) {
    for (kind, argument, body) in kinds().into_iter().rev() {
        let name = &body["name"];
        tour.call(&format!("{kind}_Delete"), json!({argument: name})).await;
        let gone =
            tour.ask(&format!("{kind}_Get"), json!({argument: name})).await.expect_err("it is deleted");
        assert_eq!((&gone["error"], &gone["status"]), (&json!("resource_not_found"), &json!(404)), "{gone}");
    }
    assert!(tour.talk.asked.len() >= 8, "{:?}", tour.talk.asked);
}

/// Returns the output schemas of tools, from a bridge without a size limit.
async fn listed(document: Document, service: &EmbeddedService) -> BTreeMap<String, Vec<Value>> {
    let upstream = Upstream::clone(service.client().upstream());
    let bridge = Bridge::builder(document, upstream).list_budget(usize::MAX).build().expect("a bridge");
    assert_eq!(bridge.form(), ToolForm::Whole);
    let server = Server::builder("search", "1").add(bridge.tools()).build().expect("a server");
    let mut talk = Talk::start(&server, Era::Session).await;
    let tools = talk.request("tools/list", json!({})).await.expect("a list");
    let tools = tools["tools"].as_array().expect("tools").iter();
    tools
        .filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), vec![tool.get("outputSchema")?.clone()])))
        .collect()
}

async fn every_operation_is_called(document: Document) {
    let folder = Scratch::new();
    let options = EmbeddedOptions { data: folder.path().to_owned(), port: 0 };
    let embedded = EmbeddedService::start(options).await.expect("the service starts");
    sample::install(embedded.client(), embedded.data()).await.expect("a sample");
    let server = SearchServer::builder(embedded.client().clone())
        .document(document.clone())
        .build()
        .expect("a server");
    let promised = listed(document.clone(), &embedded).await;
    assert_eq!(promised.len(), 47);
    let talk = Talk::with(server.server(), Era::Session, Some(true)).await;
    let mut tour = Tour { talk, document, promised, described: BTreeSet::new(), called: BTreeSet::new() };
    definitions(&mut tour).await;
    documents(&mut tour).await;
    service(&mut tour).await;
    indexers(&mut tour).await;
    deletions(&mut tour).await;
    let all: BTreeSet<String> =
        tour.document.operations.iter().map(|operation| operation.id.clone()).collect();
    assert_eq!(tour.called, all);
    assert_eq!(all.len(), 60);
    embedded.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_built_in_document_is_called() {
    every_operation_is_called(api::document().expect("a document")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_real_document_is_called() {
    let Some(document) = real("every_operation_of_the_real_document_is_called") else { return };
    every_operation_is_called(document).await;
}
