//! Load on the search service: searches with facets and filters, and batches of documents, each checked
//! against the other.
use super::{client, World};
use crate::http::{trouble, Checked, Connection, Reply};
use crate::mcp::{refused, short};
use crate::random::Random;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::task::JoinHandle;

const INDEX: &str = "/indexes/soak";
const VERSION: &str = "api-version=2024-07-01";
/// The number of documents that never change.
const BASE: u64 = 3_000;
/// The number of keys of each writing client.
const KEYS: u64 = 400;
const WORDS: [&str; 12] = [
    "harbour", "lantern", "copper", "meadow", "violin", "anchor", "thunder", "orchard", "granite", "compass",
    "saffron", "willow",
];
const CATEGORIES: u64 = 20;
const TAGS: u64 = 30;

pub fn clients(world: &Rc<World>) -> Vec<JoinHandle<()>> {
    let mut clients = Vec::new();
    for number in 0..4 {
        let mut connection = None;
        clients.push(client(
            world,
            700 + number,
            "search: facets and filter",
            (20, 150),
            async move |world, random| search(random, world.search, &mut connection).await,
        ));
    }
    for number in 0..2 {
        let mut writer = Writer { owner: format!("w{number}"), alive: BTreeMap::new(), connection: None };
        clients.push(client(world, 710 + number, "search: batch", (100, 400), async move |world, random| {
            writer.write(random, world.search).await
        }));
    }
    clients
}

/// Creates the index and fills it.
pub async fn prepare(world: &World) -> Checked<()> {
    let field = |name: &str, kind: &str, has: &[&str]| {
        let mut field = json!({"name": name, "type": kind});
        for attribute in ["key", "searchable", "filterable", "facetable", "sortable"] {
            field[attribute] = json!(has.contains(&attribute));
        }
        field
    };
    let fields = [
        field("id", "Edm.String", &["key", "filterable"]),
        field("owner", "Edm.String", &["filterable"]),
        field("title", "Edm.String", &["searchable"]),
        field("category", "Edm.String", &["filterable", "facetable"]),
        field("tags", "Collection(Edm.String)", &["filterable", "facetable"]),
        field("price", "Edm.Double", &["filterable", "facetable", "sortable"]),
        field("rating", "Edm.Int32", &["filterable", "facetable", "sortable"]),
    ];
    let mut connection = None;
    let definition = json!({"name": "soak", "fields": fields});
    let reply = exchange(world.search, &mut connection, "PUT", INDEX, &definition).await?;
    if reply.head.status != 201 {
        return trouble!("the index was not created: {:?}", reply.messages);
    }
    let mut random = Random::new(1);
    for first in (0..BASE).step_by(500) {
        let documents =
            (first..first + 500).map(|number| document(&mut random, &format!("base-{number}"), "base"));
        let documents: Vec<Value> = documents.collect();
        let batch = json!({"value": documents});
        let reply = exchange(world.search, &mut connection, "POST", &path("/docs/index"), &batch).await?;
        if reply.head.status != 200 {
            return trouble!("the first documents were rejected");
        }
    }
    Ok(())
}

fn path(below: &str) -> String {
    format!("{INDEX}{below}")
}

fn document(random: &mut Random, id: &str, owner: &str) -> Value {
    let words: Vec<&str> = (0..random.between(3, 12)).map(|_| WORDS[random.below(12) as usize]).collect();
    let tags: Vec<String> = (0..random.below(4)).map(|_| format!("tag {}", random.below(TAGS))).collect();
    json!({
        "@search.action": "mergeOrUpload",
        "id": id,
        "owner": owner,
        "title": format!("{} {}", words.join(" "), random.text()),
        "category": format!("category {}", random.below(CATEGORIES)),
        "tags": tags,
        "price": random.below(20_000) as f64 / 100.0,
        "rating": random.between(1, 5),
    })
}

async fn exchange(
    port: u16,
    kept: &mut Option<Connection>,
    verb: &str,
    path: &str,
    body: &Value,
) -> Checked<Reply> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(port).await?,
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{verb} {path}?{VERSION} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let reply = connection.exchange(port, request.as_bytes()).await?;
    *kept = Some(connection);
    Ok(reply)
}

/// Returns the outcome of a rejection that has `Retry-After`.
fn refusal(reply: &Reply) -> Option<&'static str> {
    let status = reply.head.status;
    (matches!(status, 429 | 503) && reply.head.header("retry-after").is_some()).then(|| refused(status))
}

/// Runs a search and checks that count, facets and documents agree, because they come from one snapshot.
async fn search(random: &mut Random, port: u16, kept: &mut Option<Connection>) -> Checked<&'static str> {
    if random.one_in(50) {
        *kept = None;
    }
    let text = match random.below(4) {
        0 => "*".to_owned(),
        1 => format!("{}*", &WORDS[random.below(12) as usize][..4]),
        _ => format!("{} {}", WORDS[random.below(12) as usize], WORDS[random.below(12) as usize]),
    };
    let most = random.between(20, 200) as f64;
    let excluded = format!("category {}", random.below(CATEGORIES));
    let mut filter = format!("price lt {most:?} and category ne '{excluded}'");
    if random.one_in(3) {
        filter += &format!(" and tags/any(t: t eq 'tag {}')", random.below(TAGS));
    }
    let body = json!({
        "search": text, "filter": filter, "count": true, "top": 10, "orderby": "price desc",
        "facets": ["category,count:40", "rating", "tags,count:60,sort:count", "price,interval:20"],
    });
    let reply = exchange(port, kept, "POST", &path("/docs/search"), &body).await?;
    if let Some(outcome) = refusal(&reply) {
        return Ok(outcome);
    }
    let answer = reply.messages.into_iter().next().unwrap_or_default();
    let Some(count) = answer["@odata.count"].as_u64().filter(|_| reply.head.status == 200) else {
        return trouble!("status {} for {body}: {}", reply.head.status, short(&answer));
    };
    for facet in ["category", "rating", "price"] {
        let buckets = answer["@search.facets"][facet].as_array().into_iter().flatten();
        let sum: u64 = buckets.filter_map(|bucket| bucket["count"].as_u64()).sum();
        if sum != count {
            return trouble!("{count} documents, but {sum} in the facet {facet} for {body}");
        }
    }
    let documents = answer["value"].as_array().cloned().unwrap_or_default();
    if documents.len() as u64 != count.min(10) {
        return trouble!("{} documents on a page of 10, {count} in total, for {body}", documents.len());
    }
    let fits = |document: &Value| {
        document["price"].as_f64().is_some_and(|price| price < most) && document["category"] != *excluded
    };
    match documents.iter().find(|document| !fits(document)) {
        Some(document) => trouble!("a document that the filter excludes: {document} for {body}"),
        None => Ok("answered"),
    }
}

/// A client that writes its own documents and tracks their expected content.
struct Writer {
    owner: String,
    /// The titles of its documents by their ids.
    alive: BTreeMap<String, String>,
    connection: Option<Connection>,
}

impl Writer {
    async fn write(&mut self, random: &mut Random, port: u16) -> Checked<&'static str> {
        let mut changes = BTreeMap::new();
        for _ in 0..random.between(5, 60) {
            let id = format!("{}-{}", self.owner, random.below(KEYS));
            let change = match random.below(6) {
                0 => json!({"@search.action": "delete", "id": id}),
                _ => document(random, &id, &self.owner),
            };
            changes.insert(id, change);
        }
        let batch: Vec<&Value> = changes.values().collect();
        let reply =
            exchange(port, &mut self.connection, "POST", &path("/docs/index"), &json!({"value": batch}))
                .await?;
        if let Some(outcome) = refusal(&reply) {
            return Ok(outcome);
        }
        let results = reply.messages.first().map(|answer| answer["value"].clone()).unwrap_or_default();
        let results = results.as_array().cloned().unwrap_or_default();
        let all_taken = results.len() == batch.len() && results.iter().all(|result| result["status"] == true);
        if reply.head.status != 200 || !all_taken {
            return trouble!(
                "status {} for a batch of {}: {:?}",
                reply.head.status,
                batch.len(),
                reply.messages
            );
        }
        for (id, change) in &changes {
            match change["title"].as_str() {
                Some(title) => self.alive.insert(id.clone(), title.to_owned()),
                None => self.alive.remove(id),
            };
        }
        let looked_up = changes.keys().nth(random.below(changes.len() as u64) as usize).cloned();
        self.look_up(port, &looked_up.unwrap_or_default()).await?;
        self.count(port).await?;
        Ok("taken, and read again")
    }

    async fn look_up(&mut self, port: u16, id: &str) -> Checked<()> {
        let reply =
            exchange(port, &mut self.connection, "GET", &path(&format!("/docs/{id}")), &Value::Null).await?;
        let title = reply.messages.first().and_then(|document| document["title"].as_str());
        let expected = self.alive.get(id).map(String::as_str);
        if title != expected || reply.head.status != if expected.is_some() { 200 } else { 404 } {
            return trouble!(
                "document {id}: expected {expected:?}, got status {} {title:?}",
                reply.head.status
            );
        }
        Ok(())
    }

    /// Checks that a search sees every batch that was acknowledged before it.
    async fn count(&mut self, port: u16) -> Checked<()> {
        let body =
            json!({"search": "*", "filter": format!("owner eq '{}'", self.owner), "count": true, "top": 0});
        let reply = exchange(port, &mut self.connection, "POST", &path("/docs/search"), &body).await?;
        let count = reply.messages.first().and_then(|answer| answer["@odata.count"].as_u64());
        if count != Some(self.alive.len() as u64) && refusal(&reply).is_none() {
            return trouble!(
                "{} documents of {} are there, a search finds {count:?}",
                self.alive.len(),
                self.owner
            );
        }
        Ok(())
    }
}
