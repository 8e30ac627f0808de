//! The links between GPUs.

use plimsoll_model::{
    Action, ClearsBy, Domain, GpuReadings, NvLink, NvLinkRates, Origin, Rate, Reading, SkipWhy,
};

use super::{Peers, draft, peers, rule};
use crate::{
    GpuModel,
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "gpu.nvlink.active",
        domain: Domain::Gpu,
        asks: "Are all of the GPU's NVLinks up?",
        reads: &["nvmlDeviceGetNvLinkState"],
        compares: "`gpu.nvlinks` from the configuration, else what a GPU of this model has (on nodes with two or more), else the other GPUs",
        verdicts: "Fails when fewer are up; warns where only the other GPUs say so and none is up. Skipped where a GPU has none, is cut into instances, or none is up on any and nobody says otherwise.",
        why: "A collective operation is as fast as its slowest link; a GPU that lost one slows all of them down.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: "see `gpu.fabric.manager` and `gpu.xid` first; reset all GPUs of the fabric, and have seating and cables checked if the link stays down",
        judge: Judge::EachGpu(active),
    },
    Check {
        id: "gpu.nvlink.version",
        domain: Domain::Gpu,
        asks: "Are the NVLinks of all GPUs of one generation?",
        reads: &["nvmlDeviceGetNvLinkVersion"],
        compares: "the other GPUs",
        verdicts: "Warns when one differs.",
        why: "Another generation means another board, or a link that was trained badly.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see whether the GPU is of the right model (`gpu.same.model`); reset it",
        judge: Judge::EachGpu(version),
    },
    Check {
        id: "gpu.nvlink.errors",
        domain: Domain::Gpu,
        asks: "Are the GPU's NVLinks free of errors right now?",
        reads: &["nvmlDeviceGetNvLinkErrorCounter, twice"],
        compares: "no growth of replays and recoveries, and CRC errors up to nvlink_crc_per_second_max; counts of the past fail nothing",
        verdicts: "Fails on any replay or recovery, and above the rate of CRC errors. Warns on a few CRC errors.",
        why: "A noisy link sends everything twice, and goes down before long.",
        clears_by: ClearsBy::GoodReading,
        action: Action::ResetGpu,
        advice: "reset all GPUs of the fabric; have seating and cables checked if it comes back",
        judge: Judge::EachGpu(errors),
    },
];

/// The links, or the judgement that there are none.
fn links<'o>(draft: &mut Draft, one: One<'o>) -> Result<&'o [NvLink], Box<Judged>> {
    let links = draft.need("NVLinks", &one.now.nvlinks, |links| links.len().to_string())?;
    if links.is_empty() {
        return Err(Box::new(draft.clone().skip(SkipWhy::NotSupported, "this GPU has no NVLink")));
    }
    Ok(links)
}

fn up(gpu: &GpuReadings) -> Option<u32> {
    let states: Option<Vec<bool>> = gpu.nvlinks.ok()?.iter().map(|link| link.active.ok().copied()).collect();
    u32::try_from(states?.into_iter().filter(|active| *active).count()).ok()
}

/// What a GPU of this model has, on a node with others.
fn of_model<'c>(context: &'c GpuContext<'_>, one: One<'_>) -> Option<&'c GpuModel> {
    let name = one.now.identity.name.ok()?;
    context.data.gpu_model(name).filter(|_| one.all.len() > 1)
}

fn active(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let configured = context.config.gpu.nvlinks;
    let links = match links(&mut draft, one) {
        Ok(links) => links,
        Err(early) if early.verdict.is_problem() => return Err(early),
        Err(early) if configured.is_none() && one.now.mode.mig.ok().is_some_and(|mode| mode.current) => {
            return Err(early);
        }
        // A GPU that tells of no link is at fault where somebody knows that it has some.
        Err(early) => {
            let (wanted, origin) = match (configured, of_model(context, one)) {
                (Some(wanted), _) => (wanted, context.config.origin()),
                (None, Some(model)) => (model.nvlinks, rule(&model.source)),
                (None, None) => return Err(early),
            };
            draft.expect(format!("{wanted} up"), origin);
            if wanted == 0 {
                return Err(early);
            }
            return Ok(Judged { evidence: early.evidence, ..draft.fail("it says that it has no NVLink") });
        }
    };
    let mut down = Vec::new();
    let mut untold = None;
    let mut up_here = 0;
    for link in links {
        match draft.need(&format!("link {}", link.link), &link.active, |on| {
            if *on { "up" } else { "down" }.to_owned()
        }) {
            Ok(true) => up_here += 1,
            Ok(false) => down.push(link.link.to_string()),
            Err(early) => untold = untold.or(Some(early)),
        }
    }
    let all = u32::try_from(links.len()).unwrap_or(u32::MAX);
    let is = if down.is_empty() {
        format!("{up_here} up")
    } else {
        format!("{up_here} up; down: {}", down.join(", "))
    };
    let (wanted, origin) = match (configured, of_model(context, one), peers(one.all, up)) {
        (Some(wanted), _, _) => (wanted, context.config.origin()),
        // Cut into instances, a GPU may give up its links to others.
        (None, _, _) if up_here == 0 && one.now.mode.mig.ok().is_some_and(|mode| mode.current) => {
            return Ok(
                draft.skip(SkipWhy::NotSupported, format!("{is}; the GPU is cut into instances (MIG)"))
            );
        }
        (None, Some(model), _) => (model.nvlinks, rule(&model.source)),
        (None, None, Peers::Most(most, count)) if most > 0 && count >= 2 => (most, Origin::Peers { count }),
        // A link has two ends: of two GPUs, both lose it.
        (None, None, _) if up_here > 0 && up_here < all => {
            draft.expect(
                format!("all {all} up"),
                rule("a GPU's links are up together, where none is left out by design"),
            );
            return Ok(draft.warn(is));
        }
        _ if up_here > 0 => (up_here, rule("its links are up")),
        _ => match untold {
            Some(early) => return Err(early),
            None => {
                return Ok(draft.skip(
                    SkipWhy::NothingToCompareWith,
                    format!("none of {all} is up, as on the other GPUs"),
                ));
            }
        },
    };
    draft.expect(format!("{wanted} up"), origin);
    let unknown = all.saturating_sub(up_here).saturating_sub(u32::try_from(down.len()).unwrap_or(u32::MAX));
    match untold {
        // Whatever those say that do not tell, too many are down.
        _ if up_here + unknown < wanted => {}
        Some(early) => return Err(early),
        None => return Ok(draft.pass(is)),
    }
    // A card that no bridge connects, among others that are, may be meant so.
    let unbridged = configured.is_none() && of_model(context, one).is_none() && up_here == 0;
    Ok(if unbridged { draft.warn(is) } else { draft.fail(is) })
}

fn version(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let links = links(&mut draft, one)?;
    let mut versions = Vec::new();
    for link in links.iter().filter(|link| link.active.ok() == Some(&true)) {
        let version = *draft.need(&format!("link {}", link.link), &link.version, ToString::to_string)?;
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    if let Some(absent) = links.iter().find(|link| link.active.ok().is_none()) {
        draft.need(&format!("link {}", absent.link), &absent.active, ToString::to_string)?;
    }
    let Some(first) = versions.first() else {
        return Ok(draft.skip(SkipWhy::NotPresent, "no link is up"));
    };
    if versions.len() > 1 {
        let told: Vec<String> = versions.iter().map(u32::to_string).collect();
        draft.expect("one version", rule("a GPU's links are of one generation"));
        return Ok(draft.warn(format!("versions {}", told.join(" and "))));
    }
    let of = |gpu: &GpuReadings| gpu.nvlinks.ok()?.iter().find_map(|link| link.version.ok().copied());
    Ok(super::like_the_others(draft, one, first, of))
}

fn errors(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let links = links(&mut draft, one)?;
    let (crc_max, origin) = context.limit("nvlink_crc_per_second_max");
    draft.expect("no replay, no recovery, few CRC errors", origin);
    let mut bad = Vec::new();
    let mut noisy = Vec::new();
    // A link that does not tell hides no other's errors.
    let mut untold = None;
    for (link, rates) in links.iter().zip(&one.rates.nvlinks) {
        let (counters, early) = rated(&mut draft, link, rates);
        untold = untold.or(early);
        let Some([replays, recoveries, crc]) = counters else { continue };
        let delta = |rate: Option<Rate>| rate.map_or(0, |rate| rate.delta);
        let told = format!(
            "link {}: {} replays, {} recoveries, {} CRC errors between two readings",
            link.link,
            delta(replays),
            delta(recoveries),
            delta(crc)
        );
        if delta(replays) > 0 || delta(recoveries) > 0 || crc.is_some_and(|crc| crc.per_second() > crc_max) {
            bad.push(told);
        } else if delta(crc) > 0 {
            noisy.push(told);
        }
    }
    if !bad.is_empty() {
        return Ok(draft.fail(summed(&bad)));
    }
    match untold {
        Some(early) if early.verdict.is_problem() || noisy.is_empty() => return Err(early),
        _ => {}
    }
    Ok(if !noisy.is_empty() {
        draft
            .warn(summed(&noisy))
            .advise(Action::Watch, "watch it; few CRC errors are corrected and cost little")
    } else if links.iter().all(|link| link.active.ok() == Some(&false)) {
        draft.skip(SkipWhy::NotPresent, "no link is up")
    } else {
        draft.pass("no errors between the two readings")
    })
}

/// The rates of a link that is up, as far as it tells them: replays, recoveries, CRC errors; and why not all.
fn rated(
    draft: &mut Draft,
    link: &NvLink,
    rates: &NvLinkRates,
) -> (Option<[Option<Rate>; 3]>, Option<Box<Judged>>) {
    match draft
        .need(&format!("link {}", link.link), &link.active, |on| if *on { "up" } else { "down" }.to_owned())
    {
        Ok(true) => {}
        Ok(false) => return (None, None),
        Err(early) => return (None, Some(early)),
    }
    let mut untold = None;
    let mut rate = |what: &str, reading: &Reading<Rate>| match draft.need(
        &format!("link {} {what}", link.link),
        reading,
        ToString::to_string,
    ) {
        Ok(rate) => Some(*rate),
        Err(early) => {
            untold.get_or_insert(early);
            None
        }
    };
    let counters = [
        rate("replays", &rates.replays),
        rate("recoveries", &rates.recoveries),
        rate("CRC errors", &rates.crc_errors),
    ];
    (Some(counters), untold)
}

/// The first of several, and how many there are.
fn summed(links: &[String]) -> String {
    match links {
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first}; and {} more links", rest.len()),
        [] => String::new(),
    }
}
