//! The bridge from outside: real documents, a real service behind, real MCP in front.
