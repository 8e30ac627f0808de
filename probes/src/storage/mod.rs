//! Storage: mounts, drives, arrays.

mod ask;
mod block;
mod nvme;

pub use ask::ask_mount;
pub use nvme::health;

use plimsoll_judge::Data;
use plimsoll_model::{
    Absence, Absent, FileSystemKind, MdArray, Mount, MountPoint, Outcome, Reading, StorageSample,
};

use crate::{Machine, parse};

/// Far more than any machine has.
const ARRAYS_MAX: usize = 1024;
const TABLE_BYTES_MAX: usize = 4 << 20;

pub(crate) fn collect(machine: &Machine, data: &Data) -> StorageSample {
    machine.step("the mount table (/proc/self/mountinfo)");
    let mounts = table(machine, "/proc/self/mountinfo", parse::mountinfo)
        .and_then(|lines| Ok(lines.iter().map(|line| mount(machine, data, line)).collect::<Vec<_>>()));
    machine.step("/etc/fstab");
    let mut fstab = table(machine, "/etc/fstab", parse::fstab);
    if let (Outcome::Value(entries), Some(mounts)) = (&mut fstab.outcome, mounts.ok()) {
        for entry in entries {
            entry.point = resolved(machine, &entry.point, mounts);
        }
    }
    machine.step("software RAID (/sys/block)");
    let md = machine.reading("/sys/block/md*/md", arrays(machine));
    machine.step("NVMe drives (/sys/class/nvme)");
    let nvme = machine.reading("/sys/class/nvme", nvme::controllers(machine, data));
    StorageSample { mounts, fstab, answers: Vec::new(), nvme, md }
}

fn table<T>(machine: &Machine, path: &str, parse: fn(&[u8]) -> Result<T, Absent>) -> Reading<T> {
    let bytes = machine.bytes(path, TABLE_BYTES_MAX);
    machine.reading(path, bytes.and_then(|bytes| parse(&bytes)))
}

/// Where a path of fstab really leads: the mount table has it without symbolic links. Nothing is looked up below a
/// network file system, which may not answer.
fn resolved(machine: &Machine, point: &MountPoint, mounts: &[Mount]) -> MountPoint {
    const LINKS_MAX: usize = 40;
    let is_mounted = |path: &str| mounts.iter().any(|mount| mount.point.0 == path);
    let below_network = |path: &str| {
        let above = |place: &str| {
            path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        mounts.iter().any(|mount| mount.kind == FileSystemKind::Network && above(&mount.point.0))
    };
    let mut path = point.0.clone();
    for _ in 0..LINKS_MAX {
        let ends = path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]).collect::<Vec<_>>();
        let link = ends.into_iter().filter_map(|end| Some((path.get(..end)?, path.get(end..)?))).find_map(
            |(place, rest)| {
                if is_mounted(place) || below_network(place) || place.contains('\\') {
                    return None;
                }
                machine.link_target(place).ok().map(|target| (place.to_owned(), target, rest.to_owned()))
            },
        );
        let Some((place, target, rest)) = link else { break };
        let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
        let joined = if target.starts_with('/') {
            format!("{target}{rest}")
        } else {
            format!("{parent}/{target}{rest}")
        };
        path = parse::plain_path(&joined);
    }
    MountPoint(path)
}

fn mount(machine: &Machine, data: &Data, line: &parse::MountLine) -> Mount {
    let kind = data.file_system_kind(&line.fs_type, &line.source, &line.point.0);
    Mount {
        point: line.point.clone(),
        fs_type: line.fs_type.clone(),
        kind,
        source: line.source.clone(),
        device_number: line.device_number.clone(),
        read_only: line.read_only,
        shut_down: line.shut_down,
        backing: block::backing_of_mount(machine, data, line, kind == FileSystemKind::Network),
    }
}

fn arrays(machine: &Machine) -> Result<Vec<MdArray>, Absent> {
    let mut arrays = Vec::new();
    for name in machine.list("/sys/block")? {
        let is_array = name
            .strip_prefix("md")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'));
        if !is_array {
            continue;
        }
        if arrays.len() == ARRAYS_MAX {
            return Err(Absent::new(Absence::TooLarge, format!("more than {ARRAYS_MAX} arrays")));
        }
        let base = format!("/sys/block/{name}/md");
        // A container of firmware RAID (`external:imsm`) holds arrays and is none; its arrays name it with a slash.
        let metadata = machine.text(&format!("{base}/metadata_version")).unwrap_or_default();
        if metadata.strip_prefix("external:").is_some_and(|format| !format.starts_with('/')) {
            continue;
        }
        arrays.push(MdArray {
            level: machine.read(&format!("{base}/level"), parse::one_word),
            state: machine.read(&format!("{base}/array_state"), parse::one_word),
            disks: machine.read(&format!("{base}/raid_disks"), parse::one_number),
            degraded: machine.read(&format!("{base}/degraded"), parse::one_number),
            sync_action: machine.read(&format!("{base}/sync_action"), parse::one_line),
            name,
        });
    }
    Ok(arrays)
}
