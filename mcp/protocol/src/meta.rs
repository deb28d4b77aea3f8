//! `_meta`: metadata of requests, results and definitions, and the keys that the protocol reserves in it.

/// A `_meta` object.
pub type Meta = serde_json::Map<String, serde_json::Value>;

/// The revision of a stateless request (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The name and version of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The capabilities of the client.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The minimum severity of the log messages that the client requests for this call.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The name and version of the server, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The id of the `subscriptions/listen` request to which a notification belongs.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token that the client chose for progress notifications about this request.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// W3C Trace Context: the caller's trace and span ids.
pub const TRACEPARENT: &str = "traceparent";
/// W3C Trace Context: vendor-specific trace data.
pub const TRACESTATE: &str = "tracestate";
/// W3C Baggage: key-value pairs of the caller's trace.
pub const BAGGAGE: &str = "baggage";

/// The identifier of the tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The task to which a message belongs (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The identifier of the skills extension.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The identifier of the extension MCP Apps: pages that hosts show with the results of tools.
pub const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";
