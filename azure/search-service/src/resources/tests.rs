//! Tests of definitions without HTTP.

use std::sync::{Arc, Mutex};

use bindpost_azure_search_model::ApiError;
use serde_json::{Value, json};

use super::scratch::TestFolder;
use super::{IndexHook, MatchConditions, ResourceChange, ResourceKind, ResourceRegistry};

fn index(name: &str) -> Value {
    json!({"name": name, "fields": [{"name": "id", "type": "Edm.String", "key": true}]})
}

/// A service with the index `hotels`, the data source `files` and the knowledge source `source`.
fn filled() -> (TestFolder, ResourceRegistry) {
    let folder = TestFolder::new();
    let resources = ResourceRegistry::open(folder.path()).unwrap();
    resources.create(ResourceKind::Index, index("hotels")).unwrap();
    let files = json!({
        "name": "files", "type": "azureblob", "container": {"name": "c"},
        "credentials": {"connectionString": "secret"},
    });
    resources.create(ResourceKind::DataSource, files).unwrap();
    let source = json!({
        "name": "source", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"},
    });
    resources.create(ResourceKind::KnowledgeSource, source).unwrap();
    (folder, resources)
}

/// Puts a definition without conditions.
fn put(resources: &ResourceRegistry, kind: ResourceKind, name: &str, body: Value) -> Result<(), ApiError> {
    resources.put(kind, name, body, &MatchConditions::default(), false).map(|_| ())
}

#[test]
fn definitions_survive_a_restart() {
    let (folder, resources) = filled();
    let before = resources.get(ResourceKind::Index, "hotels").unwrap();
    drop(resources);
    let resources = ResourceRegistry::open(folder.path()).unwrap();
    assert_eq!(resources.get(ResourceKind::Index, "hotels").unwrap(), before);
    assert_eq!(
        resources.get(ResourceKind::DataSource, "files").unwrap().value["credentials"]["connectionString"],
        "secret"
    );
    assert_eq!((resources.count(ResourceKind::Index), resources.count(ResourceKind::Alias)), (1, 0));
}

#[test]
fn a_second_process_fails_with_a_reason() {
    let (folder, _resources) = filled();
    let error = ResourceRegistry::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("service.redb") && error.contains("fix:"), "{error}");
}

#[test]
fn etags_and_contexts_in_a_definition_are_not_stored() {
    let (_folder, resources) = filled();
    let mut body = index("hotels");
    body["description"] = json!("new");
    body["@odata.etag"] = json!("\"0x1\"");
    body["@odata.context"] = json!("x");
    put(&resources, ResourceKind::Index, "hotels", body).unwrap();
    let kept = resources.get(ResourceKind::Index, "hotels").unwrap();
    assert_eq!(kept.value["description"], "new");
    assert!(kept.value.get("@odata.etag").is_none() && kept.value.get("@odata.context").is_none());
    assert_eq!(kept.public_json()["@odata.etag"], kept.etag.as_str());
}

#[test]
fn an_alias_refers_to_its_index() {
    let (_folder, resources) = filled();
    resources.create(ResourceKind::Alias, json!({"name": "live", "indexes": ["hotels"]})).unwrap();
    assert_eq!(resources.find_index("live").unwrap().name, "hotels");
    let mut changed = index("hotels");
    changed["description"] = json!("through the alias");
    put(&resources, ResourceKind::Index, "live", changed).unwrap();
    assert_eq!(
        resources.get(ResourceKind::Index, "hotels").unwrap().value["description"],
        "through the alias"
    );
    assert!(!resources.exists(ResourceKind::Index, "live"));
    let error = resources.delete(ResourceKind::Index, "hotels", &MatchConditions::default()).unwrap_err();
    assert!(error.status == 400 && error.message.contains("alias 'live'"), "{error}");
    assert_eq!(
        resources.delete(ResourceKind::Index, "live", &MatchConditions::default()).unwrap_err().status,
        404
    );
    assert_eq!(resources.create(ResourceKind::Index, index("live")).unwrap_err().status, 400);
}

#[test]
fn every_kind_rejects_invalid_definitions_with_a_reason() {
    let (_folder, resources) = filled();
    let indexer = |more: Value| {
        let mut body = json!({"name": "x", "dataSourceName": "files", "targetIndexName": "hotels"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let skill = |more: Value| json!({"name": "x", "skills": [more]});
    let split = "#Microsoft.Skills.Text.SplitSkill";
    for (kind, body, hint) in [
        (ResourceKind::Index, json!({"name": "x1", "description": 5}), "'description'"),
        (ResourceKind::Alias, json!({"name": "x1", "indexes": []}), "exactly one"),
        (ResourceKind::Alias, json!({"name": "x1", "indexes": ["hotels", "hotels"]}), "has 2"),
        (ResourceKind::Alias, json!({"name": "x1", "indexes": ["nope"]}), "index 'nope' that doesn't exist"),
        (
            ResourceKind::Alias,
            json!({"name": "hotels", "indexes": ["hotels"]}),
            "there is an index with this name",
        ),
        (
            ResourceKind::SynonymMap,
            json!({"name": "x", "synonyms": "a,b", "format": "wordnet"}),
            "must be solr, not 'wordnet'",
        ),
        (ResourceKind::SynonymMap, json!({"name": "x", "format": "solr"}), "'synonyms'"),
        (
            ResourceKind::SynonymMap,
            json!({"name": "x", "format": "solr", "synonyms": ["a"]}),
            "must be a string",
        ),
        (
            ResourceKind::DataSource,
            json!({"name": "x", "type": "ftp", "container": {"name": "c"}}),
            "azureblob",
        ),
        (
            ResourceKind::DataSource,
            json!({"name": "x", "type": "azureblob", "container": {}}),
            "'container.name' of the data source is required",
        ),
        (ResourceKind::Indexer, json!({"name": "x", "dataSourceName": "files"}), "'targetIndexName'"),
        (
            ResourceKind::Indexer,
            indexer(json!({"dataSourceName": "no"})),
            "data source 'no' that doesn't exist",
        ),
        (ResourceKind::Indexer, indexer(json!({"targetIndexName": "no"})), "index 'no' that doesn't exist"),
        (ResourceKind::Indexer, indexer(json!({"skillsetName": "no"})), "skillset 'no' that doesn't exist"),
        (ResourceKind::Indexer, indexer(json!({"schedule": {"interval": "PT4M"}})), "at least 'PT5M'"),
        (ResourceKind::Indexer, indexer(json!({"schedule": {"interval": "P2D"}})), "at most 'P1D'"),
        (
            ResourceKind::Indexer,
            indexer(json!({"schedule": {"interval": "PT1H", "startTime": "soon"}})),
            "startTime",
        ),
        (ResourceKind::Indexer, indexer(json!({"parameters": {"batchSize": 0}})), "'parameters.batchSize'"),
        (ResourceKind::Indexer, indexer(json!({"parameters": {"maxFailedItems": -2}})), "maxFailedItems"),
        (ResourceKind::Indexer, indexer(json!({"fieldMappings": [{}]})), "sourceFieldName"),
        (ResourceKind::Skillset, json!({"name": "x"}), "'skills'"),
        (ResourceKind::Skillset, skill(json!({"@odata.type": "#Microsoft.Skills.Nope"})), "Text.SplitSkill"),
        (
            ResourceKind::Skillset,
            skill(json!({"@odata.type": split, "inputs": []})),
            "'skills[0].outputs' of the skillset 'x' is required",
        ),
        (ResourceKind::KnowledgeSource, json!({"name": "x", "kind": "dream"}), "searchIndex"),
        (
            ResourceKind::KnowledgeSource,
            json!({"name": "x", "kind": "searchIndex"}),
            "'searchIndexParameters'",
        ),
        (ResourceKind::KnowledgeBase, json!({"name": "x"}), "'knowledgeSources'"),
        (
            ResourceKind::KnowledgeSource,
            json!({"name": "x", "kind": "searchIndex", "searchIndexParameters":
                {"searchIndexName": "hotels", "semanticConfigurationName": "no"}}),
            "names 'no', which is no semantic configuration of the index 'hotels'",
        ),
        (
            ResourceKind::KnowledgeSource,
            json!({"name": "x", "kind": "searchIndex", "searchIndexParameters":
                {"searchIndexName": "hotels", "sourceDataFields": ["id"]}}),
            "'searchIndexParameters.sourceDataFields[0]' of the knowledge source 'x' must be an object",
        ),
        (
            ResourceKind::KnowledgeBase,
            json!({"name": "x", "knowledgeSources": [{"name": "no"}]}),
            "'no' that doesn't exist",
        ),
    ] {
        let error = resources.create(kind, body.clone()).unwrap_err();
        assert!(error.status == 400 && error.message.contains(hint), "{body}: {error}");
    }
}

#[test]
fn unknown_and_wrongly_typed_members_are_rejected_by_name() {
    let (_folder, resources) = filled();
    let source = json!({"name": "x", "type": "azureblob", "container": {"name": "c"}, "credentials": {}});
    let indexer = json!({"name": "x", "dataSourceName": "files", "targetIndexName": "hotels"});
    let skillset = json!({"name": "x", "skills": []});
    let knowledge =
        json!({"name": "x", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}});
    let base = json!({"name": "x", "knowledgeSources": []});
    let skill = |more: Value| {
        let mut skill = json!({"@odata.type": "#Microsoft.Skills.Custom.WebApiSkill", "uri": "https://example.com",
            "inputs": [{"name": "a", "source": "/document/a"}], "outputs": [{"name": "b"}]});
        skill.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "skills": [skill] })
    };
    for (kind, body, over, hint) in [
        (
            ResourceKind::Alias,
            json!({"name": "x1", "indexes": ["hotels"]}),
            json!({"index": "x"}),
            "'index' of the alias",
        ),
        (
            ResourceKind::SynonymMap,
            json!({"name": "x", "format": "solr", "synonyms": "a,b"}),
            json!({"rules": "a"}),
            "'rules' of the synonym map 'x' is unknown",
        ),
        (
            ResourceKind::DataSource,
            source.clone(),
            json!({"kind": "x"}),
            "'kind' of the data source 'x' is unknown",
        ),
        (
            ResourceKind::DataSource,
            source.clone(),
            json!({"subtype": 1}),
            "'subtype' of the data source 'x' must be",
        ),
        (
            ResourceKind::DataSource,
            source.clone(),
            json!({"container": {"name": "c", "prefix": "p"}}),
            "'container.prefix' of the data source 'x' is unknown",
        ),
        (ResourceKind::DataSource, source, json!({"credentials": {"key": "p"}}), "'credentials.key'"),
        (
            ResourceKind::Indexer,
            indexer.clone(),
            json!({"enabled": true}),
            "'enabled' of the indexer 'x' is unknown",
        ),
        (
            ResourceKind::Indexer,
            indexer.clone(),
            json!({"cache": true}),
            "'cache' of the indexer 'x' must be an object",
        ),
        (
            ResourceKind::Indexer,
            indexer,
            json!({"fieldMappings": [{"sourceFieldName": "a", "mappingFunction": {"name": "lower"}}]}),
            "'fieldMappings[0].mappingFunction.name' of the indexer must be one of base64Encode",
        ),
        (
            ResourceKind::Skillset,
            skillset.clone(),
            json!({"skill": []}),
            "'skill' of the skillset 'x' is unknown",
        ),
        (
            ResourceKind::Skillset,
            skillset.clone(),
            skill(json!({"timeOut": "PT30S"})),
            "'skills[0].timeOut' of the skillset 'x' is unknown",
        ),
        (
            ResourceKind::Skillset,
            skillset.clone(),
            skill(json!({"timeout": "PT5M"})),
            "'skills[0].timeout' of the skillset 'x' must be a duration from 'PT1S' to 'PT230S', such as 'PT30S', not 'PT5M'",
        ),
        (ResourceKind::Skillset, skillset.clone(), skill(json!({"timeout": 30})), "'skills[0].timeout'"),
        (
            ResourceKind::Skillset,
            skillset,
            skill(json!({"outputs": [{"name": "b", "target": "c"}]})),
            "'skills[0].outputs[0].target'",
        ),
        (
            ResourceKind::KnowledgeSource,
            knowledge.clone(),
            json!({"index": "x"}),
            "'index' of the knowledge source 'x'",
        ),
        (
            ResourceKind::KnowledgeSource,
            knowledge.clone(),
            json!({"webParameters": {}}),
            "'webParameters' of the knowledge source 'x' is unknown",
        ),
        (
            ResourceKind::KnowledgeSource,
            knowledge,
            json!({"searchIndexParameters": {"searchIndexName": "hotels", "fields": []}}),
            "'searchIndexParameters.fields' of the knowledge source 'x' is unknown",
        ),
        (
            ResourceKind::KnowledgeBase,
            base.clone(),
            json!({"sources": []}),
            "'sources' of the knowledge base 'x'",
        ),
        (
            ResourceKind::KnowledgeBase,
            base,
            json!({"models": {}}),
            "'models' of the knowledge base 'x' must be an array",
        ),
    ] {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
        let error = resources.create(kind, body.clone()).unwrap_err();
        assert!(error.status == 400 && error.message.contains(hint), "{body}: {error}");
    }
}

#[test]
fn valid_definitions_of_every_kind_are_accepted() {
    let (_folder, resources) = filled();
    let skill = json!({
        "@odata.type": "#Microsoft.Skills.Text.SplitSkill", "name": "split",
        "inputs": [{"name": "text", "source": "/document/content"}], "outputs": [{"name": "textItems"}],
    });
    let indexer = json!({
        "name": "run", "dataSourceName": "files", "targetIndexName": "hotels", "skillsetName": "skills",
        "schedule": {"interval": "PT5M", "startTime": "2026-01-31T04:00:00Z"}, "disabled": null,
        "parameters": {"batchSize": 10, "maxFailedItems": -1, "configuration": {"parsingMode": "json"}},
        "fieldMappings": [{"sourceFieldName": "a", "mappingFunction": {"name": "base64Encode"}}],
    });
    for (kind, body) in [
        (ResourceKind::Skillset, json!({"name": "skills", "skills": [skill]})),
        (ResourceKind::Indexer, indexer),
        (ResourceKind::SynonymMap, json!({"name": "words", "format": "solr", "synonyms": "a,b\nc=>d"})),
        (ResourceKind::KnowledgeBase, json!({"name": "base", "knowledgeSources": [{"name": "source"}]})),
        (ResourceKind::KnowledgeBase, json!({"name": "empty", "knowledgeSources": []})),
        (
            ResourceKind::KnowledgeBase,
            json!({"name": "old", "models": [], "targetIndexes": [{"indexName": "hotels"}]}),
        ),
        (
            ResourceKind::KnowledgeSource,
            json!({"name": "mcp", "kind": "mcpServer", "mcpServerParameters": {}, "webParameters": null}),
        ),
    ] {
        let made = resources.create(kind, body.clone()).unwrap();
        assert_eq!(made.value, body);
    }
    let error =
        resources.delete(ResourceKind::KnowledgeSource, "source", &MatchConditions::default()).unwrap_err();
    assert!(error.message.contains("knowledge base 'base'"), "{error}");
}

/// Records its calls. Rejects the index `bad`, and adds a member to the others.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

impl IndexHook for Noting {
    fn create(&self, name: &str, definition: &Value) -> Result<Value, ApiError> {
        self.0.lock().unwrap().push(format!("create {name}"));
        if name == "bad" {
            return Err(ApiError::invalid("bad"));
        }
        let mut normal = definition.clone();
        normal["similarity"] = json!({"k1": 1.2});
        Ok(normal)
    }

    fn check(&self, name: &str, old: &Value, new: &Value, downtime: bool) -> Result<Value, ApiError> {
        assert!(old.get("similarity").is_some());
        self.0.lock().unwrap().push(format!("check {name} {downtime}"));
        Ok(new.clone())
    }

    fn update(&self, name: &str, _: &Value, new: &Value) -> Result<(), ApiError> {
        self.0.lock().unwrap().push(format!("update {name}"));
        match new.get("description") {
            Some(_) => Err(ApiError::invalid("no descriptions")),
            None => Ok(()),
        }
    }

    fn delete(&self, name: &str) -> Result<(), ApiError> {
        self.0.lock().unwrap().push(format!("delete {name}"));
        Ok(())
    }
}

#[test]
fn the_hook_creates_updates_and_deletes_indexes() {
    let folder = TestFolder::new();
    let resources = ResourceRegistry::open(folder.path()).unwrap();
    let hook = Arc::new(Noting::default());
    resources.set_index_hook(hook.clone());
    let made = resources.create(ResourceKind::Index, index("good")).unwrap();
    assert_eq!(made.value["similarity"]["k1"], 1.2);
    assert!(resources.create(ResourceKind::Index, index("bad")).is_err());
    assert!(!resources.exists(ResourceKind::Index, "bad"));
    resources.put(ResourceKind::Index, "good", index("good"), &MatchConditions::default(), true).unwrap();
    resources.delete(ResourceKind::Index, "good", &MatchConditions::default()).unwrap();
    let calls = hook.0.lock().unwrap().clone();
    assert_eq!(calls, ["create good", "create bad", "check good true", "update good", "delete good"]);
}

#[test]
fn an_update_that_the_index_rejects_is_not_kept() {
    let folder = TestFolder::new();
    let kept = {
        let resources = ResourceRegistry::open(folder.path()).unwrap();
        resources.set_index_hook(Arc::new(Noting::default()));
        let kept = resources.create(ResourceKind::Index, index("good")).unwrap();
        let mut described = index("good");
        described["description"] = json!("refused");
        put(&resources, ResourceKind::Index, "good", described).unwrap_err();
        assert_eq!(resources.get(ResourceKind::Index, "good").unwrap(), kept);
        kept
    };
    let resources = ResourceRegistry::open(folder.path()).unwrap();
    assert_eq!(resources.get(ResourceKind::Index, "good").unwrap(), kept);
}

#[test]
fn watchers_are_notified_of_every_change() {
    let folder = TestFolder::new();
    let resources = ResourceRegistry::open(folder.path()).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = heard.clone();
    resources.watch(move |change| {
        notes.lock().unwrap().push(match change {
            ResourceChange::Created(new) => format!("created {}", new.name),
            ResourceChange::Updated { new, .. } => format!("updated {}", new.name),
            ResourceChange::Deleted(old) => format!("deleted {}", old.name),
        });
    });
    put(&resources, ResourceKind::Index, "a1", index("a1")).unwrap();
    put(&resources, ResourceKind::Index, "a1", index("a1")).unwrap();
    put(&resources, ResourceKind::Index, "A", index("A")).unwrap_err();
    resources.delete(ResourceKind::Index, "a1", &MatchConditions::default()).unwrap();
    assert_eq!(*heard.lock().unwrap(), ["created a1", "updated a1", "deleted a1"]);
}

#[test]
fn only_one_of_many_concurrent_creates_succeeds() {
    let folder = TestFolder::new();
    let resources = ResourceRegistry::open(folder.path()).unwrap();
    let wins = std::thread::scope(|scope| {
        let creators: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| resources.create(ResourceKind::Index, index("same")).is_ok()))
            .collect();
        creators.into_iter().map(|creator| creator.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(wins, 1);
}
