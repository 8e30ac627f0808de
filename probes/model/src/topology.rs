//! What sits near what: PCI devices by switch and NUMA node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PciAddress;

/// The devices that jobs use, and where they sit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// NUMA nodes and their processors, as the kernel lists them: `0-47,96-143`.
    pub cores: Vec<(u32, String)>,
    /// GPUs, network devices, drives and NVSwitches.
    pub devices: Vec<PciDevice>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciDevice {
    /// Where it is.
    pub address: PciAddress,
    /// What it is.
    pub kind: PciKind,
    /// What the kernel or the driver calls it: `mlx5_0`, `nvme1`, `GPU 3`.
    pub names: Vec<String>,
    /// Its NUMA node, where it belongs to one.
    pub numa_node: Option<u32>,
    /// The bridges above it, the nearest to the processor first.
    pub bridges: Vec<PciAddress>,
}

impl PciDevice {
    /// The PCIe switch that it is behind, by its port towards the processor. A switch shows as two bridges below the
    /// root port; a single bridge is a slot of the processor's own.
    #[must_use]
    pub fn switch(&self) -> Option<&PciAddress> {
        let above_slot = self.bridges.len().checked_sub(2)?;
        self.bridges.get(above_slot).filter(|_| self.bridges.len() >= 3)
    }
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PciKind {
    /// An NVIDIA GPU.
    Gpu,
    /// A network device.
    Network,
    /// An NVMe drive.
    Nvme,
    /// An NVIDIA switch between GPUs.
    NvSwitch,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_what_two_devices_share_above_their_slots() {
        let device = |bridges: &[&str]| PciDevice {
            address: PciAddress::parse("0000:53:00.0").unwrap_or_else(|| unreachable!()),
            kind: PciKind::Gpu,
            names: Vec::new(),
            numa_node: None,
            bridges: bridges.iter().filter_map(|text| PciAddress::parse(text)).collect(),
        };
        assert_eq!(device(&[]).switch(), None);
        assert_eq!(device(&["0000:4e:00.0"]).switch(), None);
        let behind = device(&["0000:4e:00.0", "0000:4f:00.0", "0000:50:00.0"]);
        assert_eq!(behind.switch().map(PciAddress::as_str), Some("0000:4f:00.0"));
    }
}
