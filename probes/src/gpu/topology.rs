//! Where GPUs, network devices and drives sit: behind which PCIe switch, on which NUMA node, with which cores.

use plimsoll_model::{Absent, PciAddress, PciDevice, PciKind, Topology};

use super::{CLASS_COMPUTE, CLASS_DISPLAY, DEVICES, NVIDIA};
use crate::{Machine, parse};

const CLASS_NVME: u32 = 0x0108;
const CLASS_BRIDGE_OTHER: u32 = 0x0680;
const NUMA: &str = "/sys/devices/system/node";
/// A node with 448 virtual functions has more; they are not told apart by where they sit.
const DEVICES_MAX: usize = 1024;

pub(super) fn collect(machine: &Machine) -> Result<Topology, Absent> {
    let mut devices = Vec::new();
    for name in machine.list(DEVICES)? {
        let Some(address) = PciAddress::parse(&name) else { continue };
        let directory = format!("{DEVICES}/{name}");
        let Some(kind) = kind(machine, &directory)? else { continue };
        if devices.len() < DEVICES_MAX {
            devices.push(PciDevice {
                address,
                kind,
                names: names(machine, &directory, kind),
                numa_node: machine
                    .read(&format!("{directory}/numa_node"), parse::numa_node)
                    .ok()
                    .copied()
                    .flatten(),
                bridges: bridges(machine, &directory),
            });
        }
    }
    let numbers = machine.list(NUMA)?.into_iter().filter_map(|name| name.strip_prefix("node")?.parse().ok());
    let cores = numbers.filter_map(|node: u32| {
        let list = machine.text(&format!("{NUMA}/node{node}/cpulist")).ok()?;
        Some((node, parse::one_line(&list).ok()?))
    });
    Ok(Topology { cores: cores.collect(), devices })
}

/// What a device is; `None` for one that is of no interest here.
fn kind(machine: &Machine, directory: &str) -> Result<Option<PciKind>, Absent> {
    let number = |file: &str| {
        let text = machine.text(&format!("{directory}/{file}"));
        text.and_then(|text| parse::hex(&text))
            .map_err(|absent| Absent::new(absent.kind, format!("{directory}/{file}: {}", absent.detail)))
    };
    let (vendor, class) = (number("vendor")?, number("class")? >> 8);
    Ok(match class {
        CLASS_COMPUTE if vendor == NVIDIA => Some(PciKind::Gpu),
        class if vendor == NVIDIA && CLASS_DISPLAY.contains(&class) => Some(PciKind::Gpu),
        CLASS_BRIDGE_OTHER if vendor == NVIDIA => Some(PciKind::NvSwitch),
        CLASS_NVME => Some(PciKind::Nvme),
        class if class >> 8 == 0x02 => Some(PciKind::Network),
        _ => None,
    })
}

/// What the kernel calls it.
fn names(machine: &Machine, directory: &str, kind: PciKind) -> Vec<String> {
    let below: &[&str] = match kind {
        PciKind::Network => &["infiniband", "net"],
        PciKind::Nvme => &["nvme"],
        PciKind::Gpu | PciKind::NvSwitch => &[],
    };
    below.iter().flat_map(|name| machine.list(&format!("{directory}/{name}")).unwrap_or_default()).collect()
}

/// The bridges above a device, by the place that its link names.
fn bridges(machine: &Machine, directory: &str) -> Vec<PciAddress> {
    let Ok(target) = machine.link_target(directory) else { return Vec::new() };
    let mut addresses: Vec<PciAddress> = target.split('/').filter_map(PciAddress::parse).collect();
    addresses.pop();
    addresses
}
