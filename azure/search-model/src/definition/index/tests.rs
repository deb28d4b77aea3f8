use serde_json::{Value, json};

use super::*;
use crate::definition::{FieldType, ScoringAggregation, ScoringFunctionKind, ScoringInterpolation};

/// A definition with one field of each kind that has special rules, overridden by the given members.
fn definition(over: Value) -> Value {
    let mut definition = json!({
        "name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "title", "type": "Edm.String", "analyzer": "en.lucene"},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "rating", "type": "Edm.Double"},
            {"name": "opened", "type": "Edm.DateTimeOffset"},
            {"name": "place", "type": "Edm.GeographyPoint"},
            {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "p"},
            {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "city", "type": "Edm.String"}]},
            {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
                {"name": "beds", "type": "Edm.Int32"}, {"name": "text", "type": "Edm.String"}
            ]}
        ],
        "vectorSearch": {"profiles": [{"name": "p", "algorithm": "h"}], "algorithms": [{"name": "h", "kind": "hnsw"}]}
    });
    for (name, value) in over.as_object().unwrap() {
        definition[name] = value.clone();
    }
    definition
}

fn refusal(over: Value) -> String {
    let error = IndexDefinition::parse(&definition(over)).unwrap_err();
    assert_eq!(error.status, 400);
    error.message
}

/// Returns the error message for an index with a key and this field.
fn field_refusal(field: Value) -> String {
    refusal(json!({"fields": [{"name": "id", "type": "Edm.String", "key": true}, field]}))
}

fn profile_refusal(profile: Value) -> String {
    refusal(json!({"scoringProfiles": [profile]}))
}

#[test]
fn defaults_follow_the_type() {
    let index = IndexDefinition::parse(&definition(json!({}))).unwrap();
    let flags = |path: &str| {
        let field = index.schema.find(path).unwrap();
        (field.searchable, field.filterable, field.sortable, field.facetable, field.retrievable)
    };
    assert_eq!(flags("title"), (true, true, true, true, true));
    assert_eq!(flags("tags"), (true, true, false, true, true));
    assert_eq!(flags("rating"), (false, true, true, true, true));
    assert_eq!(flags("place"), (false, true, true, false, true));
    assert_eq!(flags("vector"), (true, false, false, false, false));
    assert_eq!(flags("address/city"), (true, true, true, true, true));
    assert_eq!(flags("rooms/beds"), (false, true, false, true, true));
    let title = index.schema.find("title").unwrap();
    assert_eq!(title.index_analyzer.as_deref(), Some("en.lucene"));
    assert_eq!(index.schema.find("tags").unwrap().search_analyzer.as_deref(), Some("standard.lucene"));
    assert_eq!(index.schema.find("rooms").unwrap().kind, FieldType::ManyComplex);
    assert_eq!(index.analyzer_names().into_iter().collect::<Vec<_>>(), ["en.lucene", "standard.lucene"]);
}

#[test]
fn the_response_has_every_default_and_parses_to_the_same() {
    let mut given = definition(json!({"@odata.etag": "\"1\"", "description": "kept"}));
    given["fields"][0]["@odata.type"] = json!("x");
    let index = IndexDefinition::parse(&given).unwrap();
    assert_eq!(
        index.json["fields"][0],
        json!({"name": "id", "type": "Edm.String", "key": true, "retrievable": true, "stored": true,
               "searchable": true, "filterable": true, "sortable": true, "facetable": true,
               "analyzer": null, "searchAnalyzer": null, "indexAnalyzer": null, "normalizer": null,
               "dimensions": null, "vectorSearchProfile": null, "vectorEncoding": null, "synonymMaps": []})
    );
    assert_eq!(index.json["fields"][7]["fields"][0]["name"], "city");
    assert_eq!(index.json["similarity"]["@odata.type"], settings::BM25);
    assert_eq!(index.json["suggesters"], json!([]));
    assert_eq!(index.json["corsOptions"], Value::Null);
    assert_eq!(index.json["description"], "kept");
    assert_eq!(index.json.get("@odata.etag"), None);
    assert_eq!(IndexDefinition::parse(&index.json).unwrap(), index);
}

#[test]
fn names_of_indexes_and_fields_have_rules() {
    for name in ["", "a", "Hotels", "-a1", "a1-", "a--b", "a_b", "é1"] {
        assert!(IndexDefinition::parse(&definition(json!({"name": name}))).is_err(), "{name}");
    }
    for name in ["1a", "_a", "a-b", "azureSearchX", "é", "a b"] {
        let message = field_refusal(json!({"name": name, "type": "Edm.String"}));
        assert!(message.contains(&format!("'{name}'")), "{message}");
    }
    let twice = field_refusal(json!({"name": "id", "type": "Edm.String"}));
    assert!(twice.contains("two fields 'id'"), "{twice}");
}

#[test]
fn an_index_has_exactly_one_key() {
    let none = refusal(json!({"fields": [{"name": "id", "type": "Edm.String"}]}));
    assert!(none.contains("No field is the key"), "{none}");
    let two = field_refusal(json!({"name": "b", "type": "Edm.String", "key": true}));
    assert!(two.contains("id, b"), "{two}");
    for (field, reason) in [
        (json!({"name": "b", "type": "Edm.Int32", "key": true}), "keys must be Edm.String"),
        (
            json!({"name": "b", "type": "Edm.String", "key": true, "retrievable": false}),
            "must be retrievable",
        ),
        (
            json!({"name": "b", "type": "Edm.ComplexType", "fields": [{"name": "c", "type": "Edm.String", "key": true}]}),
            "field 'b/c' cannot be the key",
        ),
    ] {
        let message = field_refusal(field);
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn attributes_that_do_not_match_the_type_are_rejected_by_name() {
    let vector = |over: Value| {
        let mut field = json!({"name": "v", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "p"});
        for (name, value) in over.as_object().unwrap() {
            field[name] = value.clone();
        }
        field
    };
    for (field, reason) in [
        (json!({"name": "b", "type": "Edm.Foo"}), "unknown type 'Edm.Foo'. The types are: Edm.String"),
        (json!({"name": "b", "type": "Edm.Single"}), "unknown type 'Edm.Single'"),
        (
            json!({"name": "b", "type": "Edm.String", "filterble": true}),
            "'filterble' of field 'b' is unknown",
        ),
        (json!({"name": "b", "type": "Edm.Int32", "searchable": true}), "cannot be searchable"),
        (json!({"name": "b", "type": "Collection(Edm.Int32)", "sortable": true}), "cannot be sortable"),
        (
            json!({"name": "b", "type": "Collection(Edm.ComplexType)", "fields": [
                {"name": "c", "type": "Edm.Int32", "sortable": true}]}),
            "field 'b/c' of type Edm.Int32 cannot be sortable",
        ),
        (json!({"name": "b", "type": "Edm.GeographyPoint", "facetable": true}), "cannot be facetable"),
        (json!({"name": "b", "type": "Edm.ComplexType"}), "needs at least one subfield"),
        (
            json!({"name": "b", "type": "Edm.ComplexType", "filterable": true, "fields": [{"name": "c", "type": "Edm.String"}]}),
            "cannot have 'filterable'",
        ),
        (
            json!({"name": "b", "type": "Edm.String", "fields": [{"name": "c", "type": "Edm.String"}]}),
            "has subfields",
        ),
        (vector(json!({"dimensions": null})), "'dimensions'"),
        (vector(json!({"dimensions": 1})), "from 2 to 4096"),
        (vector(json!({"vectorSearchProfile": null})), "'vectorSearchProfile'"),
        (vector(json!({"vectorSearchProfile": "q"})), "the vectorSearchProfile 'q'"),
        (vector(json!({"filterable": true})), "cannot be filterable"),
        (vector(json!({"searchable": false})), "must be searchable"),
        (vector(json!({"stored": false, "retrievable": true})), "'stored': false"),
        (vector(json!({"type": "Collection(Edm.Byte)"})), "packedBit"),
        (vector(json!({"type": "Collection(Edm.Byte)", "vectorEncoding": "packedBit"})), "multiple of 8"),
        (json!({"name": "b", "type": "Edm.String", "dimensions": 3}), "is not a vector type"),
        (
            json!({"name": "b", "type": "Edm.String", "searchable": false, "analyzer": "simple"}),
            "only searchable text",
        ),
        (
            json!({"name": "b", "type": "Edm.String", "analyzer": "simple", "searchAnalyzer": "simple"}),
            "'analyzer' together with",
        ),
        (json!({"name": "b", "type": "Edm.String", "indexAnalyzer": "simple"}), "together"),
        (
            json!({"name": "b", "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false,
                   "normalizer": "lowercase"}),
            "'normalizer'",
        ),
        (json!({"name": "b", "type": "Edm.Int32", "normalizer": "lowercase"}), "'normalizer'"),
        (json!({"name": "b", "type": "Edm.String", "synonymMaps": ["x", "y"]}), "at most one"),
        (json!({"name": "b", "type": "Edm.Int32", "synonymMaps": ["x"]}), "only searchable text"),
        (json!({"name": "b", "type": "Edm.String", "filterable": "yes"}), "must be true or false, not 'yes'"),
        (json!({"name": "b"}), "'type' of field 'b' is required"),
        (json!("b"), "must be an object, not a string"),
    ] {
        let message = field_refusal(field);
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn sizes_are_bounded() {
    let mut nested = json!({"name": "leaf", "type": "Edm.String"});
    for _ in 0..10 {
        nested = json!({"name": "level", "type": "Edm.ComplexType", "fields": [nested]});
    }
    let fields =
        |field: &Value| json!({"fields": [{"name": "id", "type": "Edm.String", "key": true}, field]});
    IndexDefinition::parse(&definition(fields(&nested))).unwrap();
    let deeper = json!({"name": "level", "type": "Edm.ComplexType", "fields": [nested]});
    assert!(refusal(fields(&deeper)).contains("nested too deeply"));

    let mut many = vec![json!({"name": "id", "type": "Edm.String", "key": true})];
    many.extend((0..1000).map(|number| json!({"name": format!("f{number}"), "type": "Edm.String"})));
    assert!(refusal(json!({"fields": many})).contains("1001 fields"));

    let mut many = vec![json!({"name": "id", "type": "Edm.String", "key": true})];
    many.extend((0..41).map(|number| {
        json!({"name": format!("f{number}"), "type": "Collection(Edm.ComplexType)",
               "fields": [{"name": "a", "type": "Edm.String"}]})
    }));
    assert!(refusal(json!({"fields": many})).contains("'f40' exceeds the limit"));
}

#[test]
fn suggesters_read_searchable_strings_with_built_in_analyzers() {
    let suggester = |fields: Value| json!({"suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": fields}]});
    let index = IndexDefinition::parse(&definition(suggester(json!(["title", "address/city"])))).unwrap();
    assert_eq!(index.suggester("sg").unwrap().source_fields, ["title", "address/city"]);
    assert!(refusal(suggester(json!(["nothing"]))).contains("the field 'nothing'"));
    assert!(refusal(suggester(json!(["rating"]))).contains("searchable strings"));
    assert!(refusal(suggester(json!([]))).contains("at least one"));
    let mut custom = suggester(json!(["title"]));
    custom["analyzers"] =
        json!([{"name": "en.lucene", "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer"}]);
    assert!(refusal(custom).contains("custom analyzer"));
    let two = json!({"suggesters": [{"name": "a", "sourceFields": ["title"]}, {"name": "b", "sourceFields": ["title"]}]});
    assert!(refusal(two).contains("2 suggesters"));
}

#[test]
fn scoring_profiles_are_parsed() {
    let profile = json!({
        "name": "p",
        "text": {"weights": {"title": 2, "tags": 0.5}},
        "functionAggregation": "firstMatching",
        "functions": [
            {"type": "magnitude", "fieldName": "rating", "boost": 3, "interpolation": "quadratic",
             "magnitude": {"boostingRangeStart": 1, "boostingRangeEnd": 5, "constantBoostBeyondRange": true}},
            {"type": "freshness", "fieldName": "opened", "boost": 1.5, "freshness": {"boostingDuration": "P1D"}},
            {"type": "distance", "fieldName": "place", "boost": 2,
             "distance": {"referencePointParameter": "here", "boostingDistance": 10}},
            {"type": "tag", "fieldName": "tags", "boost": 2, "interpolation": "constant", "tag": {"tagsParameter": "mine"}}
        ]
    });
    let over = json!({"scoringProfiles": [profile], "defaultScoringProfile": "p"});
    let index = IndexDefinition::parse(&definition(over)).unwrap();
    let profile = index.scoring_profile("p").unwrap();
    assert_eq!(profile.weights, [("tags".to_owned(), 0.5), ("title".to_owned(), 2.0)]);
    assert_eq!(profile.aggregation, ScoringAggregation::FirstMatching);
    assert_eq!(
        profile.functions[0].kind,
        ScoringFunctionKind::Magnitude { start: 1.0, end: 5.0, constant_beyond: true }
    );
    assert_eq!(profile.functions[0].interpolation, ScoringInterpolation::Quadratic);
    assert_eq!(profile.functions[1].kind, ScoringFunctionKind::Freshness { duration_ms: 86_400_000 });
    assert_eq!(profile.functions[1].interpolation, ScoringInterpolation::Linear);
    assert_eq!(
        profile.functions[2].kind,
        ScoringFunctionKind::Distance { parameter: "here".to_owned(), kilometres: 10.0 }
    );
    assert_eq!(profile.functions[3].kind, ScoringFunctionKind::Tag { parameter: "mine".to_owned() });
    assert_eq!(index.default_scoring_profile.as_deref(), Some("p"));
}

#[test]
fn invalid_scoring_profiles_are_rejected_by_field_and_rule() {
    let function = |over: Value| {
        let mut function = json!({"type": "magnitude", "fieldName": "rating", "boost": 2,
                                  "magnitude": {"boostingRangeStart": 1, "boostingRangeEnd": 5}});
        for (name, value) in over.as_object().unwrap() {
            function[name] = value.clone();
        }
        json!({"name": "p", "functions": [function]})
    };
    for (profile, reason) in [
        (json!({"name": "p", "text": {"weights": {"nothing": 1}}}), "the field 'nothing'"),
        (json!({"name": "p", "text": {"weights": {"rating": 1}}}), "not searchable text"),
        (json!({"name": "p", "text": {"weights": {"title": 0}}}), "must be greater than 0"),
        (json!({"name": "p", "functionAggregation": "median"}), "'median'"),
        (json!({}), "'scoringProfiles[0].name' of the index is required"),
        (json!({"name": "p", "weights": {"title": 1}}), "'weights' of scoring profile 'p' is unknown"),
        (json!({"name": "p", "text": {"title": 1}}), "'text.title' of scoring profile 'p' is unknown"),
        (
            json!({"name": "p", "functions": [{"boost": 2}]}),
            "'functions[0].fieldName' of scoring profile 'p' is required",
        ),
        (function(json!({"field": "x"})), "'field' of the function on field 'rating'"),
        (
            function(json!({"magnitude": {"boostingRangeStart": 1, "boostingRangeEnd": 5, "step": 1}})),
            "'magnitude.step' of the function",
        ),
        (function(json!({"boost": 1})), "different from 1, not 1"),
        (function(json!({"boost": -2})), "greater than 0 and different from 1, not -2"),
        (
            function(json!({"boost": null})),
            "'boost' of the function on field 'rating' of scoring profile 'p' is required",
        ),
        (function(json!({"fieldName": "title"})), "magnitude functions need a field of type Edm.Double"),
        (function(json!({"fieldName": "nothing"})), "no field 'nothing'"),
        (function(json!({"fieldName": "rooms/beds"})), "below a collection"),
        (function(json!({"interpolation": "cubic"})), "'cubic'"),
        (function(json!({"type": "random"})), "'random'"),
        (function(json!({"magnitude": null})), "'magnitude' of"),
        (
            function(json!({"magnitude": {"boostingRangeStart": 1, "boostingRangeEnd": 1}})),
            "'magnitude.boostingRangeEnd'",
        ),
        (
            function(
                json!({"type": "freshness", "fieldName": "opened", "freshness": {"boostingDuration": "1 day"}}),
            ),
            "'1 day'",
        ),
        (
            function(
                json!({"type": "tag", "fieldName": "tags", "interpolation": "quadratic", "tag": {"tagsParameter": "x"}}),
            ),
            "constant or linear",
        ),
    ] {
        let message = profile_refusal(profile);
        assert!(message.contains(reason), "{message}");
    }
    assert!(refusal(json!({"defaultScoringProfile": "x"})).contains("'x'"));
    assert!(
        refusal(json!({"scoringProfiles": [{"name": "p"}, {"name": "p"}]}))
            .contains("two scoring profiles 'p'")
    );
}

#[test]
fn unknown_and_wrongly_typed_members_are_rejected_by_name() {
    for (over, reason) in [
        (
            json!({"vectorsearch": {}}),
            "'vectorsearch' of the index is unknown. Use one of: name, description",
        ),
        (json!({"description": 3}), "'description' of the index must be a string"),
        (json!({"encryptionKey": "k"}), "'encryptionKey' of the index must be an object"),
        (json!({"semantic": []}), "'semantic' of the index must be an object"),
        (json!({"vectorSearch": []}), "'vectorSearch' of the index must be an object"),
        (json!({"purviewEnabled": "yes"}), "'purviewEnabled' of the index must be true or false"),
        (json!({"permissionFilterOption": "on"}), "must be one of enabled, disabled, not 'on'"),
        (json!({"corsOptions": {"allowedOrigins": ["*"], "maxAge": 1}}), "'corsOptions.maxAge' of the index"),
        (json!({"corsOptions": {"allowedOrigins": ["x"]}}), "'corsOptions.allowedOrigins[0]' of the index"),
        (json!({"similarity": {"@odata.type": settings::BM25, "k": 1}}), "'k' of 'similarity' of the index"),
        (
            json!({"suggesters": [{"sourceFields": ["title"]}]}),
            "'suggesters[0].name' of the index is required",
        ),
        (
            json!({"suggesters": [{"name": "sg", "fields": ["title"]}]}),
            "'fields' of suggester 'sg' is unknown",
        ),
        (json!({"tokenizers": [{"name": "a"}, {}]}), "'tokenizers[1].name' of the index is required"),
        (
            json!({"semantic": {"configurations": [{"name": "s", "prioritizedFields": {"title": {}}}]}}),
            "'semantic.configurations[0].prioritizedFields.title' of the index is unknown",
        ),
        (
            json!({"semantic": {"configurations": [{"name": "s", "rankingOrder": "best"}]}}),
            "'semantic.configurations[0].rankingOrder' of the index",
        ),
        (
            json!({"semantic": {"configurations": [{"name": "s", "prioritizedFields": {"titleField": {"name": "title"}}}]}}),
            "'semantic.configurations[0].prioritizedFields.titleField.name' of the index is unknown",
        ),
    ] {
        let message = refusal(over);
        assert!(message.contains(reason), "{message}");
    }
    let unnamed = field_refusal(json!({"type": "Edm.String"}));
    assert!(unnamed.contains("'fields["), "{unnamed}");
    let below =
        field_refusal(json!({"name": "b", "type": "Edm.ComplexType", "fields": [{"type": "Edm.String"}]}));
    assert!(below.contains("'fields[0].name' of field 'b' is required"), "{below}");
}

#[test]
fn the_semantic_configuration_of_a_request_is_the_named_the_default_or_the_only_one() {
    let configuration =
        |name: &str| json!({"name": name, "prioritizedFields": {"titleField": {"fieldName": "title"}}});
    let parse = |names: &[&str], default: Value| {
        let all: Vec<Value> = names.iter().map(|name| configuration(name)).collect();
        let semantic = json!({"configurations": all, "defaultConfiguration": default});
        IndexDefinition::parse(&definition(json!({"semantic": semantic}))).unwrap().semantic
    };
    let found = |settings: &SemanticSettings, name: Option<&str>| {
        settings.find(name).map(|configuration| configuration.name.clone())
    };
    let two = parse(&["a", "b"], json!("b"));
    assert_eq!(found(&two, Some("a")).as_deref(), Some("a"));
    assert_eq!(found(&two, None).as_deref(), Some("b"));
    assert_eq!(found(&two, Some("c")), None);
    assert_eq!(found(&parse(&["a", "b"], json!(null)), None), None);
    assert_eq!(found(&parse(&["a"], json!(null)), None).as_deref(), Some("a"));
}

#[test]
fn origins_are_compared_by_scheme_host_and_port() {
    let parse = |origins: Value| {
        let over = json!({"corsOptions": {"allowedOrigins": origins}});
        CorsOptions::of_index(&IndexDefinition::parse(&definition(over)).unwrap().json).unwrap()
    };
    let listed = parse(json!(["https://Example.com", "http://localhost:3000/", "http://plain.example:80"]));
    for origin in
        ["https://example.com", "https://example.com:443", "http://localhost:3000", "http://plain.example"]
    {
        assert!(listed.lists(origin), "{origin}");
    }
    for origin in ["http://example.com", "https://example.com:8443", "https://a.example.com", "null", "*"] {
        assert!(!listed.lists(origin), "{origin}");
    }
    assert!(!listed.allows_all());
    assert!(parse(json!(["*"])).allows_all());
}

#[test]
fn other_settings_are_checked() {
    assert!(refusal(json!({"corsOptions": {"allowedOrigins": []}})).contains("allowedOrigins"));
    assert!(refusal(json!({"corsOptions": {"allowedOrigins": ["example.com"]}})).contains("'example.com'"));
    assert!(
        refusal(json!({"corsOptions": {"allowedOrigins": ["*", "https://a.b"]}}))
            .contains("the only element")
    );
    let index =
        IndexDefinition::parse(&definition(json!({"corsOptions": {"allowedOrigins": ["*"]}}))).unwrap();
    assert_eq!(index.json["corsOptions"]["maxAgeInSeconds"], 300);

    let classic = IndexDefinition::parse(&definition(
        json!({"similarity": {"@odata.type": "#Microsoft.Azure.Search.ClassicSimilarity"}}),
    ));
    assert_eq!(classic.unwrap_err().code, "NotSupportedByEmbeddedService");
    assert!(refusal(json!({"similarity": {"@odata.type": settings::BM25, "b": 2}})).contains("'b'"));

    let semantic = |field: &str| {
        json!({"semantic": {"defaultConfiguration": "s", "configurations": [
            {"name": "s", "prioritizedFields": {"titleField": {"fieldName": field}}}]}})
    };
    IndexDefinition::parse(&definition(semantic("title"))).unwrap();
    assert!(refusal(semantic("nothing")).contains("'nothing'"));
    assert!(refusal(semantic("rating")).contains("only Edm.String"));
    assert!(refusal(json!({"semantic": {"defaultConfiguration": "s"}})).contains("'s'"));
    assert!(refusal(json!({"permissionFilterOption": "enabled"})).contains("cannot be enabled"));
    assert!(
        refusal(json!({"tokenizers": [{"name": "a"}, {"name": "a"}]})).contains("two elements named 'a'")
    );
}
