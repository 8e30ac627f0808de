//! Lines of the kernel's log about GPUs and NVSwitches, in the forms of three generations of drivers.

use std::fmt;

use plimsoll_model::PciAddress;
use serde::{Deserialize, Serialize};

/// What a line reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuEvent {
    /// An error of a GPU, by its number.
    Xid(u32),
    /// An error of an NVSwitch, by its number.
    Sxid(u32),
    /// A GPU fell off the bus, in one of the forms without a number.
    FellOff,
    /// The driver could not start a GPU.
    InitFailed,
    /// An error of a GPU whose number was cut off.
    Cut,
}

impl fmt::Display for GpuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xid(code) => write!(f, "xid {code}"),
            Self::Sxid(code) => write!(f, "sxid {code}"),
            Self::FellOff => f.write_str("fell off the bus"),
            Self::InitFailed => f.write_str("failed to start"),
            Self::Cut => f.write_str("an xid whose number is cut off"),
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuLine<'l> {
    /// What it reports.
    pub event: GpuEvent,
    /// The GPU or switch, where the line names one.
    pub address: Option<PciAddress>,
    /// The process that was at it, by its id and name.
    pub process: Option<(u32, &'l str)>,
    /// What follows the number.
    pub detail: &'l str,
}

impl GpuLine<'_> {
    /// What tells lines of one code apart that mean different things: the registers and codes of NVLink errors, on
    /// whatever link, and whether a switch's error was fatal.
    #[must_use]
    pub fn variant(&self) -> &str {
        match self.event {
            GpuEvent::Xid(74 | 144..=150) => self.detail.split_once('(').map_or("", |(_, codes)| codes),
            GpuEvent::Sxid(_) => self.detail.split(',').next().unwrap_or_default(),
            _ => "",
        }
    }

    /// What a collector keeps apart: lines of one kind displace only each other.
    #[must_use]
    pub fn kind(&self) -> (GpuEvent, Option<PciAddress>, String) {
        (self.event, self.address.clone(), self.variant().to_owned())
    }
}

/// Makes sense of a line; `None` for one that is not about this.
#[must_use]
pub fn gpu_line(line: &str) -> Option<GpuLine<'_>> {
    if let Some(rest) = line.strip_prefix("NVRM: ") {
        return xid(rest).or_else(|| without_number(rest));
    }
    if let Some(rest) = line.strip_prefix("nvidia ") {
        // The kernel's own line about a probe that failed.
        let (address, rest) = rest.split_once(": ")?;
        let failed = rest.starts_with("probe with driver nvidia failed with error");
        return failed.then(|| plain(GpuEvent::InitFailed, PciAddress::parse(address), rest));
    }
    if let Some(rest) = line.strip_prefix("nvidia: probe of ") {
        let (address, rest) = rest.split_once(' ')?;
        return rest
            .starts_with("failed with error")
            .then(|| plain(GpuEvent::InitFailed, PciAddress::parse(address), rest));
    }
    sxid(line)
}

fn plain(event: GpuEvent, address: Option<PciAddress>, detail: &str) -> GpuLine<'_> {
    GpuLine { event, address, process: None, detail }
}

/// `Xid (PCI:0000:18:00): 31, pid=7, name=python, …`, with or without `PCI:`, quotes, process or name; newer NVSwitch
/// drivers put `GPU0 ` before it.
fn xid(rest: &str) -> Option<GpuLine<'_>> {
    let rest = match rest.split_once(" Xid (") {
        Some((gpu, _)) if is_gpu_number(gpu) => rest.get(gpu.len() + 1..)?,
        _ => rest,
    };
    let rest = rest.strip_prefix("Xid (")?;
    let Some((address, code, detail)) = place_and_number(rest) else {
        // Something was wrong with this GPU, and nobody can tell what.
        let (place, detail) = rest.split_once(')')?;
        return Some(plain(GpuEvent::Cut, Some(address_of(place)?), detail));
    };
    let (process, detail) = process(detail);
    Some(GpuLine { event: GpuEvent::Xid(code), address: Some(address), process, detail })
}

/// `PCI:0000:18:00`, or with the instance of a GPU that is cut into some: `PCI:0000:18:00 GPU-I:05`.
fn address_of(place: &str) -> Option<PciAddress> {
    PciAddress::parse(place.split(' ').next()?)
}

fn is_gpu_number(text: &str) -> bool {
    text.strip_prefix("GPU")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// `PCI:0000:18:00): 31, …` gives address, number and the rest.
fn place_and_number(rest: &str) -> Option<(PciAddress, u32, &str)> {
    let (place, rest) = rest.split_once("): ")?;
    let address = address_of(place)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (code, detail) = rest.split_at_checked(end)?;
    // A number that the kernel's buffer has cut in the middle would be another number.
    let code = code.parse().ok().filter(|_| detail.starts_with(','))?;
    Some((address, code, detail.trim_start_matches([',', ' '])))
}

/// `pid=7, name=python, …` or `pid='<unknown>', name=<unknown>, …`.
fn process(detail: &str) -> (Option<(u32, &str)>, &str) {
    let Some(after) = detail.strip_prefix("pid=") else { return (None, detail) };
    let (pid, rest) = after.split_once(", ").unwrap_or((after, ""));
    let (name, rest) = match rest.strip_prefix("name=") {
        Some(after) => after.split_once(", ").unwrap_or((after, "")),
        None => ("", rest),
    };
    let plain = |text| str::trim_matches(text, '\'');
    (plain(pid).parse().ok().map(|pid| (pid, plain(name))), rest)
}

/// Of an NVSwitch: `nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 …`.
fn sxid(line: &str) -> Option<GpuLine<'_>> {
    let (switch, rest) = line.strip_prefix("nvidia-nvswitch")?.split_once(": SXid (")?;
    if switch.is_empty() || !switch.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (address, code, detail) = place_and_number(rest)?;
    // Two lines with raw data follow each error under the same number.
    let is_data = ["Severity ", "Data {"].iter().any(|start| detail.starts_with(start));
    (!is_data).then(|| plain(GpuEvent::Sxid(code), Some(address), detail))
}

fn without_number(rest: &str) -> Option<GpuLine<'_>> {
    if let Some(after) = rest.strip_prefix("GPU at ") {
        let (address, told) = after.split_once(' ')?;
        let address = PciAddress::parse(address)?;
        return told
            .starts_with("has fallen off the bus")
            .then(|| plain(GpuEvent::FellOff, Some(address), told));
    }
    if let Some(after) = rest.strip_prefix("GPU ") {
        let (address, told) = after.split_once(": ")?;
        let address = PciAddress::parse(address)?;
        let event = if told.starts_with("GPU has fallen off the bus") {
            GpuEvent::FellOff
        } else if told.starts_with("RmInitAdapter failed") {
            GpuEvent::InitFailed
        } else {
            return None;
        };
        return Some(plain(event, Some(address), told));
    }
    if let Some(after) = rest.strip_prefix("The NVIDIA GPU ") {
        // Several lines in one record, or with the address in a record of its own.
        let end =
            after.find(|c: char| !(c.is_ascii_hexdigit() || matches!(c, ':' | '.'))).unwrap_or(after.len());
        let (address, told) = after.split_at_checked(end)?;
        let address = PciAddress::parse(address)?;
        // Alone on its line it begins only this message or that the GPU is too old for the driver, which goes on on
        // the same line.
        return (told.contains("fallen off the bus") || told.trim().is_empty())
            .then(|| plain(GpuEvent::FellOff, Some(address), told));
    }
    let init = ["The NVIDIA probe routine failed for ", "None of the NVIDIA devices were initialized"];
    if init.iter().any(|start| rest.starts_with(start)) {
        return Some(plain(GpuEvent::InitFailed, None, rest));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<String> {
        gpu_line(line).map(|line| {
            let address = line.address.map_or_else(|| "?".to_owned(), |address| address.to_string());
            let process = line.process.map_or_else(String::new, |(pid, name)| format!(" by {pid} {name:?}"));
            format!("{} at {address}{process}: {}", line.event, line.detail)
        })
    }

    #[test]
    fn three_generations_of_drivers_are_understood() {
        let lines = [
            (
                "NVRM: Xid (0000:03:00): 79, GPU has fallen off the bus.",
                "xid 79 at 0000:03:00.0: GPU has fallen off the bus.",
            ),
            (
                "NVRM: Xid (PCI:0000:18:00): 31, pid=4242, Ch 00000010, intr 10000000. MMU Fault",
                "xid 31 at 0000:18:00.0 by 4242 \"\": Ch 00000010, intr 10000000. MMU Fault",
            ),
            (
                "NVRM: Xid (PCI:0000:18:00): 13, pid=4242, name=python3, Graphics SM Warp Exception",
                "xid 13 at 0000:18:00.0 by 4242 \"python3\": Graphics SM Warp Exception",
            ),
            (
                "NVRM: Xid (PCI:0000:18:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
                "xid 74 at 0000:18:00.0: NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
            ),
            (
                "NVRM: GPU0 Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)",
                "xid 149 at 0008:01:00.0: NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)",
            ),
            (
                "NVRM: Xid (PCI:0000:18:00 GPU-I:05 GPU-CI:00): 94, pid=7311, name=python3, Contained: SM",
                "xid 94 at 0000:18:00.0 by 7311 \"python3\": Contained: SM",
            ),
            (
                "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
                "sxid 12028 at 0000:c1:00.0: Non-fatal, Link 32 egress non-posted PRIV error (First)",
            ),
        ];
        for (line, wanted) in lines {
            assert_eq!(told(line).as_deref(), Some(wanted));
        }
    }

    #[test]
    fn a_gpu_that_fell_off_is_understood_also_without_a_number() {
        for line in [
            "NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.",
            "NVRM: GPU at PCI:0000:b3:00.0 has fallen off the bus.",
            "NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\\x0aNVRM: fallen off the bus and is not responding to commands.",
            "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:1e07) installed in this system has fallen off the bus and is not responding to commands.",
            "NVRM: The NVIDIA GPU 0000:b3:00.0",
        ] {
            let line = gpu_line(line);
            assert_eq!(line.as_ref().map(|line| line.event), Some(GpuEvent::FellOff));
            assert_eq!(line.and_then(|line| line.address), PciAddress::parse("0000:b3:00.0"));
        }
    }

    #[test]
    fn an_error_whose_number_is_cut_off_is_still_an_error_of_that_gpu() {
        for line in [
            "NVRM: Xid (PCI:0000:18:00): 7",
            "NVRM: Xid (PCI:0000:18:00): , pid=7",
            "NVRM: Xid (PCI:0000:18:00)",
        ] {
            let line = gpu_line(line);
            assert_eq!(line.as_ref().map(|line| line.event), Some(GpuEvent::Cut));
            assert_eq!(line.and_then(|line| line.address), PciAddress::parse("0000:18:00.0"));
        }
    }

    #[test]
    fn what_is_cut_forged_or_about_something_else_is_no_error() {
        for line in [
            "NVRM: Xid (PCI:0000:18",
            "NVRM: Xid (PCI:zz:18:00): 79, GPU has fallen off the bus.",
            "NVRM: GPU at PCI:0000:18:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7",
            "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.133.20",
            "NVRM: Xid (0000[77]: segfault at 0 ip 0 sp 0 error 4",
            "my NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.",
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Severity 5 Engine instance 32 Sub-engine instance 00",
            "nvidia-nvswitchX: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 32",
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal",
            "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:0a65) installed in this system is not supported",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(NVRM: |nvidia-nvswitch0: S?)?(Xid \\(PCI:)?[ -~]{0,60}") {
            let _ = gpu_line(&text);
        }
    }
}
