//! Schemas of documents: whole, short, and for both directions.

use bindpost_mcp_openapi::{Document, SchemaPurpose, Subtype};
use serde_json::{Value, json};

use crate::documents::{operation, ours};

pub(crate) fn compile(schema: &Value, what: &str) -> jsonschema::Validator {
    let built = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(schema);
    built.unwrap_or_else(|error| panic!("{what}: {error} in {schema}"))
}

/// Compiles all schemas that a document provides.
pub(crate) fn compile_all(document: &Document) {
    for operation in &document.operations {
        let inputs = operation.parameters.iter().map(|parameter| &parameter.schema);
        for schema in inputs.chain(operation.body.iter().map(|body| &body.schema)) {
            compile(&document.whole_schema(schema, SchemaPurpose::Input), &operation.id);
            let short = document.short_schema(schema, SchemaPurpose::Input, "api");
            assert!(short.to_string().len() <= 1_500, "{}: {short}", operation.id);
            compile(&short, &operation.id);
        }
        for schema in operation.responses.iter().filter_map(|response| response.schema.as_ref()) {
            compile(&document.whole_schema(schema, SchemaPurpose::Output), &operation.id);
            let short = document.short_schema(schema, SchemaPurpose::Output, "api");
            assert!(short.to_string().len() <= 1_500, "{}: {short}", operation.id);
            compile(&short, &operation.id);
        }
    }
    for name in document.definitions.keys() {
        compile(&document.definition(name).expect("the definition exists"), name);
    }
}

fn named(document: &Document, name: &str, purpose: SchemaPurpose) -> Value {
    document.whole_schema(&json!({"$ref": format!("#/$defs/{name}")}), purpose)
}

#[test]
fn every_schema_of_our_documents_compiles() {
    for name in ["library-2.0.json", "zoo-3.0.yaml", "notes-3.1.json", "circles.json", "split"] {
        compile_all(&ours(name));
    }
}

#[test]
fn normalises_swagger_schemas() {
    let document = ours("library-2.0.json");
    let book = &document.definitions["Book"]["properties"];
    assert_eq!(
        book["binding"],
        json!({"type": "string", "description": "How it is bound. One of: soft, hard; others possible."})
    );
    assert_eq!(book["rating"], json!({"type": ["number", "null"], "exclusiveMaximum": 5}));
    let media = json!({"anyOf": [{"$ref": "#/$defs/Medium"}, {"type": "null"}], "description": "What it is made of."});
    assert_eq!(book["media"], media);
    // A member may have the name of a keyword.
    assert_eq!(book["$ref"], json!({"type": "string", "description": "Where it stands."}));
}

#[test]
fn normalises_openapi_3_1_schemas() {
    let document = ours("notes-3.1.json");
    let note = &document.definitions["Note_of_day"];
    assert_eq!(note["type"], json!(["object", "null"]));
    assert_eq!((note.get("$id"), note.get("$schema")), (None, None));
    let properties = &note["properties"];
    assert_eq!((&properties["any"], &properties["never"]), (&json!(true), &json!(false)));
    assert_eq!(properties["old"], json!({"type": "array", "prefixItems": [{"type": "string"}]}));
    assert_eq!(properties["pair"]["items"], json!(false));
    assert_eq!(properties["size"]["exclusiveMinimum"], json!(0));
    assert_eq!(properties["next"], json!({"$ref": "#/$defs/Note_of_day", "description": "The one after."}));
    assert_eq!(properties["inner"], json!({"$ref": "#/$defs/Holder.inner"}));
    // Members beside a reference are valid only from 3.1 on.
    assert_eq!(properties["more"], json!({"$ref": "#/$defs/Holder", "required": ["inner"]}));
}

#[test]
fn subtypes_are_selected_by_their_value() {
    let document = ours("library-2.0.json");
    let subtype = |value: &str, definition: &str| Subtype {
        value: value.to_owned(),
        definition: definition.to_owned(),
    };
    assert_eq!(
        document.subtypes("Medium"),
        [
            subtype("#ebook", "Ebook"),
            subtype("#paper", "Paper.itself"),
            subtype("#recycled", "RecycledPaper")
        ]
    );
    assert_eq!(
        document.subtypes("Paper"),
        [subtype("#recycled", "RecycledPaper"), subtype("#paper", "Paper.itself")]
    );
    assert_eq!(document.subtypes("Book"), []);
    let zoo = ours("zoo-3.0.yaml");
    assert_eq!(
        zoo.subtypes("Animal"),
        [subtype("cat", "Cat"), subtype("hound", "Dog"), subtype("puppy", "Dog")]
    );

    let input = compile(&named(&document, "Medium", SchemaPurpose::Input), "Medium");
    assert!(input.is_valid(&json!({"kind": "#paper", "pages": 3, "weight": 1})));
    assert!(input.is_valid(&json!({"kind": "#recycled", "pages": 3, "share": 0.5})));
    assert!(!input.is_valid(&json!({"kind": "#recycled", "pages": 3})), "a member that the subtype requires");
    assert!(!input.is_valid(&json!({"kind": "#paper", "pages": "3"})), "a member that is inherited");
    assert!(!input.is_valid(&json!({"kind": "#stone"})) && !input.is_valid(&json!({"pages": 3})));
    let output = compile(&named(&document, "Medium", SchemaPurpose::Output), "Medium");
    assert!(
        output.is_valid(&json!({"kind": "#stone", "age": 3})),
        "a subtype that the document does not define"
    );
    assert!(!output.is_valid(&json!("stone")));

    let input = compile(&named(&zoo, "Animal", SchemaPurpose::Input), "Animal");
    assert!(input.is_valid(
        &json!({"sort": "cat", "name": "Tom", "friend": {"sort": "hound", "name": "Rex", "password": "x"}})
    ));
    assert!(input.is_valid(&json!({"sort": "puppy", "name": "Rex"})));
    assert!(!input.is_valid(&json!({"sort": "cat", "name": "Tom", "friend": {"sort": "cow", "name": "M"}})));
}

#[test]
fn an_input_has_no_read_only_members() {
    let document = ours("library-2.0.json");
    let input = named(&document, "Book", SchemaPurpose::Input);
    assert_eq!(input["required"], json!(["title"]));
    assert!(input["properties"].get("id").is_none() && !input.to_string().contains("readOnly"));
    assert_eq!(input["additionalProperties"], json!(false));
    // Only reachable definitions are included, and a recursive definition stays a reference.
    let names: Vec<&String> = input["$defs"].as_object().expect("definitions").keys().collect();
    assert_eq!(names, ["Book", "Ebook", "Medium", "Paper.itself", "RecycledPaper"]);
    assert_eq!(input["properties"]["sequels"]["items"], json!({"$ref": "#/$defs/Book"}));
    let validator = compile(&input, "Book");
    assert!(validator.is_valid(&json!({"title": "a", "sequels": [{"title": "b", "sequels": []}]})));
    assert!(!validator.is_valid(&json!({"title": "a", "sequels": [{"sequels": []}]})));
}

#[test]
fn an_output_accepts_what_services_actually_return() {
    let document = ours("library-2.0.json");
    let schema = named(&document, "Book", SchemaPurpose::Output);
    assert_eq!(schema["type"], "object");
    let validator = compile(&schema, "Book");
    for answer in [
        json!({}),
        json!({"id": null, "title": null, "rating": null, "sequels": null, "media": null}),
        json!({"id": 3, "rating": 77, "new": true, "binding": "leather", "sequels": [null, {"media": {"kind": "?"}}]}),
    ] {
        assert!(validator.is_valid(&answer), "{answer}");
    }
    assert!(!validator.is_valid(&json!({"title": 3})));
    let zoo = ours("zoo-3.0.yaml");
    let named = named(&zoo, "Named", SchemaPurpose::Output);
    assert!(named["properties"].get("password").is_none());
    assert_eq!(
        named["properties"]["answers"],
        json!({"type": ["string", "null"], "description": "Known: yes, on, off."})
    );
    assert_eq!(
        zoo.definition("Named").expect("the definition exists")["properties"]["password"]["writeOnly"],
        json!(true)
    );
}

#[test]
fn a_short_schema_links_to_the_whole_schemas() {
    let document = ours("library-2.0.json");
    let body = &operation(&document, "addBook").body.as_ref().expect("a body").schema;
    assert_eq!(
        document.short_schema(body, SchemaPurpose::Input, "library"),
        json!({
            "type": "object",
            "description": "Book: see library-schema://Book",
            "required": ["title"],
            "properties": {
                "title": {"type": "string"},
                "binding": {"type": "string", "description": "How it is bound."},
                "rating": {"type": ["number", "null"]},
                "media": {"type": ["object", "null"], "description": "What it is made of. Medium: see library-schema://Medium"},
                "$ref": {"type": "string", "description": "Where it stands."},
                "sequels": {"type": "array", "items": {"type": "object", "description": "Book: see library-schema://Book"}},
            }
        })
    );
}

#[test]
fn cycles_without_content_are_cut_and_recursion_stays() {
    let document = ours("circles.json");
    assert_eq!(document.operations.len(), 2, "an operation whose path cannot be filled is ignored");
    let tree = &operation(&document, "tree").body.as_ref().expect("a body").schema;
    let validator = compile(&document.whole_schema(tree, SchemaPurpose::Input), "tree");
    assert!(validator.is_valid(&json!({"branches": [{"name": "a", "branches": [{"name": "b"}]}]})));
    assert!(!validator.is_valid(&json!({"branches": [{"branches": [{"name": 1}]}]})));
    for name in ["A", "Self", "Either", "Up"] {
        let validator = compile(&named(&document, name, SchemaPurpose::Input), name);
        assert!(validator.is_valid(&json!({"x": "y"})) != (name == "Either"), "{name}");
        assert!(document.warnings.iter().any(|warning| warning.contains("leads back to itself")));
    }
    let either = compile(&named(&document, "Either", SchemaPurpose::Input), "Either");
    assert!(either.is_valid(&json!("a")) && !either.is_valid(&json!(1)));
}
