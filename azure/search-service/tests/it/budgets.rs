//! What one request may take: memory and time. Each attack here comes with a query key.

use std::future::poll_fn;
use std::task::Poll;
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
    let suggesters = json!([
        {"name": "all", "searchMode": "analyzingInfixMatching", "sourceFields": ["name", "tags"]},
    ]);
    let index = json!({"name": "things", "fields": fields, "suggesters": suggesters});
    let made = child.send("POST", "/indexes", Some(index)).await;
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
    // The first search commits the documents, and segments are merged after it.
    assert_eq!(search(&child, json!({"search": "name", "top": 1})).await.unwrap().status, 200);
    assert!(rests_within(&child, 30).await, "the process does not come to rest");
    let body = json!({"filter": many_conditions("gt"), "count": true});
    let asked = tokio::time::timeout(Duration::from_millis(700), search(&child, body)).await;
    assert!(asked.is_err(), "the search was to take longer");
    // The connection was closed with the request. Nothing else is asked, so the process has nothing to do. Its time
    // would be over after ten seconds.
    assert!(rests_within(&child, 4).await, "the work goes on without its client");
}

/// Whether the process has nothing to do, within so many looks of two seconds each.
async fn rests_within(child: &Child, looks: usize) -> bool {
    for _ in 0..looks {
        let before = child.processor_time();
        tokio::time::sleep(Duration::from_secs(2)).await;
        // Work that goes on gets more than this, however many others share the processors.
        if child.processor_time() - before < Duration::from_millis(50) {
            return true;
        }
    }
    false
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

/// Everything that a query key can ask for at length. Each is answered, and costs no more than a request may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_query_takes_more_than_its_share() {
    let mut child = with_documents(Some(1536 * MIB), 3_000).await;
    let before = child.peak_memory();
    let values = |count: usize| (0..count).map(|at| format!("v{at}")).collect::<Vec<_>>().join(",");
    let order = ["name", "number desc", "price", "id desc"].repeat(8).join(",");
    let clauses = |clause: &str, count: usize, with: &str| vec![clause; count].join(with);
    let deep = format!("{}number ge 0{}", "not (".repeat(48), ")".repeat(48));
    let attacks = [
        ("a set of values", json!({"filter": format!("search.in(name, '{}')", values(200_000))})),
        ("a set that is too large", json!({"filter": format!("search.in(name, '{}')", values(1_000_000))})),
        ("many clauses", json!({"filter": clauses("number ge 0", 3_000, " and "), "top": 0, "count": true})),
        ("more clauses than there may be", json!({"filter": clauses("number ge 0", 3_001, " or ")})),
        ("deep clauses", json!({"filter": deep, "top": 0})),
        (
            "deeper clauses",
            json!({"filter": format!("{}number ge 0{}", "(".repeat(50_000), ")".repeat(50_000))}),
        ),
        ("a long order", json!({"orderby": order, "skip": 100_000, "top": 1_000})),
        ("an order beyond its length", json!({"orderby": clauses("name", 33, ",")})),
        ("all that can be skipped", json!({"skip": 100_000, "top": i64::MAX, "count": true})),
        ("more than can be skipped", json!({"skip": i64::MAX})),
        ("a long list of fields", json!({"select": clauses("name", 300_000, ","), "top": 1_000})),
        ("many wildcards", json!({"search": clauses("n*", 1_000, " "), "queryType": "full", "top": 0})),
        ("wide patterns", json!({"search": clauses("/.*a.*/", 60, " "), "queryType": "full", "count": true})),
        ("many fuzzy words", json!({"search": clauses("number~2", 160, " "), "queryType": "full"})),
        ("a long text", json!({"search": "name ".repeat(19_000)})),
        (
            "the same word",
            json!({"search": clauses("number", 1_024, " "), "highlight": "name", "top": 1_000}),
        ),
        (
            "a long phrase",
            json!({"search": format!("\"{}\"", clauses("number", 1_000, " ")), "highlight": "name"}),
        ),
        (
            "long tags",
            json!({"search": "name", "highlight": "name", "highlightPreTag": "x".repeat(1 << 20),
                             "highlightPostTag": "y".repeat(1 << 20), "top": 1_000}),
        ),
        (
            "many ranges",
            json!({"facets": [format!("number,values:{}", (0..1_001).map(|at| at.to_string()).collect::<Vec<_>>().join("|"))]}),
        ),
        ("many facets", json!({"facets": vec!["name"; 101]})),
        (
            "many vectors",
            json!({"vectorQueries": vec![json!({"kind": "vector", "fields": "v", "vector": [0.0]}); 1_000]}),
        ),
        ("numbers without end", json!({"vectorQueries": vec![0; 2_000_000]})),
        ("lists within lists", json!({"facets": vec![json!([]); 1_000_000]})),
    ];
    for (name, body) in attacks {
        let answer = search(&child, body).await;
        assert!(!child.has_ended(), "{name}: the process has ended");
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            matches!(answer.status, 200 | 400 | 413 | 503),
            "{name}: {} {:.300}",
            answer.status,
            answer.text
        );
        let taken = child.peak_memory() - before;
        assert!(taken < 600 * MIB, "{name}: {} MiB", taken / MIB);
    }
    let everything = format!("{} or number ge 0", clauses("tags/any(t: t gt 'a')", 1_000, " or "));
    for operation in ["suggest", "autocomplete"] {
        for (search, fuzzy) in [("t", false), ("tag", true), ("ta na nu of th", true)] {
            let body = json!({
                "search": search, "suggesterName": "all", "fuzzy": fuzzy, "top": 100, "filter": everything,
            });
            let target = format!("/indexes('things')/docs/search.post.{operation}");
            let answer = child.try_send(&child.query_key, "POST", &target, Some(body)).await;
            assert!(!child.has_ended(), "{operation} {search}: the process has ended");
            let answer = answer.unwrap();
            assert!(matches!(answer.status, 200 | 503), "{operation} {search}: {:.300}", answer.text);
        }
    }
    let taken = child.peak_memory() - before;
    assert!(taken < 600 * MIB, "{} MiB", taken / MIB);
    assert_eq!(search(&child, json!({"search": "name", "top": 1})).await.unwrap().status, 200);
}

/// Requests that each take all they may, at the same time: together they take no more than all of them may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_queries_at_once_share_what_there_is() {
    let mut child = with_documents(Some(2048 * MIB), 3_000).await;
    let before = child.peak_memory();
    let filter = format!("search.in(name, '{}')", "some value,".repeat(200_000));
    let facets = vec!["tags,count:0"; 100];
    let body = json!({"filter": filter, "facets": facets});
    let all: Vec<_> = (0..40).map(|_| search(&child, body.clone())).collect();
    let answers = join_all(all).await;
    assert!(!child.has_ended(), "the process has ended");
    for answer in answers {
        let answer = answer.unwrap();
        assert!(matches!(answer.status, 200 | 400 | 503), "{} {:.300}", answer.status, answer.text);
    }
    let taken = child.peak_memory() - before;
    assert!(taken < 1_200 * MIB, "{} MiB", taken / MIB);
    assert_eq!(search(&child, json!({"search": "name", "top": 1})).await.unwrap().status, 200);
}

async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(result) = future.as_mut().poll(context)
            {
                *done = Some(result);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
