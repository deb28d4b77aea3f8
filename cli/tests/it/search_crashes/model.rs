//! The expected contents of the index. Each writer keeps its own part.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::INDEX;
use super::client::Client;

/// Pseudorandom numbers, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Document {
    n: u64,
    text: String,
    vector: bool,
}

type Documents = BTreeMap<String, Document>;

/// A writer with its own keys, so that its batches have a defined order.
pub(crate) struct Writer {
    number: u64,
    batches: u64,
    /// The expected documents after the last acknowledged batch.
    kept: Documents,
    /// The expected documents after a batch without acknowledgement: it is stored completely or not at all.
    perhaps: Option<Documents>,
}

impl Writer {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, batches: 0, kept: Documents::new(), perhaps: None }
    }

    /// Sends a batch. Returns false if there was no response.
    pub(crate) fn write(&mut self, client: &mut Client, random: &mut Random) -> bool {
        self.batches += 1;
        let (writer, n) = (self.number, self.batches);
        let text = format!("b{writer}x{n}");
        let mut after = self.kept.clone();
        let mut actions = Vec::new();
        for _ in 0..20 + random.below(20) {
            let key = format!("w{writer}-{}", random.below(60));
            let kind = random.below(10);
            if kind < 3 {
                actions.push(json!({"@search.action": "delete", "id": key}));
                after.remove(&key);
            } else if let (3..5, Some(document)) = (kind, after.get_mut(&key)) {
                actions.push(json!({"@search.action": "merge", "id": key, "n": n}));
                document.n = n;
            } else {
                let vector = random.below(4) > 0;
                let values = vector.then(|| json!([n, writer, 1]));
                actions.push(json!({"@search.action": "upload", "id": key, "writer": writer, "n": n,
                    "text": format!("common {text}"), "v": values}));
                after.insert(key, Document { n, text: format!("common {text}"), vector });
            }
        }
        match client.ask("POST", &format!("{INDEX}/docs/search.index"), Some(&json!({"value": actions}))) {
            Ok((200, _)) => {
                self.kept = after;
                true
            }
            Ok((status, answer)) => panic!("{status} {answer}"),
            Err(_) => {
                self.perhaps = Some(after);
                false
            }
        }
    }
}

fn search(client: &mut Client, mut request: Value) -> Vec<Value> {
    request["top"] = json!(1000);
    let path = format!("{INDEX}/docs/search.post.search");
    let (status, mut answer) = client.ask("POST", &path, Some(&request)).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    match answer["value"].take() {
        Value::Array(found) => found,
        other => panic!("{other}"),
    }
}

fn keys(found: &[Value]) -> BTreeSet<String> {
    found.iter().map(|document| document["id"].as_str().expect("a key").to_owned()).collect()
}

/// Compares all results of the service with the acknowledged documents.
pub(crate) fn compare(client: &mut Client, writers: &mut [Writer], round: u64) {
    let found = search(client, json!({"search": "*", "select": "id,n,text,v"}));
    let mut documents = Documents::new();
    for document in &found {
        let n = document["n"].as_u64().unwrap_or_else(|| panic!("round {round}: {document}"));
        let text = document["text"].as_str().expect("a text").to_owned();
        let vector = document["v"].as_array().is_some_and(|vector| !vector.is_empty());
        let key = document["id"].as_str().expect("a key").to_owned();
        let twice = documents.insert(key, Document { n, text, vector });
        assert_eq!(twice, None, "round {round}: {document} is found twice");
    }
    let mut last = Vec::new();
    for writer in &mut *writers {
        let prefix = format!("w{}-", writer.number);
        let own = documents.iter().filter(|(key, _)| key.starts_with(&prefix));
        let own: Documents = own.map(|(key, document)| (key.clone(), document.clone())).collect();
        let perhaps = writer.perhaps.take();
        if perhaps.as_ref() != Some(&own) {
            assert_eq!(own, writer.kept, "round {round}, writer {}, perhaps {perhaps:#?}", writer.number);
        }
        let filter = format!("writer eq {}", writer.number);
        let filtered = keys(&search(client, json!({"search": "*", "filter": filter, "select": "id"})));
        assert_eq!(filtered, own.keys().cloned().collect(), "round {round}: {filter}");
        writer.kept = own;
        last.push((writer.number, writer.batches));
    }
    let all: usize = writers.iter().map(|writer| writer.kept.len()).sum();
    assert_eq!(documents.len(), all, "round {round}: unexpected documents");
    let count = client.ask("GET", &format!("{INDEX}/docs/$count"), None).expect("an answer").1;
    assert_eq!(count, json!(all), "round {round}");
    let with_vectors = documents.iter().filter(|(_, document)| document.vector);
    let near = json!({"kind": "vector", "vector": [1, 1, 1], "fields": "v", "k": 1000});
    let near = search(client, json!({"vectorQueries": [near], "select": "id"}));
    assert_eq!(keys(&near), with_vectors.map(|(key, _)| key.clone()).collect(), "round {round}");
    for (writer, batch) in last {
        for word in [batch.saturating_sub(1), batch].map(|n| format!("b{writer}x{n}")) {
            let expected =
                documents.iter().filter(|(_, document)| document.text.ends_with(&format!(" {word}")));
            let found = keys(&search(client, json!({"search": word, "select": "id"})));
            assert_eq!(found, expected.map(|(key, _)| key.clone()).collect(), "round {round}: {word}");
        }
        for at in 0..4 {
            let key = format!("w{writer}-{}", (round * 7 + at * 13) % 60);
            let looked = client.ask("GET", &format!("{INDEX}/docs('{key}')"), None).expect("an answer");
            match documents.get(&key) {
                Some(document) => assert_eq!((looked.0, &looked.1["n"]), (200, &json!(document.n)), "{key}"),
                None => assert_eq!(looked.0, 404, "round {round}: {key}"),
            }
        }
    }
    if round.is_multiple_of(10) {
        let request = json!({"search": "comm", "suggesterName": "sg", "top": 100});
        let path = format!("{INDEX}/docs/search.post.suggest");
        let (_, suggested) = client.ask("POST", &path, Some(&request)).expect("an answer");
        assert_eq!(suggested["value"].as_array().map(Vec::len), Some(all.min(100)), "round {round}");
    }
}
