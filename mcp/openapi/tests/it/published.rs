//! Published documents. Each is loaded and listed within the budget, and all its schemas compile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bindpost_mcp_openapi::{
    Bridge, Credential, Document, DocumentError, LoadOptions, SchemaPurpose, ToolForm, Upstream,
    UpstreamLimits,
};
use bindpost_mcp_server::testing::TestClient;
use serde_json::{Value, json};

use crate::bridge_pets::{call, connect};
use crate::packages::Package;

const OCTOKIT: Package =
    Package { name: "@octokit/openapi", version: "23.0.2", parts: &["generated/api.github.com.json"] };
const GITBOOK: Package = Package { name: "@gitbook/api", version: "0.202.0", parts: &["spec/openapi.json"] };
const FIGMA: Package =
    Package { name: "@figma/rest-api-spec", version: "0.43.0", parts: &["openapi/openapi.yaml"] };
pub(crate) const EXAMPLES: Package =
    Package { name: "@readme/oas-examples", version: "8.2.2", parts: &["2.0", "3.0", "3.1"] };

/// The expected properties of a document.
struct Expected {
    operations: usize,
    form: ToolForm,
    /// Query words, and the operation that they find.
    finds: (&'static str, &'static str),
}

pub(crate) fn load(package: Package, file: &str) -> Document {
    read(&package.folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn read(path: &Path) -> Result<Document, DocumentError> {
    Document::load(&[path.to_owned()], &LoadOptions::default())
}

/// Returns an upstream that is never called.
fn nowhere() -> Upstream {
    Upstream::new("http://127.0.0.1:9/", Credential::None, UpstreamLimits::default()).unwrap()
}

fn compile(schema: &Value, what: &str) {
    let built = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(schema);
    if let Err(error) = built {
        panic!("{what}: {error} in {schema}");
    }
}

/// Loads, lists, finds and describes operations as a client does, and compiles every schema.
async fn is_served(document: Document, expected: Expected) {
    assert_eq!(document.operations.len(), expected.operations);
    let bridge = Bridge::builder(document.clone(), nowhere()).build().unwrap();
    let mut client = connect(&bridge).await;
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let bytes = listed.to_string().len();
    assert_eq!((bridge.form(), bridge.list_bytes()), (expected.form, bytes));
    assert!(bytes <= 40 * 1024, "{bytes} bytes");
    for tool in listed["tools"].as_array().unwrap() {
        for schema in ["inputSchema", "outputSchema"].into_iter().filter_map(|name| tool.get(name)) {
            compile(schema, tool["name"].as_str().unwrap());
        }
    }

    // The same as three tools, regardless of the size.
    let bridge = Bridge::builder(document, nowhere()).list_budget(0).build().unwrap();
    assert_eq!(bridge.form(), ToolForm::ThreeTools);
    let mut client = connect(&bridge).await;
    let (words, wanted) = expected.finds;
    let found = call(&mut client, "findOperations", json!({"query": words})).await;
    assert_eq!(found["structuredContent"]["items"][0]["operation"], wanted, "{found}");
    let mut addresses = BTreeSet::new();
    for operation in bridge.operations() {
        let described = call(&mut client, "describeOperation", json!({"operation": operation.id})).await;
        let described = &described["structuredContent"];
        for schema in ["inputSchema", "outputSchema"].map(|name| &described[name]) {
            if !schema.is_null() {
                compile(schema, &operation.id);
            }
        }
        mentioned(described, &mut addresses);
    }
    for address in &addresses {
        let schema = resource(&mut client, address).await;
        compile(&schema, address);
    }
    compile_all(&bridge);
}

async fn resource(client: &mut TestClient, uri: &str) -> Value {
    let read = client.request("resources/read", json!({"uri": uri})).await;
    let read = read.unwrap_or_else(|error| panic!("{uri}: {error:?}"));
    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
}

/// Collects the addresses of schemas in a description.
fn mentioned(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let words = text.split_whitespace().filter(|word| word.starts_with("openapi-schema://"));
            found.extend(words.map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| mentioned(item, found)),
        Value::Object(members) => members.values().for_each(|member| mentioned(member, found)),
        _ => {}
    }
}

/// Compiles all schemas of a document, whole and short, with the definitions they reference.
fn compile_all(bridge: &Bridge) {
    let document = bridge.document();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for operation in bridge.operations() {
        inputs.extend(operation.parameters.iter().map(|parameter| &parameter.schema));
        inputs.extend(operation.body.iter().map(|body| &body.schema));
        outputs.extend(operation.responses.iter().filter_map(|response| response.schema.as_ref()));
    }
    for (schemas, purpose) in [(inputs, SchemaPurpose::Input), (outputs, SchemaPurpose::Output)] {
        if schemas.is_empty() {
            continue;
        }
        // They are compiled as one schema, so that each definition is compiled once.
        compile(&document.whole_schema(&json!({"anyOf": schemas}), purpose), "the whole document");
        for schema in schemas {
            let short = document.short_schema(schema, purpose, "openapi");
            assert!(short.to_string().len() <= 1_500, "{short}");
            compile(&short, "a short schema");
        }
    }
    let all: Vec<Value> =
        document.definitions.keys().map(|name| json!({"$ref": format!("#/$defs/{name}")})).collect();
    if all.is_empty() {
        return;
    }
    let definitions = json!({"$defs": document.definitions, "anyOf": all});
    compile(&definitions, "all definitions");
}

#[tokio::test]
async fn swagger_2_0() {
    for file in ["2.0/json/petstore.json", "2.0/yaml/petstore.yaml"] {
        let finds = ("upload image", "uploadFile");
        is_served(load(EXAMPLES, file), Expected { operations: 20, form: ToolForm::Whole, finds }).await;
    }
}

#[tokio::test]
async fn openapi_3_0_with_cycles() {
    let document = load(EXAMPLES, "3.0/json/schema-circular.json");
    is_served(
        document,
        Expected {
            operations: 3,
            form: ToolForm::Whole,
            finds: ("not quite circular", "post_not_quite_circular"),
        },
    )
    .await;
}

#[tokio::test]
async fn openapi_3_0_with_discriminators() {
    let document = load(EXAMPLES, "3.0/json/discriminators.json");
    is_served(
        document,
        Expected { operations: 10, form: ToolForm::Whole, finds: ("redocly", "redoclyQuirk") },
    )
    .await;
}

#[tokio::test]
async fn openapi_3_0_with_parameters_of_every_style() {
    let document = load(EXAMPLES, "3.0/json/parameters-style.json");
    is_served(
        document,
        Expected {
            operations: 25,
            form: ToolForm::Whole,
            finds: ("matrix exploded", "paths_matrix_exploded"),
        },
    )
    .await;
}

#[tokio::test]
async fn openapi_3_0_of_thirteen_megabytes() {
    let document = load(OCTOKIT, "generated/api.github.com.json");
    let finds = ("create an issue", "issues/create");
    is_served(document, Expected { operations: 1223, form: ToolForm::ThreeTools, finds }).await;
}

#[tokio::test]
async fn openapi_3_1() {
    let document = load(GITBOOK, "spec/openapi.json");
    is_served(
        document,
        Expected {
            operations: 377,
            form: ToolForm::ThreeTools,
            finds: ("duplicate space", "duplicateSpace"),
        },
    )
    .await;
}

#[tokio::test]
async fn openapi_3_1_in_yaml() {
    let document = load(FIGMA, "openapi/openapi.yaml");
    is_served(
        document,
        Expected { operations: 54, form: ToolForm::Short, finds: ("file comments", "getComments") },
    )
    .await;
}

/// Collects the documents of a folder and of its subfolders.
fn documents_in(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let is_document = entry
            .extension()
            .is_some_and(|extension| ["json", "yaml"].iter().any(|known| extension == *known));
        match entry.is_dir() {
            true => documents_in(&entry, found),
            false if is_document => found.push(entry),
            false => {}
        }
    }
}

#[tokio::test]
async fn a_collection_of_unusual_documents() {
    let mut files = Vec::new();
    documents_in(&EXAMPLES.folder(), &mut files);
    files.sort();
    let (mut served, mut without_operations) = (0, 0);
    for file in &files {
        let document = read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if document.operations.is_empty() {
            without_operations += 1;
            continue;
        }
        let bridge = Bridge::builder(document, nowhere()).build().unwrap();
        assert!(bridge.list_bytes() <= 40 * 1024, "{}", file.display());
        compile_all(&bridge);
        let mut client = connect(&bridge).await;
        let listed = client.request("tools/list", json!({})).await.unwrap();
        for tool in listed["tools"].as_array().unwrap() {
            for schema in ["inputSchema", "outputSchema"].into_iter().filter_map(|name| tool.get(name)) {
                compile(schema, &format!("{} of {}", tool["name"], file.display()));
            }
        }
        served += 1;
    }
    assert_eq!((files.len(), served, without_operations), (129, 126, 3));
}
