//! The context JSON a trigger hands to a function: who calls what, from where, with which arguments.

use std::ops::Range;

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::raw_json::{lossy, push_escaped, push_string};

/// What the MCP side knows about one request.
#[derive(Clone, Debug)]
pub struct McpRequest<'a> {
    /// What is asked for.
    pub subject: RequestSubject<'a>,
    /// The session as the client names it.
    pub session_id: Option<&'a str>,
    /// Who the client says it is, as JSON text.
    pub client_info: Option<&'a str>,
    /// `http-streamable`, `http-sse`, `http`, or `unknown` without HTTP.
    pub transport: &'static str,
    /// The headers of the HTTP request, if there is one.
    pub headers: Option<&'a HeaderMap>,
    /// Ours: the answers to what the function asked for, when it runs again.
    pub input_responses: Option<&'a Map<String, Value>>,
    /// Ours: what the function wanted to be reminded of when it asked.
    pub state: Option<&'a Value>,
}

/// What a request asks for.
#[derive(Clone, Debug)]
pub enum RequestSubject<'a> {
    /// A tool's call.
    Tool {
        /// Its name as sent.
        name: &'a str,
        /// What the caller gives.
        arguments: Arguments<'a>,
    },
    /// A resource's contents.
    Resource {
        /// The URI as requested.
        uri: &'a str,
        /// What the URI says about the variables of its template.
        variables: &'a [(String, String)],
    },
    /// A prompt's messages.
    Prompt {
        /// Its name as sent.
        name: &'a str,
        /// What the caller gives.
        arguments: Arguments<'a>,
    },
}

/// The context JSON, and where in it each top-level member lies.
#[derive(Clone, Debug)]
pub struct TriggerContext {
    json: String,
    members: Vec<(&'static str, Range<usize>)>,
}

impl McpRequest<'_> {
    /// Writes the context JSON. Members without a value are left out; arguments are copied as they came.
    pub fn context(&self) -> TriggerContext {
        let arguments = self.arguments().and_then(Arguments::as_json);
        let headers = self.headers.map_or(0, HeaderMap::len);
        let size = 256 + arguments.map_or(0, str::len) + 64 * headers;
        let mut context =
            TriggerContext { json: String::with_capacity(size), members: Vec::with_capacity(8) };
        context.json.push('{');
        match &self.subject {
            RequestSubject::Resource { uri, .. } => context.member("uri", |json| push_string(json, uri)),
            RequestSubject::Tool { name, .. } | RequestSubject::Prompt { name, .. } => {
                context.member("name", |json| push_string(json, name));
            }
        }
        if let Some(arguments) = arguments {
            context.member("arguments", |json| json.push_str(arguments));
        }
        if let Some(session_id) = self.session_id {
            context.member("sessionid", |json| push_string(json, session_id));
        }
        if let Some(client_info) = self.client_info {
            context.member("clientinfo", |json| json.push_str(client_info));
        }
        context.member("transport", |json| self.push_transport(json));
        if let Some(input_responses) = self.input_responses {
            context.member("inputResponses", |json| push_value(json, input_responses));
        }
        if let Some(state) = self.state {
            context.member("state", |json| push_value(json, state));
        }
        context.json.push('}');
        context
    }

    /// What a client is told when required arguments are missing; `None` if all are there.
    pub fn missing_required(&self, required: &[String]) -> Option<String> {
        let missing = self.arguments()?.missing(required)?;
        let what = match self.subject {
            RequestSubject::Prompt { .. } => "prompt arguments",
            RequestSubject::Tool { .. } | RequestSubject::Resource { .. } => "tool properties",
        };
        Some(format!("One or more required {what} are missing values. Please provide: {missing}"))
    }

    /// The arguments of a tool or prompt.
    pub fn arguments(&self) -> Option<&Arguments<'_>> {
        match &self.subject {
            RequestSubject::Tool { arguments, .. } | RequestSubject::Prompt { arguments, .. } => {
                Some(arguments)
            }
            RequestSubject::Resource { .. } => None,
        }
    }

    fn push_transport(&self, json: &mut String) {
        json.push_str("{\"name\":");
        push_string(json, self.transport);
        if let Some(session_id) = self.session_id {
            json.push_str(",\"sessionId\":");
            push_string(json, session_id);
        }
        json.push_str(",\"properties\":{");
        if let Some(headers) = self.headers {
            json.push_str("\"headers\":{");
            push_headers(json, headers);
            json.push('}');
        }
        json.push_str("}}");
    }
}

impl TriggerContext {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.json
    }

    /// The JSON text, for the trigger's input.
    pub fn into_string(self) -> String {
        self.json
    }

    /// Top-level members and the JSON text of their values.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.members.iter().filter_map(|(name, at)| Some((*name, self.json.get(at.clone())?)))
    }

    fn member(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.json.push_str(if self.members.is_empty() { "\"" } else { ",\"" });
        self.json.push_str(name);
        self.json.push_str("\":");
        let start = self.json.len();
        write(&mut self.json);
        self.members.push((name, start..self.json.len()));
    }
}

fn push_value(json: &mut String, value: &impl Serialize) {
    // These types have string keys only and cannot fail; null keeps the context readable if one ever does.
    json.push_str(serde_json::to_string(value).as_deref().unwrap_or("null"));
}

/// Writes headers as members. Several values of one header are joined by a comma without a space; bytes that
/// are no UTF-8 are replaced, since JSON has no room for them.
fn push_headers(json: &mut String, headers: &HeaderMap) {
    let mut last = None;
    // The values of one header come one after the other.
    for (name, value) in headers {
        if last == Some(name) {
            json.push(',');
        } else {
            // Nothing in a header's name has to be escaped.
            json.push_str(if last.is_none() { "\"" } else { "\",\"" });
            push_header_name(json, name.as_str());
            json.push_str("\":\"");
            last = Some(name);
        }
        push_escaped(json, &lossy(value.as_bytes()));
    }
    if last.is_some() {
        json.push('"');
    }
}

/// Writes a header's name the way it is usually sent.
///
/// Functions look headers up in a plain, case-sensitive JSON object, with names that samples and documents
/// spell `Authorization` or `X-MS-CLIENT-PRINCIPAL`. .NET hands over names as sent, and well-known ones in
/// their usual spelling even from HTTP/2; our HTTP library knows lower-case names only.
fn push_header_name(out: &mut String, name: &str) {
    match name {
        // Usually sent in lower case.
        "traceparent" | "tracestate" | "baggage" => out.push_str(name),
        "mcp-protocol-version" => out.push_str("MCP-Protocol-Version"),
        "www-authenticate" => out.push_str("WWW-Authenticate"),
        _ => {
            let start = out.len();
            out.push_str(name);
            let shouts = matches!(name, "te" | "dnt")
                // What App Service adds about the user.
                || name.starts_with("x-ms-client-principal")
                || name.starts_with("x-ms-token-");
            let mut starts_word = true;
            for (at, letter) in name.bytes().enumerate() {
                if (starts_word || shouts)
                    && let Some(letter) = out.get_mut(start + at..=start + at)
                {
                    letter.make_ascii_uppercase();
                }
                starts_word = letter == b'-';
            }
        }
    }
}

#[cfg(test)]
mod tests;
