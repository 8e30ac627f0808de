//! What the driver's library said, put together from what its child told and how that ended.

use std::time::Duration;

use plimsoll_model::{Absence, Absent, GpuReadings, GpuTrouble, NvmlSample, Reading, TroubleKind};
use plimsoll_probes::gpu::nvml::{Told, unread};

use crate::supervise::{Ending, Outcome};

/// Longer than this no driver takes to start or leave all GPUs of a node.
const STARTS_MAX: Duration = Duration::from_secs(60);

/// What the driver's library said.
#[derive(Debug, Default)]
pub(super) struct NvmlAnswer {
    /// Why it said nothing, once that is known.
    unusable: Option<Reading<NvmlSample>>,
    driver: Option<(String, Reading<String>, Reading<u32>)>,
    first: Vec<GpuReadings>,
    second: Vec<GpuReadings>,
    /// What kept GPUs from being read a second time.
    troubles: Vec<(u32, GpuTrouble)>,
    /// The library crashed, or hangs so that its child cannot be killed.
    broken: Option<String>,
}

impl NvmlAnswer {
    pub(super) fn hear(&mut self, told: Told) {
        match told {
            Told::Unusable(absent) => self.unusable = Some(Reading::new("nvmlInit_v2", 0, Err(absent))),
            Told::Driver { library, version, count } => self.driver = Some((library, version, count)),
            Told::Trouble { index, trouble } => self.troubles.push((index, trouble)),
            Told::Gpu { second: false, readings } => self.first.push(*readings),
            Told::Gpu { second: true, readings } => self.second.push(*readings),
        }
    }

    /// The child has ended. What it had not said by then is absent, for that reason.
    pub(super) fn end(&mut self, library: &str, outcome: &Outcome) {
        if self.unusable.is_some() {
            return;
        }
        let why = ended(outcome);
        let Some((_, _, count)) = &self.driver else {
            let source = outcome.last_step.clone().unwrap_or_else(|| library.to_owned());
            self.unusable = Some(Reading::new(source, 0, Err(why)));
            return;
        };
        let mut all_said = true;
        for index in 0..count.ok().copied().unwrap_or(0) {
            let said = |list: &[GpuReadings]| list.iter().find(|gpu| gpu.index == index).cloned();
            let mut silent = match (said(&self.first), said(&self.second)) {
                (_, Some(_)) => continue,
                // What it said once is still so; there is no rate.
                (Some(first), None) => first,
                (None, None) => unread(index, &why),
            };
            all_said = false;
            let told =
                self.troubles.iter().filter(|(of, _)| *of == index).map(|(_, trouble)| trouble.clone());
            silent.troubles.extend(told);
            if why.kind == Absence::TimedOut && silent.troubles.is_empty() {
                let call = format!("some call: {}", why.detail);
                silent.troubles.push(GpuTrouble { kind: TroubleKind::Slow, call });
            }
            self.second.push(silent);
        }
        // One that crashes or stays after all was said owes nobody an answer.
        if why.kind == Absence::Unreadable && !all_said {
            self.broken = Some(why.detail);
        }
    }

    /// The first or the second sample; `None` when the library was not asked at all.
    pub(super) fn sample(&self, which: usize) -> Option<Reading<NvmlSample>> {
        if let Some(unusable) = &self.unusable {
            return Some(unusable.clone());
        }
        let (library, driver_version, count) = self.driver.clone()?;
        let mut gpus = if which == 0 { self.first.clone() } else { self.second.clone() };
        gpus.sort_by_key(|gpu| gpu.index);
        gpus.dedup_by_key(|gpu| gpu.index);
        Some(Reading::new(
            "NVML",
            0,
            Ok(NvmlSample { library, driver_version, count, broken: self.broken.clone(), gpus }),
        ))
    }
}

/// Why the library said no more. A crash or a hang in it is the driver's fault; everything else is ours.
fn ended(outcome: &Outcome) -> Absent {
    let step = outcome.last_step.as_deref().unwrap_or("its start");
    let took = outcome.took.as_secs_f64();
    let (kind, told) = match outcome.ending {
        Ending::TimedOut | Ending::OutOfTime => {
            (Absence::TimedOut, format!("the driver's library has not answered within {took:.1} s"))
        }
        // A GPU that is being started or left cannot be interrupted either, for seconds; for longer, the driver is
        // broken until the next boot.
        Ending::LeftStuck(pid) => (
            if outcome.took < STARTS_MAX { Absence::TimedOut } else { Absence::Unreadable },
            format!(
                "a call of the driver's library has not returned and its probe (pid {pid}) cannot be killed"
            ),
        ),
        Ending::StillStuck(ref stuck) => (
            if stuck.age().is_none_or(|age| age < STARTS_MAX) {
                Absence::TimedOut
            } else {
                Absence::Unreadable
            },
            format!(
                "a probe of an earlier run (pid {}) still hangs in the driver and cannot be killed",
                stuck.pid
            ),
        ),
        // SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: nobody sends these from outside.
        Ending::Killed(signal @ (4 | 6 | 7 | 8 | 11)) => (
            Absence::Unreadable,
            format!("the driver's library crashed (signal {signal}) in or after {step}"),
        ),
        Ending::Complete => {
            (Absence::NotAsked, "the time was up before it was asked; give more with --budget".to_owned())
        }
        _ => (Absence::NotAsked, outcome.told()),
    };
    Absent::new(kind, told)
}
