//! The server from outside: an MCP client in front, the embedded search service behind.
