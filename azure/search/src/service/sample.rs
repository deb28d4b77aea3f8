//! A small sample for an empty service, so that every tool has data: hiking trails of our own
//! invention, and reports of hikers that an indexer reads from files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::service::client::{SearchClient, odata_key};
use crate::service::failure::ServiceFailure;

/// All definitions, in the order of their references.
const DEFINITIONS: &str = include_str!("sample/definitions.json");
const TRAILS: &str = include_str!("sample/trails.json");
/// The files of the indexer. One row is invalid on purpose.
const REPORTS: [(&str, &str); 2] = [
    ("2026-spring.csv", include_str!("sample/reports-spring.csv")),
    ("2026-summer.csv", include_str!("sample/reports-summer.csv")),
];
/// The folder of the indexer's files, below `blobs`.
const CONTAINER: &str = "trail-reports";
const INDEXER: &str = "trail-reports-indexer";
/// This file exists while the sample is being created. A start that finds it creates the rest.
const UNFINISHED: &str = "sample-unfinished";
/// Dimension of the vectors in the sample.
pub const DIMENSIONS: usize = 8;

/// What was created, as `collection/name`.
#[derive(Clone, Debug, Default)]
pub struct InstalledSample {
    pub made: Vec<String>,
}

/// An error while the sample is created.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    #[error(
        "cannot write the sample file {path}: {source}\n  fix: make the folder writable, or start with --no-sample"
    )]
    File { path: PathBuf, source: io::Error },
    #[error("cannot create the sample's {what}: {message}\n  fix: start with --no-sample")]
    Refused { what: String, message: String },
    #[error("the built-in sample is invalid: {0}")]
    Broken(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct SampleDefinition {
    collection: String,
    definition: Value,
}

/// Creates the sample, unless the service has an index already. `data` is the folder of the embedded service.
pub async fn install(client: &SearchClient, data: &Path) -> Result<Option<InstalledSample>, SampleError> {
    let unfinished = data.join(UNFINISHED);
    if !unfinished.exists() && has_indexes(client).await? {
        return Ok(None);
    }
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|source| SampleError::File { path: path.to_owned(), source })
    };
    write(&unfinished, "The sample is being created. Delete this file to stop that.\n")?;
    let folder = data.join("blobs").join(CONTAINER);
    std::fs::create_dir_all(&folder).map_err(|source| SampleError::File { path: folder.clone(), source })?;
    for (name, text) in REPORTS {
        write(&folder.join(name), text)?;
    }
    let mut sample = InstalledSample::default();
    for SampleDefinition { collection, definition } in
        serde_json::from_str::<Vec<SampleDefinition>>(DEFINITIONS)?
    {
        let name = definition["name"].as_str().unwrap_or_default().to_owned();
        let what = format!("{collection}/{name}");
        // Existing definitions are not changed.
        let path = format!("{collection}{}", odata_key(&name));
        let made = client.put(path, definition).header("if-none-match", "*").send().await;
        match made {
            Ok(_) => sample.made.push(what.clone()),
            Err(failure) if failure.status == Some(412) => {}
            Err(failure) => return Err(refused(what.clone(), &failure)),
        }
        if what == "indexes/trails" {
            upload(client, &name).await?;
        }
    }
    wait_for_indexer(client).await;
    std::fs::remove_file(&unfinished)
        .map_err(|source| SampleError::File { path: unfinished.clone(), source })?;
    Ok(Some(sample))
}

async fn has_indexes(client: &SearchClient) -> Result<bool, SampleError> {
    let indexes = client.get("indexes").query("$select", "name").send().await;
    let indexes = indexes.map_err(|failure| refused("list of indexes".to_owned(), &failure))?;
    Ok(indexes.body["value"].as_array().is_some_and(|indexes| !indexes.is_empty()))
}

/// Uploads the trails, each with a vector of its words.
async fn upload(client: &SearchClient, index: &str) -> Result<(), SampleError> {
    let mut trails: Vec<Value> = serde_json::from_str(TRAILS)?;
    for trail in &mut trails {
        let tags = trail["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut text: Vec<&str> =
            ["name", "description"].iter().filter_map(|name| trail[*name].as_str()).collect();
        text.extend(tags);
        let vector = embed(&text.join(" "));
        trail["embedding"] = json!(vector);
        trail["@search.action"] = json!("upload");
    }
    let path = format!("indexes{}/docs/search.index", odata_key(index));
    let sent = client.post(path, json!({"value": trails})).repeatable().send().await;
    sent.map(|_| ()).map_err(|failure| refused("documents".to_owned(), &failure))
}

/// Waits some seconds for the end of the indexer's first run. A slow machine does not cause a failure.
async fn wait_for_indexer(client: &SearchClient) {
    for _ in 0..100 {
        let status = client.get(format!("indexers{}/search.status", odata_key(INDEXER))).send().await;
        let ended = status.is_ok_and(|status| {
            status
                .body
                .pointer("/lastResult/status")
                .and_then(Value::as_str)
                .is_some_and(|run| run != "inProgress")
        });
        if ended {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn refused(what: String, failure: &ServiceFailure) -> SampleError {
    SampleError::Refused { what, message: failure.message.clone() }
}

/// Returns the vector of a text in the sample: its words, hashed into eight numbers, of length one.
/// Only texts that share words are similar.
pub fn embed(text: &str) -> [f32; DIMENSIONS] {
    let mut vector = [0.0_f32; DIMENSIONS];
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 2) {
        // FNV-1a is the same on every machine.
        let hash = word.to_lowercase().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        for (place, number) in vector.iter_mut().enumerate() {
            // Each number uses its own bit of the hash as its sign.
            *number += if (hash >> (place * 7 + 3)) & 1 == 0 { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    match length > 0.0 {
        true => vector.map(|number| number / length),
        // The zero vector has no cosine.
        false => [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    }
}
