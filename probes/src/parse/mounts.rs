//! The mount table and fstab.

use plimsoll_model::{Absent, Bytes, FileSystemSpace, FstabEntry, MountPoint, WriteProbe};

use super::{clip, malformed, number};

/// Most mounts that a table may hold.
const MOUNTS_MAX: usize = 16_384;

/// One line of `/proc/self/mountinfo`, uninterpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLine {
    /// Where.
    pub point: MountPoint,
    /// `major:minor`.
    pub device_number: String,
    /// Type.
    pub fs_type: String,
    /// Device or server.
    pub source: String,
    /// The mount or its file system is read-only.
    pub read_only: bool,
}

/// `/proc/self/mountinfo` (proc(5)): of mounts over each other at one place only the last, which is what a process sees.
///
/// # Errors
/// When a line is of another form, or there are none, or too many.
pub fn mountinfo(bytes: &[u8]) -> Result<Vec<MountLine>, Absent> {
    let mut mounts: Vec<MountLine> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mount = mount_line(line).ok_or_else(|| {
            malformed(format!("a line of another form: {:?}", clip(&String::from_utf8_lossy(line), 80)))
        })?;
        match places.get(&mount.point).and_then(|at: &usize| mounts.get_mut(*at)) {
            Some(hidden) => *hidden = mount,
            None => {
                places.insert(mount.point.clone(), mounts.len());
                mounts.push(mount);
            }
        }
        if mounts.len() > MOUNTS_MAX {
            return Err(malformed(format!("more than {MOUNTS_MAX} mounts")));
        }
    }
    if mounts.is_empty() { Err(malformed("no mounts")) } else { Ok(mounts) }
}

fn mount_line(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (_id, _parent) = (fields.next()?, fields.next()?);
    let device_number = std::str::from_utf8(fields.next()?).ok()?.to_owned();
    device_number.split_once(':')?;
    let _root = fields.next()?;
    let point = MountPoint::from_escaped(fields.next()?);
    let options = fields.next()?;
    fields.find(|field| *field == b"-")?;
    let text = |field: &[u8]| MountPoint::from_escaped(field).0;
    let (fs_type, source) = (text(fields.next()?), text(fields.next()?));
    let super_options = fields.next()?;
    let read_only = has_option(options, b"ro") || has_option(super_options, b"ro");
    Some(MountLine { point, device_number, fs_type, source, read_only })
}

fn has_option(options: &[u8], wanted: &[u8]) -> bool {
    options.split(|byte| *byte == b',').any(|option| option == wanted)
}

/// `/etc/fstab`: entries that are mounted at boot (no swap, no `noauto`, nothing that systemd mounts on demand).
///
/// # Errors
/// When a line has fewer than its two first fields, as after a cut.
pub fn fstab(bytes: &[u8]) -> Result<Vec<FstabEntry>, Absent> {
    let mut entries = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| byte.is_ascii_whitespace()).filter(|field| !field.is_empty());
        let Some(device) = fields.next() else { continue };
        if device.starts_with(b"#") {
            continue;
        }
        let point = fields.next().ok_or_else(|| malformed("a line without a mount point"))?;
        let fs_type = fields.next().unwrap_or(b"auto");
        let options = fields.next().unwrap_or(b"defaults");
        let on_demand = has_option(options, b"noauto") || has_option(options, b"x-systemd.automount");
        if !point.starts_with(b"/") || fs_type == b"swap" || on_demand {
            continue;
        }
        if entries.len() >= MOUNTS_MAX {
            return Err(malformed(format!("more than {MOUNTS_MAX} entries")));
        }
        entries.push(FstabEntry {
            point: MountPoint::from_escaped(point),
            fs_type: MountPoint::from_escaped(fs_type).0,
            read_only: has_option(options, b"ro"),
            no_fail: has_option(options, b"nofail"),
        });
    }
    Ok(entries)
}

/// A tree's answers for its mounts, one a line:
/// `/scratch total=4096 free=1024 available=1000 inodes=100 inodes_free=50 write=ready`. `None` when the mount is not
/// among them.
///
/// # Errors
/// When the mount's line is of another form.
pub fn space_answer(text: &str, point: &MountPoint) -> Result<Option<(FileSystemSpace, WriteProbe)>, Absent> {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(point.0.as_str()) {
            continue;
        }
        let rest: Vec<_> = words.filter_map(|word| word.split_once('=')).collect();
        let field = |name: &str| rest.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let space = FileSystemSpace {
            total: number(field("total"), "total").map(Bytes)?,
            free: number(field("free"), "free").map(Bytes)?,
            available: number(field("available"), "available").map(Bytes)?,
            inodes: number(field("inodes"), "inodes")?,
            inodes_free: number(field("inodes_free"), "inodes_free")?,
        };
        let write = match field("write") {
            Some("ready") => WriteProbe::Ready,
            Some("read-only") => WriteProbe::ReadOnly,
            other => return Err(malformed(format!("write={other:?}"))),
        };
        return Ok(Some((space, write)));
    }
    Ok(None)
}
