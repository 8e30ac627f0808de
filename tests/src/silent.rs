//! A file system whose server never answers: whoever touches it waits until he is killed.

use std::{
    fs::{self, File, OpenOptions},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::{is_root, skip};

/// A FUSE mount of which nobody reads the requests; unmounted at the end, which wakes whoever waits.
#[derive(Debug)]
pub struct Silent {
    place: PathBuf,
    _server: File,
}

impl Silent {
    /// Mounts one, calling itself `fs_type`; `None`, with the reason said, where that cannot be done.
    ///
    /// # Panics
    /// When there is no such directory.
    #[must_use]
    pub fn at(place: &Path, fs_type: &str) -> Option<Self> {
        if !is_root() {
            skip("a file system can be mounted by root only");
            return None;
        }
        fs::create_dir_all(place).expect("a mount point");
        let Ok(server) = OpenOptions::new().read(true).write(true).open("/dev/fuse") else {
            skip("there is no /dev/fuse");
            return None;
        };
        let data = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
        let data = std::ffi::CString::new(data).expect("no NUL");
        if let Err(error) = mount("silent", place, fs_type, MountFlags::empty(), Some(data.as_c_str())) {
            skip(&format!("no FUSE file system can be mounted here: {error}"));
            return None;
        }
        Some(Self { place: place.to_owned(), _server: server })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = unmount(&self.place, UnmountFlags::FORCE | UnmountFlags::DETACH);
    }
}
