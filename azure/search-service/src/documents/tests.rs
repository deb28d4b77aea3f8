use std::fmt::Write;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexDefinition, IndexSchema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::merge::DocumentPatch;
use super::*;

fn schema() -> IndexSchema {
    let definition = json!({"name": "hotels", "fields": [
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "title", "type": "Edm.String"},
        {"name": "secret", "type": "Edm.String", "retrievable": false},
        {"name": "note", "type": "Edm.String", "searchable": false, "filterable": false, "sortable": false, "facetable": false},
        {"name": "tags", "type": "Collection(Edm.String)"},
        {"name": "open", "type": "Edm.Boolean"},
        {"name": "stars", "type": "Edm.Int32"},
        {"name": "views", "type": "Edm.Int64"},
        {"name": "rating", "type": "Edm.Double"},
        {"name": "built", "type": "Edm.DateTimeOffset"},
        {"name": "place", "type": "Edm.GeographyPoint"},
        {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "p", "retrievable": true},
        {"name": "address", "type": "Edm.ComplexType", "fields": [
            {"name": "city", "type": "Edm.String"},
            {"name": "zip", "type": "Edm.String", "retrievable": false},
            {"name": "geo", "type": "Edm.ComplexType", "fields": [
                {"name": "x", "type": "Edm.Double"}, {"name": "y", "type": "Edm.Double"}]}]},
        {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
            {"name": "beds", "type": "Edm.Int32"},
            {"name": "kinds", "type": "Collection(Edm.String)"}]}
    ], "vectorSearch": {"profiles": [{"name": "p", "algorithm": "h"}]}});
    IndexDefinition::parse(&definition).unwrap().schema
}

fn shape() -> DocumentShape {
    DocumentShape::new(&schema())
}

fn batch(documents: &[Value]) -> Result<Vec<BatchEntry>, ApiError> {
    parse_batch(json!({ "value": documents }).to_string().as_bytes(), &shape())
}

fn item(document: Value) -> BatchEntry {
    batch(&[document]).unwrap().remove(0)
}

fn upload(document: Value) -> Document {
    match item(document).action.unwrap() {
        DocumentAction::Upload(document) => document,
        other => panic!("{other:?}"),
    }
}

fn patch(mut document: Value) -> DocumentPatch {
    document["@search.action"] = json!("merge");
    match item(document).action.unwrap() {
        DocumentAction::Merge(patch) => patch,
        other => panic!("{other:?}"),
    }
}

/// Returns the error message for a whole batch.
fn refusal(document: Value) -> String {
    let error = batch(&[json!({"id": "first"}), document]).unwrap_err();
    assert_eq!(error.status, 400);
    assert!(error.message.contains("actions : 1: "), "{error}");
    error.message
}

fn text(document: &Document) -> &str {
    std::str::from_utf8(&document.json).unwrap()
}

#[test]
fn canonical_json_is_complete_and_in_schema_order() {
    let document = upload(json!({
        "title": "a \"b\" é\n", "id": "1", "built": "2024-01-31T13:00:00.500+01:00", "rating": 4,
        "place": {"type": "Point", "coordinates": [-122.5, 47]}, "vector": [1, 0.5, -2e-1],
        "rooms": [{"kinds": ["x"]}, {}], "address": {"city": "Bonn"}, "note": "n", "title@odata.type": "x",
        "@search.score": 1.0
    }));
    assert_eq!(
        text(&document),
        concat!(
            r#"{"id":"1","title":"a \"b\" é\n","secret":null,"note":"n","tags":[],"open":null,"stars":null,"views":null,"#,
            r#""rating":4.0,"built":"2024-01-31T12:00:00.500Z","#,
            r#""place":{"type":"Point","coordinates":[-122.5,47.0],"crs":{"type":"name","properties":{"name":"EPSG:4326"}}},"#,
            r#""vector":[1.0,0.5,-0.2],"address":{"city":"Bonn","zip":null,"geo":null},"#,
            r#""rooms":[{"beds":null,"kinds":["x"]},{"beds":null,"kinds":[]}]}"#
        )
    );
    assert_eq!(document.key, "1");
    let schema = schema();
    let leaves = schema.leaves();
    let named: Vec<(&str, &FieldValue)> =
        document.values.iter().map(|(leaf, value)| (leaves[*leaf].path.as_str(), value)).collect();
    let string = |text: &str| FieldValue::Text(text.to_owned());
    assert_eq!(
        named,
        [
            ("id", &string("1")),
            ("title", &string("a \"b\" é\n")),
            ("rating", &FieldValue::Double(4.0)),
            ("built", &FieldValue::Date(1_706_702_400_500)),
            ("place", &FieldValue::Point { lon: -122.5, lat: 47.0 }),
            ("vector", &FieldValue::Vector(vec![1.0, 0.5, -0.2])),
            ("address/city", &string("Bonn")),
            ("rooms/kinds", &string("x")),
        ]
    );
}

#[test]
fn names_and_types_that_are_not_in_the_schema_reject_the_batch() {
    for (document, reason) in [
        (json!({"id": "1", "nothing": 1}), "'nothing' does not exist on type 'search.documentFields'"),
        (json!({"id": "1", "address": {"street": "x"}}), "'address/street'"),
        (json!({"id": "1", "Title": "x"}), "'Title'"),
        (json!({"id": 1}), "'id'"),
        (
            json!({"id": "1", "title": 5}),
            "Cannot convert the literal '5' to the expected type 'Edm.String' of field 'title'",
        ),
        (
            json!({"id": "1", "stars": "abc"}),
            "Cannot convert the literal 'abc' to the expected type 'Edm.Int32'",
        ),
        (json!({"id": "1", "stars": 2_147_483_648_i64}), "'2147483648'"),
        (json!({"id": "1", "stars": 1.5}), "'1.5'"),
        (json!({"id": "1", "views": 9_223_372_036_854_775_808_u64}), "'Edm.Int64'"),
        (json!({"id": "1", "rating": "four"}), "'Edm.Double'"),
        (json!({"id": "1", "rating": "1,000"}), "'Edm.Double'"),
        (json!({"id": "1", "rating": "inf"}), "'Edm.Double'"),
        (json!({"id": "1", "open": 1}), "'Edm.Boolean'"),
        (json!({"id": "1", "open": "yes"}), "'yes' to the expected type 'Edm.Boolean' of field 'open'"),
        (json!({"id": "1", "open": ""}), "'Edm.Boolean'"),
        (json!({"id": "1", "title": true}), "'true' to the expected type 'Edm.String' of field 'title'"),
        (json!({"id": "1", "stars": "4.5"}), "'Edm.Int32'"),
        (json!({"id": "1", "stars": true}), "'Edm.Int32'"),
        (json!({"id": "1", "views": "9223372036854775808"}), "'Edm.Int64'"),
        (json!({"id": "1", "built": "2024-01-31"}), "with their offset"),
        (json!({"id": "1", "place": {"type": "Point", "coordinates": [1]}}), "[longitude,latitude]"),
        (json!({"id": "1", "place": {"type": "Point", "coordinates": [1, 91]}}), "-90 to 90"),
        (json!({"id": "1", "place": {"coordinates": [1, 2]}}), "Write points as"),
        (
            json!({"id": "1", "place": {"type": "Point", "coordinates": [1, 2], "crs": {"properties": {"name": "EPSG:3857"}}}}),
            "EPSG:4326",
        ),
        (json!({"id": "1", "tags": "x"}), "'Collection(Edm.String)' of field 'tags'"),
        (json!({"id": "1", "tags": ["x", null]}), "Element 1 of the collection 'tags' is null"),
        (json!({"id": "1", "rooms": [null]}), "Element 0 of the collection 'rooms' is null"),
        (json!({"id": "1", "rooms": {}}), "'rooms'"),
        (json!({"id": "1", "address": []}), "'address' is complex"),
        (json!({"id": "1", "vector": [1, 2]}), "have 3 elements, but this one has 2"),
        (json!({"id": "1", "vector": [1, 2, 3, 4]}), "has 4"),
        (json!({"id": "1", "vector": [1, "2", 3]}), "Element 1 of the vector field 'vector'"),
        (json!({"id": "1", "vector": [1, 1e39, 3]}), "'Edm.Single'"),
        (json!({"id": "1", "@search.action": "replace"}), "upload, merge, mergeOrUpload or delete"),
        (json!([]), "must be a JSON object"),
    ] {
        let message = refusal(document);
        assert!(message.contains(reason), "{message}");
    }
    let twice = parse_batch(br#"{"value":[{"id":"1","id":"2"}]}"#, &shape()).unwrap_err();
    assert!(twice.message.contains("'id' is given twice"), "{twice}");
    let surrogate = parse_batch(br#"{"value":[{"id":"1","title":"\ud800"}]}"#, &shape()).unwrap_err();
    assert!(surrogate.message.contains("'title'"), "{surrogate}");
}

#[test]
fn strings_with_booleans_and_numbers_are_converted() {
    let document = upload(json!({
        "id": "1", "open": "false", "stars": " 4 ", "views": "-5", "rating": "4.50", "built": "2024-01-31T12:00Z",
        "address": {"geo": {"x": "Infinity", "y": "1e3"}}, "rooms": [{"beds": "2"}]
    }));
    let converted = upload(json!({
        "id": "1", "open": false, "stars": 4, "views": -5, "rating": 4.5, "built": "2024-01-31T12:00:00Z",
        "address": {"geo": {"x": "INF", "y": 1000}}, "rooms": [{"beds": 2}]
    }));
    assert_eq!(text(&document), text(&converted));
    assert_eq!(document, converted);
    for (text, value) in [("true", true), ("True", true), ("FALSE", false), (" false ", false)] {
        assert_eq!(
            upload(json!({"id": "1", "open": text})),
            upload(json!({"id": "1", "open": value})),
            "{text}"
        );
    }
    let merged = patch(json!({"id": "1", "open": "true"}));
    assert_eq!(merged, patch(json!({"id": "1", "open": true})));
}

#[test]
fn a_value_that_cannot_be_converted_is_reported_with_the_key_of_its_document() {
    for document in [r#"{"id":"7","open":"yes"}"#, r#"{"open":"yes","id":"7"}"#] {
        let error = parse_batch(format!(r#"{{"value":[{document}]}}"#).as_bytes(), &shape()).unwrap_err();
        assert_eq!(
            error.message,
            "The request is invalid. Details: actions : 0: Document '7': Cannot convert the literal 'yes' to the \
             expected type 'Edm.Boolean' of field 'open'."
        );
    }
    let error = parse_batch(br#"{"value":[{"open":"yes"}]}"#, &shape()).unwrap_err();
    assert!(error.message.contains("actions : 0: Cannot convert"), "{error}");
}

#[test]
fn bodies_that_are_not_a_batch_are_rejected() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"value":1}"#,
        r#"{"value":[{]}"#,
        r#"{"value":[]}"#,
        r#"{"value":[{"id":"1"}]} x"#,
    ] {
        assert!(parse_batch(body.as_bytes(), &shape()).is_err(), "{body}");
    }
    assert!(parse_batch(b"{\"value\":[\"\xff\"]}", &shape()).is_err());
    let documents = vec![json!({"id": "1"}); 1001];
    assert!(batch(&documents).unwrap_err().message.contains("1001 actions"));
    assert_eq!(batch(&documents[..1000]).unwrap().len(), 1000);
}

#[test]
fn invalid_keys_and_long_strings_affect_one_document() {
    let long = "x".repeat(32_767);
    let items = batch(&[
        json!({"title": "no key"}),
        json!({"id": null}),
        json!({"id": ""}),
        json!({"id": "a b"}),
        json!({"id": "_a"}),
        json!({"id": "x".repeat(1025)}),
        json!({"id": "long", "title": long}),
        json!({"id": "fine", "note": long, "@search.action": "upload"}),
        json!({"id": "long", "title": long, "@search.action": "delete"}),
        json!({"id": "A-b_=1"}),
        json!({"id": "rooms", "rooms": vec![json!({}); 3001]}),
    ])
    .unwrap();
    let failed: Vec<bool> = items.iter().map(|item| item.action.is_err()).collect();
    assert_eq!(failed, [true, true, true, true, true, true, true, false, false, false, true]);
    assert!(items[0].action.as_ref().unwrap_err().contains("'id'"));
    assert!(items[6].action.as_ref().unwrap_err().contains("'title' has a string of 32767 bytes"));
    assert_eq!(items[8].action, Ok(DocumentAction::Delete));
    assert_eq!(items[3].key, "a b");
}

#[test]
fn infinite_numbers_are_strings() {
    let document = upload(json!({"id": "1", "rating": "-INF"}));
    assert!(text(&document).contains(r#""rating":"-INF""#));
    assert!(document.values.iter().any(|(_, value)| *value == FieldValue::Double(f64::NEG_INFINITY)));
    assert!(text(&upload(json!({"id": "1", "rating": "NaN"}))).contains(r#""rating":"NaN""#));
}

#[test]
fn the_action_may_follow_the_fields() {
    let body = br#"{"value":[{"address":{"city":"x"},"id":"1","@search.action":"mergeOrUpload"}]}"#;
    let items = parse_batch(body, &shape()).unwrap();
    let Ok(DocumentAction::MergeOrUpload(patch)) = &items[0].action else { panic!("{items:?}") };
    assert_eq!(patch.json, br#"{"id":"1","address":{"city":"x"}}"#);
    let document = patch.to_document(&shape()).unwrap();
    assert_eq!(document, upload(json!({"id": "1", "address": {"city": "x"}})));
}

#[test]
fn merging_replaces_collections_and_merges_single_complex_values() {
    let stored = upload(json!({
        "id": "1", "title": "old", "stars": 3, "tags": ["a", "b"],
        "address": {"city": "Bonn", "geo": {"x": 1.0}}, "rooms": [{"beds": 1, "kinds": ["k"]}]
    }));
    let patch = patch(json!({
        "id": "1", "title": null, "tags": ["c"], "address": {"zip": "5", "geo": {"y": 2}}, "rooms": [{"beds": 2}]
    }));
    let merged = merge(&stored.json, &patch, &shape()).unwrap();
    let expected = upload(json!({
        "id": "1", "title": null, "stars": 3, "tags": ["c"],
        "address": {"city": "Bonn", "zip": "5", "geo": {"x": 1.0, "y": 2}}, "rooms": [{"beds": 2}]
    }));
    assert_eq!(text(&merged), text(&expected));
    assert_eq!(merged, expected);
}

#[test]
fn documents_older_than_a_field_are_completed() {
    let document = read_document(br#"{"id":"1","stars":2}"#, &shape()).unwrap();
    assert_eq!(document, upload(json!({"id": "1", "stars": 2})));
    assert!(read_document(b"{", &shape()).is_err());
    assert!(read_document(br#"{"stars":2}"#, &shape()).is_err());
}

fn selected(select: &str, document: &Document) -> String {
    let mut out = Vec::new();
    FieldSelection::parse(select, &schema()).unwrap().write(&document.json, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn selections_return_retrievable_fields_in_schema_order() {
    let document = upload(json!({
        "id": "1", "title": "t", "secret": "s",
        "address": {"city": "Bonn", "zip": "5", "geo": {"x": 1}}, "rooms": [{"beds": 1}, {"beds": 2, "kinds": ["k"]}]
    }));
    assert_eq!(selected("title, id", &document), r#""id":"1","title":"t""#);
    assert_eq!(selected("address/geo/x,id", &document), r#""id":"1","address":{"geo":{"x":1.0}}"#);
    assert_eq!(selected("address", &document), r#""address":{"city":"Bonn","geo":{"x":1.0,"y":null}}"#);
    assert_eq!(selected("rooms/beds", &document), r#""rooms":[{"beds":1},{"beds":2}]"#);
    assert_eq!(selected("rooms", &document), r#""rooms":[{"beds":1,"kinds":[]},{"beds":2,"kinds":["k"]}]"#);
    let all = selected("*", &document);
    assert_eq!(all, selected("", &document));
    let all: Value = serde_json::from_str(&format!("{{{all}}}")).unwrap();
    assert_eq!(all.as_object().unwrap().len(), 13);
    assert_eq!(all.get("secret"), None);
    assert_eq!(all["address"], json!({"city": "Bonn", "geo": {"x": 1.0, "y": null}}));
    let null = upload(json!({"id": "1"}));
    assert_eq!(selected("address/city,rooms/beds", &null), r#""address":null,"rooms":[]"#);
}

#[test]
fn members_missing_in_old_documents_are_returned_as_null_or_empty() {
    let mut out = Vec::new();
    FieldSelection::parse("id,title,tags,stars,rooms", &schema())
        .unwrap()
        .write(br#"{"id":"1","stars":2}"#, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), r#""id":"1","title":null,"tags":[],"stars":2,"rooms":[]"#);
}

#[test]
fn whole_documents_are_copied_when_everything_is_retrievable() {
    let definition = json!({"name": "a1", "fields": [
        {"name": "id", "type": "Edm.String", "key": true}, {"name": "n", "type": "Edm.Int32"}]});
    let schema = IndexDefinition::parse(&definition).unwrap().schema;
    let mut out = Vec::new();
    FieldSelection::all(&schema).write(br#"{"id":"1","n":2}"#, &mut out);
    assert_eq!(out, br#""id":"1","n":2"#);
    assert_eq!(FieldSelection::all(&schema), FieldSelection::parse("id,n", &schema).unwrap());
}

#[test]
fn selections_of_unknown_and_hidden_fields_are_rejected() {
    for (select, reason) in [
        ("nothing", "named 'nothing'"),
        ("id,,title", "named ''"),
        ("secret", "'secret' is not retrievable"),
        ("address/zip", "'address/zip'"),
        ("address/nothing", "'address/nothing'"),
        ("Title", "'Title'"),
    ] {
        let error = FieldSelection::parse(select, &schema()).unwrap_err();
        assert!(error.message.contains(reason) && error.message.ends_with("$select"), "{error}");
    }
}

/// Any JSON of bounded size.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let name = prop_oneof![
            Just("id".to_owned()),
            Just("address".to_owned()),
            Just("rooms".to_owned()),
            Just("vector".to_owned()),
            Just("coordinates".to_owned()),
            ".{0,4}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn optional(strategy: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<Value>> {
    prop_oneof![2 => Just(None), 1 => Just(Some(Value::Null)), 5 => strategy.prop_map(Some)].boxed()
}

fn object(members: Vec<(&'static str, BoxedStrategy<Option<Value>>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    values
        .prop_map(move |values| {
            let members = names.iter().zip(values);
            let members: Map<String, Value> =
                members.filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect();
            Value::Object(members)
        })
        .boxed()
}

fn list(strategy: impl Strategy<Value = Value> + 'static, size: usize) -> impl Strategy<Value = Value> {
    prop::collection::vec(strategy, 0..size).prop_map(Value::from)
}

/// Documents that match the schema, without a key.
fn fitting() -> BoxedStrategy<Value> {
    let string = || ".{0,6}".prop_map(Value::from);
    let double = || prop::num::f64::NORMAL.prop_map(Value::from);
    let date = (-62_135_596_800_000_i64..=253_402_300_799_999).prop_map(|date| {
        let mut out = Vec::new();
        write_date(date, &mut out);
        Value::from(String::from_utf8(out).unwrap())
    });
    let point = (-180.0..=180.0, -90.0..=90.0)
        .prop_map(|(lon, lat): (f64, f64)| json!({"type": "Point", "coordinates": [lon, lat]}));
    let vector = [prop::num::f32::NORMAL; 3].prop_map(|vector| Value::from(vector.to_vec()));
    let geo = object(vec![("x", optional(double())), ("y", optional(double()))]);
    let address =
        object(vec![("city", optional(string())), ("zip", optional(string())), ("geo", optional(geo))]);
    let room = object(vec![
        ("beds", optional(any::<i32>().prop_map(Value::from))),
        ("kinds", optional(list(string(), 3))),
    ]);
    object(vec![
        ("title", optional(string())),
        ("note", optional(string())),
        ("tags", optional(list(string(), 3))),
        ("open", optional(any::<bool>().prop_map(Value::from))),
        ("stars", optional(any::<i32>().prop_map(Value::from))),
        ("views", optional(any::<i64>().prop_map(Value::from))),
        ("rating", optional(double())),
        ("built", optional(date)),
        ("place", optional(point)),
        ("vector", optional(vector)),
        ("address", optional(address)),
        ("rooms", optional(list(room, 3))),
    ])
}

fn with_key(mut document: Value) -> Value {
    document["id"] = json!("1");
    document
}

/// A simple reference implementation of merging.
fn overlay(stored: &Value, patch: &Value, single_complex: &[&str]) -> Value {
    let mut result = stored.clone();
    for (name, value) in patch.as_object().unwrap() {
        result[name] = match (result.get(name), value) {
            (Some(before @ Value::Object(_)), Value::Object(_))
                if single_complex.contains(&name.as_str()) =>
            {
                overlay(before, value, single_complex)
            }
            _ => value.clone(),
        };
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_accepted_or_rejected_without_panic(json in any_json(), select in "[a-z/,* ]{0,12}") {
        let _ = parse_batch(json.to_string().as_bytes(), &shape());
        let _ = batch(&[with_key_or_same(json.clone())]);
        let _ = read_document(json.to_string().as_bytes(), &shape());
        let _ = IndexDefinition::parse(&json);
        let mut out = Vec::new();
        if let Ok(selection) = FieldSelection::parse(&select, &schema()) {
            selection.write(json.to_string().as_bytes(), &mut out);
        }
    }

    #[test]
    fn any_bytes_are_accepted_or_rejected_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse_batch(&bytes, &shape());
        let _ = read_document(&bytes, &shape());
        FieldSelection::all(&schema()).write(&bytes, &mut Vec::new());
    }

    #[test]
    fn canonical_json_reads_back_to_itself(document in fitting()) {
        let first = upload(with_key(document));
        let again = read_document(&first.json, &shape()).unwrap();
        prop_assert_eq!(text(&first), text(&again));
        prop_assert_eq!(&first, &again);
        let parsed: Value = serde_json::from_slice(&first.json).unwrap();
        prop_assert_eq!(parsed.as_object().unwrap().len(), schema().fields().len());
    }

    #[test]
    fn merging_equals_uploading_the_overlay(stored in fitting(), given in fitting()) {
        let (stored, given) = (with_key(stored), with_key(given));
        let expected = upload(overlay(&stored, &given, &["address", "geo"]));
        let merged = merge(&upload(stored).json, &patch(given), &shape()).unwrap();
        prop_assert_eq!(text(&merged), text(&expected));
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn strings_survive_with_and_without_escapes(title in ".{0,20}") {
        let mut escaped = String::new();
        for unit in title.encode_utf16() {
            write!(escaped, "\\u{unit:04x}").unwrap();
        }
        let body = format!(r#"{{"value":[{{"id":"1","title":"{escaped}"}}]}}"#);
        let items = parse_batch(body.as_bytes(), &shape()).unwrap();
        let expected = DocumentAction::Upload(upload(json!({"id": "1", "title": title})));
        prop_assert_eq!(items[0].action.as_ref(), Ok(&expected));
    }
}

fn with_key_or_same(json: Value) -> Value {
    if json.is_object() { with_key(json) } else { json }
}
