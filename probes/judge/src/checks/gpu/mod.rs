//! Checks of the gpu domain.

mod driver;
mod fabric;
mod identity;
mod log;
mod memory;
mod mode;
mod nvlink;
mod pcie;
mod rows;
mod speed;

use std::fmt::Display;

use plimsoll_model::{
    Absence, Action, Blame, Device, GpuReadings, NVML_DRIVER_NOT_LOADED, NvmlSample, Origin, PciAddress,
    PciGpu, SkipWhy, TroubleKind, Verdict,
};

use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::{Draft, Judged, Verdicted},
};

pub(crate) static ALL: [&[Check]; 10] = [
    &driver::CHECKS,
    &log::CHECKS,
    &memory::CHECKS,
    &rows::CHECKS,
    &nvlink::CHECKS,
    &fabric::CHECKS,
    &pcie::CHECKS,
    &speed::CHECKS,
    &identity::CHECKS,
    &mode::CHECKS,
];

/// Judges one check. On a machine without NVIDIA GPUs none is alarmed.
pub(crate) fn judge(context: &GpuContext<'_>, check: &'static Check) -> Vec<Judged> {
    let expected =
        context.config.gpu.count.is_some_and(|count| count > 0) && driver::is_about_presence(check.id);
    if let Some(reason) = none_here(context).filter(|_| !expected) {
        return vec![Draft::node().skip(SkipWhy::NotPresent, reason)];
    }
    match check.judge {
        Judge::Gpu(judge) => vec![judge(context).unwrap_or_else(|early| *early)],
        Judge::EachGpu(judge) => each(context, judge),
        Judge::GpuDevices(judge) => judge(context),
        _ => Vec::new(),
    }
}

/// Why there is no GPU to judge, when there is none. A driver that is loaded, and lines of the log about GPUs, say that
/// there was one.
fn none_here(context: &GpuContext<'_>) -> Option<String> {
    let now = context.now();
    let of_library =
        |kinds: &[Absence]| now.nvml.get().err().is_some_and(|absent| kinds.contains(&absent.kind));
    let no_library = of_library(&[Absence::NotPresent, Absence::NotAsked]);
    let not_loaded =
        now.nvml.get().err().is_some_and(|absent| absent.detail.contains(NVML_DRIVER_NOT_LOADED));
    let driver_counts_none = now.nvml.ok().is_some_and(|nvml| nvml.count.ok() == Some(&0));
    let bus = match now.bus.get() {
        Ok(bus) => bus.as_slice(),
        // Without a PCI bus there is no GPU on it.
        Err(absent) if absent.kind == Absence::NotPresent => &[],
        Err(_) => return None,
    };
    if now.log.ok().is_some_and(|log| !log.events.is_empty())
        || context.state.gpu_faults().iter().next().is_some()
    {
        return None;
    }
    let has =
        |gpu: &PciGpu, name: &str| gpu.driver.ok().is_some_and(|driver| driver.as_deref() == Some(name));
    if bus.is_empty() && (no_library || not_loaded || driver_counts_none) && now.module_version.ok().is_none()
    {
        let driver = if no_library { "and no NVIDIA driver" } else { "though NVIDIA's library is installed" };
        let misled = now.nvml.get().err().filter(|absent| absent.detail.contains("--nvml"));
        let misled = misled.map_or_else(String::new, |absent| format!(" ({})", absent.detail));
        return Some(format!("this machine has no NVIDIA GPU {driver}{misled}"));
    }
    if !bus.is_empty() && bus.iter().all(|gpu| has(gpu, "vfio-pci")) {
        return Some(format!("all {} NVIDIA GPUs are given to virtual machines (vfio-pci)", bus.len()));
    }
    if bus.iter().all(|gpu| gpu.display && !has(gpu, "nvidia"))
        && no_library
        && now.module_version.ok().is_none()
    {
        return Some("this machine has an NVIDIA display adapter and no NVIDIA driver".to_owned());
    }
    None
}

/// What the driver's library said, or the judgement that it said nothing.
fn library<'c>(context: &'c GpuContext<'_>, draft: &mut Draft) -> Result<&'c NvmlSample, Box<Judged>> {
    *draft = draft
        .clone()
        .blaming(Blame::Device, "see `gpu.driver` and the kernel's log for what is wrong with the driver");
    draft.need("the driver's library", &context.signals.now.nvml, |nvml| nvml.library.clone())
}

/// One finding a GPU that the driver counts, or one for the node when it counts none.
fn each(context: &GpuContext<'_>, judge: fn(&GpuContext<'_>, One<'_>) -> Verdicted) -> Vec<Judged> {
    let all = match gpus(context) {
        Err(early) => return vec![*early],
        Ok(all) => all,
    };
    let ones: Vec<One<'_>> =
        all.iter().zip(&context.signals.rates).map(|(now, rates)| One { now, rates, all }).collect();
    let judged: Vec<Judged> =
        ones.iter().map(|one| judge(context, *one).unwrap_or_else(|early| *early)).collect();
    let doubted: Vec<Judged> =
        ones.iter().zip(&judged).map(|(one, mine)| doubt(*one, mine.clone(), &ones, &judged)).collect();
    ones.iter().zip(doubted).map(|(one, judged)| finished(context, *one, judged)).collect()
}

const UNSUPPORTED: Verdict = Verdict::Skipped { why: SkipWhy::NotSupported };

/// A GPU that says that it does not support what most others of its model and mode do is not believed.
fn doubt(one: One<'_>, mine: Judged, ones: &[One<'_>], judged: &[Judged]) -> Judged {
    if mine.verdict != UNSUPPORTED {
        return mine;
    }
    let modes = |gpu: &GpuReadings| {
        (gpu.mode.mig.ok().map(|mode| mode.current), gpu.ecc.mode.ok().map(|mode| mode.current))
    };
    let alike = |other: &GpuReadings| {
        let both = (other.identity.name.ok(), one.now.identity.name.ok());
        let named_alike = matches!(both, (Some(a), Some(b)) if a == b);
        // What is asked may be the mode itself.
        let set_alike = modes(other) == modes(one.now) || modes(one.now).1.is_none();
        other.index != one.now.index && named_alike && set_alike && driver::silence(other).is_none()
    };
    let telling = |judged: &&Judged| !matches!(judged.verdict, Verdict::Unknown { .. });
    let others: Vec<&Judged> = ones
        .iter()
        .zip(judged)
        .filter(|(other, _)| alike(other.now))
        .map(|(_, judged)| judged)
        .filter(telling)
        .collect();
    let no_rate = Verdict::Skipped { why: SkipWhy::NoBaseline };
    let do_support =
        others.iter().filter(|judged| judged.verdict != UNSUPPORTED && judged.verdict != no_rate).count();
    if do_support * 2 <= others.len() {
        return mine;
    }
    Judged {
        verdict: Verdict::Unknown { blame: Blame::Device },
        reason: format!("{}; {do_support} others of its model do support it", mine.reason),
        action: Some(Action::Diagnose),
        advice: Some("reset the GPU, and compare it with another one (nvidia-smi -q)".to_owned()),
        ..mine
    }
}

fn gpus<'c>(context: &'c GpuContext<'_>) -> Result<&'c [GpuReadings], Box<Judged>> {
    let mut draft = Draft::node();
    let nvml = library(context, &mut draft)?;
    let count = *draft.need("GPUs", &nvml.count, ToString::to_string)?;
    if nvml.gpus.is_empty() {
        let blame = Verdict::Unknown { blame: Blame::Device };
        return Err(Box::new(
            draft.end(blame, format!("the driver counts {count} GPUs and says nothing of any")),
        ));
    }
    Ok(&nvml.gpus)
}

/// Says which GPU it is, and gives one reason to everything that is unknown because that GPU does not answer.
fn finished(context: &GpuContext<'_>, one: One<'_>, judged: Judged) -> Judged {
    let judged = Judged { device: device(context, one.now), part: part(one.now), ..judged };
    let silent = driver::silence(one.now).filter(|_| matches!(judged.verdict, Verdict::Unknown { .. }));
    match silent {
        Some(told) if !driver::is_about_silence(&judged) => Judged {
            reason: format!("the GPU does not answer: {told}"),
            action: Some(Action::Diagnose),
            advice: Some("see what `gpu.answers` says of it".to_owned()),
            ..judged
        },
        _ => judged,
    }
}

/// A GPU's stable name: its PCI address. One that does not tell it is the only one of the bus that no other says to be;
/// or, as the driver counts GPUs in the order of their addresses, the one at its place.
fn device(context: &GpuContext<'_>, gpu: &GpuReadings) -> Device {
    // Of two that claim one address, the second is not believed.
    let twice = |address: &PciAddress| {
        let all = context.now().nvml.ok().map_or(&[][..], |nvml| nvml.gpus.as_slice());
        all.iter().any(|other| other.index < gpu.index && other.address.ok() == Some(address))
    };
    let told = gpu.address.ok().filter(|address| !twice(address)).cloned().or_else(|| {
        let known = context.now().nvml.ok().map_or(&[][..], |nvml| nvml.gpus.as_slice());
        let is_known = |address: &PciAddress| known.iter().any(|other| other.address.ok() == Some(address));
        let mut bus: Vec<_> = context.now().bus.ok()?.iter().map(|gpu| &gpu.address).collect();
        bus.sort();
        let mut missing = bus.iter().filter(|address| !is_known(address));
        let only = missing.next().filter(|_| missing.next().is_none());
        let at_its_place = || bus.get(gpu.index as usize).filter(|_| bus.len() == known.len());
        only.or_else(at_its_place).map(|address| (*address).clone())
    });
    Device(told.map_or_else(|| format!("gpu{}", gpu.index), |address| address.to_string()))
}

/// `GPU 3, serial 1653123000000`: what a person pulls.
fn part(gpu: &GpuReadings) -> String {
    match gpu.identity.serial.ok() {
        Some(serial) => format!("GPU {}, serial {serial}", gpu.index),
        None => format!("GPU {}", gpu.index),
    }
}

/// A draft about one GPU; `finished` gives it its name.
fn draft() -> Draft {
    Draft::new(Device(String::new()))
}

fn rule(source: &str) -> Origin {
    Origin::Rule { source: source.to_owned() }
}

/// How the GPUs of a node compare in one respect.
enum Peers<T> {
    /// There is no other to compare with.
    None,
    /// This is what most have, and how many others there are.
    Most(T, u32),
    /// No value is that of more than half.
    Split(u32),
}

/// What most GPUs have, of those that tell.
fn peers<T: PartialEq>(all: &[GpuReadings], of: impl Fn(&GpuReadings) -> Option<T>) -> Peers<T> {
    let values: Vec<T> = all.iter().filter_map(of).collect();
    let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
    if total < 2 {
        return Peers::None;
    }
    let times = |value: &T| values.iter().filter(|other| *other == value).count();
    let most = values.iter().position(|value| times(value) * 2 > values.len());
    match most.and_then(|at| values.into_iter().nth(at)) {
        Some(value) => Peers::Most(value, total - 1),
        None => Peers::Split(total - 1),
    }
}

/// Whether a GPU is to be compared with this one: not when both say who they are, and are different.
fn same_model(one: One<'_>, other: &GpuReadings) -> bool {
    match (one.now.identity.name.ok(), other.identity.name.ok()) {
        (Some(mine), Some(others)) => mine == others,
        _ => true,
    }
}

/// Ends by comparing with the others: another value than most have is a warning.
fn like_the_others<T: PartialEq + Display>(
    mut draft: Draft,
    one: One<'_>,
    mine: &T,
    of: impl Fn(&GpuReadings) -> Option<T>,
) -> Judged {
    match peers(one.all, of) {
        Peers::None => draft
            .skip(SkipWhy::NothingToCompareWith, format!("{mine}; there is no other GPU to compare with")),
        Peers::Most(most, count) => {
            draft.expect(most.to_string(), Origin::Peers { count });
            if *mine == most { draft.pass(mine.to_string()) } else { draft.warn(mine.to_string()) }
        }
        Peers::Split(count) => {
            draft.expect("the same on all GPUs", Origin::Peers { count });
            draft.warn(mine.to_string())
        }
    }
}

/// Whether a GPU computes enough for its clocks and links to be at full speed, and how much.
fn busy(context: &GpuContext<'_>, one: One<'_>, draft: &mut Draft) -> Result<bool, Box<Judged>> {
    let share = *draft.need("busy", &one.now.utilization, ToString::to_string)?;
    Ok(share.0 >= context.limit("gpu_busy_percent_min").0)
}

const fn worst(kind: TroubleKind) -> &'static str {
    match kind {
        TroubleKind::ResetRequired => "the driver says that it needs a reset",
        TroubleKind::Slow => "a call about it has not returned yet",
        TroubleKind::TimedOut => "the driver gave up waiting for it",
        TroubleKind::Hung => "a call about it does not return",
        TroubleKind::Lost => "the driver says that it is lost",
    }
}
