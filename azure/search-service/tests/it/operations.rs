//! Runs every operation of the REST API against a whole service, and checks the table in the documentation.
//!
//! The table is written from the actual responses.

mod definitions;
mod swagger;
mod table;
mod tour;
mod work;

use std::collections::BTreeSet;
use std::path::Path;

use self::table::OPERATIONS;
use self::tour::{State, Tour};

/// The minimum number of operations that must work.
const LEAST_DONE: usize = 52;

const BEGIN: &str = "<!-- From here on a test writes: UPDATE_SNAPSHOTS=1. -->\n";
const END: &str = "<!-- To here. -->\n";

fn rows(tour: &Tour) -> String {
    let (mut done, mut partial, mut refused) = (0, 0, 0);
    let mut rows = String::new();
    for operation in OPERATIONS {
        let (statuses, state) = tour.state(&operation);
        let statuses: Vec<String> = statuses.iter().map(u16::to_string).collect();
        let state = match state {
            State::Done => {
                done += 1;
                "done".to_owned()
            }
            State::Partial(what) => {
                partial += 1;
                format!("partial: {what}")
            }
            State::Refused(why) => {
                refused += 1;
                format!("not supported: {why}")
            }
        };
        rows += &format!(
            "| `{}` | `{} {}` | {} | {state} |\n",
            operation.id,
            operation.verb,
            operation.path,
            statuses.join(", ")
        );
    }
    assert!(done >= LEAST_DONE, "only {done} operations work:\n{rows}");
    format!(
        "\nOf {} operations, {done} are done, {partial} partial and {refused} not supported.\n\n\
         | Operation | Request | Statuses | |\n| --- | --- | --- | --- |\n{rows}\n",
        OPERATIONS.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documentation_lists_every_operation() {
    let mut tour = Tour::start().await;
    definitions::walk(&mut tour).await;
    work::walk(&mut tour).await;
    let written = rows(&tour);
    tour.end().await;

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/search-service.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the start marker exists");
    let (shown, after) = rest.split_once(END).expect("the end marker exists");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{written}{END}{after}")).unwrap();
        return;
    }
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert_eq!(lines(shown), lines(&written), "run with UPDATE_SNAPSHOTS=1 and review the difference");
}

#[test]
fn the_operations_are_those_of_the_inventory() {
    let inventory = Path::new(swagger::FOLDER).join("inventory.json");
    let Ok(text) = std::fs::read(&inventory) else {
        eprintln!("skipped: the_operations_are_those_of_the_inventory, there is no {}", inventory.display());
        return;
    };
    let inventory: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let theirs: BTreeSet<[String; 3]> = inventory["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| ["operationId", "method", "path"].map(|member| text(&operation[member])))
        .collect();
    let ours: BTreeSet<[String; 3]> = OPERATIONS
        .iter()
        .map(|operation| [operation.id, operation.verb, operation.path].map(str::to_owned))
        .collect();
    assert_eq!(ours, theirs);
}
