//! Export and import of documents: between services, interrupted, and with rejected documents.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bindpost_azure_search::SearchClient;
use bindpost_azure_search::code::{
    self, CodeError, ExportOptions, ExportReport, ImportAction, ImportOptions, ImportReport, RunControl,
};
use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::{Value, json};

use super::{Folder, client, count, hotels, upload};
use crate::service::{Scripted, Service, shared};

/// Creates an index of hotels with this name.
async fn index(client: &SearchClient, name: &str) {
    let mut index = hotels();
    index["name"] = name.into();
    client.put(format!("indexes('{name}')"), index).send().await.unwrap();
}

fn export_options(file: PathBuf) -> ExportOptions {
    ExportOptions {
        index: "hotels".to_owned(),
        file,
        filter: None,
        overwrite: false,
        restart: false,
        service: "s".to_owned(),
    }
}

fn import_options(file: PathBuf) -> ImportOptions {
    ImportOptions {
        index: "hotels".to_owned(),
        file,
        action: ImportAction::Upload,
        max_errors: 1_000,
        restart: false,
        service: "s".to_owned(),
    }
}

async fn export(client: &SearchClient, options: &ExportOptions) -> Result<ExportReport, CodeError> {
    code::export(client, options, &RunControl::default()).await
}

async fn import(client: &SearchClient, options: &ImportOptions) -> Result<ImportReport, CodeError> {
    code::import(client, options, &RunControl::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_move_between_services_plain_and_compressed() {
    let (one, other) = (Service::start().await, Service::start().await);
    let (from, to) = (client(&one), client(&other));
    index(&from, "hotels").await;
    upload(&from, "hotels", 0..2_500).await;
    index(&to, "hotels").await;
    let folder = Folder::new();
    let plain = folder.path().join("hotels.jsonl");
    let report = export(&from, &export_options(plain.clone())).await.unwrap();
    assert_eq!((report.documents, report.continued_from), (2_500, 0));
    assert_eq!(folder.files().keys().collect::<Vec<_>>(), ["hotels.jsonl"]);
    let text = folder.text("hotels.jsonl");
    assert_eq!(text.lines().count(), 2_500);
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        json!({"id": "h000000", "title": "Hotel number 0", "category": "Budget", "rating": 0.0})
    );
    let refused = export(&from, &export_options(plain.clone())).await.unwrap_err().to_string();
    assert!(refused.contains("fix: choose another name, or replace it with --overwrite"), "{refused}");

    let packed = folder.path().join("hotels.jsonl.gz");
    export(&from, &export_options(packed.clone())).await.unwrap();
    assert!(std::fs::metadata(&packed).unwrap().len() * 4 < std::fs::metadata(&plain).unwrap().len());
    let report = import(&to, &import_options(packed)).await.unwrap();
    assert_eq!((report.documents, report.rejected), (2_500, 0));
    assert_eq!(count(&to, "hotels").await, 2_500);
    let again = folder.path().join("again.jsonl");
    export(&to, &export_options(again)).await.unwrap();
    assert_eq!(folder.text("again.jsonl"), text);

    let some = ExportOptions {
        filter: Some("rating lt 1".to_owned()),
        ..export_options(folder.path().join("some.jsonl"))
    };
    assert_eq!(export(&to, &some).await.unwrap().documents, 10);
    let merge = folder.path().join("merge.jsonl");
    std::fs::write(&merge, "{\"id\": \"h000001\", \"category\": \"Luxury\"}\n").unwrap();
    import(&to, &ImportOptions { action: ImportAction::Merge, ..import_options(merge) }).await.unwrap();
    let merged = to.get("indexes('hotels')/docs('h000001')").send().await.unwrap().body;
    assert_eq!((&merged["category"], &merged["title"]), (&json!("Luxury"), &json!("Hotel number 1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_documents_are_collected_with_their_lines() {
    let service = Service::start().await;
    let client = client(&service);
    index(&client, "hotels").await;
    let folder = Folder::new();
    let lines: Vec<String> = (1..=500)
        .map(|line| match line {
            7 => "{\"id\": \"7\", \"rating\": \"many\"}".to_owned(),
            250 => "{\"title\": \"no key\"}".to_owned(),
            251 => String::new(),
            300 => "{\"id\": ".to_owned(),
            499 => "{\"id\": \"499\", \"unknown\": 1}".to_owned(),
            line => json!({"id": line.to_string(), "title": "good"}).to_string(),
        })
        .collect();
    folder.write_text("hotels.jsonl", &lines.join("\n"));
    let report = import(&client, &import_options(folder.path().join("hotels.jsonl"))).await.unwrap();
    assert_eq!((report.documents, report.rejected, report.stopped), (495, 4, false), "{report:?}");
    assert_eq!(count(&client, "hotels").await, 495);
    let errors = folder.text("hotels.jsonl.errors.jsonl");
    let errors: Vec<Value> = errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [7, 250, 300, 499], "{errors:?}");
    assert!(errors.iter().all(|error| !error["message"].as_str().unwrap().is_empty()), "{errors:?}");

    let strict = ImportOptions { max_errors: 3, ..import_options(folder.path().join("hotels.jsonl")) };
    let report = import(&client, &strict).await.unwrap();
    assert!(report.stopped, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_transfer_continues_where_it_was() {
    let service = Service::start().await;
    let client = client(&service);
    index(&client, "hotels").await;
    upload(&client, "hotels", 0..2_500).await;
    let folder = Folder::new();

    let options = export_options(folder.path().join("hotels.jsonl"));
    let stopped = code::export(&client, &options, &stop_after(2)).await.unwrap_err();
    assert!(matches!(stopped, CodeError::Stopped), "{stopped}");
    assert!(!folder.path().join("hotels.jsonl").exists());
    let part = folder.path().join("hotels.jsonl.part");
    // A crash in a write leaves a part of a page.
    let mut text = std::fs::read_to_string(&part).unwrap();
    text.push_str("{\"id\": \"half");
    std::fs::write(&part, text).unwrap();
    let other = ExportOptions {
        index: "hotels".to_owned(),
        filter: Some("rating lt 1".to_owned()),
        ..options.clone()
    };
    assert!(export(&client, &other).await.unwrap_err().to_string().contains("--restart"));
    let report = export(&client, &options).await.unwrap();
    assert!(report.continued_from > 0 && report.documents == 2_500, "{report:?}");
    let text = folder.text("hotels.jsonl");
    let different: BTreeSet<&str> = text.lines().collect();
    assert_eq!((text.lines().count(), different.len()), (2_500, 2_500));

    index(&client, "copy").await;
    let options =
        ImportOptions { index: "copy".to_owned(), ..import_options(folder.path().join("hotels.jsonl")) };
    let stopped = code::import(&client, &options, &stop_after(2)).await.unwrap_err();
    assert!(matches!(stopped, CodeError::Stopped), "{stopped}");
    assert_eq!(count(&client, "copy").await, 1_000);
    let other = ImportOptions { action: ImportAction::Delete, ..options.clone() };
    assert!(import(&client, &other).await.unwrap_err().to_string().contains("--restart"));
    let report = import(&client, &options).await.unwrap();
    assert_eq!((report.documents, report.continued_from), (2_500, 1_000));
    assert_eq!(count(&client, "copy").await, 2_500);
    assert_eq!(folder.files().keys().collect::<Vec<_>>(), ["hotels.jsonl"]);
}

/// Returns a control that stops at the report of this number.
fn stop_after(reports: usize) -> RunControl {
    let seen = AtomicUsize::new(0);
    let holder = Arc::new(Mutex::new(None::<RunControl>));
    let held = holder.clone();
    let control = RunControl::new(move |_| {
        let is_last = seen.fetch_add(1, Ordering::SeqCst) + 1 >= reports;
        if let Some(control) = held.lock().unwrap().as_ref().filter(|_| is_last) {
            control.stop();
        }
    });
    *holder.lock().unwrap() = Some(control.clone());
    control
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_a_busy_service_did_not_take_are_sent_again() {
    let calls = AtomicUsize::new(0);
    let service = Scripted::start(move |method, _, body| {
        assert_eq!(method, "POST");
        let is_first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        let outcomes = body["value"].as_array().unwrap().iter().map(|document| {
            let is_busy = is_first && document["id"] == "2";
            json!({"key": document["id"], "status": !is_busy, "statusCode": if is_busy { 503 } else { 200 },
                "errorMessage": is_busy.then_some("busy")})
        });
        (if is_first { 207 } else { 200 }, json!({"value": outcomes.collect::<Vec<_>>()}))
    })
    .await;
    let folder = Folder::new();
    folder.write_text("hotels.jsonl", "{\"id\": \"1\"}\n{\"id\": \"2\"}\n");
    let client = shared(&service.url(), None, UpstreamLimits::default()).client;
    let report = import(&client, &import_options(folder.path().join("hotels.jsonl"))).await.unwrap();
    assert_eq!((report.documents, report.rejected), (2, 0));
    assert_eq!(service.asked("search.index"), 2);
}
