//! Parsing of documents of every version.

use std::path::{Path, PathBuf};

use bindpost_mcp_openapi::{
    BodyFormat, Document, LoadOptions, Operation, Parameter, ParameterLocation, ParameterStyle,
    ResponseStatus, SchemaPurpose,
};
use serde_json::json;

/// Loads one of our own documents.
pub(crate) fn ours(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name);
    Document::load(&[path], &LoadOptions::default()).expect("a good document")
}

pub(crate) fn operation<'a>(document: &'a Document, id: &str) -> &'a Operation {
    document.operation(id).unwrap_or_else(|| panic!("{id} does not exist: {:?}", ids(document)))
}

fn ids(document: &Document) -> Vec<&str> {
    document.operations.iter().map(|operation| operation.id.as_str()).collect()
}

fn parameter<'a>(operation: &'a Operation, argument: &str) -> &'a Parameter {
    let found = operation.parameters.iter().find(|parameter| parameter.argument == argument);
    found.unwrap_or_else(|| panic!("{argument} does not exist: {:?}", operation.parameters))
}

#[test]
fn reads_swagger_2() {
    let document = ours("library-2.0.json");
    assert_eq!((document.title.as_str(), document.version.as_str()), ("Library", "1.2"));
    assert_eq!(document.description.as_deref(), Some("Books and who has them."));
    assert_eq!(document.servers, ["https://library.example/v1", "http://library.example/v1"]);
    assert_eq!(ids(&document), ["listBooks", "addBook", "setCover", "get_books_id_cover", "findBooks"]);
    assert_eq!(document.warnings, Vec::<String>::new());

    let list = operation(&document, "listBooks");
    assert_eq!((list.tags.as_slice(), list.deprecated), (&["books".to_owned()][..], false));
    assert_eq!((list.items.as_deref(), list.next_link.as_deref()), (Some("books"), Some("next")));
    assert_eq!(list.scopes, ["library.read"]);
    let arguments: Vec<&str> = list.parameters.iter().map(|parameter| parameter.argument.as_str()).collect();
    assert_eq!(arguments, ["x-trace", "select", "tag", "tab", "tag_header"]);
    let style = |argument| {
        let found = parameter(list, argument);
        (found.style, found.explode)
    };
    assert_eq!(style("select"), (ParameterStyle::Form, false));
    assert_eq!(style("tag"), (ParameterStyle::Form, true));
    assert_eq!(style("tab"), (ParameterStyle::TabDelimited, false));
    assert_eq!(parameter(list, "select").name, "$select");
    assert_eq!(parameter(list, "tag_header").schema, json!({"type": ["string", "null"]}));
    assert_eq!(parameter(list, "x-trace").place, ParameterLocation::Header);
    let statuses: Vec<ResponseStatus> = list.responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [ResponseStatus::Exactly(200), ResponseStatus::Default]);
    assert_eq!(
        list.success().and_then(|answer| answer.schema.clone()),
        Some(json!({"$ref": "#/$defs/Page_Book"}))
    );
    assert_eq!(list.responses[1].description.as_deref(), Some("It failed."));
    assert_eq!(list.responses[1].content_type.as_deref(), Some("application/json"));
}

#[test]
fn reads_bodies_and_forms_of_swagger() {
    let document = ours("library-2.0.json");
    let add = operation(&document, "addBook");
    assert_eq!(add.scopes, ["library.write", "library.read"]);
    let body = add.body.as_ref().expect("a body");
    assert_eq!(
        (body.required, body.media, body.content_type.as_str()),
        (true, BodyFormat::Json, "application/json")
    );
    assert_eq!(body.schema, json!({"$ref": "#/$defs/Book"}));

    let cover = operation(&document, "setCover");
    assert!(cover.deprecated && cover.scopes.is_empty());
    assert_eq!(
        parameter(cover, "id").schema,
        json!({"type": "integer", "format": "int32", "exclusiveMinimum": 0})
    );
    let body = cover.body.as_ref().expect("a form");
    assert_eq!((body.required, body.media), (true, BodyFormat::Multipart));
    assert_eq!((&body.schema["type"], &body.schema["required"]), (&json!("object"), &json!(["cover"])));
    assert_eq!(body.schema["properties"]["alt"], json!({"type": "string"}));
    assert_eq!(body.schema["properties"]["cover"]["format"], "binary");
    let picture = operation(&document, "get_books_id_cover");
    assert_eq!(picture.success().and_then(|answer| answer.content_type.as_deref()), Some("image/png"));
    // The variable of its path is not described.
    assert_eq!(parameter(picture, "id").schema, json!({"type": "string"}));
}

#[test]
fn derives_hints_from_verbs_and_the_document() {
    let document = ours("library-2.0.json");
    let hints = |id: &str| {
        let hints = operation(&document, id).hints;
        (hints.read_only, hints.destructive, hints.idempotent, hints.open_world)
    };
    assert_eq!(hints("listBooks"), (true, false, true, true));
    assert_eq!(hints("addBook"), (false, false, false, true));
    assert_eq!(hints("setCover"), (false, true, true, true));
    assert_eq!(hints("findBooks"), (true, false, true, true));
    let zoo = ours("zoo-3.0.yaml");
    let patch = operation(&zoo, "patch_animals_id").hints;
    assert_eq!((patch.read_only, patch.destructive, patch.idempotent), (false, true, false));
}

#[test]
fn reads_openapi_3_0_in_yaml() {
    let document = ours("zoo-3.0.yaml");
    assert_eq!(document.servers, ["https://north.zoo.example/api", "/relative"]);
    assert_eq!(ids(&document), ["getAnimal", "patch_animals_id", "getAnimal_2"]);
    let get = operation(&document, "getAnimal");
    assert_eq!(get.summary.as_deref(), Some("One animal."));
    assert_eq!(get.scopes, ["animals"]);
    let style = |argument| {
        let found = parameter(get, argument);
        (found.place, found.style, found.explode, found.required)
    };
    assert_eq!(style("id"), (ParameterLocation::Path, ParameterStyle::Label, false, true));
    assert_eq!(style("filter"), (ParameterLocation::Query, ParameterStyle::DeepObject, true, false));
    assert_eq!(style("ids"), (ParameterLocation::Query, ParameterStyle::PipeDelimited, false, false));
    assert_eq!(style("q"), (ParameterLocation::Query, ParameterStyle::Json, false, false));
    assert_eq!(style("crumbs"), (ParameterLocation::Cookie, ParameterStyle::Form, true, false));
    assert_eq!(parameter(get, "limit").schema, json!({"type": ["integer", "null"], "minimum": 1}));
    assert_eq!(get.parameters.len(), 6);
    let statuses: Vec<ResponseStatus> = get.responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [ResponseStatus::Exactly(200), ResponseStatus::Class(4), ResponseStatus::Default]);
    assert_eq!(get.responses[0].content_type.as_deref(), Some("application/json; charset=utf-8"));
    // YAML 1.1 would parse a boolean.
    assert_eq!(get.responses[2].description.as_deref(), Some("on"));
    assert_eq!(document.definitions["Named"]["properties"]["answers"]["enum"], json!(["yes", "on", "off"]));

    let body = operation(&document, "patch_animals_id").body.as_ref().expect("a body");
    assert_eq!((body.required, body.content_type.as_str()), (true, "application/merge-patch+json"));
    let body = operation(&document, "getAnimal_2").body.as_ref().expect("a body");
    assert_eq!((body.media, body.content_type.as_str()), (BodyFormat::Binary, "image/png"));
    assert_eq!(body.schema["contentEncoding"], "base64");
    assert_eq!(document.warnings.len(), 2, "{:?}", document.warnings);
}

#[test]
fn reads_openapi_3_1() {
    let document = ours("notes-3.1.json");
    assert_eq!(ids(&document), ["get_notes_note_id", "deleteNote", "tilde"]);
    assert_eq!(document.warnings, Vec::<String>::new());
    let get = operation(&document, "get_notes_note_id");
    assert_eq!(
        (get.parameters[0].name.as_str(), get.parameters[0].argument.as_str()),
        ("note id", "note_id")
    );
    assert_eq!(
        get.success().and_then(|answer| answer.schema.clone()),
        Some(json!({"$ref": "#/$defs/Note_of_day"}))
    );
    assert_eq!(
        operation(&document, "tilde").success().and_then(|answer| answer.schema.clone()),
        Some(json!({"$ref": "#/$defs/Note_of_day"}))
    );
    let delete = operation(&document, "deleteNote");
    assert_eq!(delete.success().map(|answer| answer.status), Some(ResponseStatus::Class(2)));
}

#[test]
fn several_files_are_one_document() {
    let document = ours("split");
    assert_eq!(document.title, "Customers");
    // Their base paths differ, so they are part of the paths.
    assert_eq!(document.servers, ["https://shop.example"]);
    let paths: Vec<&str> = document.operations.iter().map(|operation| operation.path.as_str()).collect();
    assert_eq!(paths, ["/customers/{id}", "/orders/{id}"]);
    let names: Vec<&str> = document.definitions.keys().map(String::as_str).collect();
    // `Error` is equal in both, `State` is not.
    assert_eq!(names, ["Currency", "Customer", "Error", "Money", "Order", "State", "State_2"]);
    assert_eq!(document.definitions["Order"]["properties"]["state"], json!({"$ref": "#/$defs/State_2"}));
    assert_eq!(document.definitions["State_2"]["enum"], json!(["open", "paid"]));
    assert_eq!(document.warnings, Vec::<String>::new());
    assert_eq!(document.operations[0].parameters[0].name, "id");

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/split");
    let twice: Vec<PathBuf> = ["orders.yaml", "orders.yaml"].iter().map(|name| folder.join(name)).collect();
    let one = Document::load(&twice, &LoadOptions::default()).expect("a good document");
    assert_eq!(
        (one.operations.len(), one.servers.as_slice()),
        (1, &["https://shop.example/orders".to_owned()][..])
    );
}

#[test]
fn a_host_with_variables_becomes_a_prefix_of_every_path() {
    let document = Document::parse(
        &json!({
            "swagger": "2.0", "info": {"title": "t", "version": "1"},
            "x-ms-parameterized-host": {"hostTemplate": "{endpoint}/boxes('{box}')", "parameters": [
                {"name": "endpoint", "in": "path", "type": "string"},
                {"name": "box", "in": "path", "type": "string", "description": "Which box."}]},
            "paths": {"/things": {"get": {"operationId": "list", "responses": {}}}}
        })
        .to_string(),
        "boxes.json",
    )
    .expect("a good document");
    let list = operation(&document, "list");
    assert_eq!(list.path, "/boxes('{box}')/things");
    assert_eq!(list.parameters.len(), 1);
    assert_eq!(parameter(list, "box").description.as_deref(), Some("Which box."));
    assert_eq!(document.warnings, Vec::<String>::new());
}

#[test]
fn a_file_in_a_multipart_body_is_text_or_bytes_with_a_name() {
    let text = "
openapi: 3.1.0
info: {title: Files, version: '1'}
paths:
  /files:
    post:
      operationId: upload
      requestBody: {content: {multipart/form-data: {schema: {$ref: '#/components/schemas/Form'}}}}
      responses: {204: {description: done}}
components:
  schemas:
    Picture: {type: string, format: binary, description: A picture}
    Form:
      type: object
      required: [picture]
      properties:
        title: {type: string}
        picture: {$ref: '#/components/schemas/Picture'}
        more: {type: array, items: {contentMediaType: application/pdf}}
";
    let document = Document::parse(text, "files.yaml").unwrap();
    let body = document.operation("upload").unwrap().body.as_ref().unwrap();
    let picture = &body.schema["properties"]["picture"];
    assert_eq!(picture["type"], json!(["string", "object"]));
    assert_eq!(picture["description"], "A picture. Text, or bytes as {base64, filename, contentType}.");
    let check =
        jsonschema::validator_for(&document.whole_schema(&body.schema, SchemaPurpose::Input)).unwrap();
    let bytes = json!({"base64": "AA==", "filename": "a.png", "contentType": "image/png"});
    assert!(check.is_valid(&json!({"picture": bytes, "more": ["text", bytes]})));
    assert!(check.is_valid(&json!({"picture": "text"})));
    assert!(!check.is_valid(&json!({"picture": {"filename": "a.png"}})));
    assert!(!check.is_valid(&json!({"picture": 7})));
}
