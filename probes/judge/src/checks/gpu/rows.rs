//! Memory that was taken out of use: remapped rows since Ampere, retired pages before.

use plimsoll_model::{Action, ClearsBy, Domain};

use super::{draft, rule};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::Verdicted,
};

const RESET: &str = "stop what uses the GPU and reset it (nvidia-smi --gpu-reset), so that the faulty memory is taken out of use";
const REPLACE: &str = "have the GPU replaced";

pub(super) static CHECKS: [Check; 5] = [
    Check {
        id: "gpu.remap.pending",
        domain: Domain::Gpu,
        asks: "Does a row of faulty memory wait for a reset to be remapped?",
        reads: &["nvmlDeviceGetRemappedRows"],
        compares: "none",
        verdicts: "Fails when one does.",
        why: "Until the reset the next job may be given the faulty row.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: RESET,
        judge: Judge::EachGpu(pending),
    },
    Check {
        id: "gpu.remap.failure",
        domain: Domain::Gpu,
        asks: "Has remapping a row failed?",
        reads: &["nvmlDeviceGetRemappedRows"],
        compares: "never",
        verdicts: "Fails when it has.",
        why: "The faulty row stays in use; NVIDIA replaces such a GPU.",
        clears_by: ClearsBy::Person,
        action: Action::Repair,
        advice: REPLACE,
        judge: Judge::EachGpu(failure),
    },
    Check {
        id: "gpu.remap.spare",
        domain: Domain::Gpu,
        asks: "Has every bank of memory spare rows left?",
        reads: &["nvmlDeviceGetRowRemapperHistogram", "nvmlDeviceGetRemappedRows"],
        compares: "some in every bank; gpu_remapped_uncorrected_max",
        verdicts: "Fails when a bank has none. Warns when a bank has only one, or very many rows were remapped.",
        why: "The next fault in a bank without spare rows cannot be remapped.",
        clears_by: ClearsBy::Person,
        action: Action::Repair,
        advice: REPLACE,
        judge: Judge::EachGpu(spare),
    },
    Check {
        id: "gpu.pages.pending",
        domain: Domain::Gpu,
        asks: "Do pages of faulty memory wait for a reset to be retired?",
        reads: &["nvmlDeviceGetRetiredPagesPendingStatus"],
        compares: "none",
        verdicts: "Fails when some do. Skipped on GPUs that remap rows instead (Ampere and newer).",
        why: "Until the reset the next job may be given the faulty page.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: RESET,
        judge: Judge::EachGpu(pages_pending),
    },
    Check {
        id: "gpu.pages.retired",
        domain: Domain::Gpu,
        asks: "How many pages of memory were retired?",
        reads: &["nvmlDeviceGetRetiredPages"],
        compares: "gpu_retired_pages_max",
        verdicts: "Fails above it. Skipped on GPUs that remap rows instead (Ampere and newer).",
        why: "There is room for 64; then faulty pages stay in use.",
        clears_by: ClearsBy::Person,
        action: Action::Repair,
        advice: REPLACE,
        judge: Judge::EachGpu(pages_retired),
    },
];

fn pending(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let rows = draft.need("remapped rows", &one.now.rows.remapped, |rows| {
        format!("pending: {}; {} after uncorrected errors", rows.pending, rows.uncorrected)
    })?;
    draft.expect("none pending", rule("NVIDIA GPU memory error management: reset to activate a remapping"));
    Ok(if rows.pending {
        draft.fail("a row waits for a reset to be remapped")
    } else {
        draft.pass("none pending")
    })
}

fn failure(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let rows =
        draft.need("remapped rows", &one.now.rows.remapped, |rows| format!("failed: {}", rows.failed))?;
    draft.expect(
        "no failure",
        rule("NVIDIA GPU memory error management: a failed remapping is a reason for replacement"),
    );
    Ok(if rows.failed { draft.fail("remapping a row has failed") } else { draft.pass("none failed") })
}

fn spare(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let rows = draft.need("remapped rows", &one.now.rows.remapped, |rows| {
        format!("{} after uncorrected errors, {} after corrected ones", rows.uncorrected, rows.corrected)
    })?;
    let banks = draft.need("banks by spare rows", &one.now.rows.banks, |banks| {
        format!(
            "all {}, many {}, some {}, one {}, none {}",
            banks.max, banks.high, banks.partial, banks.low, banks.none
        )
    })?;
    let (most, origin) = context.limit("gpu_remapped_uncorrected_max");
    draft.expect(
        "spare rows in every bank",
        rule("NVIDIA GPU memory error management: row remapping histogram"),
    );
    Ok(if banks.none > 0 {
        draft.fail(format!("{} banks have no spare row left", banks.none))
    } else if banks.low > 0 {
        draft
            .warn(format!("{} banks have one spare row left", banks.low))
            .advise(Action::Watch, "plan the GPU's replacement")
    } else if f64::from(rows.uncorrected) > most {
        draft.expect(format!("at most {most} rows"), origin);
        draft
            .warn(format!("{} rows were remapped after uncorrected errors", rows.uncorrected))
            .advise(Action::Watch, "plan the GPU's replacement")
    } else {
        draft.pass(format!(
            "{} rows remapped, spare rows in every bank",
            rows.uncorrected.saturating_add(rows.corrected)
        ))
    })
}

fn pages_pending(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let pending = *draft.need("pages pending", &one.now.pages.pending, ToString::to_string)?;
    draft.expect("none pending", rule("NVIDIA dynamic page retirement: reset to retire pages"));
    Ok(if pending { draft.fail("pages wait for a reset to be retired") } else { draft.pass("none pending") })
}

fn pages_retired(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let pages = &one.now.pages;
    let single = *draft.need("after single-bit errors", &pages.single_bit, ToString::to_string)?;
    let double = *draft.need("after double-bit errors", &pages.double_bit, ToString::to_string)?;
    let (most, origin) = context.limit("gpu_retired_pages_max");
    draft.expect(format!("at most {most}"), origin);
    let all = single.saturating_add(double);
    let is = format!("{all} pages retired, {double} of them after double-bit errors");
    Ok(if f64::from(all) > most { draft.fail(is) } else { draft.pass(is) })
}
