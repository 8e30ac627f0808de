//! Asking one mount whether it answers. The only reader here that a dead server can hold up for ever, so it runs in a
//! child process of its own, one a mount.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf, time::Instant};

use plimsoll_model::{Absence, Absent, Bytes, FileSystemSpace, MountAnswer, MountPoint, WriteProbe};
use rustix::{
    fs::{AtFlags, CWD, StatVfs, statvfs, unlinkat},
    io::Errno,
};

use crate::{Machine, machine, parse};

/// Asks for space and readiness. A tree says both in `answers/mounts`.
pub fn ask_mount(machine: &Machine, point: &MountPoint) -> MountAnswer {
    machine.begin_sample();
    let begin = Instant::now();
    if !machine.is_live() {
        const ANSWERS: &str = "/answers/mounts";
        let answer =
            machine.text(ANSWERS).and_then(|text| parse::space_answer(&text, point)).and_then(|answer| {
                answer
                    .ok_or_else(|| Absent::new(Absence::Unreadable, "the tree has no answer of this mount's"))
            });
        return MountAnswer {
            point: point.clone(),
            space: machine.reading(ANSWERS, answer.clone().map(|(space, _)| space)),
            write: machine.reading(ANSWERS, answer.map(|(_, write)| write)),
            took_ms: 0,
        };
    }
    let path = PathBuf::from(OsStr::from_bytes(&point.to_bytes()));
    machine.step(&format!("statvfs({point})"));
    let space =
        machine.reading(format!("statvfs({point})"), statvfs(&path).map(space).map_err(machine::absent));
    let absent_name = path.join(format!(".plimsoll-no-such-name-{}", std::process::id()));
    machine.step(&format!("rmdir({point}/.plimsoll-no-such-name)"));
    let write = machine.reading(format!("rmdir({point}/.plimsoll-no-such-name)"), write_probe(&absent_name));
    let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    MountAnswer { point: point.clone(), space, write, took_ms }
}

fn space(vfs: StatVfs) -> FileSystemSpace {
    let block = vfs.f_frsize;
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(block));
    FileSystemSpace {
        total: bytes(vfs.f_blocks),
        free: bytes(vfs.f_bfree),
        available: bytes(vfs.f_bavail),
        inodes: vfs.f_files,
        inodes_free: vfs.f_ffree,
    }
}

/// Asks to remove a directory that does not exist. To answer, the kernel must get the file system ready for a write
/// and a network file system must ask its server; then nothing is found and nothing is changed. A frozen or hung file
/// system does not answer.
fn write_probe(absent_name: &std::path::Path) -> Result<WriteProbe, Absent> {
    match unlinkat(CWD, absent_name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(WriteProbe::Ready),
        Err(Errno::ROFS) => Ok(WriteProbe::ReadOnly),
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => {
            Err(Absent::new(Absence::NotSupported, "this file system removes nothing"))
        }
        Err(error) => Err(machine::absent(error)),
        Ok(()) => {
            Err(Absent::new(Absence::Malformed, "it removed a directory that only Plimsoll could have named"))
        }
    }
}
