//! Errors in a GPU's memories.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Origin, Reading};

use super::{Peers, draft, peers, rule};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::{Draft, Verdicted},
};

const RESET: &str =
    "stop what uses the GPU and reset it (nvidia-smi --gpu-reset); see `gpu.remap.pending` and `gpu.xid`";

pub(super) static CHECKS: [Check; 4] = [
    Check {
        id: "gpu.ecc.mode",
        domain: Domain::Gpu,
        asks: "Are errors in the GPU's memory found?",
        reads: &["nvmlDeviceGetEccMode"],
        compares: "`gpu.ecc` from the configuration, else on",
        verdicts: "Fails when it is off and should be on. Warns when it is on and should be off, or will change with the next reset. Skipped on GPUs without it.",
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
        verdicts: "Fails when there was one.",
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
    let mode = *draft.need("ECC", &one.now.ecc.mode, |mode| {
        format!("{}, after a reset {}", word(mode.current), word(mode.pending))
    })?;
    let (wanted, origin) = match context.config.gpu.ecc {
        Some(wanted) => (wanted, context.config.origin()),
        None => match peers(one.all, |gpu: &GpuReadings| gpu.ecc.mode.ok().map(|mode| mode.current)) {
            Peers::Most(true, count) => (true, Origin::Peers { count }),
            _ => (true, rule("NVIDIA: ECC is on by default on data centre GPUs")),
        },
    };
    draft.expect(word(wanted), origin);
    Ok(if !mode.current && wanted {
        draft.fail("off")
    } else if mode.current != wanted {
        draft
            .warn(word(mode.current))
            .advise(Action::ResetGpu, "turn it off (nvidia-smi -e 0) and reset the GPU")
    } else if mode.pending != mode.current {
        draft
            .warn(format!("{}, and {} after the next reset", word(mode.current), word(mode.pending)))
            .advise(Action::Diagnose, "find out who asked for that (nvidia-smi -e)")
    } else {
        draft.pass(word(mode.current))
    })
}

/// Notes a counter that some GPUs do not have by location.
fn also(draft: &mut Draft, what: &str, counter: &Reading<u64>) -> u64 {
    counter.ok().map_or(0, |count| {
        draft.saw(what, count, &counter.source);
        *count
    })
}

fn uncorrected(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let ecc = &one.now.ecc;
    let total = *draft.need("uncorrected errors", &ecc.total.volatile_uncorrected, ToString::to_string)?;
    let dram = also(&mut draft, "in DRAM", &ecc.dram.volatile_uncorrected);
    let sram = also(&mut draft, "in SRAM", &ecc.sram.volatile_uncorrected);
    let life = also(&mut draft, "in its life", &ecc.total.aggregate_uncorrected);
    draft.expect("none since the GPU was started", rule("DCGM: fails on any volatile double-bit error"));
    // The sum of the parts may be known when the total lags behind.
    let seen = total.max(dram.saturating_add(sram));
    Ok(if seen > 0 {
        draft.fail(format!(
            "{seen} uncorrected memory errors ({dram} in DRAM, {sram} in SRAM; {life} in its life)"
        ))
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
