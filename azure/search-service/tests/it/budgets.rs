//! Tests of the memory and time limits of requests. Each attack uses a query key.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::child::{Child, ChildLimits};

const MIB: u64 = 1 << 20;

fn memory(bytes: u64) -> ChildLimits {
    ChildLimits { memory: Some(bytes), ..ChildLimits::default() }
}

fn time(limit: Duration) -> ChildLimits {
    ChildLimits { time: Some(limit), ..ChildLimits::default() }
}

/// Starts a service with documents whose values are all different.
async fn with_documents(limits: ChildLimits, count: usize) -> Child {
    let child = Child::start(limits);
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
async fn a_hundred_unlimited_facets_do_not_crash_the_process() {
    let mut child = with_documents(memory(1024 * MIB), 10_000).await;
    let before = child.peak_memory();
    let fields = ["id", "name", "number", "price", "tags"];
    let facets: Vec<String> = (0..100).map(|at| format!("{},count:0", fields[at % fields.len()])).collect();
    let answer = search(&child, json!({"facets": facets, "top": 0})).await;
    assert!(!child.has_ended(), "the attack crashed the process");
    let answer = answer.unwrap();
    // The response is complete, or the request exceeds its memory limit or, on a slow machine, its
    // time limit.
    assert!(matches!(answer.status, 200 | 400 | 503), "{}", answer.status);
    let taken = child.peak_memory() - before;
    assert!(taken < 400 * MIB, "the request took {} MiB", taken / MIB);
    let after =
        search(&child, json!({"search": "name", "top": 1, "facets": ["tags,count:3"]})).await.unwrap();
    assert_eq!(after.status, 200, "{after:?}");
    assert_eq!(after.json()["@search.facets"]["tags"].as_array().unwrap().len(), 3);
}

/// Returns conditions on collection elements that only the stored documents can decide. All of them are
/// true for every element except the last condition, so all are evaluated.
fn many_conditions(operator: &str) -> String {
    let parts: Vec<String> = (0..2_900).map(|at| format!("t {operator} 'nothing {at}'")).collect();
    format!("tags/any(t: {} and not (t gt 'a'))", parts.join(" and "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_stops_when_its_client_disconnects() {
    let child = with_documents(time(Duration::from_secs(600)), 10_000).await;
    // The first search commits the documents, and segments are merged after it.
    assert_eq!(search(&child, json!({"search": "name", "top": 1})).await.unwrap().status, 200);
    assert!(is_idle_within(&child, 30).await, "the process does not become idle");
    // Each of these takes several seconds of processor time, and the time limit is far away: all together
    // are not done before the last check, on a fast machine either.
    let body = json!({"filter": many_conditions("gt"), "count": true});
    let asked = (0..8).map(|_| search(&child, body.clone())).collect();
    let asked = tokio::time::timeout(Duration::from_millis(700), join_all(asked)).await;
    assert!(asked.is_err(), "the searches must take longer than the timeout");
    // The connections were closed with the requests, so the process has nothing to do.
    assert!(is_idle_within(&child, 4).await, "the work continues after the disconnect");
}

/// Returns whether the process becomes idle within this many checks of two seconds each.
async fn is_idle_within(child: &Child, looks: usize) -> bool {
    for _ in 0..looks {
        let before = child.processor_time();
        tokio::time::sleep(Duration::from_secs(2)).await;
        // Running work uses more processor time than this, even on a busy machine.
        if child.processor_time() - before < Duration::from_millis(50) {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_stops_at_its_time_limit() {
    // The search would take several seconds, so it meets this limit on a fast machine too.
    let child = with_documents(time(Duration::from_secs(1)), 10_000).await;
    let started = Instant::now();
    let body = json!({"filter": many_conditions("gt"), "count": true});
    let answer = search(&child, body).await.unwrap();
    assert_eq!(answer.status, 503, "after {:?}", started.elapsed());
    assert_eq!(answer.code(), "RequestTimeout");
    assert!(answer.message().contains("longer than 1 seconds"), "{answer:?}");
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    assert_eq!(search(&child, json!({"search": "name", "top": 1})).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_values_of_one_field_are_one_lookup() {
    let child = with_documents(ChildLimits::default(), 4_000).await;
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

/// Expensive requests with a query key. Each one gets a response and stays within the limits of a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_query_exceeds_the_limits_of_a_request() {
    let mut child = with_documents(memory(1536 * MIB), 3_000).await;
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

/// Sends requests at the same time that each use all their memory. Together they stay within the total limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_large_queries_stay_within_the_total_limit() {
    let mut child = with_documents(memory(2048 * MIB), 3_000).await;
    let before = child.peak_memory();
    let filter = format!("search.in(name, '{}')", "some value,".repeat(200_000));
    let facets = vec!["tags,count:0"; 100];
    let body = json!({"filter": filter, "facets": facets});
    let all: Vec<_> = (0..40).map(|_| search(&child, body.clone())).collect();
    let answers = join_all(all).await;
    assert!(!child.has_ended(), "the process has crashed");
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
