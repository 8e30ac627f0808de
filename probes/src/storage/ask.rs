//! Asking one mount whether it answers. The only reader here that a dead server can hold up for ever, so it runs in a
//! child process of its own, one a mount.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf, time::Instant};

use plimsoll_model::{Absence, Absent, Bytes, FileSystemSpace, MountAnswer, MountPoint, WriteProbe};
use rustix::{
    fs::{AtFlags, CWD, StatVfs, statvfs, unlinkat},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
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
    let call = format!("rmdir({point}/a name that does not exist)");
    machine.step(&call);
    let write = machine.reading(call, absent_name().and_then(|name| write_probe(&path.join(name))));
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

/// A name that nobody can have foreseen, so that nobody can have put something there.
fn absent_name() -> Result<String, Absent> {
    let mut random = [0_u8; 16];
    match getrandom(&mut random, GetRandomFlags::empty()) {
        Ok(16) => Ok(format!(".plimsoll-{:032x}", u128::from_ne_bytes(random))),
        _ => Err(Absent::new(Absence::NotAsked, "the kernel gave no random name to ask with")),
    }
}

/// Asks to remove a directory that does not exist. To answer, the kernel must get the file system ready for a write
/// and a network file system must ask its server; then nothing is found and nothing is changed. A frozen or hung file
/// system does not answer.
fn write_probe(absent_name: &std::path::Path) -> Result<WriteProbe, Absent> {
    match unlinkat(CWD, absent_name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(WriteProbe::Ready),
        Err(Errno::ROFS) => Ok(WriteProbe::ReadOnly),
        // It answered; that is all that can be had from somebody else's private directory, or of a read-only protocol.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::ACCESS | Errno::PERM) => {
            Err(Absent::new(Absence::NotSupported, "it cannot be asked about writes"))
        }
        Err(error) => Err(machine::absent(error)),
        Ok(()) => {
            Err(Absent::new(Absence::Malformed, "it removed a directory that only Plimsoll could have named"))
        }
    }
}
