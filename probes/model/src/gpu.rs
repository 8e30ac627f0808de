//! What the machine and the driver say about its NVIDIA GPUs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Celsius, KernelLog, Megahertz, Milliwatts, Percent, Reading, ServiceState, Topology};

/// What the driver's library says when it is installed and the driver is not loaded.
pub const NVML_DRIVER_NOT_LOADED: &str = "NVML_ERROR_DRIVER_NOT_LOADED";

/// All readings of the gpu domain at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// This runs in a container, which may be given some of the node's GPUs and sees none of its processes.
    pub contained: bool,
    /// NVIDIA GPUs on the PCI bus, whatever the driver says.
    pub bus: Reading<Vec<PciGpu>>,
    /// Version of the kernel module that is loaded.
    pub module_version: Reading<String>,
    /// The service that connects the GPUs through NVSwitch.
    pub fabric_manager: Reading<ServiceState>,
    /// Lines of the kernel's log about GPUs and NVSwitches.
    pub log: Reading<KernelLog>,
    /// Processes that those lines name and that are still there.
    pub owners: Vec<ProcessOwner>,
    /// What the driver's library says.
    pub nvml: Reading<NvmlSample>,
    /// What sits near what; only when it was asked for.
    pub topology: Option<Reading<Topology>>,
}

/// To whom a process belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOwner {
    /// Its id.
    pub pid: u32,
    /// The id of its user.
    pub user: Option<u32>,
    /// The Slurm job that it is part of.
    pub job: Option<String>,
}

/// One NVIDIA GPU on the PCI bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciGpu {
    /// Its address.
    pub address: PciAddress,
    /// A display adapter (class 0300), and not a part made for computing alone (class 0302).
    pub display: bool,
    /// The kernel driver that has it; `None` when none has.
    pub driver: Reading<Option<String>>,
    /// Its NUMA node, where it belongs to one.
    pub numa_node: Reading<Option<u32>>,
}

/// A PCI address with its domain: `0000:53:00.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PciAddress(String);

impl PciAddress {
    /// An address in any of the forms in use: `0000:53:00.0`, `00000000:53:00.0`, `PCI:0000:53:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("PCI:").unwrap_or(text);
        let (place, function) = text.split_once('.').unwrap_or((text, "0"));
        let mut parts = place.split(':');
        let hex = |part: Option<&str>, digits_max: usize| {
            let part = part.filter(|part| (1..=digits_max).contains(&part.len()))?;
            part.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(part, 16).ok())?
        };
        let (domain, bus, device) = (hex(parts.next(), 8)?, hex(parts.next(), 2)?, hex(parts.next(), 2)?);
        let function = hex(Some(function), 1)?;
        (parts.next().is_none() && function < 8)
            .then(|| Self(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}")))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What NVML says about the node and each of its GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NvmlSample {
    /// The library that was asked.
    pub library: String,
    /// Version of the driver, by the library.
    pub driver_version: Reading<String>,
    /// GPUs that the driver counts.
    pub count: Reading<u32>,
    /// How the library broke, when it did after it had said all that.
    pub broken: Option<String>,
    /// Each of them, by index.
    pub gpus: Vec<GpuReadings>,
}

/// What NVML says about one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuReadings {
    /// Its index, which shifts when another GPU is lost.
    pub index: u32,
    /// When both readings of this GPU were begun, in milliseconds on a clock that only goes on: for rates.
    pub at_ms: u64,
    /// Whether the driver gives access to it at all.
    pub handle: Reading<()>,
    /// Calls that the driver ended by saying that the GPU is not there or needs a reset, or that did not return.
    pub troubles: Vec<GpuTrouble>,
    /// Where it sits.
    pub address: Reading<PciAddress>,
    /// Who it is.
    pub identity: GpuIdentity,
    /// Its memory's errors.
    pub ecc: EccReadings,
    /// Rows that were remapped, since Ampere.
    pub rows: RowReadings,
    /// Pages that were retired, before Ampere.
    pub pages: PageReadings,
    /// Its NVLinks, those that the driver knows.
    pub nvlinks: Reading<Vec<NvLink>>,
    /// Its part in the NVSwitch fabric.
    pub fabric: Reading<FabricInfo>,
    /// Its PCIe link.
    pub pcie: PcieReadings,
    /// Its clocks and what holds them down.
    pub clocks: ClockReadings,
    /// Its power.
    pub power: PowerReadings,
    /// Its temperatures.
    pub thermal: ThermalReadings,
    /// How it is set up.
    pub mode: ModeReadings,
    /// What the driver asks to be done with it.
    pub recovery: RecoveryReadings,
    /// Programs that compute on it.
    pub processes: Reading<Vec<GpuProcess>>,
    /// Share of the last moments in which it computed.
    pub utilization: Reading<Percent>,
}

/// A call about a GPU that went wrong in a way that tells of the GPU and not of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTrouble {
    /// How.
    pub kind: TroubleKind,
    /// The call.
    pub call: String,
}

/// How a call about a GPU went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TroubleKind {
    /// It says that it needs a reset.
    ResetRequired,
    /// A call had not returned when the time was up, and was not long out by then.
    Slow,
    /// The driver gave up waiting for it.
    TimedOut,
    /// The call did not return for so long that no GPU that works takes it.
    Hung,
    /// It fell off the bus or cannot be reached any more.
    Lost,
}

/// Who a GPU is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuIdentity {
    /// Product name.
    pub name: Reading<String>,
    /// UUID: `GPU-…`.
    pub uuid: Reading<String>,
    /// Serial number of the board.
    pub serial: Reading<String>,
    /// Minor number of its device file.
    pub minor: Reading<u32>,
    /// Version of its video BIOS.
    pub vbios: Reading<String>,
    /// Version of its inforom image.
    pub inforom: Reading<String>,
    /// Version of the firmware of its GSP.
    pub gsp_firmware: Reading<String>,
}

/// What is set, and what will be after a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Now.
    pub current: bool,
    /// After the next reset.
    pub pending: bool,
}

/// Errors of a GPU's memories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EccReadings {
    /// Whether errors are found at all.
    pub mode: Reading<Setting>,
    /// All memories together.
    pub total: EccCounters,
    /// The main memory.
    pub dram: EccCounters,
    /// Caches and register files.
    pub sram: EccCounters,
    /// The maker's threshold on SRAM errors.
    pub sram_threshold: Reading<SramStatus>,
}

/// Error counters of one memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EccCounters {
    /// Uncorrected since the driver was loaded or the GPU reset.
    pub volatile_uncorrected: Reading<u64>,
    /// Corrected since then.
    pub volatile_corrected: Reading<u64>,
    /// Uncorrected in its life.
    pub aggregate_uncorrected: Reading<u64>,
    /// Corrected in its life.
    pub aggregate_corrected: Reading<u64>,
}

/// What the GPU says of its SRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SramStatus {
    /// The maker's threshold is exceeded, so it is to be replaced.
    pub threshold_exceeded: bool,
    /// Uncorrected parity errors in its life.
    pub aggregate_parity: u64,
    /// Uncorrected double-bit errors in its life.
    pub aggregate_double_bit: u64,
}

/// Remapped rows of the main memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowReadings {
    /// Counts and state.
    pub remapped: Reading<RemappedRows>,
    /// Banks by how many spare rows they have left.
    pub banks: Reading<BankHistogram>,
}

/// Rows that were remapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemappedRows {
    /// After corrected errors.
    pub corrected: u32,
    /// After uncorrected errors.
    pub uncorrected: u32,
    /// A remapping waits for a reset.
    pub pending: bool,
    /// A remapping has failed.
    pub failed: bool,
}

/// Banks by how many spare rows they have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankHistogram {
    /// All.
    pub max: u32,
    /// Many.
    pub high: u32,
    /// Some.
    pub partial: u32,
    /// One.
    pub low: u32,
    /// None.
    pub none: u32,
}

/// Retired pages of the main memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageReadings {
    /// After several single-bit errors.
    pub single_bit: Reading<u32>,
    /// After a double-bit error.
    pub double_bit: Reading<u32>,
    /// Pages wait for a reset to be retired.
    pub pending: Reading<bool>,
}

/// One NVLink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NvLink {
    /// Its number.
    pub link: u32,
    /// Whether it is up.
    pub active: Reading<bool>,
    /// Its generation, by the driver's numbering.
    pub version: Reading<u32>,
    /// Frames that were sent again.
    pub replays: Reading<u64>,
    /// Times that it was trained again.
    pub recoveries: Reading<u64>,
    /// Flits with a wrong checksum.
    pub crc_errors: Reading<u64>,
}

/// A GPU's part in the NVSwitch fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricInfo {
    /// How far its registration is.
    pub state: FabricState,
    /// What it ended with: an NVML return code, 0 for success.
    pub status: u32,
    /// The driver's mask of what is wrong with the fabric; 0 where the driver does not tell.
    pub health_mask: u32,
}

/// How far a GPU's registration with the fabric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FabricState {
    /// This GPU has no part in a fabric.
    NotSupported,
    /// Not begun.
    NotStarted,
    /// Under way.
    InProgress,
    /// Over; the status says how.
    Completed,
}

impl fmt::Display for FabricState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotSupported => "not supported",
            Self::NotStarted => "not started",
            Self::InProgress => "in progress",
            Self::Completed => "completed",
        })
    }
}

/// A GPU's PCIe link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PcieReadings {
    /// Generation now; an idle GPU goes down to 1.
    pub generation: Reading<u32>,
    /// Highest generation that GPU and slot have in common.
    pub generation_max: Reading<u32>,
    /// Lanes now.
    pub width: Reading<u32>,
    /// Most lanes that GPU and slot have in common.
    pub width_max: Reading<u32>,
    /// Packets that were sent again, since the driver was loaded.
    pub replays: Reading<u64>,
}

/// A GPU's clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockReadings {
    /// Multiprocessors now.
    pub sm: Reading<Megahertz>,
    /// Multiprocessors at most.
    pub sm_max: Reading<Megahertz>,
    /// Memory now.
    pub memory: Reading<Megahertz>,
    /// Memory at most.
    pub memory_max: Reading<Megahertz>,
    /// What holds the clocks down: a set of bits.
    pub held_by: Reading<u64>,
}

/// A GPU's power.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerReadings {
    /// Drawn now.
    pub draw: Reading<Milliwatts>,
    /// The limit in force.
    pub limit: Reading<Milliwatts>,
    /// The limit that it comes with.
    pub limit_default: Reading<Milliwatts>,
}

/// A GPU's temperatures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThermalReadings {
    /// The GPU.
    pub gpu: Reading<Celsius>,
    /// Its memory.
    pub memory: Reading<Celsius>,
    /// Degrees that are left up to where its clocks go down; newer drivers only.
    pub margin: Reading<Celsius>,
    /// Where its clocks go down.
    pub slowdown: Reading<Celsius>,
    /// Highest temperature at which the GPU works as promised.
    pub gpu_max: Reading<Celsius>,
    /// Highest temperature at which its memory works as promised.
    pub memory_max: Reading<Celsius>,
}

/// How a GPU is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeReadings {
    /// The driver stays with the GPU when nobody uses it.
    pub persistence: Reading<bool>,
    /// The GPU is cut into instances.
    pub mig: Reading<Setting>,
    /// Who may compute on it: 0 anybody, 1 and 3 one at a time, 2 nobody.
    pub compute: Reading<u32>,
}

/// What the driver asks to be done with a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryReadings {
    /// The action, since driver 570.
    pub action: Reading<RecoveryAction>,
    /// It needs a reset.
    pub reset_required: Reading<bool>,
}

/// What the driver asks to be done with a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryAction {
    /// Nothing.
    None,
    /// Reset it.
    Reset,
    /// Reboot the node.
    Reboot,
    /// Stop what uses it together with other GPUs.
    DrainPeerToPeer,
    /// Stop what uses it, and reset it.
    DrainAndReset,
}

impl fmt::Display for RecoveryAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Reset => "reset the GPU",
            Self::Reboot => "reboot the node",
            Self::DrainPeerToPeer => "drain its peer-to-peer traffic",
            Self::DrainAndReset => "drain and reset the GPU",
        })
    }
}

/// A program that computes on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Its id, in the node's name space.
    pub pid: u32,
    /// Memory that it holds, if the driver tells.
    pub memory: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_the_same_in_every_form() {
        let plain = PciAddress::parse("0000:5a:00.0");
        assert_eq!(plain.as_ref().map(PciAddress::as_str), Some("0000:5a:00.0"));
        assert_eq!(PciAddress::parse("00000000:5A:00.0"), plain);
        assert_eq!(PciAddress::parse("PCI:0000:5a:00"), plain);
        assert_eq!(
            PciAddress::parse("10000:5a:00.0").map(|a| a.to_string()),
            Some("10000:5a:00.0".to_owned())
        );
        for wrong in
            ["", "5a", "0000:5a", "0000:5a:00.9", "0000:+a:00.0", "0000:5a:00:00", "zz:5a:00.0", "PCI:"]
        {
            assert_eq!(PciAddress::parse(wrong), None, "{wrong}");
        }
    }
}
