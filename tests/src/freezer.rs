//! A file system that can be frozen: whoever writes to it then sits in a true uninterruptible sleep.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::{is_root, processes::wait_for, skip};

/// An ext4 file system in a loop device; thawed, unmounted and removed at the end, whatever happens.
#[derive(Debug)]
pub struct Freezer {
    // Declared first, so that the mount is gone before its directory is.
    mount: Mount,
    _directory: TempDir,
    _turn: fs::File,
}

#[derive(Debug)]
struct Mount(PathBuf);

impl Freezer {
    /// Makes and mounts one; `None`, with the reason said, where that cannot be done.
    ///
    /// # Panics
    /// When there is no room for it.
    #[must_use]
    pub fn new() -> Option<Self> {
        if !is_root() {
            skip("a file system can be frozen by root only");
            return None;
        }
        // Tests that leave probes behind share this machine's ledger of them, so they take turns.
        let turn = fs::File::create("/run/plimsoll-tests.lock").expect("a lock");
        flock(&turn, FlockOperation::LockExclusive).expect("a turn");
        let directory = tempfile::tempdir().expect("a directory");
        let (image, mount) = (directory.path().join("image"), directory.path().join("mount"));
        fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("an image");
        fs::create_dir(&mount).expect("a mount point");
        let made = tool("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &image])
            && tool("mount", &[Path::new("-o"), Path::new("loop"), &image, &mount]);
        if !made {
            skip("no file system in a loop device can be mounted here");
            return None;
        }
        Some(Self { mount: Mount(mount), _directory: directory, _turn: turn })
    }

    /// Where it is mounted.
    ///
    /// # Panics
    /// When that is not UTF-8.
    #[must_use]
    pub fn arg(&self) -> &str {
        self.mount.0.to_str().expect("UTF-8")
    }

    /// Freezes it.
    ///
    /// # Panics
    /// When it cannot be frozen.
    pub fn freeze(&self) {
        assert!(tool("fsfreeze", &[Path::new("-f"), &self.mount.0]), "it freezes");
    }

    /// Thaws it.
    ///
    /// # Panics
    /// When it cannot be thawed.
    pub fn thaw(&self) {
        assert!(tool("fsfreeze", &[Path::new("-u"), &self.mount.0]), "it thaws");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        tool("fsfreeze", &[Path::new("-u"), &self.0]);
        // A probe that was just freed may still be on its way out.
        wait_for("the file system to be unmounted", || tool("umount", &[&self.0]).then_some(()));
    }
}

fn tool(name: &str, arguments: &[&Path]) -> bool {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
