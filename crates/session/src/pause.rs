//! The file `paused` in the home store. While it exists, no text is injected into any session.

use std::path::{Path, PathBuf};

use tanmi_base::{Millis, fs};

use crate::{Error, Result};

fn path(home: &Path) -> PathBuf {
    home.join("paused")
}

/// Returns until when injection is paused; `Some(None)` means without an end. An unreadable file also counts as a
/// pause.
pub fn paused_until(home: &Path, now: Millis) -> Option<Option<Millis>> {
    let bytes = fs::read_optional(&path(home)).ok().flatten()?;
    let until = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse::<Millis>().ok());
    until.is_none_or(|until| now < until).then_some(until)
}

pub fn pause(home: &Path, until: Option<Millis>) -> Result<()> {
    fs::create_private_dir(home).map_err(Error::io(home))?;
    let text = until.map(|until| format!("{until}\n")).unwrap_or_default();
    fs::write_private(&path(home), text.as_bytes()).map_err(Error::io(path(home)))
}

/// Ends the pause. Returns whether there was one.
pub fn resume(home: &Path) -> Result<bool> {
    match std::fs::remove_file(path(home)) {
        Ok(()) => Ok(true),
        Err(error) if fs::is_absent(&error) => Ok(false),
        Err(error) => Err(Error::io(path(home))(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_ends_at_time_or_with_resume() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        assert_eq!(paused_until(home, 5), None);
        pause(home, None).unwrap();
        assert_eq!(paused_until(home, 5), Some(None));
        pause(home, Some(10)).unwrap();
        assert_eq!((paused_until(home, 9), paused_until(home, 10)), (Some(Some(10)), None));
        assert!(resume(home).unwrap() && !resume(home).unwrap());
    }
}
