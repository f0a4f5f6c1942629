//! A progress bar on standard error; nothing is printed if it is not a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Progress {
    what: &'static str,
    is_seen: bool,
    started: Instant,
    drawn: Option<Instant>,
}

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_millis(400);
const WIDTH: u64 = 30;

impl Progress {
    pub fn new(what: &'static str) -> Progress {
        let is_seen = std::io::stderr().is_terminal();
        Progress { what, is_seen, started: Instant::now(), drawn: None }
    }

    pub fn show(&mut self, done: u64, all: u64) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() > Duration::from_millis(100));
        if !self.is_seen || !is_due || self.started.elapsed() < PATIENCE || all == 0 {
            return;
        }
        self.drawn = Some(Instant::now());
        let filled = (WIDTH * done / all).min(WIDTH) as usize;
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH as usize - filled));
        let _ = write!(std::io::stderr(), "\r{} {bar} {:>3} %", self.what, 100 * done / all);
    }

    pub fn end(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
