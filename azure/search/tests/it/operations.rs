//! The operations of an API description as a client sees them: found and described with all schemas.
//! Tested with the built-in description and with the service's own Swagger.

use std::collections::{BTreeMap, BTreeSet};

use bindpost_azure_search::{SearchServer, api, api_key_credential, remote_client};
use bindpost_mcp_openapi::{Bridge, Credential, Document, LoadOptions, ToolForm, Upstream, UpstreamLimits};
use bindpost_mcp_server::Server;
use serde_json::{Value, json};

use crate::service::VERSION;
use crate::swagger::{compile, files, subtypes};
use crate::talk::{Era, Talk};

/// Maximum size of a list of tools.
const LIST_BYTES: usize = 40 * 1024;

/// Loads the service's own description, if it is available.
pub(crate) fn real(test: &str) -> Option<Document> {
    let files = files(test)?;
    Some(Document::load(&files, &LoadOptions::default()).expect("a good document"))
}

/// Builds a server without a service, which is not needed for descriptions.
fn server(document: Document) -> SearchServer {
    let client = remote_client("http://127.0.0.1:9", api_key_credential("none"), VERSION).expect("a client");
    SearchServer::builder(client).document(document).build().expect("a server")
}

/// What a client has read about the operations.
struct Told {
    described: BTreeMap<String, Value>,
    /// Definitions that were looked up, with their responses.
    definitions: BTreeMap<String, Value>,
    talk: Talk,
}

impl Told {
    /// Finds all operations, page by page, and describes each.
    async fn all(server: &Server) -> Told {
        let mut talk = Talk::start(server, Era::Session).await;
        let listed = talk.request("tools/list", json!({})).await.expect("a list");
        let bytes = listed.to_string().len();
        assert!(bytes <= LIST_BYTES, "{bytes} bytes");
        for tool in listed["tools"].as_array().expect("tools") {
            for schema in ["inputSchema", "outputSchema"].into_iter().filter_map(|name| tool.get(name)) {
                compile(schema, &tool["name"].to_string());
            }
        }
        let (mut described, mut page) = (BTreeMap::new(), json!({"limit": 25}));
        loop {
            let found = talk.call("findOperations", page).await.expect("operations");
            for item in found["items"].as_array().expect("items") {
                let id = item["operation"].as_str().expect("an id").to_owned();
                let told = talk.call("describeOperation", json!({"operation": id})).await;
                let told = told.unwrap_or_else(|failure| panic!("{id}: {failure}"));
                assert!(described.insert(id.clone(), told).is_none(), "{id} was found twice");
            }
            match found["nextCursor"].as_str() {
                Some(cursor) => page = json!({"cursor": cursor}),
                None => break,
            }
        }
        Told { described, definitions: BTreeMap::new(), talk }
    }

    /// Returns the definitions that a schema refers to, inline or by lookup.
    async fn reached(&mut self, schema: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut waiting: Vec<String> = Vec::new();
        for told in self.described.values() {
            collect(&told[schema], &mut names, &mut waiting);
        }
        while let Some(name) = waiting.pop() {
            if !names.insert(name.trim_end_matches(".itself").to_owned()) {
                continue;
            }
            let told = self.definition(&name).await;
            let listed = told["definitions"].as_array().into_iter().flatten().filter_map(Value::as_str);
            waiting.extend(listed.filter(|name| !names.contains(*name)).map(str::to_owned));
            collect(&told["schema"], &mut names, &mut waiting);
        }
        names
    }

    /// Returns one definition from `describeOperation`.
    async fn definition(&mut self, name: &str) -> Value {
        if let Some(known) = self.definitions.get(name) {
            return known.clone();
        }
        let told = self.talk.call("describeOperation", json!({"definition": name})).await;
        let told = told.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        compile(&told["schema"], name);
        self.definitions.insert(name.to_owned(), told.clone());
        told
    }

    /// Reads the resource of a schema.
    async fn resource(&mut self, name: &str) -> Value {
        let uri = format!("search-schema://{name}");
        let read = self.talk.request("resources/read", json!({"uri": uri})).await;
        let read = read.unwrap_or_else(|error| panic!("{uri}: {error}"));
        serde_json::from_str(read["contents"][0]["text"].as_str().expect("text")).expect("JSON")
    }
}

/// Collects the definitions in a schema, and those that must be read separately.
fn collect(schema: &Value, names: &mut BTreeSet<String>, elsewhere: &mut Vec<String>) {
    if let Some(Value::Object(definitions)) = schema.get("$defs") {
        names.extend(definitions.keys().map(|name| name.trim_end_matches(".itself").to_owned()));
    }
    match schema {
        Value::String(text) => {
            let words = text.split_whitespace().filter_map(|word| word.strip_prefix("search-schema://"));
            elsewhere.extend(words.filter(|name| !names.contains(*name)).map(str::to_owned));
        }
        Value::Object(members) => members.values().for_each(|part| collect(part, names, elsewhere)),
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, names, elsewhere)),
        _ => {}
    }
}

/// Checks one description. `wanted` contains its subtypes.
async fn is_told(document: Document, wanted: &BTreeSet<String>) {
    assert_eq!(wanted.len(), 113);
    let ids: BTreeSet<String> = document.operations.iter().map(|operation| operation.id.clone()).collect();
    let names: Vec<String> = document.definitions.keys().cloned().collect();
    let server = server(document);
    let mut told = Told::all(server.server()).await;
    assert_eq!(told.described.len(), 60);
    assert_eq!(told.described.keys().cloned().collect::<BTreeSet<_>>(), ids);
    for (id, described) in &told.described {
        assert!(described["inputSchema"].is_object(), "{id}");
        compile(&described["inputSchema"], id);
        if described["outputSchema"].is_object() {
            compile(&described["outputSchema"], id);
        }
    }
    // The other operations respond with a status only.
    let answering = told.described.values().filter(|told| told["outputSchema"].is_object()).count();
    assert_eq!(answering, 47);

    let inputs = told.reached("inputSchema").await;
    let outputs = told.reached("outputSchema").await;
    let only_answered: Vec<&String> = wanted.difference(&inputs).collect();
    assert_eq!(wanted.intersection(&inputs).count(), 104, "{only_answered:?}");
    assert!(only_answered.iter().all(|name| outputs.contains(*name)), "{only_answered:?}");
    for name in names {
        let schema = told.resource(&name).await;
        compile(&schema, &name);
    }
}

#[tokio::test]
async fn the_built_in_document_is_described_completely() {
    let text: Value = serde_saphyr::from_str(&api::text()).expect("YAML");
    let schemas = text["components"]["schemas"].as_object().expect("schemas").values();
    let mappings = schemas.filter_map(|schema| schema["discriminator"]["mapping"].as_object());
    let references = mappings.flat_map(|mapping| mapping.values()).filter_map(Value::as_str);
    let wanted = references.map(|reference| reference.rsplit('/').next().unwrap_or_default().to_owned());
    is_told(api::document().expect("a document"), &wanted.collect()).await;
}

#[tokio::test]
async fn the_real_document_is_described_completely() {
    let Some(files) = files("the_real_document_is_described_completely") else { return };
    let document = Document::load(&files, &LoadOptions::default()).expect("a good document");
    is_told(document, &subtypes(&files)).await;
}

#[tokio::test]
async fn a_bridge_without_other_tools_stays_within_the_size_limit() {
    let documents = [Some(api::document().expect("a document")), real("a_bridge_without_other_tools")];
    for document in documents.into_iter().flatten() {
        let upstream = Upstream::new("http://127.0.0.1:9", Credential::None, UpstreamLimits::default());
        let bridge = Bridge::builder(document, upstream.expect("an upstream")).build().expect("a bridge");
        let server = Server::builder("search", "1").add(bridge.entries()).build().expect("a server");
        let mut talk = Talk::start(&server, Era::Alone).await;
        let listed = talk.request("tools/list", json!({})).await.expect("a list");
        assert!(bridge.list_bytes() <= LIST_BYTES);
        assert_eq!(bridge.form(), ToolForm::ThreeTools);
        assert_eq!(listed["tools"].as_array().map(Vec::len), Some(3));
    }
}
