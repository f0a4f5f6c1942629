//! Advisory file locks. The kernel releases a lock when its process ends, so `kill -9` leaves no stale lock
//! behind.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: Option<File>,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{path} is still locked by another process after {waited} s", path = path.display())]
    Busy { path: PathBuf, waited: u64 },
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// How long a process waits for a lock, in milliseconds. Hooks wait for a shorter time than commands.
static LOCK_TIMEOUT_MS: AtomicU64 = AtomicU64::new(30_000);

/// Sets the time that this process waits for locks from now on.
pub fn set_lock_timeout(timeout: Duration) {
    LOCK_TIMEOUT_MS.store(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Returns the time that this process waits for locks.
pub fn lock_timeout() -> Duration {
    Duration::from_millis(LOCK_TIMEOUT_MS.load(Ordering::Relaxed))
}

impl Lock {
    /// Waits until no other process or thread holds the lock. Creates the lock file but not its folder; `NotFound`
    /// means that the folder does not exist.
    pub fn exclusive(path: &Path) -> Result<Lock, LockError> {
        Lock::wait(path, File::try_lock)
    }

    /// Same as [`Lock::exclusive`], but other shared holders are allowed.
    pub fn shared(path: &Path) -> Result<Lock, LockError> {
        Lock::wait(path, File::try_lock_shared)
    }

    fn wait(path: &Path, try_lock: fn(&File) -> Result<(), TryLockError>) -> Result<Lock, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let start = Instant::now();
        let timeout = lock_timeout();
        let mut pause = Duration::from_micros(100);
        loop {
            let (file, meta) = open(path).map_err(io)?;
            while let Err(error) = try_lock(&file) {
                match error {
                    TryLockError::Error(source) => return Err(io(source)),
                    TryLockError::WouldBlock if start.elapsed() > timeout => {
                        return Err(LockError::Busy { path: path.to_owned(), waited: timeout.as_secs() });
                    }
                    // Sleep instead of spinning; the jitter keeps two waiting processes from retrying in step.
                    TryLockError::WouldBlock => {
                        let jitter = u64::from(std::process::id()) % 7 * 50;
                        std::thread::sleep(pause + Duration::from_micros(jitter));
                        pause = (pause * 2).min(Duration::from_millis(1));
                    }
                }
            }
            // The folder may have been moved to the trash while we waited. Then we hold the lock of another file.
            if crate::fs::is_at(&meta, path) {
                return Ok(Lock { file: Some(file) });
            }
        }
    }

    /// Returns the lock, or `None` if another process holds it.
    pub fn try_exclusive(path: &Path) -> io::Result<Option<Lock>> {
        let (file, _) = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns a lock that holds nothing, for readers of a read-only folder: no process can write there.
    pub fn none() -> Lock {
        Lock { file: None }
    }

    /// Returns the lock file, for a data file that is its own lock.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    pub fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

/// Opens or creates a lock file. Only its owner may open it: another user who could open it could hold the lock.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    crate::fs::open_private(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_two_threads_never_hold_lock_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = Lock::exclusive(&path).unwrap();
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn shared_holders_exclude_only_exclusive_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = Lock::shared(&path).unwrap();
        let second = Lock::shared(&path).unwrap();
        drop(first);
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop(second);
        let alone = Lock::try_exclusive(&path).unwrap();
        assert!(alone.is_some());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| Lock::shared(&path).unwrap());
            drop(alone);
            assert!(waiter.join().unwrap().is_held());
        });
    }

    #[test]
    fn exclusive_moved_folder_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        let path = dir.path().join("a/lock");
        let held = Lock::exclusive(&path).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| Lock::exclusive(&path));
            std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
            drop(held);
            assert!(
                matches!(waiter.join().unwrap(), Err(LockError::Io { source, .. }) if crate::fs::is_absent(&source))
            );
        });
    }
}
