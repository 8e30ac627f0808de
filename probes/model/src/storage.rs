//! What a node says about its file systems and drives.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Celsius, Megatransfers, Percent, Reading};

/// All readings of the storage domain at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageSample {
    /// The mount table.
    pub mounts: Reading<Vec<Mount>>,
    /// `/etc/fstab`.
    pub fstab: Reading<Vec<FstabEntry>>,
    /// What each mount that was asked said, one child process a mount.
    pub answers: Vec<MountAnswer>,
    /// NVMe controllers.
    pub nvme: Reading<Vec<NvmeController>>,
    /// Software RAID arrays.
    pub md: Reading<Vec<MdArray>>,
}

/// A mount point, in the kernel's own escaped form (`\040` for a space; any other odd byte alike), which is ASCII and
/// loses nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MountPoint(pub String);

impl MountPoint {
    /// From a path's bytes.
    #[must_use]
    pub fn from_bytes(path: &[u8]) -> Self {
        let mut escaped = String::with_capacity(path.len());
        for byte in path {
            if byte.is_ascii_graphic() && *byte != b'\\' {
                escaped.push(char::from(*byte));
            } else {
                escaped.push_str(&format!("\\{byte:03o}"));
            }
        }
        Self(escaped)
    }

    /// From the kernel's or fstab's form, which escapes only white space and the backslash.
    #[must_use]
    pub fn from_escaped(field: &[u8]) -> Self {
        Self::from_bytes(&unescape(field))
    }

    /// The path's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        unescape(self.0.as_bytes())
    }
}

impl fmt::Display for MountPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let octal = |digits: &[u8]| {
        digits
            .iter()
            .try_fold(0_u32, |sum, d| (b'0'..=b'7').contains(d).then(|| sum * 8 + u32::from(d - b'0')))
    };
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'\\')
            .then(|| tail.get(..3).and_then(octal))
            .flatten()
            .and_then(|value| u8::try_from(value).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// What kind of thing lies behind a mount; decides whether it is asked and whom a silence is blamed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystemKind {
    /// On a block device of this node.
    Local,
    /// On a server that others use too.
    Network,
    /// In memory.
    Memory,
    /// Not storage: proc, cgroup, overlay, automount triggers and the like.
    Pseudo,
}

/// One line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where.
    pub point: MountPoint,
    /// Type, as the kernel names it.
    pub fs_type: String,
    /// Kind.
    pub kind: FileSystemKind,
    /// The device or server.
    pub source: String,
    /// `major:minor` of the file system: two mounts with the same one are one file system.
    pub device_number: String,
    /// Whether this mount or its file system is read-only.
    pub read_only: bool,
    /// Whether the file system was shut down after an error: it serves nobody any more.
    pub shut_down: bool,
    /// Where its blocks are, as far as the block device tells.
    pub backing: Reading<Backing>,
}

/// Where blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// In this machine: instance store, a drive of one's own.
    Local,
    /// Behind a network: EBS, Persistent Disk, a file server.
    Network,
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Local => "local",
            Self::Network => "network",
        })
    }
}

/// One line of `/etc/fstab` that asks for a mount at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FstabEntry {
    /// Where.
    pub point: MountPoint,
    /// Type, or `auto`.
    pub fs_type: String,
    /// It asks for a read-only mount.
    pub read_only: bool,
    /// The machine may start without it.
    pub no_fail: bool,
}

/// What a mount said when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountAnswer {
    /// Which.
    pub point: MountPoint,
    /// Its space.
    pub space: Reading<FileSystemSpace>,
    /// Whether it would take a write.
    pub write: Reading<WriteProbe>,
    /// How long both took, in milliseconds.
    pub took_ms: u64,
}

/// What `statvfs` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemSpace {
    /// Size.
    pub total: Bytes,
    /// Free, for root.
    pub free: Bytes,
    /// Free, for users.
    pub available: Bytes,
    /// Inodes; 0 where the file system has no such limit.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
}

impl FileSystemSpace {
    /// Share of what users may use that is used, as `df` computes it.
    #[must_use]
    pub fn used(&self) -> Option<Percent> {
        let used = self.total.0.saturating_sub(self.free.0);
        Percent::ratio(used, used.saturating_add(self.available.0))
    }

    /// Share of the inodes that is used.
    #[must_use]
    pub fn inodes_used(&self) -> Option<Percent> {
        Percent::ratio(self.inodes.saturating_sub(self.inodes_free), self.inodes)
    }
}

/// How a file system took a request to remove a name that does not exist: it has to get ready for a write, finds
/// nothing to remove, and stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteProbe {
    /// It was ready.
    Ready,
    /// It is read-only.
    ReadOnly,
}

/// One NVMe controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmeController {
    /// Its name: `nvme0`.
    pub name: String,
    /// Its model.
    pub model: Reading<String>,
    /// Its PCI address; not for NVMe over fabrics.
    pub address: Reading<String>,
    /// `live`, `connecting`, `resetting`, `deleting`, `dead`.
    pub state: Reading<String>,
    /// Where its blocks are, by its model.
    pub backing: Reading<Backing>,
    /// Its PCIe link.
    pub link: LinkReadings,
    /// Its health log.
    pub smart: Reading<SmartLog>,
}

/// A PCIe link, as it is and as the device can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReadings {
    /// Rate now.
    pub speed: Reading<Megatransfers>,
    /// Rate at most.
    pub speed_max: Reading<Megatransfers>,
    /// Lanes now.
    pub width: Reading<u32>,
    /// Lanes at most.
    pub width_max: Reading<u32>,
    /// Rate at most of the port that it is plugged into.
    pub port_speed_max: Reading<Megatransfers>,
    /// Lanes at most of that port.
    pub port_width_max: Reading<u32>,
}

/// What we use of the SMART / Health Information log page (NVM Express Base Specification, log page 02h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmartLog {
    /// Critical warning bits.
    pub critical_warning: u8,
    /// Composite temperature.
    pub temperature: Celsius,
    /// Spare blocks left, in percent.
    pub spare_percent: u8,
    /// Spare below this is critical, in percent.
    pub spare_threshold_percent: u8,
    /// Estimate of the life used, in percent; may pass 100.
    pub used_percent: u8,
    /// Errors that the drive could not recover from, over its life.
    pub media_errors: u64,
}

/// One software RAID array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MdArray {
    /// Its name: `md0`.
    pub name: String,
    /// `raid0`, `raid1`, ….
    pub level: Reading<String>,
    /// `clean`, `active`, `inactive`, `broken`, ….
    pub state: Reading<String>,
    /// Members that a whole array has.
    pub disks: Reading<u32>,
    /// Members that are missing; levels without redundancy have no such count.
    pub degraded: Reading<u32>,
    /// `idle`, `resync`, `recover`, ….
    pub sync_action: Reading<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_of_any_bytes_survives_its_escaped_form() {
        for path in [&b"/a b"[..], b"/\xff\xfe", b"/back\\slash", b"/tab\there", b"/\\04"] {
            assert_eq!(MountPoint::from_bytes(path).to_bytes(), path);
        }
        assert_eq!(MountPoint::from_escaped(br"/with\040space").to_bytes(), b"/with space");
    }

    #[test]
    fn used_space_is_counted_as_df_counts_it() {
        let space = FileSystemSpace {
            total: Bytes(100),
            free: Bytes(10),
            available: Bytes(5),
            inodes: 0,
            inodes_free: 0,
        };
        assert_eq!(space.used().map(|p| p.0.round()), Some(95.0));
        assert_eq!(space.inodes_used(), None);
    }
}
