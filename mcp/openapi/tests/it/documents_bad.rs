//! Documents that are invalid, too large or malicious. Each gives a clear error or a
//! warning and never hangs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bindpost_mcp_openapi::{Document, LoadOptions, SchemaPurpose};
use serde_json::{Value, json};

use crate::schemas::{compile, compile_all};

/// A folder for one test, deleted afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bindpost-openapi-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load(path: &Path) -> Document {
    Document::load(&[path.to_owned()], &LoadOptions::default()).expect("a document with warnings")
}

fn refused(text: &str, name: &str) -> String {
    Document::parse(text, name).expect_err("the document is invalid").to_string()
}

/// Returns a document whose only response has this schema.
fn answering(schema: &Value) -> String {
    json!({
        "openapi": "3.0.0", "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}}}}
    })
    .to_string()
}

fn answer_of(document: &Document) -> &Value {
    document.operations[0].responses[0].schema.as_ref().expect("a schema")
}

#[test]
fn an_unresolved_reference_accepts_any_value_and_adds_a_warning() {
    let folder = Folder::new("references");
    fs::write(folder.0.join("secret.json"), r#"{"type": "integer"}"#).expect("a file");
    let outside = folder.0.join("secret.json");
    for (reference, why) in [
        ("#/components/schemas/Missing", "`components` does not exist"),
        ("#somewhere", "anchors"),
        ("other.json", "the file does not exist"),
        ("http://127.0.0.1:9/schema.json", "never fetched"),
        ("https://example.com/a.json#/b", "never fetched"),
        ("//example.com/a.json", "never fetched"),
        ("file:///etc/passwd", "never fetched"),
        ("/etc/passwd", "outside the folders"),
        ("../../../../../../../etc/passwd", "outside the folders"),
        ("..%2f..%2fsecret.json", "outside the folders"),
        ("%2e%2e/secret.json", "outside the folders"),
        ("../secret.json", "outside the folders"),
        (outside.to_str().expect("UTF-8"), "outside the folders"),
        ("a\u{0}b.json", "NUL"),
        ("%ff.json", "UTF-8"),
    ] {
        let path = folder.write("inner/api.json", &answering(&json!({"$ref": reference})));
        let document = load(&path);
        assert_eq!(answer_of(&document), &json!({}), "{reference}");
        let [warning] = document.warnings.as_slice() else { panic!("{reference}: {:?}", document.warnings) };
        let names_all = warning.starts_with("api.json#/paths/~1a/get") && warning.contains(reference);
        assert!(names_all && warning.contains(why), "{reference}: {warning}");
    }
    // The same file is accepted once its folder is allowed.
    let path = folder.write("inner/api.json", &answering(&json!({"$ref": "../secret.json"})));
    let options = LoadOptions { roots: vec![folder.0.clone()], ..LoadOptions::default() };
    let document = Document::load(&[path], &options).expect("a good document");
    assert_eq!(
        (document.warnings.len(), document.whole_schema(answer_of(&document), SchemaPurpose::Input)),
        (0, json!({"type": "integer"}))
    );
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_does_not_lead_out_of_the_folder() {
    let folder = Folder::new("links");
    folder.write("secret/types.json", r#"{"type": "integer"}"#);
    folder.write("secret/other.json", &answering(&json!({"type": "string"})));
    let path = folder.write("inner/api.json", &answering(&json!({"$ref": "link.json"})));
    std::os::unix::fs::symlink(folder.0.join("secret/types.json"), folder.0.join("inner/link.json"))
        .expect("a link");
    std::os::unix::fs::symlink(folder.0.join("secret/other.json"), folder.0.join("inner/other.json"))
        .expect("a link");
    let document = load(&path);
    assert_eq!(answer_of(&document), &json!({}));
    assert!(document.warnings[0].contains("outside the folders"), "{:?}", document.warnings);
    let document = load(&folder.0.join("inner"));
    assert_eq!(document.operations.len(), 1);
    assert!(
        document.warnings.iter().any(|warning| warning.contains("is outside its folder")),
        "{:?}",
        document.warnings
    );
}

#[test]
fn files_that_are_not_documents_are_rejected() {
    assert!(refused("{\"a\": 1}", "a.json").contains("neither `openapi` nor `swagger`"));
    assert!(refused("just words", "a.yaml").contains("neither `openapi` nor `swagger`"));
    assert!(refused("", "a.yaml").contains("neither `openapi` nor `swagger`"));
    assert!(refused("{\"openapi\": \"4.0\"}", "a.json").contains("version 4.0 is unknown"));
    assert!(refused("{\"swagger\": \"1.2\"}", "a.json").contains("version 1.2 is unknown"));
    let folder = Folder::new("nothing");
    folder.write("a.json", "{}");
    for path in [folder.0.clone(), folder.0.join("a.json"), folder.0.join("missing.json")] {
        let error =
            Document::load(&[path], &LoadOptions::default()).expect_err("no document exists").to_string();
        assert!(error.contains("fix:"), "{error}");
    }
    assert!(Document::load(&[], &LoadOptions::default()).is_err());
}

#[test]
fn parse_errors_have_a_line_and_column() {
    let error = refused("{\n  \"openapi\": \"3.0.0\",\n  \"paths\": {,}\n}", "bad.json");
    assert!(error.starts_with("bad.json:3:13: this is not valid JSON"), "{error}");
    let error = refused("openapi: 3.0.0\npaths:\n  - a\n b: [", "bad.yaml");
    assert!(error.starts_with("bad.yaml:4:"), "{error}");
    assert!(refused("{\"openapi\": \"3.0.0\"} more", "bad.json").contains("bad.json:1:22"));
}

#[test]
fn excessive_alias_expansion_is_rejected() {
    let mut text = String::from("openapi: 3.0.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        writeln!(text, "a{level}: &a{level} [{}]", [before.as_str(); 10].join(", "))
            .expect("writing to a string succeeds");
    }
    assert!(refused(&text, "bomb.yaml").contains("exceeds a limit"));
    assert!(Document::parse("openapi: 3.0.0\na: &a [*a]\n", "self.yaml").is_err());
}

#[test]
fn depth_is_bounded() {
    let deep = |levels: usize| format!("{}{{}}{}", "{\"items\":".repeat(levels), "}".repeat(levels));
    let text = answering(&json!("HERE")).replace("\"HERE\"", &deep(5_000));
    let error = refused(&text, "deep.json");
    assert!(error.contains("deep.json:1:") && error.contains("this is nested deeper than 128"), "{error}");
    let yaml = format!("openapi: 3.0.0\na: {}{}\n", "[".repeat(5_000), "]".repeat(5_000));
    let error = refused(&yaml, "deep.yaml");
    assert!(error.contains("this is nested deeper than 128"), "{error}");
    let block: String = (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let error = refused(&format!("openapi: 3.0.0\n{block}"), "deep.yaml");
    assert!(error.contains("this is nested deeper than 128"), "{error}");
    // The maximum depth is accepted.
    let text = answering(&json!("HERE")).replace("\"HERE\"", &deep(100));
    compile_all(&Document::parse(&text, "deep.json").expect("a good document"));
}

#[test]
fn long_chains_of_definitions_do_not_exhaust_the_stack() {
    for link in ["allOf", "items", "anyOf", "plain"] {
        let mut schemas = serde_json::Map::new();
        for index in 0..3_000 {
            let next = json!({"$ref": format!("#/components/schemas/D{}", index + 1)});
            let schema = match link {
                "allOf" => {
                    json!({"allOf": [next], "type": "object", "properties": {format!("p{index}"): {"type": "string"}}})
                }
                "items" => json!({"type": "array", "items": next}),
                "anyOf" => json!({"anyOf": [next, {"type": "string"}]}),
                _ => next,
            };
            schemas.insert(format!("D{index}"), schema);
        }
        schemas.insert("D3000".to_owned(), json!({"type": "object"}));
        let mut text: Value =
            serde_json::from_str(&answering(&json!({"$ref": "#/components/schemas/D0"}))).expect("JSON");
        text["components"] = json!({"schemas": schemas});
        let document = Document::parse(&text.to_string(), "chain.json").expect("a good document");
        for purpose in [SchemaPurpose::Input, SchemaPurpose::Output] {
            document.whole_schema(answer_of(&document), purpose);
            document.short_schema(answer_of(&document), purpose, "api");
        }
    }
}

#[test]
fn ten_megabytes_are_read_in_seconds() {
    let mut paths = serde_json::Map::new();
    let mut schemas = serde_json::Map::new();
    let words = "What it is, at some length, as documents are. ".repeat(8);
    for index in 0..6_000 {
        let next = json!({"$ref": format!("#/components/schemas/Thing{}", (index * 7 + 1) % 6_000)});
        let properties = json!({
            "name": {"type": "string", "description": words}, "next": next, "size": {"type": "integer", "nullable": true},
            "kind": {"type": "string", "enum": ["a", "b"]}, "list": {"type": "array", "items": {"type": "string", "description": words}}});
        schemas.insert(format!("Thing{index}"), json!({"type": "object", "properties": properties}));
        let schema = json!({"$ref": format!("#/components/schemas/Thing{index}")});
        paths.insert(
            format!("/things/{index}/{{id}}"),
            json!({"get": {
            "operationId": format!("get{index}"), "description": words,
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
            "responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}}}),
        );
    }
    let text = json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": paths, "components": {"schemas": schemas}}).to_string();
    assert!(text.len() > 10_000_000, "{}", text.len());
    let started = std::time::Instant::now();
    let document = Document::parse(&text, "big.json").expect("a good document");
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    assert_eq!((document.operations.len(), document.definitions.len()), (6_000, 6_000));
}

#[test]
fn files_are_bounded() {
    let folder = Folder::new("bounds");
    let path = folder.write("api.json", &answering(&json!({"$ref": "other.json"})));
    folder.write("other.json", &json!({"description": "x".repeat(1_000), "type": "string"}).to_string());
    let small = LoadOptions { max_file_bytes: 600, ..LoadOptions::default() };
    let document = Document::load(std::slice::from_ref(&path), &small).expect("a document with a warning");
    assert!(document.warnings[0].contains("at most 600 are read"), "{:?}", document.warnings);
    let tiny = LoadOptions { max_file_bytes: 10, ..LoadOptions::default() };
    assert!(Document::load(std::slice::from_ref(&path), &tiny).is_err());
    let few = LoadOptions { max_files: 1, ..LoadOptions::default() };
    let document = Document::load(&[path], &few).expect("a document with a warning");
    assert!(document.warnings[0].contains("more than 1 files"), "{:?}", document.warnings);
}

#[test]
fn invalid_schemas_are_tolerated() {
    let schema = json!({
        "type": ["object", "object", "any"], "required": true, "properties": {"a": 3, "b": {"type": "any", "enum": []}, "c": null},
        "minLength": -1, "maxItems": "3", "pattern": "([", "format": 3, "enum": "x", "allOf": {}, "oneOf": [], "items": 7,
        "patternProperties": {"([": {}}, "multipleOf": 0, "discriminator": 3, "not": 4, "$anchor": "a b", "$ref": 5,
        "default": {"$ref": "#/none"}, "title": 3, "exclusiveMinimum": "x", "dependentRequired": {"a": 3}, "const": 1
    });
    let document = Document::parse(&answering(&schema), "nonsense.json").expect("a document with warnings");
    compile_all(&document);
    let text = json!({
        "openapi": "3.0.0", "info": 3, "servers": {}, "paths": {
            "/a/{b": {"get": 3, "post": {"parameters": [3, {}, {"name": "x"}, {"name": "y", "in": "sky"}, {"$ref": "#/none"}], "responses": [],
                "requestBody": {"content": {}}, "tags": [3], "security": [3, {"a": 3}], "x-mcp-hints": 3, "operationId": 3}},
            "b": {"get": {}}, "/c": 3, "/d": {"get": {"responses": {"200": 3, "20": {}, "9XX": {}, "x": {}}}}
        }, "components": 3
    });
    let document = Document::parse(&text.to_string(), "nonsense.json").expect("a document with warnings");
    assert_eq!(document.operations.len(), 2, "{:?}", document.operations);
    compile(&document.whole_schema(&json!(false), SchemaPurpose::Input), "false");
    compile(&document.whole_schema(&json!({"$ref": "#/$defs/none"}), SchemaPurpose::Input), "none");
}

#[test]
fn an_invalid_path_is_ignored_with_a_warning() {
    let paths = json!({"@evil.com/": {"get": {}}, "x-note": {}, "/a": {"get": {"responses": {}}}});
    let text =
        json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": paths}).to_string();
    let document = Document::parse(&text, "a.json").expect("a good document");
    assert_eq!(document.operations.len(), 1);
    let [warning] = document.warnings.as_slice() else { panic!("{:?}", document.warnings) };
    assert!(warning.contains("@evil.com") && warning.contains("does not begin with `/`"), "{warning}");
}
