//! Compares vector search over an index with an exhaustive comparison, with and without filters.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::engine::TestIndex;

const DOCUMENTS: usize = 2000;
const DIMENSIONS: usize = 24;
const METRICS: [&str; 3] = ["cosine", "euclidean", "dotProduct"];

/// Random numbers from -1 to 1, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / 8_388_608.0 - 1.0
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| self.next()).collect()
    }
}

struct Neighbours {
    index: TestIndex,
    vectors: HashMap<String, Vec<f32>>,
}

impl Neighbours {
    /// Creates an index from several batches that also replace and remove vectors.
    fn new() -> Self {
        let vector = |metric: &str| json!({"name": metric, "type": "Collection(Edm.Single)", "dimensions": DIMENSIONS, "vectorSearchProfile": metric});
        let mut fields = vec![
            json!({"name": "id", "type": "Edm.String", "key": true}),
            json!({"name": "group", "type": "Edm.Int32", "filterable": true}),
            json!({"name": "tags", "type": "Collection(Edm.String)", "filterable": true}),
        ];
        fields.extend(METRICS.map(vector));
        let algorithm =
            |metric: &str| json!({"name": metric, "kind": "hnsw", "hnswParameters": {"metric": metric}});
        let mut index = TestIndex::new(&json!({
            "name": "vectors",
            "fields": fields,
            "vectorSearch": {
                "profiles": METRICS.map(|metric| json!({"name": metric, "algorithm": metric})),
                "algorithms": METRICS.map(algorithm),
            },
        }));
        let mut random = Random(7);
        let mut vectors = HashMap::new();
        let mut document = |number: usize| {
            let vector = random.vector();
            let key = format!("d{number:04}");
            vectors.insert(key.clone(), vector.clone());
            let mut document = json!({"id": key, "group": number % 10, "tags": [format!("t{}", number % 3)]});
            for metric in METRICS {
                document[metric] = json!(vector);
            }
            document
        };
        for batch in 0..5 {
            let numbers = batch * DOCUMENTS / 5..(batch + 1) * DOCUMENTS / 5;
            index.upload(numbers.map(&mut document).collect::<Vec<_>>());
        }
        index.upload((0..DOCUMENTS).step_by(37).map(&mut document).collect::<Vec<_>>());
        let deleted: Vec<String> = (5..DOCUMENTS).step_by(41).map(|number| format!("d{number:04}")).collect();
        index.delete(deleted.iter().map(String::as_str));
        for key in &deleted {
            vectors.remove(key);
        }
        index.reopen();
        Self { index, vectors }
    }

    /// Returns the nearest allowed documents by comparing with each document.
    fn nearest(&self, metric: &str, to: &[f32], k: usize, allowed: impl Fn(&Value) -> bool) -> Vec<String> {
        let product = |one: &[f32], other: &[f32]| {
            one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
        };
        let distance = |vector: &[f32]| -> f64 {
            let dot: f64 = product(vector, to);
            let (own, other): (f64, f64) = (product(vector, vector), product(to, to));
            match metric {
                "cosine" => 1.0 - dot / (own * other).sqrt(),
                "euclidean" => own + other - 2.0 * dot,
                _ => -dot,
            }
        };
        let allowed = self.index.documents.iter().filter(|(_, document)| allowed(document));
        let mut ranked: Vec<(f64, &String)> =
            allowed.map(|(key, _)| (distance(&self.vectors[key]), key)).collect();
        ranked.sort_by(|left, right| left.0.total_cmp(&right.0));
        ranked.into_iter().take(k).map(|(_, key)| key.clone()).collect()
    }

    fn ask(&self, metric: &str, vector: &[f32], over: &Value) -> Vec<String> {
        let mut query = json!({"kind": "vector", "vector": vector, "fields": metric, "k": 10});
        let mut body = json!({"top": 10});
        for (name, value) in over.as_object().unwrap() {
            let place = if ["k", "exhaustive", "filterOverride"].contains(&name.as_str()) {
                &mut query
            } else {
                &mut body
            };
            place[name] = value.clone();
        }
        body["vectorQueries"] = json!([query]);
        self.index.search(body).keys
    }
}

#[test]
fn the_nearest_ten_are_those_of_a_full_comparison() {
    let neighbours = Neighbours::new();
    let mut random = Random(99);
    let in_group = |document: &Value| document["group"].as_i64().unwrap() < 2;
    let rare = |document: &Value| document["group"] == 3 && document["tags"][0] == "t1";
    let all = |_: &Value| true;
    let (some, few) = ("group lt 2", "group eq 3 and tags/any(t: t eq 't1')");
    for round in 0..10 {
        let vector = random.vector();
        for metric in METRICS {
            let check = |over: Value, expected: Vec<String>| {
                let found = neighbours.ask(metric, &vector, &over);
                assert_eq!(found, expected, "round {round}, {metric}: {over}");
            };
            let nearest =
                |k, allowed: &dyn Fn(&Value) -> bool| neighbours.nearest(metric, &vector, k, allowed);
            check(json!({}), nearest(10, &all));
            check(json!({"exhaustive": true}), nearest(10, &all));
            // preFilter: the nearest documents that match the filter.
            check(json!({"filter": some}), nearest(10, &in_group));
            check(json!({"filter": few, "vectorFilterMode": "preFilter"}), nearest(10, &rare));
            check(json!({"filter": some, "filterOverride": few}), {
                // The override selects the candidates. The filter of the request is not applied.
                nearest(10, &rare)
            });
            // postFilter: those of the nearest k that match the filter.
            for mode in ["postFilter", "strictPostFilter"] {
                let kept = |keys: Vec<String>, allowed: &dyn Fn(&Value) -> bool| -> Vec<String> {
                    keys.into_iter()
                        .filter(|key| allowed(&neighbours.index.documents[key]))
                        .take(10)
                        .collect()
                };
                let over = json!({"filter": some, "vectorFilterMode": mode, "k": 100});
                check(over, kept(nearest(100, &all), &in_group));
                let over = json!({"filter": few, "vectorFilterMode": mode, "k": 50});
                check(over, kept(nearest(50, &all), &rare));
            }
        }
    }
}

#[test]
fn all_pages_of_neighbours_together_are_the_whole_result() {
    let neighbours = Neighbours::new();
    let vector = Random(3).vector();
    for filter in [Value::Null, json!("group lt 5")] {
        for mode in ["preFilter", "postFilter"] {
            let over = |skip: usize, top: usize| json!({"k": 60, "skip": skip, "top": top, "filter": filter, "vectorFilterMode": mode});
            let whole = neighbours.ask("cosine", &vector, &over(0, 100));
            let pages = (0..whole.len()).step_by(7);
            let paged: Vec<String> =
                pages.flat_map(|skip| neighbours.ask("cosine", &vector, &over(skip, 7))).collect();
            assert_eq!(paged, whole, "{filter} {mode}");
        }
    }
}
