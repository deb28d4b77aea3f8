//! What one request may take: memory and time. Each attack here comes with a query key.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::child::Child;

const MIB: u64 = 1 << 20;

/// An index of documents that differ in everything.
async fn with_documents(memory: Option<u64>, count: usize) -> Child {
    let child = Child::start(memory);
    let fields = json!([
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "name", "type": "Edm.String"},
        {"name": "number", "type": "Edm.Int64"},
        {"name": "price", "type": "Edm.Double"},
        {"name": "tags", "type": "Collection(Edm.String)"},
    ]);
    let made = child.send("POST", "/indexes", Some(json!({"name": "things", "fields": fields}))).await;
    assert_eq!(made.status, 201, "{made:?}");
    let document = |at: usize| {
        let tags: Vec<String> = (0..5).map(|tag| format!("tag {}", at * 5 + tag)).collect();
        json!({
            "id": at.to_string(), "name": format!("the name of number {at}"), "number": at * 1_000_003,
            "price": at as f64 / 7.0, "tags": tags,
        })
    };
    child.upload("things", &(0..count).map(document).collect::<Vec<_>>()).await;
    child
}

async fn search(child: &Child, body: Value) -> Result<crate::server::Answer, String> {
    child.try_send(&child.query_key, "POST", "/indexes('things')/docs/search.post.search", Some(body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_facets_without_a_limit_do_not_end_the_process() {
    let mut child = with_documents(Some(1024 * MIB), 10_000).await;
    let before = child.peak_memory();
    let fields = ["id", "name", "number", "price", "tags"];
    let facets: Vec<String> = (0..100).map(|at| format!("{},count:0", fields[at % fields.len()])).collect();
    let answer = search(&child, json!({"facets": facets, "top": 0})).await;
    assert!(!child.has_ended(), "the attack ended the process");
    let answer = answer.unwrap();
    // Written in full, or more than a request may take of memory or, on a slow machine, of time.
    assert!(matches!(answer.status, 200 | 400 | 503), "{}", answer.status);
    let taken = child.peak_memory() - before;
    assert!(taken < 400 * MIB, "the request took {} MiB", taken / MIB);
    let after =
        search(&child, json!({"search": "name", "top": 1, "facets": ["tags,count:3"]})).await.unwrap();
    assert_eq!(after.status, 200, "{after:?}");
    assert_eq!(after.json()["@search.facets"]["tags"].as_array().unwrap().len(), 3);
}

/// Conditions on the elements of a collection that only the stored documents can decide: all of them hold for every
/// element but the last, so that all of them are looked at.
fn many_conditions(operator: &str) -> String {
    let parts: Vec<String> = (0..2_900).map(|at| format!("t {operator} 'nothing {at}'")).collect();
    format!("tags/any(t: {} and not (t gt 'a'))", parts.join(" and "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_ends_when_its_client_is_gone() {
    let child = with_documents(None, 10_000).await;
    let body = json!({"filter": many_conditions("gt"), "count": true});
    let asked = tokio::time::timeout(Duration::from_millis(700), search(&child, body)).await;
    assert!(asked.is_err(), "the search was to take longer");
    // The connection was closed with the request. Nothing else is asked, so the process has nothing to do.
    let mut last = child.processor_time();
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = child.processor_time();
        if now - last < Duration::from_millis(300) {
            return;
        }
        last = now;
    }
    panic!("the work goes on without its client");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_ends_when_its_time_is_over() {
    let child = with_documents(None, 10_000).await;
    let started = Instant::now();
    let body = json!({"filter": many_conditions("gt"), "count": true});
    let answer = search(&child, body).await.unwrap();
    assert_eq!(answer.status, 503, "after {:?}", started.elapsed());
    assert_eq!(answer.code(), "RequestTimeout");
    assert!(answer.message().contains("longer than 10 seconds"), "{answer:?}");
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    assert_eq!(search(&child, json!({"search": "name", "top": 1})).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_values_of_one_field_are_one_look() {
    let child = with_documents(None, 4_000).await;
    let either: Vec<String> = (0..1_400).map(|at| format!("t eq 'tag {at}'")).collect();
    for (filter, expected) in [
        (many_conditions("ne"), 0),
        (format!("tags/any(t: {})", either.join(" or ")), 280),
        (format!("tags/all(t: not ({}))", either.join(" or ")), 3_720),
    ] {
        let started = Instant::now();
        let answer = search(&child, json!({"filter": filter, "count": true, "top": 0})).await.unwrap();
        assert_eq!(answer.json()["@odata.count"], expected, "{}", answer.status);
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    }
}
