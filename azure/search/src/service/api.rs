//! The built-in API description of the search service: an OpenAPI 3.1 document in our own words, in `api/`.
//!
//! Each file there is one topic with its `paths` and `schemas`. Joined they are one document.

use bindpost_mcp_openapi::{Document, DocumentError};

/// The default API version, which the built-in document describes.
pub const API_VERSION: &str = "2025-08-01-preview";

/// The beginning of the document: its title, and components that operations of all topics use.
const HEAD: &str = include_str!("api/head.yaml");

/// The topics, in reading order.
const TOPICS: [&str; 10] = [
    include_str!("api/documents.yaml"),
    include_str!("api/queries.yaml"),
    include_str!("api/indexes.yaml"),
    include_str!("api/analysis.yaml"),
    include_str!("api/vectors.yaml"),
    include_str!("api/synonyms.yaml"),
    include_str!("api/indexers.yaml"),
    include_str!("api/skills.yaml"),
    include_str!("api/knowledge.yaml"),
    include_str!("api/service.yaml"),
];

/// Parses the built-in document.
pub fn document() -> Result<Document, DocumentError> {
    Document::parse(&text(), "the built-in description")
}

/// Returns the built-in document as YAML, for readers or for another program.
pub fn text() -> String {
    // The head ends within `components`, so its schemas follow.
    let mut text = String::from(HEAD);
    text.push_str("  schemas:\n");
    for topic in TOPICS {
        for line in section(topic, "schemas:") {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str("paths:\n");
    for topic in TOPICS {
        for line in section(topic, "paths:") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Returns the lines below a heading of a topic, up to the next heading.
fn section<'a>(topic: &'a str, heading: &'a str) -> impl Iterator<Item = &'a str> {
    let below = topic.lines().skip_while(move |line| *line != heading).skip(1);
    below.take_while(|line| line.is_empty() || line.starts_with([' ', '#']))
}

#[cfg(test)]
mod tests;
