//! Errors of GPUs and NVSwitches in the kernel's log. What a code means is in `data/xid_policy.toml`.

use std::{collections::BTreeSet, time::Duration};

use plimsoll_model::{
    Absence, Absent, Action, Blame, ClearsBy, Device, Domain, GpuReadings, PciAddress, RecoveryAction,
    Verdict,
};

use super::{part, rule};
use crate::{
    Version, Weight,
    check::{Check, Judge},
    context::GpuContext,
    draft::{Draft, Judged},
    xid::{GpuEvent, GpuFault, Ruling, decode_nvlink5, decode_registers},
};

const READS: &[&str] =
    &["/dev/kmsg", "/proc/sys/kernel/random/boot_id", "/proc/uptime", "nvmlDeviceGetRemappedRows"];

pub(super) static CHECKS: [Check; 2] = [
    Check {
        id: "gpu.xid",
        domain: Domain::Gpu,
        asks: "Has the driver reported an error of this GPU since the boot?",
        reads: READS,
        compares: "NVIDIA's XID catalogue, code by code (`plimsoll explain xid 79`); `[xid.CODE]` in the configuration changes what a code means here",
        verdicts: "By code. An error that needs a reset counts until something shows that there was one: the driver's own word, or counters that start anew; one that needs a reboot until the next boot. What applications cause is a warning only when it repeats.",
        why: "It is where the driver says first, and most exactly, what is wrong with a GPU.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see what the code means: plimsoll explain xid CODE",
        judge: Judge::GpuDevices(xids),
    },
    Check {
        id: "gpu.sxid",
        domain: Domain::Gpu,
        asks: "Has an NVSwitch reported an error since the boot?",
        reads: READS,
        compares: "what the line itself says, and gpud's table (`plimsoll explain sxid 12028`); `[sxid.CODE]` in the configuration changes what a code means here",
        verdicts: "Fails until the next boot for a fatal error, warns for a day for one that may be fatal.",
        why: "A switch that failed takes the links of all GPUs with it.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see what the code means: plimsoll explain sxid CODE",
        judge: Judge::GpuDevices(sxids),
    },
];

fn xids(context: &GpuContext<'_>) -> Vec<Judged> {
    judged(context, |event| !matches!(event, GpuEvent::Sxid(_)))
}

/// Whether the driver has said of this GPU's last uncorrected error that it was contained, and of none that it was not.
pub(super) fn was_contained(context: &GpuContext<'_>, gpu: &GpuReadings) -> bool {
    let last = |codes: &[u32]| {
        let of_gpu = |fault: &&GpuFault| {
            gpu.address.ok().is_some_and(|address| fault.address.as_ref() == Some(address))
        };
        let faults = context.state.gpu_faults().iter().filter(of_gpu);
        faults
            .filter(|fault| codes.iter().any(|code| fault.event == GpuEvent::Xid(*code)))
            .map(|fault| fault.last_us)
            .max()
    };
    let others = last(&[48, 140, 172]).unwrap_or(0);
    last(&[95]).is_none()
        && last(&[94]).is_some_and(|contained| contained.saturating_add(BESIDE_US) >= others)
}

fn sxids(context: &GpuContext<'_>) -> Vec<Judged> {
    judged(context, |event| matches!(event, GpuEvent::Sxid(_)))
}

const BESIDE_US: u64 = 60_000_000;

/// What one code means for one device now.
struct Weighed<'s> {
    fault: &'s GpuFault,
    ruling: Ruling,
    weight: Weight,
    told: String,
}

/// What the log and the clocks say, ready to be asked device by device.
struct Log<'c> {
    context: &'c GpuContext<'c>,
    now_ms: u64,
}

fn judged(context: &GpuContext<'_>, wanted: fn(GpuEvent) -> bool) -> Vec<Judged> {
    let mut draft = Draft::node();
    let log =
        match draft.need("kernel log", &context.signals.now.log, |log| format!("{} records", log.records)) {
            Ok(log) => log,
            Err(early) => return vec![*early],
        };
    let source = context.signals.now.log.source.clone();
    let untold = |what: &str, source: &str| {
        let absent = Absent::new(Absence::Unreadable, "the node does not tell");
        vec![draft.clone().absent(what, &absent, source, false)]
    };
    let Some(now) = context.signals.clock.since_boot else {
        return untold("time since boot", "/proc/uptime");
    };
    if context.signals.clock.boot_id.is_none() {
        return untold("boot id", "/proc/sys/kernel/random/boot_id");
    }
    let log_view = Log { context, now_ms: now.0 };
    let faults: Vec<&GpuFault> =
        context.state.gpu_faults().iter().filter(|fault| wanted(fault.event)).collect();
    let addresses: BTreeSet<Option<&PciAddress>> =
        faults.iter().map(|fault| fault.address.as_ref()).collect();
    let mut findings: Vec<Judged> = Vec::new();
    let mut harmless = Vec::new();
    for address in addresses {
        let of_device: Vec<&GpuFault> =
            faults.iter().copied().filter(|f| f.address.as_ref() == address).collect();
        match log_view.device(draft.clone(), address, &of_device, &source) {
            Ok(judged) => findings.push(judged),
            Err(told) => harmless.extend(told),
        }
    }
    let lost = log.events_lost.saturating_add(context.state.gpu_faults().dropped);
    if lost > 0 {
        let absent = Absent::new(Absence::TooLarge, format!("{lost} lines more than can be kept"));
        findings.push(draft.clone().absent("kernel log", &absent, &source, false));
    }
    if !findings.is_empty() {
        return findings;
    }
    let reach = crate::log_check::reach(log, now.0);
    if harmless.is_empty() {
        return vec![draft.pass(format!("no such line in the kernel's log, which reaches back {reach}"))];
    }
    harmless.iter().for_each(|told| draft.saw("harmless", told, &source));
    let more = harmless.len().saturating_sub(1);
    let first = harmless.into_iter().next().unwrap_or_default();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    vec![draft.pass(format!("nothing that stands: {first}{more}"))]
}

impl Log<'_> {
    /// A finding about one device, or what was harmless about it.
    fn device(
        &self,
        draft: Draft,
        address: Option<&PciAddress>,
        faults: &[&GpuFault],
        source: &str,
    ) -> Result<Judged, Vec<String>> {
        let gpu = self.gpu(address);
        let mut weighed: Vec<Weighed<'_>> =
            faults.iter().filter_map(|fault| self.weigh(fault, faults, gpu)).collect();
        weighed.sort_by_key(|one| {
            (std::cmp::Reverse(one.weight), std::cmp::Reverse(one.ruling.action), one.fault.last_seq)
        });
        let Some(worst) = weighed.first().filter(|worst| worst.weight > Weight::Pass) else {
            return Err(weighed.into_iter().map(|one| one.told).collect());
        };
        let device = address.map_or_else(Device::node, |address| Device(address.to_string()));
        let mut draft = draft.clone_for(device);
        for one in &weighed {
            draft.saw(&one.fault.event.to_string(), &one.fault.last_text, source);
        }
        let who = if worst.ruling.overridden {
            format!("{}; changed in the configuration", worst.ruling.source)
        } else {
            worst.ruling.source.clone()
        };
        draft.expect("no such error", rule(&who));
        let others: Vec<String> = weighed.iter().skip(1).map(|one| one.fault.event.to_string()).collect();
        let others = if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
        let reason = format!("{}{others}", worst.told);
        let verdict = match worst.weight {
            Weight::Fail => Verdict::Fail,
            // Some error was reported, and nobody can tell which.
            _ if weighed.iter().any(|one| one.fault.event == GpuEvent::Cut) => {
                Verdict::Unknown { blame: Blame::Device }
            }
            _ => Verdict::Warn,
        };
        let judged = draft.end(verdict, reason).advise(worst.ruling.action, &worst.ruling.advice);
        // A new boot ends what the log says, unless a person has to.
        let part = gpu.map_or_else(String::new, part);
        Ok(Judged { part, clears_by: Some(worst.ruling.clears_by), ..judged })
    }

    fn gpu(&self, address: Option<&PciAddress>) -> Option<&GpuReadings> {
        let gpus = &self.context.signals.now.nvml.ok()?.gpus;
        // One that does not tell its address any more is known by its place.
        gpus.iter()
            .find(|gpu| address.is_some_and(|address| super::device(self.context, gpu).0 == address.as_str()))
    }

    /// What one code means, beside the other codes of its device and what the GPU says now. `None` when it is over.
    fn weigh<'f>(
        &self,
        fault: &'f GpuFault,
        all: &[&GpuFault],
        gpu: Option<&GpuReadings>,
    ) -> Option<Weighed<'f>> {
        let data = self.context.data;
        let ruling = data.xid_policy.ruling(
            fault.event,
            fault.detail(),
            &data.catalogue,
            self.context.config.overrides(),
        );
        let age = Duration::from_millis(self.now_ms.saturating_sub(fault.last_us / 1000));
        if ruling.window.is_some_and(|window| age >= window) {
            return None;
        }
        let mut weighed = Weighed { weight: ruling.verdict, told: told(fault, age), fault, ruling };
        // The site's own word is not refined.
        if weighed.ruling.overridden {
            return Some(weighed);
        }
        // What belongs to one error is printed within moments.
        let beside = |code: u32| {
            let near = |other: &&&GpuFault| other.last_us.abs_diff(fault.last_us) < BESIDE_US;
            all.iter().filter(near).any(|other| other.event == GpuEvent::Xid(code))
        };
        // On whatever link, and with whatever registers.
        let times = all.iter().filter(|other| other.event == fault.event).map(|other| other.count).sum();
        let pending = gpu.and_then(|gpu| match gpu.rows.remapped.get() {
            Ok(rows) => Some(rows.pending || rows.failed),
            // GPUs without remapping have nothing to wait for.
            Err(absent) => (absent.kind == Absence::NotSupported).then_some(false),
        });
        match fault.event {
            GpuEvent::Xid(63 | 94) if pending == Some(true) => {
                weighed.say(
                    Weight::Fail,
                    Action::ResetGpu,
                    "a remapping is pending: reset the GPU when it is idle",
                );
            }
            // Contained, and nothing is left to be remapped: what it left behind is gone.
            GpuEvent::Xid(48) if beside(94) && !beside(95) && pending == Some(false) => {
                weighed.say(
                    Weight::Warn,
                    Action::Watch,
                    "the error was contained and no remapping is pending: watch the GPU",
                );
            }
            GpuEvent::Xid(74) => {
                let explained = gpu.and_then(|gpu| gpu.identity.name.ok());
                if explained.is_some_and(|name| data.xid_policy.explains_registers(name))
                    && let Some(decoded) = decode_registers(&data.xid_policy, fault.detail(), times)
                {
                    weighed.decoded(decoded.weight, &decoded.told);
                }
            }
            GpuEvent::Xid(code @ 144..=150) => {
                if let Some(decoded) =
                    decode_nvlink5(&data.catalogue, code, fault.detail(), self.driver_major())
                {
                    weighed.decoded(decoded.weight, &decoded.told);
                }
            }
            GpuEvent::Xid(154) => weighed.asked_for(),
            GpuEvent::InitFailed if self.started_since(fault, gpu) => {
                weighed.say(Weight::Pass, Action::None, "nothing: the driver has started it since");
            }
            _ => {}
        }
        if let GpuEvent::Xid(code) = fault.event {
            self.repeats(&mut weighed, code);
        }
        if weighed.ruling.clears_by == ClearsBy::GpuReset && weighed.weight == Weight::Fail {
            self.after_reset(&mut weighed, all, gpu, pending)?;
        }
        Some(weighed)
    }

    /// Applications cause some codes; when they repeat, the GPU may be to blame. So may it be when any code that means
    /// nothing by itself comes back all day.
    fn repeats(&self, weighed: &mut Weighed<'_>, code: u32) {
        let rule = &self.context.data.xid_policy.repeats;
        let by_applications = rule.codes.contains(&code);
        if !by_applications && weighed.weight > Weight::Pass {
            return;
        }
        let window_us =
            rule.window.map_or(u64::MAX, |window| u64::try_from(window.as_micros()).unwrap_or(u64::MAX));
        let since = self.now_ms.saturating_mul(1000).saturating_sub(window_us);
        let count = weighed.fault.incidents_since(since);
        let causers = weighed.fault.causers_since(since);
        let often = count >= rule.same_code
            || (by_applications && causers.len() >= rule.jobs_or_programs)
            || (code == 31 && count >= rule.page_faults);
        if often && weighed.weight < Weight::Fail {
            let whom = match causers.len() {
                0 => String::new(),
                _ => format!(" by {}", causers.iter().take(4).copied().collect::<Vec<_>>().join(", ")),
            };
            weighed.told = format!("{count} times in a day{whom}: {}", weighed.told);
            weighed.weight = Weight::Warn;
            weighed.ruling.action = Action::Diagnose;
            weighed.ruling.clears_by = ClearsBy::ActiveTest;
            weighed.ruling.advice = "it repeats on this GPU: test it (dcgmi diag -r 3)".to_owned();
            weighed.ruling.source.clone_from(&rule.source);
        }
    }

    /// An error that a reset ends is over when the driver has said so in the log since, or when the counters that it
    /// raised are at zero again. It stands as a warning when the driver, which raises its mark for such errors, wants
    /// nothing done now.
    fn after_reset(
        &self,
        weighed: &mut Weighed<'_>,
        all: &[&GpuFault],
        gpu: Option<&GpuReadings>,
        pending: Option<bool>,
    ) -> Option<()> {
        let Some(gpu) = gpu.filter(|gpu| super::driver::silence(gpu).is_none()) else { return Some(()) };
        let GpuEvent::Xid(code) = weighed.fault.event else { return Some(()) };
        let policy = &self.context.data.xid_policy;
        // Of its links the driver says nothing in its mark; they themselves do.
        let of_links = matches!(code, 74 | 144..=150);
        let links_up =
            gpu.nvlinks.ok().is_some_and(|links| links.iter().all(|link| link.active.ok() == Some(&true)));
        let action = gpu.recovery.action.ok().copied();
        let asks = action.is_some_and(|action| action != RecoveryAction::None)
            || gpu.recovery.reset_required.ok() == Some(&true);
        if asks || pending == Some(true) || (of_links && !links_up) {
            return Some(());
        }
        let uncorrected = gpu.ecc.total.volatile_uncorrected.ok();
        if policy.counted_by_ecc.contains(&code) && uncorrected == Some(&0) && pending == Some(false) {
            return None;
        }
        let asked = all.iter().find(|other| other.event == GpuEvent::Xid(154));
        let said_over = asked.is_some_and(|asked| {
            asked.last_seq > weighed.fault.last_seq && wants(asked.detail()) == Some(RecoveryAction::None)
        });
        if said_over && action == Some(RecoveryAction::None) {
            return None;
        }
        let marks = policy.marked_for_recovery.contains(&code) || of_links;
        if marks && action == Some(RecoveryAction::None) {
            weighed.say(
                Weight::Warn,
                Action::Watch,
                "the driver says now that nothing is left to be done: watch the GPU",
            );
        } else {
            weighed.ruling.advice.push_str(
                "; unless the driver says in the log that nothing is left to be done (xid 154), it counts until a reboot",
            );
        }
        Some(())
    }

    /// Whether what the driver could not start is there all the same: the GPU answers, it is a display adapter, or the
    /// driver has all GPUs of the bus.
    fn started_since(&self, fault: &GpuFault, gpu: Option<&GpuReadings>) -> bool {
        let now = self.context.signals.now;
        if fault.address.is_some() {
            let display = now.bus.ok().is_some_and(|bus| {
                bus.iter().any(|known| known.display && Some(&known.address) == fault.address.as_ref())
            });
            return display || gpu.is_some_and(|gpu| super::driver::silence(gpu).is_none());
        }
        let compute = now.bus.ok().map(|bus| bus.iter().filter(|gpu| !gpu.display).count());
        let has = now.nvml.ok().and_then(|nvml| nvml.count.ok());
        matches!((compute, has), (Some(compute), Some(has)) if *has as usize >= compute && compute > 0)
    }

    fn driver_major(&self) -> u32 {
        let now = self.context.signals.now;
        let by_library = now.nvml.ok().and_then(|nvml| nvml.driver_version.ok());
        let version = by_library.or_else(|| now.module_version.ok());
        // Newer drivers are the more likely ones where none tells.
        version.and_then(|version| Version::parse(version)).map_or(u32::MAX, |version| version.major())
    }
}

impl Weighed<'_> {
    fn say(&mut self, weight: Weight, action: Action, advice: &str) {
        self.weight = weight;
        self.ruling.action = action;
        advice.clone_into(&mut self.ruling.advice);
    }

    fn decoded(&mut self, weight: Weight, told: &str) {
        self.weight = weight;
        self.told = format!("{} ({told})", self.told);
        if weight < Weight::Fail {
            self.ruling.action = if weight == Weight::Pass { Action::None } else { Action::Watch };
            self.ruling.clears_by = ClearsBy::GoodReading;
        }
    }

    /// XID 154 names the action itself.
    fn asked_for(&mut self) {
        match wants(self.fault.detail()) {
            Some(RecoveryAction::None) => self.weight = Weight::Pass,
            Some(RecoveryAction::Reset | RecoveryAction::DrainAndReset) => {
                self.say(
                    Weight::Fail,
                    Action::ResetGpu,
                    "stop what uses the GPU and reset it (nvidia-smi --gpu-reset)",
                );
            }
            Some(RecoveryAction::Reboot) => {
                self.say(Weight::Fail, Action::Reboot, "reboot the node");
                self.ruling.clears_by = ClearsBy::NewBoot;
            }
            Some(RecoveryAction::DrainPeerToPeer) => {
                self.say(Weight::Warn, Action::Drain, "let no new job use this GPU together with others");
            }
            None => {}
        }
    }
}

/// `GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)`.
fn wants(detail: &str) -> Option<RecoveryAction> {
    let (_, after) = detail.split_once("recovery action changed from ")?;
    let (_, to) = after.rsplit_once(" to ")?;
    let number = to.split([' ', '(']).next().and_then(|word| word.strip_prefix("0x"));
    match number {
        Some("0") => return Some(RecoveryAction::None),
        Some("1") => return Some(RecoveryAction::Reset),
        Some("2") => return Some(RecoveryAction::Reboot),
        Some("3") => return Some(RecoveryAction::DrainPeerToPeer),
        Some("4") => return Some(RecoveryAction::DrainAndReset),
        _ => {}
    }
    let told = to.trim_matches(['(', ')', '.', ' ']);
    [
        ("None", RecoveryAction::None),
        ("GPU Reset Required", RecoveryAction::Reset),
        ("Node Reboot Required", RecoveryAction::Reboot),
        ("OS Reboot", RecoveryAction::Reboot),
        ("Drain P2P", RecoveryAction::DrainPeerToPeer),
        ("Drain and Reset", RecoveryAction::DrainAndReset),
    ]
    .into_iter()
    .find(|(name, _)| *name == told)
    .map(|(_, action)| action)
}

/// `xid 79, 4 min ago: GPU has fallen off the bus.`
fn told(fault: &GpuFault, age: Duration) -> String {
    let ago = humantime::format_duration(Duration::from_secs(age.as_secs()));
    let times = if fault.count > 1 { format!(" {} times, last", fault.count) } else { String::new() };
    let detail = fault.detail();
    let shown = detail.char_indices().nth(160).map_or(detail, |(at, _)| detail.get(..at).unwrap_or_default());
    let shown = shown.trim_start_matches([':', ' ']);
    let colon = if shown.is_empty() { "" } else { ": " };
    format!("{}{times} {ago} ago{colon}{shown}", fault.event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_that_the_driver_names_is_read_in_all_its_forms() {
        let wants = |to: &str| wants(&format!("GPU recovery action changed from 0x0 (None) to {to}"));
        assert_eq!(wants("0x1 (GPU Reset Required)"), Some(RecoveryAction::Reset));
        assert_eq!(wants("0x2 (OS Reboot)"), Some(RecoveryAction::Reboot));
        assert_eq!(wants("0x0 (None)"), Some(RecoveryAction::None));
        assert_eq!(wants("Node Reboot Required"), Some(RecoveryAction::Reboot));
        assert_eq!(wants("0x9 (Something New)"), None);
    }
}
