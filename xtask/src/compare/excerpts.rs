//! Checks that the code in `docs/compare.md` is the code that runs.

use std::fs;

use anyhow::{Result, ensure};

use super::{FRAMEWORKS, sources};
use crate::workspace;

const LANGUAGES: [&str; 3] = ["rust", "ts", "python"];

/// Checks that every fenced code block is an excerpt of one of the servers, ignoring indentation
/// and blank lines.
pub(super) fn check() -> Result<()> {
    let document = fs::read_to_string(workspace::root().join("docs/compare.md"))?;
    let mut servers = Vec::new();
    for framework in &FRAMEWORKS {
        servers.push(fs::read_to_string(sources().join(framework.source))?);
    }
    for excerpt in excerpts(&document) {
        let is_there = servers.iter().any(|server| contains(server, excerpt));
        ensure!(is_there, "docs/compare.md contains code that is in no server:\n{excerpt}");
    }
    Ok(())
}

fn excerpts(document: &str) -> impl Iterator<Item = &str> {
    let blocks = document.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| {
        let (language, code) = block.split_once('\n')?;
        LANGUAGES.contains(&language).then_some(code)
    })
}

fn contains(server: &str, excerpt: &str) -> bool {
    fn lines(text: &str) -> Vec<&str> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
    }
    let (server, excerpt) = (lines(server), lines(excerpt));
    !excerpt.is_empty() && server.windows(excerpt.len()).any(|window| window == excerpt)
}

#[cfg(test)]
mod tests {
    use super::{contains, excerpts};

    #[test]
    fn finds_blocks_of_code_and_looks_them_up() {
        let document = "Text.\n```rust\nfn a() {\n    b()\n}\n```\nMore.\n```console\n$ cargo run\n```\n```ts\nc();\n```\n";
        let found: Vec<&str> = excerpts(document).collect();
        assert_eq!(found, ["fn a() {\n    b()\n}\n", "c();\n"]);
        assert!(contains("impl X {\n    fn a() {\n\n        b()\n    }\n}\n", found[0]));
        assert!(!contains("fn a() {\n    c()\n}\n", found[0]));
    }
}
