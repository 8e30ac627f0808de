//! What sits near what, for people and machines.

use std::collections::BTreeMap;

use plimsoll_model::{PciDevice, PciKind, SCHEMA_VERSION, Topology};
use serde_json::json;

use crate::clean::{clean, clean_json};

/// GPUs, network devices and drives by NUMA node and PCIe switch.
#[must_use]
pub fn topology(topology: &Topology) -> String {
    let mut by_node: BTreeMap<Option<u32>, Vec<&PciDevice>> = BTreeMap::new();
    for device in &topology.devices {
        by_node.entry(device.numa_node).or_default().push(device);
    }
    for (node, _) in &topology.cores {
        by_node.entry(Some(*node)).or_default();
    }
    let mut text = String::new();
    for (node, devices) in by_node {
        match node {
            Some(node) => {
                let cores = topology
                    .cores
                    .iter()
                    .find(|(known, _)| *known == node)
                    .map_or("unknown", |(_, cores)| cores);
                text.push_str(&format!("NUMA node {node}, cores {}\n", clean(cores)));
            }
            None => text.push_str("no NUMA node\n"),
        }
        let mut by_switch: BTreeMap<Option<&str>, Vec<&PciDevice>> = BTreeMap::new();
        for device in devices {
            by_switch.entry(device.switch().map(|address| address.as_str())).or_default().push(device);
        }
        for (switch, mut devices) in by_switch {
            devices.sort_by(|a, b| (a.kind, &a.address).cmp(&(b.kind, &b.address)));
            match switch {
                Some(switch) => text.push_str(&format!("  PCIe switch {switch}\n")),
                None => text.push_str("  no PCIe switch\n"),
            }
            for device in devices {
                let names: Vec<String> = device.names.iter().map(|name| clean(name).into_owned()).collect();
                let line = format!("    {:<8} {}  {}", word(device.kind), device.address, names.join(" "));
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
    }
    if topology.devices.is_empty() {
        text.push_str("There is no GPU, network device or NVMe drive on the PCI bus.\n");
    }
    text
}

const fn word(kind: PciKind) -> &'static str {
    match kind {
        PciKind::Gpu => "GPU",
        PciKind::Network => "network",
        PciKind::Nvme => "NVMe",
        PciKind::NvSwitch => "NVSwitch",
    }
}

/// The same as JSON, with the switch of each device.
///
/// # Errors
/// Only for a bug of ours.
pub fn topology_json(topology: &Topology) -> Result<String, serde_json::Error> {
    let devices: Vec<_> = topology
        .devices
        .iter()
        .map(|device| {
            json!({
                "address": device.address,
                "kind": device.kind,
                "names": device.names,
                "numa_node": device.numa_node,
                "switch": device.switch(),
                "bridges": device.bridges,
            })
        })
        .collect();
    let nodes: Vec<_> =
        topology.cores.iter().map(|(node, cores)| json!({ "node": node, "cores": cores })).collect();
    let all = json!({ "schema_version": SCHEMA_VERSION, "numa_nodes": nodes, "devices": devices });
    serde_json::to_string_pretty(&all).map(|text| clean_json(&text) + "\n")
}
