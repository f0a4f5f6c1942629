//! Tests on a real PostgreSQL. Each test starts a cluster of its own as an unprivileged user and removes it at the end.
//! Where PostgreSQL is not installed, the tests say so and pass; with `CI` set they fail.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(unix)]

mod admin;
mod check;
mod cluster;
mod feed;
mod lost;
mod memory;
mod people;
mod requests;
mod retention;
mod round_trips;
mod stories;
mod tls;
mod transfer;
mod trouble;
mod writers;
