//! The embedded service with a small index of hotels, and an MCP client.

use bindpost_azure_search::{SearchClient, SearchServerState, odata_key};
use bindpost_mcp_server::testing::TestClient;
use serde_json::{Value, json};

use crate::service::{Service, server};

/// A service, its tools, and a client of them.
pub(crate) struct Stage {
    pub(crate) client: TestClient,
    pub(crate) service: SearchClient,
    _behind: Service,
}

impl Stage {
    /// Starts the service with the index `hotels`.
    pub(crate) async fn start() -> Stage {
        let stage = Stage::bare(false).await;
        stage.index(hotels("hotels")).await;
        stage.upload("hotels", documents()).await;
        stage
    }

    pub(crate) async fn bare(read_only: bool) -> Stage {
        let behind = Service::start().await;
        let shared = SearchServerState { read_only, confirms: false, ..behind.shared() };
        let service = shared.client.clone();
        Stage { client: TestClient::connect(&server(shared)), service, _behind: behind }
    }

    pub(crate) async fn index(&self, definition: Value) {
        self.service.post("indexes", definition).send().await.unwrap();
    }

    pub(crate) async fn upload(&self, index: &str, documents: Vec<Value>) {
        let path = format!("indexes{}/docs/search.index", odata_key(index));
        self.service.post(path, json!({"value": documents})).send().await.unwrap();
    }

    /// Calls a tool that must succeed. Returns its structured content, which the text repeats.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut result = self.client.request("tools/call", params).await.unwrap();
        assert_ne!(result["isError"], true, "{result:#}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        result["structuredContent"].take()
    }

    /// Returns the definition of a tool from the list. It must be small and read-only.
    pub(crate) async fn definition(&mut self, tool: &str) -> Value {
        let list = self.client.request("tools/list", json!({})).await.unwrap();
        let tools = list["tools"].as_array().unwrap();
        let definition = tools.iter().find(|definition| definition["name"] == tool).unwrap().clone();
        let bytes = definition.to_string().len();
        assert!(bytes <= 1331, "{tool}: {bytes}");
        assert_eq!(definition["annotations"]["readOnlyHint"], true);
        assert_eq!(definition["annotations"]["idempotentHint"], true);
        definition
    }
}

pub(crate) fn hotels(name: &str) -> Value {
    json!({
        "name": name,
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "title", "type": "Edm.String", "analyzer": "en.lucene", "facetable": false},
            {"name": "text", "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false},
            {"name": "category", "type": "Edm.String", "analyzer": "keyword"},
            {"name": "rating", "type": "Edm.Int32"},
            {"name": "price", "type": "Edm.Double"},
            {"name": "open", "type": "Edm.Boolean"},
            {"name": "opened", "type": "Edm.DateTimeOffset"},
            {"name": "location", "type": "Edm.GeographyPoint"},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "never", "type": "Edm.String"},
            {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "city", "type": "Edm.String"}]},
            {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
                {"name": "kind", "type": "Edm.String"}, {"name": "rate", "type": "Edm.Double"}]},
            {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "flat",
                "retrievable": true}
        ],
        "scoringProfiles": [{"name": "titles", "text": {"weights": {"title": 5}}}],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["title"]}],
        "semantic": {"configurations": [{"name": "words", "prioritizedFields": {"titleField": {"fieldName": "title"}}}]},
        "vectorSearch": {"algorithms": [{"name": "all", "kind": "exhaustiveKnn"}],
            "profiles": [{"name": "flat", "algorithm": "all"}]}
    })
}

pub(crate) fn documents() -> Vec<Value> {
    let hotel = |id: &str,
                 title: &str,
                 text: &str,
                 category: &str,
                 rating: i32,
                 tags: Value,
                 vector: Value| {
        json!({
            "@search.action": "upload", "id": id, "title": title, "text": text, "category": category, "rating": rating,
            "price": f64::from(rating) * 50.5, "open": rating > 2, "opened": format!("20{rating}0-06-01T00:00:00Z"),
            "location": {"type": "Point", "coordinates": [13.0 + f64::from(rating), 52.0]}, "tags": tags,
            "address": {"city": if rating > 3 { "Berlin" } else { "O'Hara" }},
            "rooms": [{"kind": "double", "rate": f64::from(rating) * 20.0}], "vector": vector
        })
    };
    vec![
        hotel(
            "1",
            "Grand hotels by the beach",
            "A quiet place near the sea.",
            "Luxury",
            5,
            json!(["pool", "view"]),
            json!([1, 0, 0]),
        ),
        hotel(
            "2",
            "City hotel",
            "Loud and central, no beach at all.",
            "Budget",
            2,
            json!(["wifi"]),
            json!([0, 1, 0]),
        ),
        hotel("3", "Roach motel", "Cheap beds for one night.", "Budget", 1, json!([]), json!([0, 0, 1])),
        hotel(
            "4",
            "Beach house",
            "The whole house is yours, with a pool.",
            "Suite",
            4,
            json!(["pool"]),
            json!([0.9, 0.1, 0]),
        ),
        hotel(
            "5",
            "Mountain lodge",
            "Snow and silence; a lodge of old wood.",
            "Luxury",
            3,
            json!(["view", "wifi"]),
            Value::Null,
        ),
    ]
}
