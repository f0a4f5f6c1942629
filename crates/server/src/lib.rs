//! The faces that stay open: MCP over stdio. The only crate that knows tokio.
//!
//! Nothing is decided here. A call is checked against the table in [`mcp::tools`], turned into a use case, and its
//! answer into JSON.

pub mod mcp;
