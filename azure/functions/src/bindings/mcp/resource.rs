//! Reads an `mcpResourceTrigger`.

use bindpost_mcp_protocol::{Resource, ResourceTemplate};

use super::additions;
use crate::bindings::uri::{UriPattern, is_template};
use crate::function::{ResourceAddress, ResourceTrigger};
use crate::json::ConfigReader;

/// Reads the trigger and reports its problems. Returns `None` if it has no valid URI.
pub(crate) fn read_resource_trigger(
    parameter: String,
    members: &ConfigReader<'_>,
) -> Option<ResourceTrigger> {
    let uri = members.text("uri").unwrap_or_default();
    let pattern = UriPattern::parse(&uri)
        .map_err(|message| members.report_problem("uri", message, suggest_uri_fix(&uri)))
        .ok();
    let name = members.required_text("resourceName");
    let mime_type = members.text("mimeType");
    let size = members.whole_number("size");
    let (title, description) = (members.text("title"), members.text("description"));
    let annotations = additions::annotations(members);
    let icons = additions::icons(members);
    let meta = super::metadata(members);
    let (pattern, name) = (pattern?, name?);
    let extra = Default::default();
    let address = if is_template(&uri) {
        // A template has no size.
        let mime_type = mime_type.clone();
        let template = ResourceTemplate {
            uri_template: uri,
            name,
            title,
            description,
            mime_type,
            annotations,
            icons,
            meta,
            extra,
        };
        ResourceAddress::Family(pattern, template)
    } else {
        let mime_type = mime_type.clone();
        ResourceAddress::One(Resource {
            uri,
            name,
            title,
            description,
            mime_type,
            annotations,
            size,
            icons,
            meta,
            extra,
        })
    };
    Some(ResourceTrigger { parameter, address, mime_type })
}

fn suggest_uri_fix(uri: &str) -> Option<&'static str> {
    let operator = |char: char| matches!(char, '?' | '&' | '#' | '/');
    let has_operator = uri.split('{').skip(1).any(|part| part.starts_with(operator));
    Some(match uri {
        _ if uri.trim().is_empty() => "give an address like snippet://readme or snippet://{name}",
        // Operators of RFC 6570 are the usual reason.
        _ if has_operator => "write out what the operator stands for: not {?q} but ?q={q}",
        _ => "write a scheme, and each expression as {name}, like snippet://{folder}/{name}",
    })
}
