//! Tests the five operations of each kind of definition.

use serde_json::{Value, json};

use super::tour::{Ask, Form, Tour, VERSION};

const RETURN: (&str, &str) = ("prefer", "return=representation");

/// A kind of definitions: the prefix of its operation ids, its collection, and a function that creates
/// one by name.
type Kind = (&'static str, &'static str, fn(&str) -> Value);

const KINDS: [Kind; 8] = [
    ("Indexes", "indexes", index),
    ("Aliases", "aliases", |name| json!({"name": name, "indexes": ["hotels"]})),
    (
        "SynonymMaps",
        "synonymmaps",
        |name| json!({"name": name, "format": "solr", "synonyms": "usa, america"}),
    ),
    ("DataSources", "datasources", data_source),
    ("Skillsets", "skillsets", skillset),
    ("Indexers", "indexers", |name| indexer(name, "files", true)),
    ("KnowledgeSources", "knowledgesources", knowledge_source),
    ("KnowledgeAgents", "agents", agent),
];

/// Creates the referenced definitions, then tests each kind in both path forms.
pub(super) async fn walk(tour: &mut Tour) {
    let notes = json!({"name": "notes", "fields": [
        {"name": "id", "type": "Edm.String", "key": true}, {"name": "content", "type": "Edm.String"},
    ]});
    tour.put_file("notes", "one.txt", "The first note.");
    for (kind, definition) in [
        ("Indexes", index("hotels")),
        ("Indexes", notes),
        ("DataSources", data_source("files")),
        ("Skillsets", skillset("pages")),
        ("Indexers", indexer("loader", "files", true)),
        ("KnowledgeSources", knowledge_source("places")),
        ("KnowledgeAgents", agent("guide")),
    ] {
        tour.ask(&format!("{kind}_Create"), Form::Quoted, &[], Ask::with(definition), 201).await;
    }
    for form in Form::BOTH {
        for kind in KINDS {
            life(tour, form, kind).await;
        }
    }
}

async fn life(tour: &mut Tour, form: Form, (kind, collection, definition): Kind) {
    let operation = |verb: &str| format!("{kind}_{verb}");
    let [name, other] = if form == Form::Quoted { ["one", "two"] } else { ["three", "four"] };

    let made = tour.ask(&operation("Create"), form, &[], Ask::with(definition(name)), 201).await;
    let etag = made.header("etag").to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'), "{made:?}");
    assert_eq!(made.json()["@odata.etag"], *etag);
    assert!(made.header("location").ends_with(&format!("/{collection}('{name}')?api-version={VERSION}")));
    let again = tour.ask(&operation("Create"), form, &[], Ask::with(definition(name)), 409).await;
    assert_eq!(again.code(), "ResourceNameAlreadyInUse");

    let read = tour.ask(&operation("Get"), form, &[name], Ask::default(), 200).await;
    assert_eq!((&read.json()["name"], read.header("etag")), (&json!(name), &*etag));
    let all = tour.ask(&operation("List"), form, &[], Ask::default(), 200).await.json();
    assert!(all["value"].as_array().unwrap().iter().any(|one| one["name"] == name), "{all}");
    let names = Ask { options: "&$select=name", ..Ask::default() };
    let names = tour.ask(&operation("List"), form, &[], names, 200).await.json();
    assert!(
        names["value"].as_array().unwrap().iter().all(|one| one.as_object().unwrap().len() == 2),
        "{names}"
    );

    let put = |name, condition: (&'static str, &str)| {
        // A client sends back the definition that it received.
        let body = if name == other { definition(other) } else { read.json() };
        (body, [RETURN, condition].map(|(header, value)| (header, value.to_owned())))
    };
    for (target, condition, status) in [
        (name, ("if-match", "\"0x1\""), 412),
        (name, ("if-none-match", "*"), 412),
        (name, ("if-match", &*etag), 200),
        (other, ("if-none-match", "*"), 201),
    ] {
        let (body, headers) = put(target, condition);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let ask = Ask { headers: &headers, body: Some(body), ..Ask::default() };
        let answer = tour.ask(&operation("CreateOrUpdate"), form, &[target], ask, status).await;
        if status < 300 {
            assert_eq!(answer.json()["@odata.etag"], *answer.header("etag"), "{answer:?}");
            assert_ne!(answer.header("etag"), etag);
        }
    }
    let stale = Ask { headers: &[("if-match", &etag)], ..Ask::default() };
    tour.ask(&operation("Delete"), form, &[name], stale, 412).await;
    for (name, status) in [(name, 204), (other, 204), (name, 404)] {
        tour.ask(&operation("Delete"), form, &[name], Ask::default(), status).await;
    }
    tour.ask(&operation("Get"), form, &[name], Ask::default(), 404).await;
}

fn index(name: &str) -> Value {
    json!({
        "name": name,
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "filterable": true},
            {"name": "title", "type": "Edm.String", "searchable": true, "analyzer": "en.lucene"},
            {"name": "city", "type": "Edm.String", "filterable": true, "facetable": true, "sortable": true},
            {"name": "rating", "type": "Edm.Double", "filterable": true, "sortable": true},
            {"name": "vector", "type": "Collection(Edm.Single)", "searchable": true, "retrievable": true, "dimensions": 2,
             "vectorSearchProfile": "p"},
        ],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["title"]}],
        "vectorSearch": {
            "algorithms": [{"name": "a", "kind": "hnsw"}], "profiles": [{"name": "p", "algorithm": "a"}],
        },
        "semantic": {"configurations": [
            {"name": "s", "prioritizedFields": {"titleField": {"fieldName": "title"}}},
        ]},
    })
}

fn data_source(name: &str) -> Value {
    json!({"name": name, "type": "azureblob", "container": {"name": "notes"},
        "credentials": {"connectionString": "UseDevelopmentStorage=true"}})
}

fn skillset(name: &str) -> Value {
    json!({"name": name, "skills": [{
        "@odata.type": "#Microsoft.Skills.Text.SplitSkill", "name": "split",
        "inputs": [{"name": "text", "source": "/document/content"}], "outputs": [{"name": "textItems"}],
    }]})
}

pub(super) fn indexer(name: &str, source: &str, disabled: bool) -> Value {
    json!({
        "name": name, "dataSourceName": source, "targetIndexName": "notes", "skillsetName": "pages",
        "disabled": disabled,
        "fieldMappings": [{"sourceFieldName": "metadata_storage_path", "targetFieldName": "id",
            "mappingFunction": {"name": "base64Encode"}}],
    })
}

fn knowledge_source(name: &str) -> Value {
    json!({"name": name, "kind": "searchIndex",
        "searchIndexParameters": {"searchIndexName": "hotels", "sourceDataSelect": "id,title"}})
}

fn agent(name: &str) -> Value {
    let model = json!({"resourceUri": "https://example.com", "deploymentId": "d", "modelName": "gpt-4o"});
    json!({"name": name, "knowledgeSources": [{"name": "places"}],
        "models": [{"kind": "azureOpenAI", "azureOpenAIParameters": model}]})
}
