//! Whether the driver works, has all GPUs, and they answer.

use plimsoll_model::{
    Action, Blame, ClearsBy, Device, Domain, GpuReadings, Origin, PciGpu, SkipWhy, TroubleKind, Verdict,
};

use super::{draft, library, rule, worst};
use crate::{
    Version,
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 5] = [
    Check {
        id: "gpu.driver",
        domain: Domain::Gpu,
        asks: "Does NVIDIA's driver work, and do its library and its kernel module belong together?",
        reads: &["nvmlInit_v2", "nvmlSystemGetDriverVersion", "/sys/module/nvidia/version"],
        compares: "the version of the kernel module; `gpu.driver_min` from the configuration",
        verdicts: "Fails when there are GPUs and no working driver, when library and module have different versions, or when the driver is too old. Skipped where there is no NVIDIA GPU.",
        why: "A driver that was upgraded under running processes lets these go on and starts no new one.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: "load the driver that is installed: stop what uses the GPUs and reload its modules, or reboot",
        judge: Judge::Gpu(works),
    },
    Check {
        id: "gpu.count",
        domain: Domain::Gpu,
        asks: "Does the driver have as many GPUs as the machine?",
        reads: &["nvmlDeviceGetCount_v2", "/sys/bus/pci/devices/*/{vendor,class}"],
        compares: "`gpu.count` from the configuration, else the NVIDIA GPUs on the PCI bus",
        verdicts: "Fails when the driver has fewer. Warns when it has more.",
        why: "A GPU that is missing after a boot is reported by nobody: the others work.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: "reboot the node, with a power cycle if the GPU stays away; see `gpu.xid` for why, and have it repaired if it does not come back",
        judge: Judge::Gpu(count),
    },
    Check {
        id: "gpu.kernel-driver",
        domain: Domain::Gpu,
        asks: "Does NVIDIA's driver have each GPU of the PCI bus?",
        reads: &["/sys/bus/pci/devices/*/driver"],
        compares: "the other GPUs on this bus",
        verdicts: "Fails for a GPU that no driver or another driver (nouveau, vfio-pci) has while NVIDIA's has others.",
        why: "A GPU that another driver took is not there for jobs.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see why NVIDIA's driver does not have it: its log lines (`gpu.xid`), or another driver that was loaded first",
        judge: Judge::GpuDevices(kernel_driver),
    },
    Check {
        id: ANSWERS,
        domain: Domain::Gpu,
        asks: "Does the GPU answer?",
        reads: &["nvmlDeviceGetHandleByIndex_v2", "every other call about it"],
        compares: "nothing: a GPU answers or it does not",
        verdicts: "Fails when the driver says that the GPU is lost or needs a reset, or when a call about it has not returned for 3 seconds. Unknown when one is out for less at the end of the time.",
        why: "A GPU that fell off the bus is still counted; the first job that uses it hangs or dies.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: "reboot the node; have the GPU repaired if it happens again",
        judge: Judge::EachGpu(answers),
    },
    Check {
        id: "gpu.recovery",
        domain: Domain::Gpu,
        asks: "Does the driver ask for a reset or a reboot?",
        reads: &["nvmlDeviceGetFieldValues(230), nvmlDeviceGetFieldValues(226)"],
        compares: "no action",
        verdicts: "Fails for a reset or a reboot, warns for peer-to-peer traffic that should be drained. Skipped where the driver does not tell (before 570).",
        why: "The driver knows what it takes to bring a GPU back after an error, and sums it up here.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: "stop what uses the GPU and reset it (nvidia-smi --gpu-reset)",
        judge: Judge::EachGpu(recovery),
    },
];

const ANSWERS: &str = "gpu.answers";
const REBOOT: &str = "reboot the node; have the GPU repaired if it happens again";

/// Whether a check says that GPUs are missing where the operator expects some.
pub(super) fn is_about_presence(check: &str) -> bool {
    matches!(check, "gpu.driver" | "gpu.count")
}

/// Whether a judgement itself names the call that went wrong.
pub(super) fn is_about_silence(judged: &Judged) -> bool {
    judged.evidence.iter().any(|seen| seen.what == "calls")
}

/// Why a GPU does not answer, if it does not.
pub(super) fn silence(gpu: &GpuReadings) -> Option<String> {
    let trouble = gpu.troubles.iter().max_by_key(|trouble| trouble.kind);
    match (trouble, gpu.handle.get()) {
        (Some(trouble), _) => Some(format!("{} ({})", worst(trouble.kind), trouble.call)),
        (None, Err(absent)) => Some(format!("{} ({})", absent.detail, gpu.handle.source)),
        (None, Ok(())) => None,
    }
}

fn works(context: &GpuContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let now = context.now();
    let module = now.module_version.ok();
    if let Some(module) = module {
        draft.saw("kernel module", module, &now.module_version.source);
    }
    let nvml = match now.nvml.get() {
        Ok(nvml) => nvml,
        Err(absent) => {
            use plimsoll_model::Absence;
            draft.saw("the driver's library", &absent.detail, &now.nvml.source);
            let told = match module {
                Some(module) => format!("{}; the kernel module is {module}", absent.detail),
                None => format!("{}; no NVIDIA kernel module is loaded", absent.detail),
            };
            let undecided =
                matches!(absent.kind, Absence::NotAsked | Absence::PermissionDenied | Absence::TimedOut);
            if undecided {
                return Ok(draft.absent("the driver's library", absent, &now.nvml.source, false));
            }
            draft.expect("a driver that works", rule("the machine has NVIDIA GPUs"));
            return Ok(draft.fail(told));
        }
    };
    let version = draft.need("driver", &nvml.driver_version, Clone::clone)?;
    if let Some(module) = module.filter(|module| *module != version) {
        draft.expect(
            format!("the kernel module's version, {module}"),
            rule("NVIDIA: library and module are of one version"),
        );
        return Ok(draft.fail(format!("the library is of driver {version}")));
    }
    if let Some(wanted) = &context.config.gpu.driver_min {
        draft.expect(format!("{wanted} or newer"), context.config.origin());
        if Version::parse(version).is_none_or(|version| version < *wanted) {
            return Ok(draft.fail(version.clone()).advise(Action::Diagnose, "install a newer driver"));
        }
    } else {
        // The library and the kernel's module, which are separate files, agree.
        draft.need("kernel module", &now.module_version, Clone::clone)?;
    }
    Ok(draft.pass(version.clone()))
}

fn count(context: &GpuContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let now = context.now();
    // A display adapter counts when NVIDIA's driver has it.
    let counts =
        |gpu: &&PciGpu| !gpu.display || gpu.driver.ok().is_some_and(|name| name.as_deref() == Some("nvidia"));
    let bus = now.bus.ok().map(|bus| bus.iter().filter(counts).count());
    if let Some(bus) = bus {
        draft.saw("GPUs on the PCI bus", bus, &now.bus.source);
    }
    let (wanted, origin) = match (context.config.gpu.count, bus) {
        (Some(wanted), _) => (wanted, context.config.origin()),
        (None, Some(bus)) => (
            u32::try_from(bus).unwrap_or(u32::MAX),
            rule("the GPUs on the PCI bus; a profile or the configuration knows better"),
        ),
        (None, None) => {
            draft.need("PCI bus", &now.bus, |bus| bus.len().to_string())?;
            (0, Origin::None)
        }
    };
    draft.expect(format!("{wanted} GPUs"), origin);
    let has = match now.nvml.get() {
        // Without a driver there is none, which is what the operator should hear where he expects some.
        Err(_) if super::none_here(context).is_some() => 0,
        _ => {
            let nvml = library(context, &mut draft)?;
            *draft.need("GPUs of the driver", &nvml.count, ToString::to_string)?
        }
    };
    let is = match bus {
        Some(bus) => format!("the driver has {has}, the PCI bus {bus}"),
        None => format!("the driver has {has}"),
    };
    Ok(if has < wanted {
        draft.fail(is)
    } else if bus.is_some_and(|bus| has as usize > bus) {
        draft.warn(is).advise(Action::Reboot, "a GPU of the driver's has gone from the PCI bus: reboot the node, and have the GPU's slot checked")
    } else if has > wanted {
        draft.warn(is).advise(Action::None, "mend the configuration, or find out who put the others in")
    } else {
        draft.pass(is)
    })
}

fn kernel_driver(context: &GpuContext<'_>) -> Vec<Judged> {
    let mut draft = Draft::node();
    let bus = match draft.need("GPUs on the PCI bus", &context.signals.now.bus, |bus| bus.len().to_string()) {
        Ok(bus) => bus,
        Err(early) => return vec![*early],
    };
    if bus.is_empty() {
        return vec![draft.skip(SkipWhy::NotPresent, "no NVIDIA GPU is on the PCI bus")];
    }
    let judged = bus.iter().map(|gpu| {
        let mut draft = Draft::new(Device(gpu.address.to_string()));
        let show = |driver: &Option<String>| driver.clone().unwrap_or_else(|| "none".to_owned());
        let driver = draft.need("driver", &gpu.driver, show)?;
        let others = bus.iter().filter(|other| other.address != gpu.address);
        let count =
            others.filter(|other| other.driver.ok().is_some_and(|d| d.as_deref() == Some("nvidia"))).count();
        draft.expect("nvidia", Origin::Peers { count: u32::try_from(count).unwrap_or(u32::MAX) });
        Ok(match driver.as_deref() {
            Some("nvidia") => draft.pass("nvidia"),
            // A display adapter beside the GPUs may well have another driver.
            Some(other) if gpu.display => {
                draft.skip(SkipWhy::NotSupported, format!("a display adapter, which {other} has"))
            }
            Some(other) => draft.fail(format!("{other} has it")),
            None if gpu.display => {
                draft.skip(SkipWhy::NotSupported, "a display adapter, which no driver has")
            }
            None => draft.fail("no driver has it"),
        })
    });
    judged.map(|judged: Verdicted| judged.unwrap_or_else(|early| *early)).collect()
}

fn answers(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    for trouble in &one.now.troubles {
        draft.saw("calls", format!("{}: {}", worst(trouble.kind), trouble.call), "NVML");
    }
    draft.expect(
        "an answer to every call",
        rule("NVIDIA NVML: NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED"),
    );
    if let Some(trouble) = one.now.troubles.iter().max_by_key(|trouble| trouble.kind) {
        let is = format!("{} ({})", worst(trouble.kind), trouble.call);
        if trouble.kind == TroubleKind::Slow {
            let judged = draft.end(Verdict::Unknown { blame: Blame::Device }, is);
            return Ok(judged.advise(
                Action::Diagnose,
                "give it more time with --budget; a GPU without persistence starts slowly",
            ));
        }
        let judged = draft.fail(is);
        return Ok(match trouble.kind {
            TroubleKind::ResetRequired => judged
                .advise(Action::ResetGpu, "stop what uses the GPU and reset it (nvidia-smi --gpu-reset)"),
            TroubleKind::Slow | TroubleKind::TimedOut | TroubleKind::Hung => judged.advise(
                Action::Reboot,
                "reset the GPU if that still works, else reboot the node; see `gpu.xid` for why",
            ),
            TroubleKind::Lost => judged.advise(Action::Reboot, REBOOT),
        });
    }
    if let Err(absent) = one.now.handle.get() {
        draft.saw("calls", &absent.detail, &one.now.handle.source);
        return Ok(match absent.kind {
            plimsoll_model::Absence::PermissionDenied | plimsoll_model::Absence::NotAsked => {
                draft.absent("handle", absent, &one.now.handle.source, false)
            }
            _ => draft.fail(format!("the driver gives no access to it: {}", absent.detail)),
        });
    }
    draft.need("address", &one.now.address, ToString::to_string)?;
    Ok(draft.pass("it answers"))
}

fn recovery(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    use plimsoll_model::RecoveryAction as Asked;
    let mut draft = draft();
    draft.expect("none", rule("NVIDIA NVML: nvmlDeviceGpuRecoveryAction_t"));
    let recovery = &one.now.recovery;
    let reset = recovery.reset_required.ok().copied();
    if let Some(reset) = reset {
        draft.saw("reset required", reset, &recovery.reset_required.source);
    }
    let asked = draft.need("recovery action", &recovery.action, ToString::to_string);
    let action = match (asked, reset) {
        (Err(_), Some(true)) | (Ok(Asked::None), Some(true)) => Asked::Reset,
        (Err(early), _) => return Err(early),
        (Ok(action), _) => *action,
    };
    let is = format!("the driver asks: {action}");
    Ok(match action {
        Asked::None => draft.pass("none"),
        Asked::Reset | Asked::DrainAndReset => draft.fail(is),
        Asked::Reboot => draft.fail(is).advise(Action::Reboot, "reboot the node"),
        Asked::DrainPeerToPeer => draft.warn(is).advise(
            Action::Drain,
            "let no new job use this GPU together with others, and reset it when it is idle",
        ),
    })
}
