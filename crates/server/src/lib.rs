//! The long-running interfaces: MCP over stdio, HTTP with the API, the page and MCP, and the server of a team. The only
//! crate that depends on tokio; `pg` brings one in through its driver.
//!
//! This crate has no business logic: it checks a call against the table in [`tools`], runs a use case of `tanmi_app`
//! and returns the result as JSON.

pub mod http;
pub mod mcp;
pub mod team;
pub mod tools;
