//! How GPUs are set up.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Origin, SkipWhy};

use super::{Peers, draft, peers, rule};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::Verdicted,
};

pub(super) static CHECKS: [Check; 4] = [
    Check {
        id: "gpu.persistence",
        domain: Domain::Gpu,
        asks: "Does the driver stay with the GPU when nobody uses it?",
        reads: &["nvmlDeviceGetPersistenceMode"],
        compares: "`gpu.persistence` from the configuration (`false`: either), else on",
        verdicts: "Warns otherwise.",
        why: "Without it each job starts the GPU anew, which takes seconds and forgets its settings and counters.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "run nvidia-persistenced (or set it once with nvidia-smi -pm 1)",
        judge: Judge::EachGpu(persistence),
    },
    Check {
        id: "gpu.mig",
        domain: Domain::Gpu,
        asks: "Is the GPU cut into instances as it should be?",
        reads: &["nvmlDeviceGetMigMode"],
        compares: "`gpu.mig` from the configuration, else the other GPUs",
        verdicts: "Fails when it is not as configured. Warns when it differs from the others, or will change with the next reset. Skipped on GPUs that cannot.",
        why: "A job that asks for whole GPUs gets none of one that is cut, and the other way round.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: "set the mode (nvidia-smi -mig 0 or 1) and reset the GPU",
        judge: Judge::EachGpu(mig),
    },
    Check {
        id: "gpu.compute-mode",
        domain: Domain::Gpu,
        asks: "May programs compute on the GPU?",
        reads: &["nvmlDeviceGetComputeMode"],
        compares: "anybody may, or what the other GPUs allow",
        verdicts: "Fails when nobody may. Warns when it differs from the others.",
        why: "A GPU that was set to prohibited and forgotten looks healthy and runs nothing.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "set it back (nvidia-smi -c 0)",
        judge: Judge::EachGpu(compute),
    },
    Check {
        id: "gpu.processes",
        domain: Domain::Gpu,
        asks: "Is nothing left on the GPU?",
        reads: &["nvmlDeviceGetComputeRunningProcesses_v3"],
        compares: "`gpu.idle` from the configuration",
        verdicts: "Fails when a program is on it and `gpu.idle` says that none should be.",
        why: "What an earlier job left takes memory and time from the next.",
        clears_by: ClearsBy::GoodReading,
        action: Action::RestartApp,
        advice: "end the programs, by their ids",
        judge: Judge::EachGpu(processes),
    },
];

const fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn persistence(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let on = *draft.need("persistence", &one.now.mode.persistence, |on| word(*on).to_owned())?;
    if context.config.gpu.persistence == Some(false) {
        draft.expect("on or off", context.config.origin());
        return Ok(draft.pass(word(on)));
    }
    let origin = match context.config.gpu.persistence {
        Some(_) => context.config.origin(),
        None => rule("NVIDIA driver persistence guide: on for data centre GPUs"),
    };
    draft.expect("on", origin);
    Ok(if on { draft.pass("on") } else { draft.warn("off") })
}

fn mig(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let mode = *draft.need("MIG", &one.now.mode.mig, |mode| {
        format!("{}, after a reset {}", word(mode.current), word(mode.pending))
    })?;
    let pending = mode.current != mode.pending;
    if let Some(wanted) = context.config.gpu.mig {
        draft.expect(word(wanted), context.config.origin());
        if mode.current != wanted {
            return Ok(draft.fail(word(mode.current)));
        }
    } else {
        match peers(one.all, |gpu: &GpuReadings| gpu.mode.mig.ok().map(|mode| mode.current)) {
            Peers::None if !pending => return Ok(draft.incomparable(word(mode.current), "gpu.mig")),
            Peers::None => draft.expect("no change", rule("a mode that changes with the next reset")),
            Peers::Most(most, count) => {
                draft.expect(word(most), Origin::Peers { count });
                if mode.current != most {
                    return Ok(draft.warn(word(mode.current)));
                }
            }
            Peers::Split(count) => {
                draft.expect("the same on all GPUs", Origin::Peers { count });
                return Ok(draft.warn(word(mode.current)));
            }
        }
    }
    Ok(if pending {
        draft.warn(format!("{}, and {} after the next reset", word(mode.current), word(mode.pending)))
    } else {
        draft.pass(word(mode.current))
    })
}

fn compute(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let told = |mode: u32| match mode {
        0 => "anybody may",
        2 => "nobody may",
        _ => "one program at a time may",
    };
    let mode = *draft.need("compute mode", &one.now.mode.compute, |mode| told(*mode).to_owned())?;
    if mode == 2 {
        draft.expect("somebody may", rule("NVIDIA NVML: NVML_COMPUTEMODE_PROHIBITED"));
        return Ok(draft.fail(told(mode)));
    }
    Ok(match peers(one.all, |gpu: &GpuReadings| gpu.mode.compute.ok().copied()) {
        Peers::Most(most, count) if most != mode && most != 2 => {
            draft.expect(told(most), Origin::Peers { count });
            draft.warn(told(mode))
        }
        _ => {
            draft.expect("somebody may", rule("NVIDIA NVML: NVML_COMPUTEMODE_PROHIBITED"));
            draft.pass(told(mode))
        }
    })
}

fn processes(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let list = draft.need("programs", &one.now.processes, |list| list.len().to_string())?;
    let told: Vec<String> = list
        .iter()
        .take(8)
        .map(|one| match one.memory {
            Some(memory) => format!("pid {} with {memory}", one.pid),
            None => format!("pid {}", one.pid),
        })
        .collect();
    let is = if list.is_empty() {
        "none".to_owned()
    } else {
        format!("{} programs: {}", list.len(), told.join(", "))
    };
    Ok(match context.config.gpu.idle {
        Some(true) => {
            draft.expect("none", context.config.origin());
            if list.is_empty() { draft.pass(is) } else { draft.fail(is) }
        }
        Some(false) => draft.skip(SkipWhy::NothingToCompareWith, is),
        None => draft.incomparable(is, "gpu.idle"),
    })
}
