//! The context JSON of a trigger: the called entry, its arguments, the client, the session and the transport.

use std::ops::Range;

use bindpost_mcp_http::listener::SentHeaderNames;
use bindpost_net_json::text::{push_escaped, push_string};
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::header_names::spell_header_name;
use super::raw_json::lossy;

/// The data of one MCP request.
#[derive(Clone, Debug)]
pub struct McpRequest<'a> {
    /// The tool, resource or prompt that is requested.
    pub subject: RequestSubject<'a>,
    /// The session id that the client sent.
    pub session_id: Option<&'a str>,
    /// The client's name and version, as JSON text.
    pub client_info: Option<&'a str>,
    /// `http-streamable`, `http-sse`, `http`, or `unknown` without HTTP.
    pub transport: &'static str,
    /// The headers of the HTTP request, if there is one.
    pub headers: Option<&'a HeaderMap>,
    /// The names of the headers as the client spelled them, if they are known.
    pub sent_names: Option<&'a SentHeaderNames>,
    /// An extension of bindpost: the client's answers, when a function that asked for input runs again.
    pub input_responses: Option<&'a Map<String, Value>>,
    /// An extension of bindpost: the state that the function returned when it asked for input.
    pub state: Option<&'a Value>,
}

/// The subject of a request.
#[derive(Clone, Debug)]
pub enum RequestSubject<'a> {
    /// A call of a tool.
    Tool {
        /// The name that the client sent.
        name: &'a str,
        /// The arguments that the client sent.
        arguments: Arguments<'a>,
    },
    /// A read of a resource.
    Resource {
        /// The requested URI.
        uri: &'a str,
        /// The values of the variables of the URI template.
        variables: &'a [(String, String)],
    },
    /// A get of a prompt.
    Prompt {
        /// The name that the client sent.
        name: &'a str,
        /// The arguments that the client sent.
        arguments: Arguments<'a>,
    },
}

/// The context JSON, with the position of each top-level member.
#[derive(Clone, Debug)]
pub struct TriggerContext {
    json: String,
    members: Vec<(&'static str, Range<usize>)>,
}

impl McpRequest<'_> {
    /// Writes the context JSON. Members without a value are omitted. Arguments are copied unchanged.
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

    /// Returns the error message if required arguments are missing.
    pub fn missing_required(&self, required: &[String]) -> Option<String> {
        let missing = self.arguments()?.missing(required)?;
        let what = match self.subject {
            RequestSubject::Prompt { .. } => "prompt arguments",
            RequestSubject::Tool { .. } | RequestSubject::Resource { .. } => "tool properties",
        };
        Some(format!("One or more required {what} are missing values. Please provide: {missing}"))
    }

    /// Returns the arguments of a tool or prompt.
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
            push_headers(json, headers, self.sent_names);
            json.push('}');
        }
        json.push_str("}}");
    }
}

impl TriggerContext {
    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.json
    }

    /// Returns the JSON text as the trigger's input.
    pub fn into_string(self) -> String {
        self.json
    }

    /// Returns the top-level members with the JSON text of their values.
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
    // These types have only string keys, so this cannot fail. If it did, null would keep the context valid.
    json.push_str(serde_json::to_string(value).as_deref().unwrap_or("null"));
}

/// Writes headers as members. Several values of one header are joined by a comma without a space. Bytes that
/// are not valid UTF-8 are replaced, because JSON cannot contain them.
fn push_headers(json: &mut String, headers: &HeaderMap, sent: Option<&SentHeaderNames>) {
    let (mut last, mut position) = (None, 0);
    // The values of one header are adjacent.
    for (name, value) in headers {
        if last == Some(name) {
            json.push(',');
        } else {
            // A header name contains no character that must be escaped.
            json.push_str(if last.is_none() { "\"" } else { "\",\"" });
            spell_header_name(json, name, sent, &mut position);
            json.push_str("\":\"");
            last = Some(name);
        }
        push_escaped(json, &lossy(value.as_bytes()));
    }
    if last.is_some() {
        json.push('"');
    }
}

#[cfg(test)]
mod tests;
