//! The NVSwitch fabric between GPUs, and the service that sets it up.

use plimsoll_model::{
    Action, Blame, ClearsBy, Domain, FabricInfo, FabricState, GpuReadings, Origin, ServiceState, SkipWhy,
    Verdict,
};

use super::{draft, library, rule};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 2] = [
    Check {
        id: "gpu.fabric.manager",
        domain: Domain::Gpu,
        asks: "Is the fabric manager alive?",
        reads: &["/sys/fs/cgroup/**/nvidia-fabricmanager.service/cgroup.procs", "/proc/*/stat"],
        compares: "`gpu.fabric_manager` from the configuration, else whether this many GPUs of this model sit on a board with NVSwitches; never the switches' PCI ids",
        verdicts: "Fails when it should run and does not. Skipped where it is not needed.",
        why: "Without it the links stay down after the next reset, and nobody handles the switches' errors.",
        clears_by: ClearsBy::GoodReading,
        action: Action::RestartApp,
        advice: "find out why it ended (journalctl -u nvidia-fabricmanager), and restart it while no job runs",
        judge: Judge::Gpu(manager),
    },
    Check {
        id: "gpu.fabric.state",
        domain: Domain::Gpu,
        asks: "Has the GPU joined the NVSwitch fabric, and is the fabric healthy?",
        reads: &["nvmlDeviceGetGpuFabricInfoV", "what `gpu.fabric.manager` reads"],
        compares: "completed with success and no fault in the health mask, beside a living fabric manager or, where none is needed, links that are up: the state stays at success when these end",
        verdicts: "Fails in any other state and for a fault in the health mask. Unknown when the fabric manager that should run does not, or no link is up.",
        why: "CUDA does not start on a GPU that has not joined (error 802).",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: "restart the fabric manager while no job runs; reboot the node if the state stays",
        judge: Judge::EachGpu(state),
    },
];

/// A board with NVSwitches has eight GPUs, one with four has none. A machine that was given fewer has its fabric set up
/// by somebody else.
const SWITCHED_MIN: usize = 5;

/// Whether a fabric manager should run here, and who says so; `None` when nobody knows these GPUs. A GPU that does not
/// say what it is leaves it untold.
fn needed(
    context: &GpuContext<'_>,
    draft: &mut Draft,
    all: &[GpuReadings],
) -> Result<Option<(bool, Origin)>, Box<Judged>> {
    if let Some(wanted) = context.config.gpu.fabric_manager {
        return Ok(Some((wanted, context.config.origin())));
    }
    if all.len() < SWITCHED_MIN {
        return Ok(None);
    }
    let model = |gpu: &GpuReadings| gpu.identity.name.ok().and_then(|name| context.data.gpu_model(name));
    if let Some(known) = all.iter().find_map(model) {
        return Ok(Some((known.fabric_manager, rule(&known.source))));
    }
    for gpu in all {
        draft.need("model", &gpu.identity.name, Clone::clone)?;
    }
    Ok(None)
}

fn show(state: &ServiceState) -> String {
    match state {
        ServiceState::Alive(_) => "alive".to_owned(),
        ServiceState::Unrecognised(_) => "only processes of other names".to_owned(),
        ServiceState::Dead => "dead".to_owned(),
    }
}

fn manager(context: &GpuContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let nvml = library(context, &mut draft)?;
    let reading = &context.signals.now.fabric_manager;
    match needed(context, &mut draft, &nvml.gpus)? {
        Some((true, origin)) => draft.expect("a fabric manager that runs", origin),
        Some((false, _)) => return Ok(draft.skip(SkipWhy::NotSupported, "none is needed on this node")),
        None => {
            return Ok(draft.incomparable("no GPU here is known to need one", "gpu.fabric_manager"));
        }
    }
    let state = draft.need("fabric manager", reading, show)?;
    Ok(match state {
        ServiceState::Alive(_) => draft.pass(show(state)),
        ServiceState::Unrecognised(_) | ServiceState::Dead => draft.fail(show(state)),
    })
}

fn state(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let info = draft.need("fabric", &one.now.fabric, told)?;
    if info.state == FabricState::NotSupported {
        return Ok(draft.skip(SkipWhy::NotSupported, "this GPU has no part in a fabric"));
    }
    draft.expect("completed, success, healthy", rule("NVIDIA NVML: nvmlGpuFabricInfoV_t"));
    let faults = faults(info.health_mask);
    if info.state != FabricState::Completed || info.status != 0 {
        return Ok(draft.fail(told(info)));
    }
    if !faults.is_empty() {
        return Ok(draft.fail(format!("joined, but: {}", faults.join("; "))));
    }
    // The state is written once; whether it still holds, something that lives has to say.
    let stale = match needed(context, &mut draft, one.all)? {
        Some((true, _)) => {
            let manager = draft.need("fabric manager", &context.signals.now.fabric_manager, show)?;
            (!matches!(manager, ServiceState::Alive(_))).then_some("the fabric manager ended")
        }
        Some((false, _)) | None => {
            let links = draft.need("NVLinks", &one.now.nvlinks, |links| links.len().to_string())?;
            let up = !links.is_empty() && links.iter().all(|link| link.active.ok() == Some(&true));
            (!up).then_some("its links went down")
        }
    };
    if let Some(since) = stale {
        let told = format!("it says success, which is what it said before {since}");
        let judged = draft.end(Verdict::Unknown { blame: Blame::Device }, told);
        return Ok(judged.advise(Action::Diagnose, "see `gpu.fabric.manager` and `gpu.nvlink.active`"));
    }
    Ok(draft.pass(told(info)))
}

fn told(info: &FabricInfo) -> String {
    match info.status {
        0 => format!("{}, success, health mask {:#x}", info.state, info.health_mask),
        status => format!("{}, status {status}, health mask {:#x}", info.state, info.health_mask),
    }
}

/// What the health mask says is wrong. Four fields of two bits, in which 1 says so, and one of four bits, in which more
/// than 1 says so (NVML_GPU_FABRIC_HEALTH_MASK_*).
fn faults(mask: u32) -> Vec<&'static str> {
    let fields = [
        (0, "its bandwidth is degraded"),
        (2, "a route recovers"),
        (4, "a route is unhealthy"),
        (6, "an access timeout recovers"),
    ];
    let mut faults: Vec<_> =
        fields.into_iter().filter(|(shift, _)| mask >> shift & 3 == 1).map(|(_, told)| told).collect();
    match mask >> 8 & 15 {
        0 | 1 => {}
        2 => faults.push("its system GUID is wrong"),
        3 => faults.push("its chassis serial number is wrong"),
        4 => faults.push("it has no partition"),
        5 => faults.push("it has too few NVLinks"),
        _ => faults.push("its configuration is wrong in a way that is not known"),
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn the_health_mask_is_read_field_by_field() {
        assert!(faults(0).is_empty(), "a driver that does not tell");
        assert!(faults(0x1aa).is_empty(), "every field says no");
        assert_eq!(faults(0x1a9), ["its bandwidth is degraded"]);
        assert_eq!(faults(0x59a), ["a route is unhealthy", "it has too few NVLinks"]);
    }
}
