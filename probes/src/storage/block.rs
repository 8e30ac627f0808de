//! Where a mount's blocks are: followed from the mount through arrays and volumes to the drives.

use plimsoll_judge::Data;
use plimsoll_model::{Absence, Absent, Backing, Reading};

use super::nvme;
use crate::{Machine, parse};

/// Arrays on volumes on arrays: deeper than anybody builds.
const STACK_MAX: u32 = 8;

pub(super) fn backing_of_mount(
    machine: &Machine,
    data: &Data,
    line: &parse::MountLine,
    on_network: bool,
) -> Reading<Backing> {
    if on_network {
        return machine.reading("/proc/self/mountinfo", Ok(Backing::Network));
    }
    let link = format!("/sys/dev/block/{}", line.device_number);
    // btrfs, zfs and overlay have device numbers of their own, with major 0; their source may still name a drive.
    let name = if line.device_number.starts_with("0:") {
        let source = line.source.strip_prefix("/dev/").map(str::to_owned);
        source.ok_or_else(|| Absent::new(Absence::NotSupported, "not on a block device"))
    } else {
        machine.link_target(&link).map(|target| target.rsplit('/').next().unwrap_or_default().to_owned())
    };
    let result = name.and_then(|name| backing_of(machine, data, &name, 0));
    machine.reading(link, result)
}

fn backing_of(machine: &Machine, data: &Data, name: &str, depth: u32) -> Result<Backing, Absent> {
    if depth > STACK_MAX || name.contains('/') {
        return Err(Absent::new(Absence::NotSupported, format!("{name} is not a plain block device")));
    }
    if let Some(controller) = nvme_controller(name) {
        return nvme::backing_of(machine, data, controller);
    }
    if let Ok(slaves) = machine.list(&format!("/sys/class/block/{name}/slaves"))
        && !slaves.is_empty()
    {
        let mut all = Backing::Local;
        for slave in slaves {
            if backing_of(machine, data, &slave, depth + 1)? == Backing::Network {
                all = Backing::Network;
            }
        }
        return Ok(all);
    }
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    machine
        .text(&format!("/sys/class/block/{disk}/device/model"))
        .ok()
        .and_then(|model| data.backing(model.trim()))
        .ok_or_else(|| {
            Absent::new(Absence::NotSupported, format!("{name} does not tell where its blocks are"))
        })
}

/// `nvme3` of `nvme3n1p2` and of the multipath form `nvme3c1n1`.
pub(super) fn nvme_controller(name: &str) -> Option<&str> {
    let digits = name.strip_prefix("nvme")?;
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| name.get(.."nvme".len() + end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::nvme_controller;

    #[test]
    fn a_controller_is_found_in_the_names_of_its_namespaces_and_partitions() {
        assert_eq!(nvme_controller("nvme3n1p2"), Some("nvme3"));
        assert_eq!(nvme_controller("nvme12c1n1"), Some("nvme12"));
        assert_eq!(nvme_controller("sda1"), None);
        assert_eq!(nvme_controller("nvme"), None);
    }
}
