//! Whether the driver works, has all GPUs, and they answer.

use plimsoll_model::{
    Absence, Absent, Action, Blame, ClearsBy, Device, Domain, GpuReadings, NVML_DRIVER_NOT_LOADED, Origin,
    PciAddress, PciGpu, SkipWhy, TroubleKind, Verdict,
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
        verdicts: "Fails when the driver has fewer, or one that is gone from the bus. Warns when it has more than configured, or as many as no board has.",
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
        verdicts: "Fails when the driver says that the GPU is lost or needs a reset, or when a call about it has not returned for 5 seconds, or the first one, which may start it, for 30. Unknown when one is out for less at the end of the time.",
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
            draft.saw("the driver's library", &absent.detail, &now.nvml.source);
            let told = match module {
                Some(module) => format!("{}; the kernel module is {module}", absent.detail),
                None => format!("{}; no NVIDIA kernel module is loaded", absent.detail),
            };
            let undecided =
                matches!(absent.kind, Absence::NotAsked | Absence::PermissionDenied | Absence::TimedOut);
            if undecided {
                return Ok(Judged { reason: told, ..draft.absent("NVML", absent, &now.nvml.source, false) });
            }
            draft.expect("a driver that works", rule("the machine has NVIDIA GPUs"));
            return Ok(mend(draft.fail(told), absent, module.is_some()));
        }
    };
    if let Some(broken) = &nvml.broken {
        draft.saw("the driver's library", broken, &nvml.library);
        draft.expect(
            "a driver that works",
            rule("NVIDIA NVML: no call crashes or stays in the driver for ever"),
        );
        return Ok(draft.fail(broken.clone()).advise(
            Action::Reboot,
            "see `gpu.xid` for the GPU that it is about; reboot the node, and install another driver if it comes back",
        ));
    }
    let version = draft.need("driver", &nvml.driver_version, Clone::clone)?;
    if let Some(module) = module.filter(|module| *module != version) {
        draft.expect(
            format!("the kernel module's version, {module}"),
            rule("NVIDIA: library and module are of one version"),
        );
        return Ok(draft.fail(format!("the library is of driver {version}")));
    }
    // The library and the kernel's module, which are separate files, agree.
    draft.need("kernel module", &now.module_version, Clone::clone)?;
    if let Some(wanted) = &context.config.gpu.driver_min {
        draft.expect(format!("{wanted} or newer"), context.config.origin());
        if Version::parse(version).is_none_or(|version| version < *wanted) {
            return Ok(draft.fail(version.clone()).advise(Action::Diagnose, "install a newer driver"));
        }
    }
    Ok(draft.pass(version.clone()))
}

/// What to do about a driver that does not work depends on how it does not.
fn mend(judged: Judged, absent: &Absent, loaded: bool) -> Judged {
    let says = |text: &str| absent.detail.contains(text);
    if says("VERSION_MISMATCH") {
        judged
    } else if says("INSUFFICIENT_POWER") {
        judged.advise(Action::Repair, "have the GPUs' power cables checked")
    } else if absent.kind == Absence::NotPresent && !loaded {
        judged
            .advise(Action::Diagnose, "install NVIDIA's driver, or see why its module was not loaded (dmesg)")
    } else if says(NVML_DRIVER_NOT_LOADED) {
        judged.advise(
            Action::Diagnose,
            "load NVIDIA's module (modprobe nvidia), and see in the kernel's log why it was not loaded",
        )
    } else if matches!(absent.kind, Absence::NotPresent | Absence::Malformed) {
        judged.advise(
            Action::Diagnose,
            "install the library that belongs to the driver, or name it with --nvml",
        )
    } else {
        judged.advise(
            Action::Reboot,
            "see the kernel's log for what is wrong with the driver; reload it or reboot the node",
        )
    }
}

fn count(context: &GpuContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let now = context.now();
    // A display adapter counts when NVIDIA's driver has it.
    let counts =
        |gpu: &&PciGpu| !gpu.display || gpu.driver.ok().is_some_and(|name| name.as_deref() == Some("nvidia"));
    let bus: Option<Vec<&PciAddress>> =
        now.bus.ok().map(|bus| bus.iter().filter(counts).map(|gpu| &gpu.address).collect());
    if let Some(bus) = &bus {
        draft.saw("GPUs on the PCI bus", bus.len(), &now.bus.source);
    }
    let configured = context.config.gpu.count;
    let (wanted, origin) = match (configured, &bus) {
        (Some(wanted), _) => (wanted, context.config.origin()),
        (None, Some(bus)) => {
            let known = "the GPUs on the PCI bus; a profile or the configuration knows better";
            (u32::try_from(bus.len()).unwrap_or(u32::MAX), rule(known))
        }
        (None, None) => {
            draft.need("PCI bus", &now.bus, |bus| bus.len().to_string())?;
            (0, Origin::None)
        }
    };
    draft.expect(format!("{wanted} GPUs"), origin);
    let none = Vec::new();
    let (has, gpus) = match now.nvml.get() {
        // Without a driver there is none, which is what the operator should hear where he expects some.
        Err(_) if super::none_here(context).is_some() => (0, &none),
        _ => {
            let nvml = library(context, &mut draft)?;
            (*draft.need("GPUs of the driver", &nvml.count, ToString::to_string)?, &nvml.gpus)
        }
    };
    let mut is = match &bus {
        Some(bus) => format!("the driver has {has}, the PCI bus {}", bus.len()),
        None => format!("the driver has {has}"),
    };
    if now.contained && configured.is_none() {
        return Ok(draft.incomparable(format!("{is}; a container may be given some of them"), "gpu.count"));
    }
    let told: Vec<&PciAddress> = gpus.iter().filter_map(|gpu| gpu.address.ok()).collect();
    // Which they are is known only when all of the driver's GPUs tell.
    let all_told = told.len() == gpus.len();
    let absent_from = |these: &[&PciAddress], those: &[&PciAddress]| -> Vec<String> {
        these.iter().filter(|one| !those.contains(one)).map(ToString::to_string).collect()
    };
    let missing = bus.as_ref().map(|bus| absent_from(bus, &told)).filter(|_| all_told).unwrap_or_default();
    let everything: Option<Vec<&PciAddress>> =
        now.bus.ok().map(|bus| bus.iter().map(|gpu| &gpu.address).collect());
    let gone = everything.map(|everything| absent_from(&told, &everything)).unwrap_or_default();
    if !missing.is_empty() && (configured.is_none() || has < wanted) {
        is = format!("{is}; the driver does not have {}", missing.join(", "));
    }
    if !gone.is_empty() {
        let is = format!("{is}; the PCI bus does not have {}", gone.join(", "));
        return Ok(draft.fail(is).advise(Action::Reboot, "a GPU of the driver's has gone from the PCI bus: reboot the node, and have the GPU and its slot checked"));
    }
    // The operator may have left some to others, and counts what is here.
    if has < wanted || (configured.is_none() && !missing.is_empty()) {
        return Ok(draft.fail(is));
    }
    if has > wanted {
        return Ok(draft
            .warn(is)
            .advise(Action::None, "mend the configuration, or find out who put the others in"));
    }
    if configured.is_none() && !comes_in(context, gpus, has) {
        draft.expect("1, 2, 4, 8 or 16 GPUs", rule("boards of this model have so many; one that is gone from the PCI bus is missed by nobody else"));
        return Ok(draft.warn(is).advise(
            Action::Diagnose,
            "see whether a GPU is missing; set `gpu.count` in the configuration if none is",
        ));
    }
    Ok(draft.pass(is))
}

/// Whether GPUs of these models come in such a number.
fn comes_in(context: &GpuContext<'_>, gpus: &[GpuReadings], count: u32) -> bool {
    let on_boards =
        |gpu: &GpuReadings| gpu.identity.name.ok().is_some_and(|name| context.data.gpu_model(name).is_some());
    !gpus.iter().any(on_boards) || count.is_power_of_two()
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

/// What to do about one GPU to which the driver gives no access.
fn mend_gpu(judged: Judged, absent: &Absent) -> Judged {
    if absent.detail.contains("INSUFFICIENT_POWER") {
        judged.advise(Action::Repair, "have the GPU's power cables checked")
    } else if absent.detail.contains("FUNCTION_NOT_FOUND") {
        judged.advise(Action::Diagnose, "bring driver and library to one version")
    } else {
        judged
    }
}

fn answers(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
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
        let ours = matches!(absent.kind, Absence::PermissionDenied | Absence::NotAsked);
        let broken = context.now().nvml.ok().is_some_and(|nvml| nvml.broken.is_some());
        // A library that crashed says nothing of the GPUs that it had not come to.
        return Ok(if ours || broken {
            draft.absent("handle", absent, &one.now.handle.source, false)
        } else {
            mend_gpu(draft.fail(format!("the driver gives no access to it: {}", absent.detail)), absent)
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
