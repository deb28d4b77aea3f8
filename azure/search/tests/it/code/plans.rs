//! Plans: what each change of an index needs, refusals, and their texts.

use bindpost_azure_search::code::{ChangeAction, PlanOptions};
use serde_json::{Value, json};

use super::{Folder, client, hotels, upload};
use crate::service::Service;

/// Plans a change of the index of hotels, which has documents. Returns what it needs, the effects of its
/// differences, and why it is refused.
async fn planned(
    behind_alias: bool,
    options: PlanOptions,
    change: impl FnOnce(&mut Value),
) -> (ChangeAction, Vec<String>, String) {
    let service = Service::start().await;
    let client = client(&service);
    let folder = Folder::with(&[("indexes/hotels.json", hotels())]);
    folder.write("search.json", &json!({"version": 1, "behindAliases": behind_alias}));
    folder.push(&client, PlanOptions::default()).await.unwrap();
    upload(&client, "hotels", 0..3).await;
    folder.edit("indexes/hotels.json", change);
    let plan = folder.plan(&client, &options).await;
    let change = plan.changes.iter().find(|change| change.name == "hotels").unwrap();
    let effects = change.differences.iter().map(|one| format!("{} {}", one.path, one.effect)).collect();
    (change.action, effects, change.blocked.clone().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_field_is_a_change_in_place() {
    let (action, effects, blocked) = planned(true, PlanOptions::default(), |index| {
        index["fields"].as_array_mut().unwrap().push(json!({"name": "city", "type": "Edm.String"}));
    })
    .await;
    assert_eq!(
        (action, effects, blocked),
        (ChangeAction::Update, vec!["fields/city inPlace".to_owned()], String::new())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_analyzer_needs_a_rebuild_behind_the_alias() {
    let (action, effects, blocked) = planned(true, PlanOptions::default(), |index| {
        index["fields"][1]["analyzer"] = "standard.lucene".into();
    })
    .await;
    let effect = "fields/title/analyzer rebuild".to_owned();
    assert_eq!((action, effects, blocked), (ChangeAction::Rebuild, vec![effect], String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_without_an_alias_is_refused_with_two_ways_out() {
    let without_rating = |index: &mut Value| drop(index["fields"].as_array_mut().unwrap().pop());
    let (action, effects, blocked) = planned(false, PlanOptions::default(), without_rating).await;
    assert_eq!(
        (action, effects),
        (ChangeAction::RebuildWithDowntime, vec!["fields/rating rebuild".to_owned()])
    );
    assert!(
        blocked.contains("fix: add aliases/NAME.json") && blocked.contains("--allow-downtime"),
        "{blocked}"
    );
    let options = PlanOptions { allow_downtime: true, ..PlanOptions::default() };
    let (action, _, blocked) = planned(false, options, without_rating).await;
    assert_eq!((action, blocked.as_str()), (ChangeAction::RebuildWithDowntime, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_analyzer_goes_behind_the_alias_instead_of_taking_the_index_offline() {
    let with_analyzer = |index: &mut Value| {
        index["analyzers"] =
            json!([{"@odata.type": "#Microsoft.Azure.Search.PatternAnalyzer", "name": "codes"}]);
    };
    let (action, effects, _) = planned(true, PlanOptions::default(), with_analyzer).await;
    assert_eq!((action, effects), (ChangeAction::Rebuild, vec!["analyzers/codes downtime".to_owned()]));
    let (action, _, blocked) = planned(false, PlanOptions::default(), with_analyzer).await;
    assert_eq!(action, ChangeAction::UpdateWithDowntime);
    assert!(blocked.contains("--allow-downtime"), "{blocked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_index_can_be_is_named_with_its_reason() {
    let without_key = |index: &mut Value| index["fields"][0]["key"] = false.into();
    let (action, _, blocked) = planned(true, PlanOptions::default(), without_key).await;
    assert_eq!((action, blocked.is_empty()), (ChangeAction::Impossible, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_would_lose_content_is_refused() {
    let service = Service::start().await;
    let client = client(&service);
    let mut index = hotels();
    index["fields"][2]["retrievable"] = false.into();
    let folder = Folder::with(&[("indexes/hotels.json", index)]);
    folder.push(&client, PlanOptions::default()).await.unwrap();
    folder.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "standard.lucene".into());
    let plan = folder.plan(&client, &PlanOptions::default()).await;
    let text = plan.to_text();
    assert!(text.contains("a copy would lose the content of category"), "{text}");
    let refused = folder.push(&client, PlanOptions::default()).await.unwrap_err().to_string();
    assert!(refused.contains("the push was not started"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_is_data_and_reads_as_text() {
    let service = Service::start().await;
    let client = client(&service);
    let folder = Folder::with(&[
        ("indexes/hotels.json", hotels()),
        ("synonym-maps/words.json", json!({"name": "words", "synonyms": ["a, b"]})),
    ]);
    folder.push(&client, PlanOptions::default()).await.unwrap();
    upload(&client, "hotels", 0..3).await;
    let other = json!({"name": "other", "format": "solr", "synonyms": "x, y"});
    client.put("synonymmaps('other')", other).send().await.unwrap();

    folder.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "standard.lucene".into());
    folder.edit("synonym-maps/words.json", |map| map["synonyms"] = json!(["a, b", "c => d"]));
    let plan = folder.plan(&client, &PlanOptions::default()).await;
    let text = plan.to_text();
    for part in [
        "± indexes/hotels.json  rebuild as hotels-v2 behind its alias: copy 3 documents",
        "fields/title/analyzer: en.lucene → standard.lucene",
        "the alias hotels is switched to hotels-v2",
        "~ synonym-maps/words.json  update in place",
        "synonyms: added: c => d",
        "synonym-maps/other.json  not in the folder; kept (--prune deletes it)",
        "copy 3 documents from hotels-v1 to hotels-v2",
        "0 to create, 1 to update, 1 to rebuild, 0 to delete.",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["summary"]["rebuild"], 1);
    let index = json["changes"].as_array().unwrap().iter().find(|change| change["kind"] == "index").unwrap();
    assert_eq!((&index["newName"], &index["liveName"]), (&json!("hotels-v2"), &json!("hotels-v1")));
    let markdown = plan.to_markdown();
    assert!(markdown.contains("| `indexes/hotels.json` | **rebuild as hotels-v2"), "{markdown}");
    assert!(!plan.to_checks().has_failures());

    // The same folder and service have the same plan; other options have another one.
    let again = folder.plan(&client, &PlanOptions::default()).await;
    assert_eq!(again.fingerprint, plan.fingerprint);
    let pruned = folder.plan(&client, &PlanOptions { prune: true, ..PlanOptions::default() }).await;
    assert!(pruned.steps.iter().any(|step| step == "delete synonym-maps/other"), "{:?}", pruned.steps);
    assert_ne!(pruned.fingerprint, plan.fingerprint);
}

#[tokio::test]
async fn a_wrong_folder_is_explained_file_by_file() {
    let folder = Folder::with(&[
        ("indexes/a.json", json!({"name": "b", "fields": []})),
        ("indexers/i.json", json!({"dataSourceName": "d"})),
    ]);
    folder.write_text("synonym-maps/x.json", "{");
    folder.write_text("judgements/q.jsonl", "{\"search\": \"a\"}\n");
    let wrong = folder.read().unwrap_err().to_string();
    for part in [
        "indexes/a.json: its name is \"b\"\n  fix: rename the file to b.json",
        "indexers/i.json: has no \"name\"",
        "synonym-maps/x.json: not the JSON of a definition",
        "judgements/q.jsonl:1: judges nothing",
    ] {
        assert!(wrong.contains(part), "{part} in\n{wrong}");
    }
    let folder = Folder::with(&[
        ("indexers/i.json", json!({"name": "i", "dataSourceName": "d", "targetIndexName": "x"})),
        (
            "data-sources/s.json",
            json!({"name": "s", "type": "azureblob", "container": {"name": "c"},
                "credentials": {"connectionString": "AccountName=a;AccountKey=secret"}}),
        ),
    ]);
    let wrong = folder.read().unwrap_err().to_string();
    for part in [
        "refers to data-sources/d.json",
        "refers to indexes/x.json",
        "data-sources/s.json: credentials/connectionString has a secret",
    ] {
        assert!(wrong.contains(part), "{part} in\n{wrong}");
    }
    assert!(!wrong.contains("AccountKey=secret"), "{wrong}");
    let empty = Folder::new().read().unwrap_err().to_string();
    assert!(empty.contains("fix: create it with bindpost search pull DIR"), "{empty}");
}
