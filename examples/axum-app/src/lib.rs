//! An axum app with a REST API and an MCP server on one port. Both use the same notes.
//!
//! [`router`] mounts the endpoint beside the routes of the app, and puts layers of `tower-http` around all of
//! them. [`serve`] shuts both down together.

#![allow(missing_docs, reason = "an example, not a library for others")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use bindpost::http::{Endpoint, Settings};
use bindpost::{BuildError, Server, ToolError, tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tower_http::cors::CorsLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub title: String,
    pub text: String,
}

/// The notes, shared by the REST handlers and the tools. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tools]
impl Notes {
    /// Lists the titles of all notes.
    #[tool(read_only)]
    pub fn list_notes(&self) -> Vec<String> {
        self.lock().iter().map(|note| note.title.clone()).collect()
    }

    /// Returns the note with this title.
    #[tool(read_only)]
    pub fn get_note(&self, title: String) -> Result<Note, ToolError> {
        let found = self.lock().iter().find(|note| note.title == title).cloned();
        found.ok_or_else(|| ToolError::new(format!("there is no note {title:?}")))
    }

    /// Adds a note.
    #[tool]
    pub fn add_note(&self, title: String, text: String) -> String {
        let answer = format!("added {title:?}");
        self.lock().push(Note { title, text });
        answer
    }
}

/// Builds the MCP server of the app.
pub fn server(notes: Notes) -> Result<Server, BuildError> {
    Server::builder("notes", env!("CARGO_PKG_VERSION")).add(notes).build()
}

/// The settings of an endpoint that is nested at `/mcp`.
pub fn settings() -> Settings {
    // HTTP+SSE, for clients of 2024-11-05, has to be below the path of the endpoint.
    let sse_paths = Some(("/mcp/sse".to_owned(), "/mcp/message".to_owned()));
    Settings { sse_paths, ..Settings::default() }
}

/// Builds the whole app: the REST API, the MCP endpoint, and the layers around both.
pub fn router(notes: Notes, endpoint: Endpoint) -> Router {
    let cors = CorsLayer::new().allow_origin(HeaderValue::from_static("https://notes.example.com"));
    Router::new()
        .route("/notes", get(list_notes).post(add_note))
        .with_state(notes)
        .nest_service("/mcp", endpoint)
        .layer(cors)
        // Limits the time until a response begins. A long tool call begins an event stream in time.
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(30)))
        .layer(TraceLayer::new_for_http())
}

async fn list_notes(State(notes): State<Notes>) -> Json<Vec<Note>> {
    Json(notes.lock().clone())
}

async fn add_note(State(notes): State<Notes>, Json(note): Json<Note>) -> StatusCode {
    notes.lock().push(note);
    StatusCode::CREATED
}

/// Serves until `stop` completes, and then until every accepted request is answered.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    endpoint: Endpoint,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let stopped = async move {
        stop.await;
        // Ends the event streams of MCP clients. axum waits for them otherwise.
        endpoint.drain();
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await
}
