//! Turn functions into MCP servers.
