//! Errors in a GPU's memories.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Origin, Reading};

use super::{Peers, draft, peers, rule, same_model};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::{Draft, Judged, Verdicted},
};

const RESET: &str =
    "stop what uses the GPU and reset it (nvidia-smi --gpu-reset); see `gpu.remap.pending` and `gpu.xid`";

pub(super) static CHECKS: [Check; 4] = [
    Check {
        id: "gpu.ecc.mode",
        domain: Domain::Gpu,
        asks: "Are errors in the GPU's memory found?",
        reads: &["nvmlDeviceGetEccMode"],
        compares: "`gpu.ecc` from the configuration (`false`: either), else the other GPUs, else on",
        verdicts: "Fails when it is off and should be on; warns where only the general rule says so, or when it will be off after the next reset. Skipped on GPUs without it.",
        why: "Without it a flipped bit goes into the result unseen.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: "turn it on (nvidia-smi -e 1) and reset the GPU",
        judge: Judge::EachGpu(mode),
    },
    Check {
        id: "gpu.ecc.uncorrected",
        domain: Domain::Gpu,
        asks: "Has an error in the GPU's memory been left uncorrected?",
        reads: &["nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetMemoryErrorCounter"],
        compares: "none since the GPU was started; the counts of its whole life are shown and fail nothing",
        verdicts: "Fails when there was one; warns when the driver says that it was contained (xid 94) and no remapping waits.",
        why: "Data were lost, and the row is in use until the GPU is reset.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: RESET,
        judge: Judge::EachGpu(uncorrected),
    },
    Check {
        id: "gpu.ecc.corrected",
        domain: Domain::Gpu,
        asks: "Are there very many corrected errors?",
        reads: &["nvmlDeviceGetMemoryErrorCounter"],
        compares: "gpu_dram_corrected_max, gpu_sram_corrected_max; since the GPU was started",
        verdicts: "Warns above either.",
        why: "Each is harmless; so many of them come before those that are not.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "test the memory (dcgmi diag -r 3)",
        judge: Judge::EachGpu(corrected),
    },
    Check {
        id: "gpu.ecc.sram-threshold",
        domain: Domain::Gpu,
        asks: "Has the GPU's SRAM passed its maker's threshold of errors?",
        reads: &["nvmlDeviceGetSramEccErrorStatus"],
        compares: "the threshold in the GPU's firmware",
        verdicts: "Fails when it is exceeded. Skipped where the driver does not tell (before 535).",
        why: "The maker's own criterion for a replacement.",
        clears_by: ClearsBy::Person,
        action: Action::Repair,
        advice: "have the GPU replaced",
        judge: Judge::EachGpu(sram),
    },
];

fn mode(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let word = |on: bool| if on { "on" } else { "off" };
    let configured = context.config.gpu.ecc;
    let told = draft.need("ECC", &one.now.ecc.mode, |mode| {
        format!("{}, after a reset {}", word(mode.current), word(mode.pending))
    });
    let mode = match told {
        Ok(mode) => *mode,
        Err(early) if configured == Some(true) && !early.verdict.is_problem() => {
            draft.expect(word(true), context.config.origin());
            let judged = draft.fail("this GPU has no ECC");
            let judged = judged.advise(Action::None, "mend the configuration, or use another GPU");
            return Ok(Judged { evidence: early.evidence, ..judged });
        }
        Err(early) => return Err(early),
    };
    if configured == Some(false) {
        draft.expect("on or off", context.config.origin());
        return Ok(draft.pass(word(mode.current)));
    }
    let alike =
        |gpu: &GpuReadings| same_model(one, gpu).then(|| gpu.ecc.mode.ok().map(|mode| mode.current))?;
    let of_peers = match peers(one.all, alike) {
        Peers::Most(true, count) => Some(Origin::Peers { count }),
        _ => None,
    };
    let model = one.now.identity.name.ok().and_then(|name| context.data.gpu_model(name));
    // Where nobody says so and the model is none that is known to come with ECC on, off may be how it was sold.
    let sure = configured.is_some() || of_peers.is_some() || model.is_some();
    let origin = match (configured, of_peers) {
        (Some(_), _) => context.config.origin(),
        (None, Some(origin)) => origin,
        (None, None) => rule("NVIDIA: ECC is on by default on data centre GPUs"),
    };
    draft.expect("on", origin);
    Ok(if !mode.current {
        if sure { draft.fail("off") } else { draft.warn("off") }
    } else if mode.pending != mode.current {
        draft
            .warn("on, and off after the next reset")
            .advise(Action::Diagnose, "find out who asked for that (nvidia-smi -e)")
    } else {
        draft.pass("on")
    })
}

/// Notes a counter that some GPUs do not have by location.
fn also(draft: &mut Draft, what: &str, counter: &Reading<u64>) -> u64 {
    counter.ok().map_or(0, |count| {
        draft.saw(what, count, &counter.source);
        *count
    })
}

fn uncorrected(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let ecc = &one.now.ecc;
    let total = *draft.need("uncorrected errors", &ecc.total.volatile_uncorrected, ToString::to_string)?;
    let dram = also(&mut draft, "in DRAM", &ecc.dram.volatile_uncorrected);
    let sram = also(&mut draft, "in SRAM", &ecc.sram.volatile_uncorrected);
    let life = also(&mut draft, "in its life", &ecc.total.aggregate_uncorrected);
    draft.expect("none since the GPU was started", rule("DCGM: fails on any volatile double-bit error"));
    // The sum of the parts may be known when the total lags behind.
    let seen = total.max(dram.saturating_add(sram));
    let is = format!("{seen} uncorrected memory errors ({dram} in DRAM, {sram} in SRAM; {life} in its life)");
    let waits = one.now.rows.remapped.ok().is_none_or(|rows| rows.pending || rows.failed);
    Ok(if seen > 0 && super::log::was_contained(context, one.now) && !waits {
        let told = "the application that met it has ended; watch the GPU";
        draft.warn(format!("{is}, contained (xid 94)")).advise(Action::Watch, told)
    } else if seen > 0 {
        draft.fail(is)
    } else {
        draft.pass(format!("none ({life} in its life)"))
    })
}

fn corrected(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let ecc = &one.now.ecc;
    let dram = *draft.need("corrected in DRAM", &ecc.dram.volatile_corrected, ToString::to_string)?;
    let sram = *draft.need("corrected in SRAM", &ecc.sram.volatile_corrected, ToString::to_string)?;
    let (dram_max, origin) = context.limit("gpu_dram_corrected_max");
    let (sram_max, _) = context.limit("gpu_sram_corrected_max");
    draft.expect(format!("at most {dram_max} in DRAM and {sram_max} in SRAM"), origin);
    let is = format!("{dram} in DRAM, {sram} in SRAM");
    Ok(if dram as f64 > dram_max || sram as f64 > sram_max { draft.warn(is) } else { draft.pass(is) })
}

fn sram(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let status = draft.need("SRAM", &one.now.ecc.sram_threshold, |status| {
        format!(
            "threshold exceeded: {}; {} parity and {} double-bit errors in its life",
            status.threshold_exceeded, status.aggregate_parity, status.aggregate_double_bit
        )
    })?;
    draft.expect(
        "the threshold not exceeded",
        rule("NVIDIA NVML: nvmlEccSramErrorStatus_t, bThresholdExceeded"),
    );
    Ok(if status.threshold_exceeded {
        draft.fail("the SRAM's errors exceed its maker's threshold")
    } else {
        draft.pass("not exceeded")
    })
}
