//! A progress bar on standard error; nothing is printed if it is not a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct ProgressBar {
    label: &'static str,
    is_terminal: bool,
    started: Instant,
    drawn_at: Option<Instant>,
}

/// Work that takes less time shows no bar.
const SHOW_AFTER: Duration = Duration::from_millis(400);
const WIDTH: u64 = 30;

impl ProgressBar {
    pub fn new(label: &'static str) -> ProgressBar {
        let is_terminal = std::io::stderr().is_terminal();
        ProgressBar { label, is_terminal, started: Instant::now(), drawn_at: None }
    }

    pub fn show(&mut self, done: u64, all: u64) {
        let is_due = self.drawn_at.is_none_or(|drawn_at| drawn_at.elapsed() > Duration::from_millis(100));
        if !self.is_terminal || !is_due || self.started.elapsed() < SHOW_AFTER || all == 0 {
            return;
        }
        self.drawn_at = Some(Instant::now());
        let filled = (WIDTH * done / all).min(WIDTH) as usize;
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH as usize - filled));
        let _ = write!(std::io::stderr(), "\r{} {bar} {:>3} %", self.label, 100 * done / all);
    }

    pub fn end(&mut self) {
        if self.drawn_at.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
