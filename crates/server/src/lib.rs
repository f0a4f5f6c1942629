//! The long-running interfaces: MCP over stdio, and HTTP with the API, the page and MCP. The only crate that depends
//! on tokio.
//!
//! This crate has no business logic: it checks a call against the table in [`tools`], runs a use case of `tanmi_app`
//! and returns the result as JSON.

pub mod http;
pub mod mcp;
pub mod tools;
