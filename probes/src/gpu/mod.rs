//! NVIDIA GPUs: what the PCI bus, the kernel's log and the driver's library say about them.

pub mod nvml;
mod topology;

use std::collections::BTreeSet;

use plimsoll_judge::gpu_line;
use plimsoll_model::{Absence, Absent, GpuSample, KernelLog, PciAddress, PciGpu, ProcessOwner, Reading};

use crate::{Asked, Machine, host::processes, kernel_log, parse};

const DEVICES: &str = "/sys/bus/pci/devices";
const NVIDIA: u32 = 0x10de;
/// Classes without their last byte, the interface: VGA adapters and others are displays, 3D controllers only compute.
const CLASS_DISPLAY: [u32; 2] = [0x0300, 0x0380];
const CLASS_COMPUTE: u32 = 0x0302;
const FABRIC_MANAGER: &str = "nvidia-fabricmanager=nv-fabricmanager";
/// Lines that are kept of one code about one device: enough to tell one program's errors from many programs'.
const LOG_REPEATS_MAX: usize = 32;
const OWNERS_MAX: usize = 256;

pub(crate) fn collect(machine: &Machine, asked: &Asked) -> GpuSample {
    machine.step("the PCI bus (/sys/bus/pci)");
    let bus = machine.reading(format!("{DEVICES}/*/{{vendor,class}}"), bus(machine));
    machine.step("the driver's version (/sys/module/nvidia)");
    let module_version = machine.read("/sys/module/nvidia/version", parse::one_word);
    let contained = in_container(machine);
    let fabric_manager = if contained {
        let detail =
            "this is a container, which does not see the node's processes; run Plimsoll on the node itself";
        machine.reading("/proc/self/ns/pid", Err(Absent::new(Absence::NotAsked, detail)))
    } else if bus.ok().is_some_and(Vec::is_empty) {
        let detail = "this machine has no NVIDIA GPU";
        machine.reading("/proc/*/stat", Err(Absent::new(Absence::NotPresent, detail)))
    } else {
        machine.step("the process list (/proc)");
        processes::service(machine, &processes::list(machine), FABRIC_MANAGER)
    };
    machine.step("the kernel's log (/dev/kmsg)");
    let log = kernel_log::collect(machine, asked.admit_injected_log, LOG_REPEATS_MAX, |line| {
        gpu_line(line).map(|line| line.kind())
    });
    let owners = log.ok().map(|log| owners(machine, log)).unwrap_or_default();
    let topology = asked.topology.then(|| {
        machine.step("the PCI bus (/sys/bus/pci)");
        machine.reading(format!("{DEVICES}/*"), topology::collect(machine))
    });
    let unasked = Absent::new(
        Absence::NotAsked,
        "a tree has no driver; a library that answers for its GPUs was not named",
    );
    GpuSample {
        contained,
        bus,
        module_version,
        fabric_manager,
        log,
        owners,
        nvml: Reading::new("NVML", 0, Err(unasked)),
        topology,
    }
}

/// Whether this process sees only some of the node's processes. The kernel gives its first process name space a number
/// of its own (include/linux/proc_ns.h, PROC_PID_INIT_INO).
fn in_container(machine: &Machine) -> bool {
    const FIRST: &str = "pid:[4026531836]";
    machine.is_live() && machine.link_target("/proc/self/ns/pid").is_ok_and(|target| target != FIRST)
}

/// NVIDIA's GPUs on the PCI bus. A device that says only half of what it is could be one, so it is an error.
fn bus(machine: &Machine) -> Result<Vec<PciGpu>, Absent> {
    let mut gpus = Vec::new();
    for name in machine.list(DEVICES)? {
        let directory = format!("{DEVICES}/{name}");
        let number = |file: &str| {
            let text = machine.text(&format!("{directory}/{file}"));
            text.and_then(|text| parse::hex(&text)).map_err(|absent| {
                let kind = if absent.kind == Absence::NotPresent { Absence::Unreadable } else { absent.kind };
                Absent::new(kind, format!("{directory}/{file}: {}", absent.detail))
            })
        };
        if number("vendor")? != NVIDIA {
            continue;
        }
        let class = number("class")? >> 8;
        let display = CLASS_DISPLAY.contains(&class);
        if class != CLASS_COMPUTE && !display {
            continue;
        }
        // A part of a GPU that is made for a virtual machine.
        if machine.exists(&format!("{directory}/physfn")) {
            continue;
        }
        let address = PciAddress::parse(&name);
        let address = address.ok_or_else(|| parse::malformed(format!("{directory}: not a PCI address")))?;
        gpus.push(PciGpu {
            address,
            display,
            driver: machine.reading(format!("{directory}/driver"), driver(machine, &directory)),
            numa_node: machine.read(&format!("{directory}/numa_node"), parse::numa_node),
        });
    }
    Ok(gpus)
}

fn driver(machine: &Machine, directory: &str) -> Result<Option<String>, Absent> {
    match machine.link_target(&format!("{directory}/driver")) {
        Ok(target) => match target.rsplit('/').next().map(parse::one_word) {
            Some(name) => name.map(Some),
            None => Ok(None),
        },
        // No link: no driver has the device.
        Err(absent) if absent.kind == Absence::NotPresent => Ok(None),
        Err(absent) => Err(absent),
    }
}

/// To whom the processes belong that errors name, while they are still there.
fn owners(machine: &Machine, log: &KernelLog) -> Vec<ProcessOwner> {
    let pids: BTreeSet<u32> =
        log.events.iter().filter_map(|event| gpu_line(&event.text)?.process.map(|(pid, _)| pid)).collect();
    let of = |pid: u32| {
        let user =
            machine.lossy_text(&format!("/proc/{pid}/status")).ok().and_then(|text| parse::user_id(&text));
        let job =
            machine.lossy_text(&format!("/proc/{pid}/cgroup")).ok().and_then(|text| parse::slurm_job(&text));
        (user.is_some() || job.is_some()).then_some(ProcessOwner { pid, user, job })
    };
    pids.into_iter().take(OWNERS_MAX).filter_map(of).collect()
}
