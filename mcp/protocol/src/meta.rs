//! `_meta`: what travels beside the data, and the keys the protocol reserves in it.

/// A `_meta` object.
pub type Meta = serde_json::Map<String, serde_json::Value>;

/// The revision of a request that stands alone.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least severe log message the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The id of the listen request a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token that progress notifications repeat.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// W3C trace context: the caller's span.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context: vendor data.
pub const TRACESTATE: &str = "tracestate";
/// W3C baggage.
pub const BAGGAGE: &str = "baggage";

/// The tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
