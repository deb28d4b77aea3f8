//! Many clients that check every response: the load generator of `cargo xtask soak` and
//! `cargo xtask neighbours`.
//!
//! crowd-load soak --seconds N --mcp PORT --search PORT --host PORT --host-path PATH --pids NAME=PID,…
//!     Mixed load against three servers. Samples the memory of the processes, and kills workers of the process `host`.
//! crowd-load neighbours --mcp PORT --rounds N --phase-seconds N
//!     63 well-behaved clients, and one that misbehaves at times. The server requires API keys.
//! crowd-load misbehave --mcp PORT --as KIND
//!     The misbehaving client. It runs until it is killed. KIND is one of the kinds that `neighbours` reports.
//!
//! `soak` and `neighbours` print one line of JSON.
mod http;
mod mcp;
mod misbehaviour;
mod neighbours;
mod random;
mod soak;

use std::collections::HashMap;

fn main() {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut given = HashMap::new();
    while let Some(name) = words.next() {
        given.insert(name, words.next().expect("a value after each option"));
    }
    let options = Options(given);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let line = runtime.block_on(tokio::task::LocalSet::new().run_until(async {
        match command.as_str() {
            "soak" => soak::run(&options).await,
            "neighbours" => neighbours::run(&options).await,
            "misbehave" => misbehaviour::run(&options).await,
            other => panic!("unknown command {other:?}: use soak, neighbours or misbehave"),
        }
    }));
    println!("{line}");
}

/// The options of the command line.
pub struct Options(HashMap<String, String>);

impl Options {
    pub fn text(&self, name: &str) -> String {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is missing")).clone()
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> T {
        self.text(name).parse().unwrap_or_else(|_| panic!("{name} must be a number"))
    }
}
