//! Which mounts are asked, and what is expected of each.

use std::collections::BTreeSet;

use plimsoll_model::{FileSystemKind, FstabEntry, Mount, MountPoint, Origin, StorageSample};

use crate::{Config, Data};

/// Most mounts that are asked in one check; each costs a child process.
pub const MOUNTS_ASKED_MAX: usize = 256;

/// What somebody expects of a mount: the operator's configuration, or `/etc/fstab`.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedMount {
    pub(crate) point: MountPoint,
    /// `None` when it does not matter.
    pub(crate) fs_type: Option<(String, Origin)>,
    pub(crate) read_only: bool,
    pub(crate) no_fail: bool,
    pub(crate) origin: Origin,
}

/// Everything that is expected to be mounted; the configuration goes before fstab.
pub(crate) fn expected(sample: &StorageSample, config: &Config, data: &Data) -> Vec<ExpectedMount> {
    let mut all: Vec<_> = config
        .mount
        .iter()
        .map(|mount| ExpectedMount {
            point: mount.path.clone(),
            fs_type: mount.fs_type.clone().map(|fs_type| (fs_type, config.origin())),
            read_only: mount.read_only,
            no_fail: false,
            origin: config.origin(),
        })
        .collect();
    for entry in sample.fstab.ok().into_iter().flatten() {
        let entry = from_fstab(entry, data);
        match all.iter_mut().find(|mount| mount.point == entry.point) {
            // What the configuration leaves open, fstab still says.
            Some(mount) => mount.fs_type = mount.fs_type.take().or(entry.fs_type),
            None => all.push(entry),
        }
    }
    all
}

fn from_fstab(entry: &FstabEntry, data: &Data) -> ExpectedMount {
    // The name of a mount helper (`efs`, `ntfs-3g`) or a list of types is not what the mount table will say.
    let matters = data.is_file_system_type(&entry.fs_type);
    let origin = Origin::Config { file: "/etc/fstab".to_owned() };
    ExpectedMount {
        point: entry.point.clone(),
        fs_type: matters.then(|| (entry.fs_type.clone(), origin.clone())),
        read_only: entry.read_only,
        no_fail: entry.no_fail,
        origin,
    }
}

/// The mounts to ask: those that are expected, and of the others every real file system once, however often it is
/// mounted. The expected ones come first; only the first [`MOUNTS_ASKED_MAX`] are really asked.
#[must_use]
pub fn mounts_to_ask<'s>(sample: &'s StorageSample, config: &Config, data: &Data) -> Vec<&'s Mount> {
    let Ok(mounts) = sample.mounts.get() else { return Vec::new() };
    let expected = expected(sample, config, data);
    let is_expected = |mount: &Mount| {
        let named = config.mount(&mount.point).is_some();
        named || (mount.kind != FileSystemKind::Pseudo && expected.iter().any(|e| e.point == mount.point))
    };
    let mut asked: Vec<&Mount> = mounts.iter().filter(|mount| is_expected(mount)).collect();
    let mut seen: BTreeSet<&str> = asked.iter().map(|mount| mount.device_number.as_str()).collect();
    let mut others: Vec<&Mount> = mounts
        .iter()
        .filter(|mount| match mount.kind {
            FileSystemKind::Local | FileSystemKind::Network => true,
            FileSystemKind::Memory => data.memory_judged(&mount.point.0),
            FileSystemKind::Pseudo => false,
        })
        .collect();
    // Of several mounts of one file system the one nearest to the root is the one that people know.
    others.sort_by_key(|mount| (mount.point.0.matches('/').count(), mount.point.0.len()));
    for mount in others {
        if seen.insert(&mount.device_number) {
            asked.push(mount);
        }
    }
    asked
}
