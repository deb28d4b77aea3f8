//! Converts an HTTP response to a tool result: content, or a failure that the model can act on.

mod body;
mod failure;

use bindpost_mcp_protocol::{CallToolResult, Content, ResourceContents};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::bridge::offered::OfferedOperation;
use crate::bridge::{BridgeState, RequestTarget};
use crate::operation::{ParameterLocation, ResponseStatus};
use crate::paging::{self, PageCursor, PageOptions};
use bindpost_net_upstream::UpstreamResponse;

pub(crate) use body::{DecodedBody, ExpectedBody, media_type};
pub(crate) use failure::CallFailure;
pub use failure::FailureKind;

/// The maximum size of binary content. The budget for text does not apply to images, but they still have
/// to be transferred.
const LARGEST_BINARY: usize = 4 << 20;

/// Returns the result of a call for a response of the service.
pub(crate) fn call_result(
    shared: &BridgeState,
    offered: &OfferedOperation,
    next: &PageCursor,
    sent: RequestTarget<'_>,
    incoming: &UpstreamResponse,
    caller: Option<&str>,
) -> CallToolResult {
    let UpstreamResponse { status, headers, body, .. } = incoming;
    let status = *status;
    if !(status.is_success() || status == StatusCode::NOT_MODIFIED) {
        let failure = CallFailure::from_response(status, headers, body).masked(incoming);
        return failure.with_body(headers, body, shared.error_body).into_result();
    }
    let mut expected = expected(offered, status);
    if shared.detects_objects && offered.operation.responses.is_empty() {
        expected = ExpectedBody::PerhapsObject;
    }
    let answer = match DecodedBody::read(headers, body, expected) {
        Ok(answer) => answer,
        Err(message) => {
            return CallFailure::unreadable(message, status, headers).masked(incoming).into_result();
        }
    };
    let too_large = |bytes: usize, beyond: Option<String>| {
        let message = format!(
            "The response has {bytes} bytes, more than the limit of {}, and cannot be cut.{}",
            shared.answer_budget,
            narrowing_advice(offered)
        );
        let failure = CallFailure { status: Some(status.as_u16()), message, ..CallFailure::default() };
        CallFailure { next_cursor: beyond.map(String::into_boxed_str), ..failure }.into_result()
    };
    let described =
        |media: &str, bytes: usize| json!({"status": status.as_u16(), "contentType": media, "bytes": bytes});
    match answer {
        DecodedBody::Empty => CallToolResult::structured(json!({"status": status.as_u16()})),
        DecodedBody::Json(mut value) => {
            shared.conceal(offered, &mut value);
            let mut value = match value {
                Value::Object(_) => value,
                Value::Array(items) => json!({"items": items}),
                bare => json!({"value": bare}),
            };
            let link = next_page(shared, offered, sent, &mut value, incoming);
            shared.hide(&mut value);
            let seal = |next: &PageCursor| shared.cursors.sign(&offered.operation.id, caller, next);
            let by = PageOptions {
                budget: shared.answer_budget,
                items: offered.operation.items.as_deref(),
                next,
                link,
                repeatable: offered.hints.read_only,
                is_list: offered.is_list && !offered.pages,
                next_cursor: offered.next_cursor,
                seal: &seal,
            };
            match paging::cut_page(value, &by) {
                Ok(value) => CallToolResult::structured(value),
                Err(uncut) => too_large(uncut.bytes, uncut.beyond),
            }
        }
        DecodedBody::Text { text, .. } if text.len() > shared.answer_budget => too_large(text.len(), None),
        DecodedBody::Text { text, media } => {
            // An operation with an output schema must return structured content.
            let structured = offered.output(&shared.document).map(|_| described(&media, text.len()));
            CallToolResult { structured_content: structured, ..CallToolResult::text(text) }
        }
        DecodedBody::Binary { bytes, .. } if bytes.len() > LARGEST_BINARY => too_large(bytes.len(), None),
        DecodedBody::Binary { bytes, media } => {
            let structured = Some(described(&media, bytes.len()));
            let content = match media.split('/').next() {
                Some("image") => Content::image(&bytes, &*media),
                Some("audio") => Content::audio(&bytes, &*media),
                _ => {
                    let path = sent.path.split('?').next().unwrap_or_default();
                    let uri = format!("{}://{path}", shared.scheme);
                    Content::resource(ResourceContents::blob(uri, &bytes).with_mime_type(media))
                }
            };
            CallToolResult {
                content: vec![content],
                structured_content: structured,
                ..CallToolResult::default()
            }
        }
    }
}

/// Returns the documented body format for this status.
pub(crate) fn expected(offered: &OfferedOperation, status: StatusCode) -> ExpectedBody {
    let mut responses = offered.operation.responses.iter();
    let exact = responses.find(|response| response.status == ResponseStatus::Exactly(status.as_u16()));
    let response = exact.or_else(|| offered.operation.success());
    let is_html = |media: &String| media.contains("html");
    match response {
        Some(response) if response.is_json() => ExpectedBody::Json,
        Some(response) if response.content_type.as_ref().is_some_and(is_html) => ExpectedBody::Html,
        _ => ExpectedBody::Anything,
    }
}

/// Returns the link to the next page, if it leads to a served operation at the same service.
fn next_page(
    shared: &BridgeState,
    offered: &OfferedOperation,
    sent: RequestTarget<'_>,
    value: &mut Value,
    incoming: &UpstreamResponse,
) -> Option<String> {
    let sent = match *sent.method {
        http::Method::GET => sent.path,
        _ => return None,
    };
    let written = paging::next_link(value, offered.operation.next_link.as_deref(), &incoming.headers)?;
    let link = shared.upstream.link_path(sent, &written).ok()?;
    // Links come from the service. They may lead only to served operations.
    if sent == link || !shared.is_served_path(offered, &link) {
        return None;
    }
    paging::remove_link(value, &written);
    Some(paging::without_fixed(&link, &offered.fixed_names))
}

/// Returns advice on how to get a smaller response.
pub(crate) fn narrowing_advice(offered: &OfferedOperation) -> String {
    let query = offered.parameters().filter(|parameter| parameter.place == ParameterLocation::Query);
    let names: Vec<String> = query.take(12).map(|parameter| format!("`{}`", parameter.argument)).collect();
    match names.as_slice() {
        [] => " The operation has no parameters to narrow it.".to_owned(),
        names => format!(" Narrow it with one of its parameters: {}.", names.join(", ")),
    }
}

/// Returns the members of a JSON object in this order, without those that are null.
pub(crate) fn without_nulls<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}
