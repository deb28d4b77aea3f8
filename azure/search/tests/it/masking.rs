//! A search service that echoes our key in many encodings. No result may contain it.

use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::json;

use crate::service::{server, shared};
use crate::talk::{Era, Talk};
use crate::upstream_service::{Service, answer};

const KEY: &str = "Kx+/q=7&p%h-the-key-of-the-operator";

/// Returns the encodings of the key as JSON source.
fn spellings() -> Vec<String> {
    let numbers: String = KEY.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let lower: String = KEY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    vec![
        KEY.to_owned(),
        KEY.replace('+', "\\u002B"),
        KEY.replace('/', "\\/"),
        KEY.replace('%', "%25")
            .replace('+', "%2b")
            .replace('/', "%2f")
            .replace('=', "%3d")
            .replace('&', "%26"),
        KEY.replace('&', "&amp;").replace('+', "&#43;"),
        numbers.clone(),
        numbers.replace('\\', "\\\\"),
        lower,
    ]
}

#[tokio::test]
async fn no_encoding_of_the_key_is_returned() {
    for spelled in spellings() {
        let told = format!(
            "{{\"name\":\"a{spelled}\",\"{spelled}\":1,\"fields\":[{{\"name\":\"{spelled}\",\"type\":\"Edm.String\",\
             \"key\":true}}],\"value\":[{{\"name\":\"{spelled}\",\"{spelled}\":[\"x {spelled} y\"]}}]}}"
        );
        let failed = format!(
            "{{\"error\":{{\"code\":\"{spelled}\",\"message\":\"no {spelled}\",\"details\":[{{\"message\":\"{spelled}\"}}]}}}}"
        );
        for (status, body) in [(200, told), (400, failed)] {
            let service = Service::start(move |_, _| {
                answer(status, &[("content-type", "application/json"), ("request-id", "1")], body.clone())
            })
            .await;
            let limits = UpstreamLimits { tries: 1, ..UpstreamLimits::default() };
            let server = server(shared(&service.address(), Some(KEY), limits));
            let mut talk = Talk::start(&server, Era::Session).await;
            let mut said = Vec::new();
            for (tool, arguments) in [
                ("getIndex", json!({"indexName": "a"})),
                ("listIndexes", json!({})),
                ("searchDocuments", json!({"indexName": "a", "search": "*"})),
                ("profileIndex", json!({"indexName": "a"})),
                ("callOperation", json!({"operation": "Indexes_Get", "arguments": {"indexName": "a"}})),
            ] {
                let result = talk.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
                said.push((tool, result.unwrap_or_else(|error| error)));
            }
            for uri in ["search://indexes/a", "search://indexes"] {
                let read = talk.request("resources/read", json!({"uri": uri})).await;
                said.push((uri, read.unwrap_or_else(|error| error)));
            }
            said.push((
                "list",
                talk.request("resources/list", json!({})).await.unwrap_or_else(|error| error),
            ));
            for (what, said) in said {
                let text = said.to_string();
                // The end of the key is plain in every encoding except those of each letter.
                let letters = ["Kx+/q", "operator", "\\u006f\\\\u0070", "%6f%70%65%72"];
                assert!(letters.iter().all(|part| !text.contains(part)), "{what}, {spelled}: {text}");
            }
        }
    }
}
