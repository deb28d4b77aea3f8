//! Resources: static, from a template, and with subscriptions.

use std::sync::atomic::Ordering;

use bindpost::{Context, ResourceEntry, ServerBuilder, TemplateEntry};
use serde_json::json;

use crate::media;
use crate::tools::CANCELLED;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .resource(
            ResourceEntry::text(
                "test://static-text",
                "static-text",
                "This is the content of the static text resource.",
            )
            .description("A text that does not change")
            .mime_type("text/plain"),
        )
        .resource(
            ResourceEntry::new("test://static-binary", "static-binary", async || media::PNG.to_vec())
                .description("An image that does not change")
                .mime_type("image/png"),
        )
        .resource(
            ResourceEntry::text("test://watched-resource", "watched-resource", "Watched.")
                .description("A text to subscribe to")
                .mime_type("text/plain"),
        )
        .resource(
            ResourceEntry::new("test://cancelled-count", "cancelled-count", async || {
                CANCELLED.load(Ordering::SeqCst).to_string()
            })
            .description("How many calls of test_slow were cancelled")
            .mime_type("text/plain"),
        )
        .template(
            TemplateEntry::new("test://template/{id}/data", "template", data)
                .description("Data for an id")
                .mime_type("application/json"),
        )
}

async fn data(context: Context) -> String {
    let id = context.variable("id").unwrap_or_default();
    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string()
}
