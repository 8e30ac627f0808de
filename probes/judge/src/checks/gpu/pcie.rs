//! A GPU's PCIe link.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Origin, SkipWhy};

use super::{Peers, busy, draft, peers, rule, same_model};
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
        reads: &["nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth"],
        compares: "the other GPUs; where there are none, what GPU and slot have in common",
        verdicts: "Fails when it has fewer.",
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

fn width(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let width = *draft.need("lanes", &one.now.pcie.width, |lanes| format!("x{lanes}"))?;
    let most = *draft.need("lanes at most", &one.now.pcie.width_max, |lanes| format!("x{lanes}"))?;
    let of = |gpu: &GpuReadings| same_model(one, gpu).then(|| gpu.pcie.width.ok().copied())?;
    let (wanted, origin) = match peers(one.all, of) {
        // All of them may sit in narrow slots by design.
        Peers::Most(common, count) => (common, Origin::Peers { count }),
        Peers::None | Peers::Split(_) => (most, rule("PCI Express: the lesser of what GPU and slot can do")),
    };
    draft.expect(format!("x{wanted}"), origin);
    let is = format!("x{width}");
    Ok(if width < wanted { draft.fail(is) } else { draft.pass(is) })
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
