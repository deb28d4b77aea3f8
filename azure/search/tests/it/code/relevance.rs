//! Tests of relevance: regressions fail, and what is reached can be accepted.

use bindpost_azure_search::code::{
    self, CheckOutcome, CheckReport, PlanOptions, PullOptions, RelevanceOptions, RunControl,
};
use bindpost_azure_search::sample;
use serde_json::json;

use super::{Folder, client, hotels};
use crate::service::Service;

const DOCUMENTS: &str = r#"{"id": "1", "title": "Grand hotels by the beach"}
{"id": "2", "title": "City hotel without any beach at all"}
{"id": "3", "title": "Mountain lodge"}
"#;
const QUERIES: &str = r#"{"id": "beach", "search": "beaches", "judgements": {"1": 3, "2": 1}, "expect": {"1": 1}, "reject": ["3"]}
{"id": "lodge", "search": "lodges", "judgements": {"3": 1}}
"#;

/// Returns a folder with documents and judged queries, which pass.
fn folder() -> Folder {
    let folder = Folder::with(&[("indexes/hotels.json", hotels())]);
    let minimum = json!({"ndcg": 0.95, "recall": 1.0});
    folder.write("search.json", &json!({"version": 1, "tests": {"hotels": {"k": 5, "minimum": minimum}}}));
    folder.write_text("documents/hotels.jsonl", DOCUMENTS);
    folder.write_text("judgements/hotels.jsonl", QUERIES);
    folder
}

async fn test(folder: &Folder) -> CheckReport {
    let options = RelevanceOptions::default();
    code::test_folder(&folder.read().unwrap(), &options, &RunControl::default()).await.unwrap()
}

/// Returns the failed checks with their reasons.
fn failed(report: &CheckReport) -> Vec<String> {
    let checks = report.suites.iter().flat_map(|suite| &suite.checks);
    checks
        .filter_map(|check| match &check.outcome {
            CheckOutcome::Failed(why) => Some(format!("{}: {why}", check.name)),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_regression_of_relevance_fails() {
    let folder = folder();
    let report = test(&folder).await;
    assert!(!report.has_failures(), "{}", report.to_text());
    assert_eq!(report.suites[1].measures[0], ("ndcg", 1.0));

    // Without stemming, no document is found.
    folder.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "standard.lucene".into());
    let report = test(&folder).await;
    let failed = failed(&report);
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert!(failed[0].contains("1 is not found, but must be among the first 1"), "{failed:?}");
    assert!(failed[1].contains("ndcg@5 is 0.000, but search.json requires 0.95"), "{failed:?}");
    assert!(failed[1].contains("lowest nDCG: beach (0.000), lodge (0.000)"), "{failed:?}");
    assert!(failed[2].contains("recall@5"), "{failed:?}");
    assert!(report.to_junit().contains("failures=\"3\""), "{}", report.to_junit());
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_documents_are_checked_too() {
    let folder_of_index = folder();
    folder_of_index.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "none.such".into());
    let wrong = failed(&test(&folder_of_index).await);
    assert!(wrong[0].contains("indexes/hotels.json: the embedded service refused it"), "{wrong:?}");
    assert!(wrong[1].contains("indexes/hotels.json was refused"), "{wrong:?}");

    let folder_of_documents = folder();
    folder_of_documents.write_text(
        "documents/hotels.jsonl",
        "{\"id\": \"1\", \"title\": 5}\n{\"id\": \"2\", \"title\": \"x\"}\nnot json\n",
    );
    let wrong = failed(&test(&folder_of_documents).await);
    assert!(wrong[0].contains("2 documents were rejected") && wrong[0].contains("line 1:"), "{wrong:?}");
    assert!(wrong[0].contains("line 3: not JSON"), "{wrong:?}");

    let folder = folder();
    std::fs::remove_file(folder.path().join("documents/hotels.jsonl")).unwrap();
    let wrong = failed(&test(&folder).await);
    assert!(wrong[0].contains("documents/hotels.jsonl does not exist\n  fix:"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_the_service_refuses_is_a_failure() {
    let folder = folder();
    folder.write_text(
        "judgements/hotels.jsonl",
        "{\"search\": \"a\", \"expect\": [\"1\"], \"parameters\": {\"filter\": \"none eq 1\"}}\n",
    );
    let wrong = failed(&test(&folder).await);
    assert!(wrong[0].contains("query 1: the service refused the query"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_reached_can_be_accepted() {
    let folder = folder();
    folder.write("search.json", &json!({"version": 1}));
    let report = test(&folder).await;
    assert!(report.notes.iter().any(|note| note.contains("no minimum is set")), "{:?}", report.notes);
    let mut read = folder.read().unwrap();
    code::accept(&mut read, &RelevanceOptions::default(), &RunControl::default()).await.unwrap();
    assert_eq!(
        folder.json("search.json")["tests"]["hotels"]["minimum"],
        json!({"ndcg": 1.0, "recall": 1.0, "mrr": 1.0})
    );
    assert!(!test(&folder).await.has_failures());
    folder.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "standard.lucene".into());
    assert!(test(&folder).await.has_failures());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pulled_sample_has_queries_that_pass() {
    let service = Service::start().await;
    let client = client(&service);
    sample::install(&client, service.folder()).await.unwrap();
    let folder = Folder::new();
    let report =
        folder.pull(&client, &PullOptions { documents: 25, ..PullOptions::default() }).await.unwrap();
    assert_eq!(folder.text("documents/trails.jsonl").lines().count(), 25);
    assert!(
        report.notes.iter().any(|note| note.contains("judgements/trails.jsonl has 13 queries")),
        "{:?}",
        report.notes
    );
    let report = test(&folder).await;
    assert!(!report.has_failures(), "{}", report.to_text());
    let trails = report.suites.iter().find(|suite| suite.name == "trails").unwrap();
    let recall = trails.measures.iter().find(|(name, _)| *name == "recall").unwrap().1;
    assert!(recall > 0.9, "{recall}");

    let options = RelevanceOptions { service: Some(client.clone()), ..RelevanceOptions::default() };
    let report = code::test_folder(&folder.read().unwrap(), &options, &RunControl::default()).await.unwrap();
    assert!(!report.has_failures(), "{}", report.to_text());
    assert!(folder.plan(&client, &PlanOptions::default()).await.is_empty());
}
