//! The features server on bindpost. `../README.md` describes its modes and entries.

#![allow(clippy::unwrap_used, reason = "a poisoned lock means that this example is broken")]
#![expect(clippy::print_stdout, reason = "the self-test prints its result")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use bindpost::http::{ApiKeys, Auth, Endpoint, Settings};
use bindpost::prelude::*;
use bindpost::testing::{ElicitationRequest, TestClient};
use bindpost::{
    CallQuota, Caller, Identity, ListKind, NextHandler, Operation, OperationResult, Revision, SkillSet,
    TaskLimits, stdio,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Adds two numbers.
#[tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Finds books.
#[tool(read_only)]
fn find_books(
    #[arg(min_length = 2, max_length = 100)] words: String,
    #[arg(one_of = ["title", "year"], default = "title")] sort: String,
    #[arg(minimum = 1, maximum = 50, default = 10)] limit: u32,
) -> &'static str {
    let _ = (words, sort, limit);
    "found"
}

#[derive(Serialize, JsonSchema)]
struct Book {
    title: &'static str,
    pages: u32,
}

/// Returns a book.
#[tool(read_only)]
fn get_book(id: u32) -> Result<Book, String> {
    match id {
        1 => Ok(Book { title: "Dune", pages: 412 }),
        _ => Err(format!("there is no book {id}")),
    }
}

/// Counts the lines of the catalog.
#[tool(blocking)]
fn count_lines() -> Result<usize, ToolError> {
    Ok(std::fs::read_to_string("/srv/private/catalog.csv")?.lines().count())
}

/// Crashes.
#[tool]
fn crash() -> String {
    let shelf: Vec<String> = Vec::new();
    shelf[7].clone()
}

/// What the calls share.
#[derive(Clone, Default)]
struct Library {
    numbers: Arc<AtomicU32>,
    cancelled_scans: Arc<AtomicU32>,
    calls: Arc<AtomicU32>,
    notes: Arc<Mutex<BTreeMap<String, String>>>,
}

/// Returns the next number.
#[tool]
fn next_number(State(library): State<Library>) -> u32 {
    library.numbers.fetch_add(1, Ordering::Relaxed)
}

/// A note.
#[resource("note:///{name}", mime_type = "text/plain")]
fn note(State(library): State<Library>, name: String) -> Result<String, ProtocolError> {
    let found = library.notes.lock().unwrap().get(&name).cloned();
    found.ok_or_else(|| ProtocolError::UnknownResource(format!("note:///{name}")))
}

#[resource_list("note")]
fn list_notes(State(library): State<Library>) -> Vec<Resource> {
    let notes = library.notes.lock().unwrap();
    notes.keys().map(|name| Resource::new(format!("note:///{name}"), name)).collect()
}

/// Writes a note.
#[tool]
fn write_note(State(library): State<Library>, context: Context, name: String, text: String) {
    let (server, uri) = (context.server(), format!("note:///{name}"));
    match library.notes.lock().unwrap().insert(name, text) {
        None => server.catalog().announce_list(ListKind::Resources),
        Some(_) => server.resource_updated(&uri),
    }
}

/// Writes a review.
#[prompt]
fn review(#[arg(complete = authors)] author: String, #[arg(complete = titles)] title: String) -> String {
    format!("Write a review of {title} by {author}.")
}

fn authors(typed: &str) -> Vec<&'static str> {
    ["Asimov", "Austen"].into_iter().filter(|name| name.starts_with(typed)).collect()
}

fn titles(typed: &str, context: Context) -> Vec<&'static str> {
    let author: Option<String> = context.argument("author").unwrap_or_default();
    let titles: &[&str] = match author.as_deref() {
        Some("Asimov") => &["Foundation"],
        Some("Austen") => &["Emma", "Persuasion"],
        _ => &[],
    };
    titles.iter().copied().filter(|title| title.starts_with(typed)).collect()
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Reservation {
    #[schemars(email)]
    email: String,
    #[schemars(range(min = 1, max = 8))]
    weeks: u8,
    pick_up: PickUp,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PickUp {
    Desk,
    Locker,
}

/// Reserves a book.
#[tool]
async fn reserve(book: String, context: Context) -> Result<String, ToolError> {
    let Some(form) = context.elicit::<Reservation>("How do you want it?").await?.accepted() else {
        return Ok("declined".to_owned());
    };
    let pick_up = match form.pick_up {
        PickUp::Desk => "desk",
        PickUp::Locker => "locker",
    };
    Ok(format!("{book} {} {pick_up}", form.weeks))
}

/// Pays a fee.
#[tool]
async fn pay_fee(context: Context) -> Result<&'static str, ToolError> {
    context.elicit_url("Please pay on our page.", "https://library.example/pay").await?.required()?;
    Ok("paid")
}

/// Summarizes a text.
#[tool]
async fn summarize(text: String, context: Context) -> Result<String, ToolError> {
    let answer = context.sample(format!("Summarize: {text}")).max_tokens(100).await?;
    Ok(answer.text().unwrap_or_default().to_owned())
}

/// Checks a shelf.
#[tool]
async fn check_shelf(books: u32, context: Context) -> &'static str {
    let mut shelf = context.track(0..books);
    while shelf.next().await.is_some() {}
    context.warning("a book has no title").await;
    "checked"
}

/// Scans a book for a minute.
#[tool]
async fn scan(State(library): State<Library>, context: Context) -> &'static str {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(60)) => {}
        () = context.cancelled() => drop(library.cancelled_scans.fetch_add(1, Ordering::Relaxed)),
    }
    "scanned"
}

/// Returns the number of cancelled scans.
#[tool(read_only)]
fn cancelled_scans(State(library): State<Library>) -> u32 {
    library.cancelled_scans.load(Ordering::Relaxed)
}

/// Rebuilds the index.
#[tool(task)]
async fn rebuild_index() -> &'static str {
    tokio::time::sleep(Duration::from_millis(300)).await;
    "rebuilt"
}

/// Returns the number of calls that the hook has counted.
#[tool(read_only)]
fn audited(State(library): State<Library>) -> u32 {
    library.calls.load(Ordering::Relaxed)
}

/// Orders a book.
#[tool]
fn order_book(title: String) -> &'static str {
    let _ = title;
    "ordered"
}

/// Shows a chart.
#[tool(read_only, ui = "../../chart.html")]
fn chart() -> &'static str {
    "a chart"
}

fn open_server() -> Result<Server, BuildError> {
    let library = Library::default();
    library.notes.lock().unwrap().insert("rules".to_owned(), "be quiet".to_owned());
    let calls = library.calls.clone();
    let count_calls = move |operation: Operation, next: NextHandler| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move { next.run(operation).await as Result<OperationResult, ToolError> }
    };
    Server::builder("features-compare", "1.0.0")
        .state(library)
        .add(entries![
            add,
            find_books,
            get_book,
            count_lines,
            crash,
            next_number,
            note,
            list_notes,
            write_note
        ])
        .add(entries![review, reserve, pay_fee, summarize, check_shelf, scan, cancelled_scans, rebuild_index])
        .add(entries![audited, order_book, chart])
        .around(count_calls)
        .quota(CallQuota::new(3, Duration::from_secs(24 * 3600)).entries(["order_book"]))
        .tasks(TaskLimits::default())
        .skills(SkillSet::from_folder("skills"))
        .build()
}

/// Tells when the library is open.
#[tool(read_only, anonymous)]
fn opening_hours() -> &'static str {
    "9 to 18"
}

/// Lists the books of the caller.
#[tool(read_only)]
fn my_books(context: Context) -> String {
    format!("books of {}", context.caller().name().unwrap_or_default())
}

/// Cancels an order.
#[tool(scopes = ["orders.write"])]
fn cancel_order(id: u32) -> String {
    format!("cancelled {id}")
}

/// Counts the money in the till.
#[tool(read_only)]
fn count_till() -> &'static str {
    "12.50"
}

fn protected_server() -> Result<Server, BuildError> {
    Server::builder("features-compare", "1.0.0")
        .add(entries![opening_hours, my_books, cancel_order, count_till])
        .show_if(|caller: &Caller, entry| entry.name() != "count_till" || caller.has_scope("orders.write"))
        .build()
}

fn keys() -> ApiKeys {
    ApiKeys::new().key("ann", "ann-key").key_with_scopes("bob", "bob-key", ["orders.write"]).bearer()
}

/// Serves MCP and a page of an axum app on one port.
async fn serve(server: Server, auth: Option<Auth>, port: u16) -> anyhow::Result<()> {
    let sse_paths = Some(("/mcp/sse".to_owned(), "/mcp/message".to_owned()));
    let endpoint = Endpoint::new(server, Settings { auth, sse_paths, ..Settings::default() });
    let app = Router::new().route("/page", get(async || "a page")).nest_service("/mcp", endpoint.clone());
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let stopped = async move {
        terminated.recv().await;
        endpoint.drain();
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    Ok(axum::serve(listener, app).with_graceful_shutdown(stopped).await?)
}

/// Tries the test client and returns what worked.
async fn self_test() -> anyhow::Result<Value> {
    let (open, protected) = (open_server()?, protected_server()?);
    let (mut call, mut elicitation) = (true, true);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut client = TestClient::builder(&open)
            .revision(revision)
            .on_elicitation(|form: ElicitationRequest| {
                form.accept(&json!({"email": "a@b.example", "weeks": 2, "pick_up": "desk"}))
            })
            .connect()
            .await?;
        call &= client.call("add", json!({"a": 1, "b": 2})).await?.text() == "3";
        elicitation &= client.call("reserve", json!({"book": "Dune"})).await?.text() == "Dune 2 desk";
    }
    let mut ann = TestClient::connect_as(&protected, Identity::new("ann").user());
    let scopes = ann.call("cancel_order", json!({"id": 7})).await.is_err();
    Ok(json!({"call": call, "elicitation": elicitation, "scopes": scopes, "revisions": call}))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let port = || anyhow::Ok(arguments.get(1).context("the port is missing")?.parse()?);
    match arguments.first().map(String::as_str) {
        Some("open") => serve(open_server()?, None, port()?).await?,
        Some("auth") => serve(protected_server()?, Some(Auth::new(keys())), port()?).await?,
        Some("stdio") => stdio::serve_stdio(&open_server()?).await?,
        Some("selftest") => println!("{}", self_test().await?),
        _ => anyhow::bail!("the first argument is open, auth, stdio or selftest"),
    }
    Ok(())
}
