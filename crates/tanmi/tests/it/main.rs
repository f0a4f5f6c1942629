//! One integration binary: the real `tanmi` in a hermetic home, with a fixed clock.

mod bad_input;
mod config;
mod crowd;
mod death;
mod env;
mod finding;
mod story;
