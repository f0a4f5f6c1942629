//! A disk that is full again and again: a small one of its own, and somebody who fills it and takes it back.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::World;
use crate::dice::Dice;

/// A mounted scratch file system; gone with this value.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// `Err` says why there is none: it takes the right to mount.
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

/// Takes all the room there is, for a moment.
pub fn fill(world: &World) {
    let mut dice = Dice(11);
    let path = world.root.join("filler");
    while !world.stop.load(Ordering::Relaxed) {
        if let Ok(mut file) = File::create(&path) {
            // The last writes are small: some operations get half of what they need.
            for size in [1 << 20, 4096, 64] {
                let block = vec![b'x'; size];
                while file.write_all(&block).is_ok() {}
            }
        }
        world.full.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20 + dice.roll(200)));
        let _ = std::fs::remove_file(&path);
        std::thread::sleep(Duration::from_millis(50 + dice.roll(300)));
    }
    let _ = std::fs::remove_file(&path);
}
