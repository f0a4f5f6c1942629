//! The faces that stay open: MCP over stdio, and over HTTP together with the API and the page. The only crate that
//! knows tokio.
//!
//! Nothing is decided here. A call is checked against the table in [`tools`], turned into a use case, and its answer
//! into JSON.

pub mod http;
pub mod mcp;
pub mod tools;
