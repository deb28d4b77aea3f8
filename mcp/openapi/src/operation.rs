//! One path and verb of a document, in the same words whatever the document's version.

use http::Method;
use serde_json::Value;

use bindpost_mcp_server::ToolHints;

/// One path and verb of a document.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its `operationId`, or one made of verb and path. Unique within the document.
    pub id: String,
    /// The verb.
    pub method: Method,
    /// The path as the document writes it, with `{variables}`, below the base address.
    pub path: String,
    /// The groups it belongs to.
    pub tags: Vec<String>,
    /// What it does, in a line.
    pub summary: Option<String>,
    /// What it does, at length.
    pub description: Option<String>,
    /// Whether it is on its way out.
    pub deprecated: bool,
    /// Everything it takes but the body.
    pub parameters: Vec<Parameter>,
    /// The body it takes.
    pub body: Option<RequestBody>,
    /// What it answers.
    pub responses: Vec<OperationResponse>,
    /// The scopes its security requirements name: all of them, whatever the scheme.
    pub scopes: Vec<String>,
    /// What a call may do, by its verb; see [`Hints`].
    pub hints: ToolHints,
    /// The member of the answer that holds its items, if the document says so (`x-ms-pageable`).
    pub items: Option<String>,
    /// The member of the answer that leads to the next page, if the document names one.
    pub next_link: Option<String>,
}

/// Something an operation takes, outside its body.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name on the wire.
    pub name: String,
    /// The name of the argument that fills it: the wire's, made fit for JSON, and unique within the operation.
    pub argument: String,
    /// Where it goes.
    pub place: ParameterLocation,
    /// Whether a call needs it.
    pub required: bool,
    /// What it means.
    pub description: Option<String>,
    /// Its schema, with references to the document's definitions.
    pub schema: Value,
    /// How lists and objects are written.
    pub style: ParameterStyle,
    /// Whether each item of a list, each member of an object, is written by itself.
    pub explode: bool,
    /// Whether reserved characters stay as they are (`allowReserved`); never in a path.
    pub allow_reserved: bool,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterLocation {
    /// A variable of the path.
    Path,
    /// The query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// How a parameter's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterStyle {
    /// `a,b` (paths, headers).
    Simple,
    /// `name=a&name=b`, or `name=a,b` when not exploded.
    Form,
    /// `.a.b`
    Label,
    /// `;name=a,b`
    Matrix,
    /// `a%20b`
    SpaceDelimited,
    /// `a|b`
    PipeDelimited,
    /// `a\tb` (Swagger's `tsv`).
    TabDelimited,
    /// `name[member]=value`
    DeepObject,
    /// JSON, as with `content: application/json`.
    Json,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub struct RequestBody {
    /// Whether a call needs it.
    pub required: bool,
    /// What it means.
    pub description: Option<String>,
    /// How it is written.
    pub media: BodyFormat,
    /// The media type, as sent.
    pub content_type: String,
    /// Its schema, with references to the document's definitions.
    pub schema: Value,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON, whatever the subtype.
    Json,
    /// `application/x-www-form-urlencoded`
    Form,
    /// `multipart/form-data`
    Multipart,
    /// Text of any kind.
    Text,
    /// Bytes; arguments give them in base64.
    Binary,
}

/// One answer of an operation.
#[derive(Clone, Debug)]
pub struct OperationResponse {
    /// Which answer this is.
    pub status: ResponseStatus,
    /// What it means.
    pub description: Option<String>,
    /// Its media type, if it has a body.
    pub content_type: Option<String>,
    /// The schema of its body, with references to the document's definitions.
    pub schema: Option<Value>,
}

/// The status of an answer, as documents name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseStatus {
    /// `200`
    Exactly(u16),
    /// `2XX`
    Class(u8),
    /// `default`
    Default,
}

impl OperationResponse {
    /// Whether its body is JSON. A number or a truth value is, in plain text too.
    pub(crate) fn is_json(&self) -> bool {
        let kind = self.schema.as_ref().and_then(|schema| schema.get("type")?.as_str());
        match self.content_type.as_deref() {
            Some(media) if media.starts_with("text/plain") => {
                matches!(kind, Some("integer" | "number" | "boolean"))
            }
            Some(media) => media.contains("json"),
            None => self.schema.is_some(),
        }
    }
}

impl Operation {
    /// The answer that says it went well: the first with a schema, or the first.
    pub fn success(&self) -> Option<&OperationResponse> {
        let good = |response: &&OperationResponse| match response.status {
            ResponseStatus::Exactly(status) => (200..300).contains(&status),
            ResponseStatus::Class(class) => class == 2,
            ResponseStatus::Default => false,
        };
        let mut answers = self.responses.iter().filter(good);
        answers.clone().find(|response| response.schema.is_some()).or_else(|| answers.next())
    }
}
