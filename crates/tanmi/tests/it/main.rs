//! One integration binary: the real `tanmi` in a hermetic home, with a fixed clock.

// A test that cannot go on panics; the lint knows `#[test]` functions and not their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod agent;
mod bad_input;
mod browser;
mod config;
mod corpora;
mod crowd;
mod death;
mod declared;
mod demo;
mod documents;
mod env;
mod finding;
mod help;
mod hooks;
mod hostile;
mod house;
mod install;
mod layout;
mod ledger;
mod licences;
mod mcp;
mod memory;
mod model;
mod pipeline;
mod provided;
mod real_clients;
mod rules;
mod serve;
mod sessions;
mod story;
mod webdriver;
