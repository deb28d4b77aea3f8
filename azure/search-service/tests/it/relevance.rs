//! Measures the ranking with a small collection of judged documents: nDCG@10 for several configurations
//! of an index.
//!
//! `tests/relevance/documents.jsonl` has the documents and `queries.jsonl` the queries. Each query has a kind
//! in `about` and grades from 1 to 3 for the relevant documents. All other documents have the grade 0.

use std::collections::BTreeMap;

use bindpost_azure_search_model::syntax::synonyms::SynonymRules;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::TestIndex;

const DOCUMENTS: &str = include_str!("../relevance/documents.jsonl");
const QUERIES: &str = include_str!("../relevance/queries.jsonl");

const SYNONYMS: &str =
    "bicycle, bike, cycling\nplane, flight\nticket, fare\npuncture, flat tire\nrepair, fix";

#[derive(Deserialize)]
struct Query {
    id: String,
    about: String,
    search: String,
    #[serde(rename = "queryType", default = "simple")]
    query_type: String,
    judgments: BTreeMap<String, u32>,
}

fn simple() -> String {
    "simple".to_owned()
}

fn lines<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// Returns the discounted gain of the first ten results, relative to the best order.
fn ndcg(found: &[String], judgments: &BTreeMap<String, u32>) -> f64 {
    let gain = |grades: &mut dyn Iterator<Item = u32>| -> f64 {
        let discounted =
            |(rank, grade): (u32, u32)| (2_f64.powf(grade.into()) - 1.0) / f64::from(rank + 2).log2();
        (0..10).zip(grades).map(discounted).sum()
    };
    let mut best: Vec<u32> = judgments.values().copied().collect();
    best.sort_unstable_by(|left, right| right.cmp(left));
    let mut grades = found.iter().map(|key| judgments.get(key).copied().unwrap_or_default());
    gain(&mut grades) / gain(&mut best.into_iter())
}

const DIMENSIONS: usize = 64;

/// Converts a text to a vector. The hash of each word selects a number and adds to it or subtracts from
/// it. The vector represents words, not meaning.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    for word in text.to_lowercase().split(|character: char| !character.is_alphanumeric()) {
        // Short words occur in most texts.
        if word.len() < 4 {
            continue;
        }
        // FNV-1a is the same in every run and on every machine.
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
        vector[usize::try_from(hash % DIMENSIONS as u64).unwrap()] += sign;
    }
    // A text with only short words needs a direction too.
    vector[0] += 0.001;
    vector
}

fn one_field() -> TestIndex {
    let mut index = TestIndex::new(&json!({"name": "one", "fields": [
        {"name": "id", "type": "Edm.String", "key": true, "searchable": false},
        {"name": "text", "type": "Edm.String", "analyzer": "standard.lucene"},
    ]}));
    let joined = |document: Value| {
        let text = format!("{}. {}", document["title"].as_str().unwrap(), document["body"].as_str().unwrap());
        json!({"id": document["id"], "text": text})
    };
    index.upload(lines::<Value>(DOCUMENTS).into_iter().map(joined));
    index
}

fn english(synonyms: bool) -> TestIndex {
    let text = |name: &str| {
        let maps = if synonyms { json!(["ours"]) } else { json!([]) };
        json!({"name": name, "type": "Edm.String", "analyzer": "en.lucene", "synonymMaps": maps})
    };
    let mut index = TestIndex::new(&json!({
        "name": "english",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "searchable": false},
            text("title"),
            text("body"),
            {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": DIMENSIONS, "vectorSearchProfile": "p"},
        ],
        "scoringProfiles": [{"name": "titles", "text": {"weights": {"title": 3, "body": 1}}}],
        "vectorSearch": {
            "profiles": [{"name": "p", "algorithm": "h"}],
            "algorithms": [{"name": "h", "kind": "hnsw"}],
        },
    }));
    if synonyms {
        index.synonyms.set("ours", Some(SynonymRules::parse(SYNONYMS).unwrap()));
    }
    index.upload(lines::<Value>(DOCUMENTS).into_iter().map(|mut document| {
        let text = format!("{} {}", document["title"].as_str().unwrap(), document["body"].as_str().unwrap());
        document["vector"] = json!(vector(&text));
        document
    }));
    index
}

/// Returns nDCG@10 of each query. `over` overrides members of the request.
fn measure(index: &TestIndex, queries: &[Query], over: impl Fn(&Query) -> Value) -> Vec<f64> {
    let rank = |query: &Query| {
        let mut body = json!({"search": query.search, "queryType": query.query_type, "top": 10});
        body.as_object_mut().unwrap().extend(over(query).as_object().unwrap().clone());
        ndcg(&index.search(body).keys, &query.judgments)
    };
    queries.iter().map(rank).collect()
}

fn mean(figures: impl Iterator<Item = f64>) -> f64 {
    let figures: Vec<f64> = figures.collect();
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[test]
fn judged_documents_exist_and_grades_are_in_range() {
    let keys: Vec<Value> =
        lines::<Value>(DOCUMENTS).into_iter().map(|document| document["id"].clone()).collect();
    for query in lines::<Query>(QUERIES) {
        assert!(query.judgments.values().any(|grade| *grade == 3), "{}", query.id);
        for (key, grade) in &query.judgments {
            assert!((1..=3).contains(grade) && keys.contains(&json!(key)), "{}: {key}", query.id);
        }
    }
}

/// The floors are 0.01 below the values at the time they were set. A lower value means a worse ranking.
#[test]
fn ranking_does_not_get_worse() {
    let queries: Vec<Query> = lines(QUERIES);
    let (plain, english, synonyms) = (one_field(), english(false), english(true));
    let profile = json!({"scoringProfile": "titles"});
    let nearest = |query: &Query| json!({"vectorQueries": [{"kind": "vector", "vector": vector(&query.search), "fields": "vector", "k": 10}]});
    let none = |_: &Query| json!({});
    let rows = [
        ("standard analyzer, one field", measure(&plain, &queries, none), 0.651),
        ("English, title and body", measure(&english, &queries, none), 0.876),
        ("English, weighted titles", measure(&english, &queries, |_| profile.clone()), 0.876),
        ("English, weighted titles, synonyms", measure(&synonyms, &queries, |_| profile.clone()), 0.940),
        ("English and hashed vectors", measure(&english, &queries, nearest), 0.793),
    ];
    let mut kinds: Vec<&str> = queries.iter().map(|query| query.about.as_str()).collect();
    kinds.dedup();
    let mut table = format!("{:<36}{:>8}", "nDCG@10", "all");
    for kind in &kinds {
        table += &format!("{kind:>15}");
    }
    for (name, figures, _) in &rows {
        table += &format!("\n{name:<36}{:>8.4}", mean(figures.iter().copied()));
        for kind in &kinds {
            let own = queries.iter().zip(figures).filter(|(query, _)| query.about == *kind);
            table += &format!("{:>15.4}", mean(own.map(|(_, figure)| *figure)));
        }
    }
    eprintln!("{table}");
    for (name, figures, floor) in &rows {
        let measured = mean(figures.iter().copied());
        let each: Vec<String> =
            queries.iter().zip(figures).map(|(query, figure)| format!("{} {figure:.3}", query.id)).collect();
        assert!(measured >= *floor, "{name}: {measured:.4} is below {floor}\n{table}\n{}", each.join(", "));
    }
    let all = |row: usize| mean(rows[row].1.iter().copied());
    assert!(all(1) > all(0), "English stems and stop words must help\n{table}");
    assert!(all(3) > all(2), "synonyms must help\n{table}");
}
