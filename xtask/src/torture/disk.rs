//! A small disk that repeatedly fills up: mounts it, and fills and frees it while the workers run.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::TestEnv;
use crate::rng::Rng;

/// A mounted temporary file system; dropping the value unmounts it.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system of the given size. Needs permission to mount; the error is the reason for a failure.
    pub fn mount(path: &Path, megabytes: u64) -> Result<SmallDisk, String> {
        let size = format!("size={megabytes}m");
        let output =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tanmi-torture"]).arg(path).output();
        match output {
            Ok(output) if output.status.success() => Ok(SmallDisk { path: path.to_owned() }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

/// Fills the disk and frees it again, until `env.stop` is set.
pub fn fill_repeatedly(env: &TestEnv) {
    let mut rng = Rng(11);
    let path = env.root.join("filler");
    while !env.stop.load(Ordering::Relaxed) {
        if let Ok(mut file) = File::create(&path) {
            // The last writes are small, so that the disk is completely full and other writes fail halfway.
            for size in [1 << 20, 4096, 64] {
                let block = vec![b'x'; size];
                while file.write_all(&block).is_ok() {}
            }
        }
        env.full_disk_count.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20 + rng.below(200)));
        let _ = std::fs::remove_file(&path);
        std::thread::sleep(Duration::from_millis(50 + rng.below(300)));
    }
    let _ = std::fs::remove_file(&path);
}
