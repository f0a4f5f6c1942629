//! The integration tests, in one binary. They run the real `tanmi` in a scratch home with a fixed clock.

// Tests panic when they cannot continue. Clippy exempts `#[test]` functions from these lints, but not their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod agent;
mod answers;
mod architecture;
mod bad_input;
mod browser;
mod concurrency;
mod config;
mod crash_safety;
mod damaged_home;
mod declared_context;
mod demo;
mod documents;
mod env;
mod example;
mod format_versions;
mod fuzz_corpora;
mod help;
mod hooks;
mod hostile;
mod install;
mod language;
mod ledger;
mod licences;
mod loss;
mod mcp;
mod memory;
mod moments;
mod names;
mod order;
mod packaging;
mod pipeline;
mod places;
mod plain_words;
mod plans;
mod provision;
mod real_clients;
mod rules;
mod scripted_model;
mod secrets;
mod serve;
mod session_start;
mod sessions;
mod short_commands;
mod silence;
mod story;
mod team;
mod text_sizes;
mod trash;
mod trust;
mod webdriver;
mod widths;
mod workspace_lookup;
