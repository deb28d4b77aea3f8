//! Resources and lists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindpost::ListKind;
use bindpost::prelude::*;
use serde::Serialize;

/// The notes of the reading room, by name.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize)]
struct OpeningHours {
    from: u8,
    until: u8,
}

/// When the library is open.
#[resource("library://hours")]
fn hours() -> OpeningHours {
    OpeningHours { from: 9, until: 18 }
}

/// A note of the reading room.
#[resource("note:///{name}", mime_type = "text/plain")]
fn note(
    State(notes): State<Notes>,
    context: Context,
    #[arg(complete = note_names)] name: String,
) -> Result<String, ProtocolError> {
    let found = notes.lock().get(&name).cloned();
    found.ok_or_else(|| ProtocolError::UnknownResource(context.name().to_owned()))
}

fn note_names(typed: &str, State(notes): State<Notes>) -> Vec<String> {
    notes.lock().keys().filter(|name| name.starts_with(typed)).cloned().collect()
}

/// Lists the notes. It runs for each `resources/list`.
#[resource_list("note")]
fn list_notes(State(notes): State<Notes>) -> Vec<Resource> {
    notes.lock().keys().map(|name| Resource::new(format!("note:///{name}"), name)).collect()
}

/// Writes a note.
#[tool(idempotent)]
fn write_note(State(notes): State<Notes>, context: Context, name: String, text: String) -> String {
    let uri = format!("note:///{name}");
    let is_new = notes.lock().insert(name, text).is_none();
    match is_new {
        // Clients that watch the lists list the resources again.
        true => context.server().catalog().announce_list(ListKind::Resources),
        // Subscribers read the note again.
        false => context.server().resource_updated(&uri),
    }
    format!("wrote {uri}")
}

pub fn server(notes: Notes) -> Result<Server, BuildError> {
    let entries = entries![hours, note, list_notes, write_note];
    Server::builder("library", "1.0.0").state(notes).add(entries).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::{ServerChange, TestClient};
    use serde_json::json;

    #[tokio::test]
    async fn notes_are_listed_read_and_completed() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server(Notes::default())?);
        client.call("write_note", json!({"name": "rules", "text": "be quiet"})).await?;
        let uris: Vec<String> = client.list_resources().await?.into_iter().map(|it| it.uri).collect();
        assert_eq!(uris, ["library://hours", "note:///rules"]);
        assert_eq!(client.read("note:///rules").await?.text(), "be quiet");
        assert_eq!(client.read("library://hours").await?.text(), r#"{"from":9,"until":18}"#);
        let completion = client.complete_template("note:///{name}", "name", "ru", ()).await?;
        assert_eq!(completion.values, ["rules"]);
        let error = client.read("note:///nope").await.unwrap_err();
        assert!(error.to_string().contains("resource not found: note:///nope"), "{error}");
        Ok(())
    }

    #[tokio::test]
    async fn subscribers_are_notified() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server(Notes::default())?);
        client.watch_lists().await?;
        client.call("write_note", json!({"name": "rules", "text": "be quiet"})).await?;
        assert_eq!(client.next_change().await?, ServerChange::Resources);
        client.subscribe("note:///rules").await?;
        client.call("write_note", json!({"name": "rules", "text": "no food"})).await?;
        assert_eq!(client.next_change().await?, ServerChange::Resource("note:///rules".to_owned()));
        Ok(())
    }
}
