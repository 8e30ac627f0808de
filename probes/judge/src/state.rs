//! What the judge remembers from one sample to the next. Serialisable, bounded, and pure.

use std::time::Duration;

use plimsoll_model::{
    BlockedTask, BootId, Clock, Device, Finding, GpuSample, HostSignals, KernelLog, SinceBoot,
};
use serde::{Deserialize, Serialize};

use crate::{Data, Weight, xid::GpuFaults};

const LOG_MAX: usize = 256;
const STANDING_MAX: usize = 1024;

/// What the judge remembers. An empty one is the start of every cold check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    boot_id: Option<BootId>,
    log_next_seq: u64,
    log: Vec<LogFault>,
    blocked: Vec<(BlockedTask, SinceBoot)>,
    gpu: GpuFaults,
    standing: Vec<Finding>,
}

/// What lines of the kernel's log say about one device, all lines of one meaning together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogFault {
    pub(crate) check: String,
    pub(crate) device: Device,
    /// The rule, by its source and how its lines begin.
    rule: String,
    pub(crate) fails: bool,
    pub(crate) window: Option<Duration>,
    pub(crate) count: u64,
    pub(crate) last_us: u64,
    pub(crate) last_text: String,
    pub(crate) source: String,
}

impl LogFault {
    /// Its rule's place among the rules; those that tell most come first.
    pub(crate) fn place(&self, data: &Data) -> usize {
        data.kernel_log.iter().position(|rule| rule.name() == self.rule).unwrap_or(usize::MAX)
    }
}

impl State {
    /// Forgets what a new boot ends.
    pub(crate) fn enter_boot(&mut self, clock: &Clock) {
        if clock.boot_id.is_some() && clock.boot_id != self.boot_id {
            *self = Self { boot_id: clock.boot_id.clone(), ..Self::keep_for_person(self) };
        }
    }

    fn keep_for_person(&self) -> Self {
        let stays = |finding: &&Finding| finding.clears_by == plimsoll_model::ClearsBy::Person;
        Self { standing: self.standing.iter().filter(stays).cloned().collect(), ..Self::default() }
    }

    /// Takes in lines of the kernel's log, each once per boot and sequence number.
    pub(crate) fn absorb_log(&mut self, log: &KernelLog, data: &Data) {
        let next_seq = self.log_next_seq;
        for event in log.events.iter().filter(|event| event.seq >= next_seq) {
            let Some(rule) = data.log_rule(&event.text) else { continue };
            let device = rule.device(&event.text).map_or_else(Device::node, |name| Device(name.to_owned()));
            let fails = rule.verdict == Weight::Fail;
            let name = rule.name();
            let known = self.log.iter_mut().find(|fault| {
                fault.check == rule.check
                    && fault.device == device
                    && fault.rule == name
                    && fault.fails == fails
            });
            match known {
                Some(fault) => {
                    fault.count = fault.count.saturating_add(1);
                    fault.last_us = event.at_us;
                    fault.last_text.clone_from(&event.text);
                }
                None => {
                    if self.log.len() == LOG_MAX {
                        self.drop_least_log_fault();
                    }
                    self.log.push(LogFault {
                        check: rule.check.clone(),
                        device,
                        rule: name,
                        fails,
                        window: rule.window,
                        count: 1,
                        last_us: event.at_us,
                        last_text: event.text.clone(),
                        source: rule.source.clone(),
                    });
                }
            }
        }
        if let Some(last) = log.events.last() {
            self.log_next_seq = self.log_next_seq.max(last.seq.saturating_add(1));
        }
    }

    /// A warning goes before a failure, an old one before a new one.
    fn drop_least_log_fault(&mut self) {
        let least = self.log.iter().enumerate().min_by_key(|(_, fault)| (fault.fails, fault.last_us));
        if let Some((at, _)) = least {
            self.log.swap_remove(at);
        }
    }

    /// What the log says for a check.
    pub(crate) fn log_faults<'s>(&'s self, check: &'s str) -> impl Iterator<Item = &'s LogFault> {
        self.log.iter().filter(move |fault| fault.check == check)
    }

    /// Takes in what the log says of GPUs and NVSwitches.
    pub(crate) fn absorb_gpu_log(&mut self, sample: &GpuSample) {
        if let Some(log) = sample.log.ok() {
            self.gpu.absorb(log, &sample.owners);
        }
    }

    /// What the log has told of GPUs and NVSwitches.
    pub(crate) const fn gpu_faults(&self) -> &GpuFaults {
        &self.gpu
    }

    /// Takes in which processes did not move.
    pub(crate) fn absorb_blocked(&mut self, signals: &HostSignals<'_>) {
        let (Ok((tasks, over)), Some(now)) = (signals.blocked.get(), signals.clock.since_boot) else {
            return;
        };
        let seen = u64::try_from(over.as_millis()).unwrap_or(u64::MAX);
        let begin = SinceBoot(now.0.saturating_sub(seen));
        let earlier = std::mem::take(&mut self.blocked);
        self.blocked = tasks
            .iter()
            .map(|task| {
                let since =
                    earlier.iter().find(|(known, _)| known == task).map_or(begin, |(_, since)| *since);
                (task.clone(), since)
            })
            .collect();
    }

    /// Processes that do not move, and since when that is known.
    pub(crate) fn blocked(&self) -> &[(BlockedTask, SinceBoot)] {
        &self.blocked
    }

    /// The fault that stands for this check and device, if one does.
    pub(crate) fn standing(&self, finding: &Finding) -> Option<&Finding> {
        self.standing.iter().find(|old| old.check == finding.check && old.device == finding.device)
    }

    /// Writes down a fault that no good reading ends.
    pub(crate) fn stand(&mut self, finding: &Finding) {
        self.standing.retain(|old| old.check != finding.check || old.device != finding.device);
        if self.standing.len() < STANDING_MAX {
            self.standing.push(finding.clone());
        }
    }
}
