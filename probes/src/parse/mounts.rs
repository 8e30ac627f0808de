//! The mount table and fstab.

use std::collections::HashMap;

use plimsoll_model::{Absent, Bytes, FileSystemSpace, FstabEntry, MountPoint, WriteProbe};

use super::{clip, malformed, number};

/// Most mounts that a table may hold.
const MOUNTS_MAX: usize = 16_384;
/// Mounts upon mounts upon mounts: deeper than anybody builds.
const ANCESTORS_MAX: usize = 64;

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
    /// The file system was shut down after an error: it serves nobody any more.
    pub shut_down: bool,
}

/// A line with what places it in the tree of mounts.
struct Placed {
    id: u64,
    parent: u64,
    line: MountLine,
}

/// `/proc/self/mountinfo` (proc(5)): the mounts that a process can see. One that another was mounted over, at its own
/// place or above it, is left out.
///
/// # Errors
/// When a line is of another form, or there are none, or too many.
pub fn mountinfo(bytes: &[u8]) -> Result<Vec<MountLine>, Absent> {
    let mut mounts = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        mounts.push(mount_line(line).ok_or_else(|| {
            malformed(format!("a line of another form: {:?}", clip(&String::from_utf8_lossy(line), 80)))
        })?);
        if mounts.len() > MOUNTS_MAX {
            return Err(malformed(format!("more than {MOUNTS_MAX} mounts")));
        }
    }
    if mounts.is_empty() {
        return Err(malformed("no mounts"));
    }
    let latest: HashMap<String, usize> =
        mounts.iter().enumerate().map(|(at, mount)| (mount.line.point.0.clone(), at)).collect();
    let by_id: HashMap<u64, usize> = mounts.iter().enumerate().map(|(at, mount)| (mount.id, at)).collect();
    let hidden: Vec<bool> = (0..mounts.len()).map(|at| is_hidden(&mounts, at, &latest, &by_id)).collect();
    Ok(mounts.into_iter().zip(hidden).filter(|(_, hidden)| !hidden).map(|(mount, _)| mount.line).collect())
}

fn is_hidden(
    mounts: &[Placed],
    at: usize,
    latest: &HashMap<String, usize>,
    by_id: &HashMap<u64, usize>,
) -> bool {
    let Some(mount) = mounts.get(at) else { return false };
    let point = mount.line.point.0.as_str();
    let above =
        point.match_indices('/').map(|(end, _)| if end == 0 { "/" } else { point.get(..end).unwrap_or("/") });
    above.chain([point]).any(|place| {
        let Some(over) = latest.get(place).filter(|over| **over > at).and_then(|over| mounts.get(*over))
        else {
            return false;
        };
        // A mount that it hangs from is below it, wherever it stands in the table.
        let mut below = mount;
        for _ in 0..ANCESTORS_MAX {
            if below.parent == over.id {
                return false;
            }
            match by_id.get(&below.parent).and_then(|at| mounts.get(*at)) {
                Some(next) if next.id != below.id => below = next,
                // At the root all is known; elsewhere the table does not show what it hangs from, as in some containers.
                _ => return below.line.point.0 == "/",
            }
        }
        false
    })
}

fn mount_line(line: &[u8]) -> Option<Placed> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut id = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (id()?, id()?);
    let device_number = std::str::from_utf8(fields.next()?).ok()?.to_owned();
    device_number.split_once(':')?;
    let _root = fields.next()?;
    let point = MountPoint::from_escaped(fields.next()?);
    let options = fields.next()?;
    fields.find(|field| *field == b"-")?;
    let text = |field: &[u8]| MountPoint::from_escaped(field).0;
    let (fs_type, source) = (text(fields.next()?), text(fields.next()?));
    let of_fs = fields.next()?;
    // Since 6.15 ext4 leaves `rw` standing when an error makes it refuse writes, and says so beside it.
    let read_only =
        has_option(options, b"ro") || has_option(of_fs, b"ro") || has_option(of_fs, b"emergency_ro");
    let shut_down = has_option(of_fs, b"shutdown");
    let line = MountLine { point, device_number, fs_type, source, read_only, shut_down };
    Some(Placed { id, parent, line })
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
        // A bind mount has the type of what it binds, whatever its line says.
        let binds = has_option(options, b"bind") || has_option(options, b"rbind");
        entries.push(FstabEntry {
            point: MountPoint(plain_path(&MountPoint::from_escaped(point).0)),
            fs_type: if binds { "none".to_owned() } else { MountPoint::from_escaped(fs_type).0 },
            read_only: has_option(options, b"ro"),
            no_fail: has_option(options, b"nofail"),
        });
    }
    Ok(entries)
}

/// An absolute path as the mount table writes it: no slash twice, none at its end, no `.` and no `..`.
#[must_use]
pub fn plain_path(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
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
