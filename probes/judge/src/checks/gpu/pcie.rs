//! A GPU's PCIe link.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Origin, SkipWhy};

use super::{busy, draft, rule, same_model};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::Verdicted,
};

const RESEAT: &str = "reboot the node; have the GPU reseated or its slot checked if it comes back";

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "gpu.pcie.width",
        domain: Domain::Gpu,
        asks: "Does the GPU's PCIe link have all its lanes?",
        reads: &[
            "nvmlDeviceGetCurrPcieLinkWidth",
            "nvmlDeviceGetMaxPcieLinkWidth",
            "nvmlDeviceGetUtilizationRates",
        ],
        compares: "the widest of the other GPUs, and what GPU and slot have in common",
        verdicts: "Fails when it has fewer than another GPU, or fewer than it could when it is busy. Skipped when all idle GPUs are as narrow: some save power so.",
        why: "Half the lanes is half the speed of everything that goes between GPU and host.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: RESEAT,
        judge: Judge::EachGpu(width),
    },
    Check {
        id: "gpu.pcie.generation",
        domain: Domain::Gpu,
        asks: "Does the GPU's PCIe link run at full speed when it is used?",
        reads: &[
            "nvmlDeviceGetCurrPcieLinkGeneration",
            "nvmlDeviceGetMaxPcieLinkGeneration",
            "nvmlDeviceGetUtilizationRates",
        ],
        compares: "the highest that GPU and slot have in common",
        verdicts: "Fails when a busy GPU's link is slower. Skipped when an idle one's is: it saves power.",
        why: "A generation less is half the speed of everything that goes between GPU and host.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: RESEAT,
        judge: Judge::EachGpu(generation),
    },
    Check {
        id: "gpu.pcie.replays",
        domain: Domain::Gpu,
        asks: "Is the GPU's PCIe link quiet right now?",
        reads: &["nvmlDeviceGetPcieReplayCounter, twice"],
        compares: "what such a link may replay in a minute; counts of the past fail nothing",
        verdicts: "Warns when it replayed that many between two readings.",
        why: "A link that sends its packets twice is slow, and may go down; some machines replay in bursts for years.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Watch,
        advice: "watch it; have the GPU reseated if copies to and from it are slow",
        judge: Judge::EachGpu(replays),
    },
];

fn width(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let width = *draft.need("lanes", &one.now.pcie.width, |lanes| format!("x{lanes}"))?;
    let most = *draft.need("lanes at most", &one.now.pcie.width_max, |lanes| format!("x{lanes}"))?;
    let is = format!("x{width}");
    let busy_min = context.limit("gpu_busy_percent_min").0;
    let idle = |gpu: &GpuReadings| gpu.utilization.ok().is_none_or(|share| share.0 < busy_min);
    let others = one.all.iter().filter(|other| other.index != one.now.index && same_model(one, other));
    // A GPU that works may be wider than one that saves power; one that is as idle may not.
    let comparable = others.filter(|other| idle(other) || !idle(one.now));
    let widths: Vec<u32> = comparable.filter_map(|other| other.pcie.width.ok().copied()).collect();
    let widest = widths.iter().copied().max().unwrap_or(0).min(most);
    if width < widest {
        let count = u32::try_from(widths.len()).unwrap_or(u32::MAX);
        draft.expect(format!("x{widest}"), Origin::Peers { count });
        return Ok(draft.fail(is));
    }
    draft.expect(format!("x{most}"), rule("PCI Express: the lesser of what GPU and slot can do"));
    Ok(if width >= most {
        draft.pass(is)
    } else if busy(context, one, &mut draft)? {
        draft.fail(format!("{is} on a busy GPU"))
    } else {
        draft.skip(SkipWhy::Idle, format!("{is} of x{most}; the GPU is idle, and no other idle one is wider"))
    })
}

fn generation(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let now = *draft.need("generation", &one.now.pcie.generation, ToString::to_string)?;
    let most = *draft.need("generation at most", &one.now.pcie.generation_max, ToString::to_string)?;
    draft.expect(format!("generation {most}"), rule("PCI Express: the lesser of what GPU and slot can do"));
    let is = format!("generation {now}");
    Ok(if now >= most {
        draft.pass(is)
    } else if busy(context, one, &mut draft)? {
        draft.fail(format!("{is} on a busy GPU"))
    } else {
        draft.skip(SkipWhy::Idle, format!("{is}; the GPU is idle"))
    })
}

/// What a lane may replay in a minute (DCGM), by generation.
fn replays_per_lane_and_minute(generation: u32) -> f64 {
    match generation {
        1 => 0.15,
        2 => 0.3,
        3 => 0.48,
        4 => 0.96,
        5 => 1.92,
        _ => 3.84,
    }
}

fn replays(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let generation = *draft.need("generation", &one.now.pcie.generation, ToString::to_string)?;
    let width = *draft.need("lanes", &one.now.pcie.width, |lanes| format!("x{lanes}"))?;
    draft.need("replays", &one.now.pcie.replays, ToString::to_string)?;
    let rate = *draft.need("replays now", &one.rates.replays, ToString::to_string)?;
    let allowed = (f64::from(width) * replays_per_lane_and_minute(generation)).ceil();
    draft.expect(
        format!("at most {allowed} a minute"),
        rule("DCGM: PCIe replays a minute, lanes times a rate of the generation"),
    );
    let is = format!("{} replays in {} ms", rate.delta, rate.over_ms);
    // Two readings a moment apart: a single replay there says nothing of a minute, a minute's worth does.
    Ok(if rate.delta as f64 > allowed { draft.warn(is) } else { draft.pass(is) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_link_of_sixteen_lanes_of_generation_5_may_replay_31_times_a_minute() {
        let allowed = (super::replays_per_lane_and_minute(5) * 16.0).ceil();
        assert_eq!(format!("{allowed}"), "31");
    }
}
