//! Operations of a document, in a form that is the same for all document versions.

use http::Method;
use serde_json::Value;

use bindpost_mcp_server::ToolHints;

/// One path and verb of a document.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The `operationId`, or an id generated from verb and path. It is unique within the document.
    pub id: String,
    /// The HTTP method.
    pub method: Method,
    /// Further methods, of which a call chooses one by an argument. Documents have no such operations, but programs may
    /// create them.
    pub other_methods: Vec<Method>,
    /// The path as written in the document, with `{variables}`, below the base address.
    pub path: String,
    /// The tags of the operation.
    pub tags: Vec<String>,
    /// A one-line summary.
    pub summary: Option<String>,
    /// A detailed description.
    pub description: Option<String>,
    /// Whether the operation is deprecated.
    pub deprecated: bool,
    /// All parameters except the body.
    pub parameters: Vec<Parameter>,
    /// The request body.
    pub body: Option<RequestBody>,
    /// The documented responses.
    pub responses: Vec<OperationResponse>,
    /// All scopes in its security requirements, of any scheme.
    pub scopes: Vec<String>,
    /// What a call may do, derived from the verb. See [`ToolHints`].
    pub hints: ToolHints,
    /// The member of the response that holds the items, if the document names it (`x-ms-pageable`).
    pub items: Option<String>,
    /// The member of the response that links to the next page, if the document names it.
    pub next_link: Option<String>,
}

/// A parameter of an operation, outside its body.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name on the wire.
    pub name: String,
    /// The name of the argument for this parameter: the wire name, made valid for JSON and unique within
    /// the operation.
    pub argument: String,
    /// The location of the parameter.
    pub place: ParameterLocation,
    /// Whether a call requires the parameter. In documents this is true for all variables of paths. If one is not required
    /// and missing, it has the default of its schema, or else the path ends before it.
    pub required: bool,
    /// The description of the parameter.
    pub description: Option<String>,
    /// The schema, with references to the document's definitions.
    pub schema: Value,
    /// How lists and objects are serialised.
    pub style: ParameterStyle,
    /// Whether each item of a list and each member of an object is serialised separately.
    pub explode: bool,
    /// Whether reserved characters are not encoded (`allowReserved`). Never applies in a path.
    pub allow_reserved: bool,
}

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterLocation {
    /// A variable of the path.
    Path,
    /// The query string.
    Query,
    /// A request header.
    Header,
    /// The `Cookie` header.
    Cookie,
}

/// How the value of a parameter is serialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterStyle {
    /// `a,b` (paths, headers).
    Simple,
    /// `a/b`, one text with several segments of the path. Documents have no such parameters, but programs may create them.
    Segments,
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
    /// Whether a call requires the body.
    pub required: bool,
    /// The description of the body.
    pub description: Option<String>,
    /// How the body is serialised.
    pub media: BodyFormat,
    /// The media type that is sent.
    pub content_type: String,
    /// The schema, with references to the document's definitions.
    pub schema: Value,
}

/// How a body is serialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON of any subtype.
    Json,
    /// `application/x-www-form-urlencoded`
    Form,
    /// `multipart/form-data`
    Multipart,
    /// Text of any subtype.
    Text,
    /// Bytes. Arguments contain them as base64.
    Binary,
}

/// A documented response of an operation.
#[derive(Clone, Debug)]
pub struct OperationResponse {
    /// The status or statuses of the response.
    pub status: ResponseStatus,
    /// The description of the response.
    pub description: Option<String>,
    /// The media type of the body, if it has one.
    pub content_type: Option<String>,
    /// The schema of the body, with references to the document's definitions.
    pub schema: Option<Value>,
}

/// The status of a response, as written in a document.
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
    /// Returns whether the body is JSON. A number or a boolean in plain text is JSON too.
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
    /// Returns all methods of the operation.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        std::iter::once(&self.method).chain(&self.other_methods)
    }

    /// Returns the success response: the first one with a schema, or else the first one.
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
