//! The two sides of `cargo xtask bench search`: a client of the search service, and tantivy without it.
//!
//! search-load upload --port P --documents N         makes the index and sends N documents in batches of 1,000
//! search-load count --port P                        tells how many documents a search finds
//! search-load search --port P --queries N --concurrency N
//! search-load bare --folder DIR --documents N --queries N
//!
//! Documents and queries are made up as they are needed, the same ones on both sides. `bare` does all its work in this one process: it indexes, then searches on one thread, then on sixteen. What
//! making documents up costs is not in its figures. Prints one line of JSON.
mod bare;
mod client;
mod corpus;
mod figures;

use std::collections::HashMap;

fn main() {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut given = HashMap::new();
    while let Some(name) = words.next() {
        given.insert(name, words.next().expect("a value after each option"));
    }
    let take = |name: &str| given.get(name).unwrap_or_else(|| panic!("{name} is missing")).clone();
    let number = |name: &str| take(name).parse::<usize>().unwrap_or_else(|_| panic!("{name} wants a number"));
    let port = || u16::try_from(number("--port")).expect("a port");
    let line = match command.as_str() {
        "upload" => client::upload(port(), number("--documents")),
        "count" => client::count(port()),
        "search" => client::search(port(), number("--queries"), number("--concurrency")),
        "bare" => bare::run(take("--folder").as_ref(), number("--documents"), number("--queries")),
        other => panic!("upload, count, search or bare, not {other:?}"),
    };
    println!("{line}");
}
