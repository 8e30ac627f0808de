//! Errors of GPUs and NVSwitches that the log has told of, all lines of one code and device together.

use std::collections::BTreeSet;

use plimsoll_model::{KernelLog, PciAddress, ProcessOwner};
use serde::{Deserialize, Serialize};

use super::{GpuEvent, gpu_line};

const FAULTS_MAX: usize = 512;
const CAUSERS_MAX: usize = 64;
const TIMES_MAX: usize = 64;
/// As NVSentinel: repeats within three minutes are one burst.
const BURST_US: u64 = 180_000_000;

/// What the log has told of so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GpuFaults {
    next_seq: u64,
    faults: Vec<GpuFault>,
    /// Codes and devices that did not fit.
    pub(crate) dropped: u64,
}

/// All lines of one code about one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GpuFault {
    pub(crate) event: GpuEvent,
    /// Absent for the few forms of lines that name no device.
    pub(crate) address: Option<PciAddress>,
    /// What tells it from other lines of its code.
    variant: String,
    pub(crate) count: u64,
    pub(crate) last_us: u64,
    pub(crate) last_seq: u64,
    /// The last line, and what it says after the code.
    pub(crate) last_text: String,
    /// When the last few were, in microseconds after boot, and who met them.
    pub(crate) times: Vec<(u64, Option<String>)>,
}

impl GpuFault {
    /// Incidents since `since_us` after boot: what one program or job met is one, however often the driver said so; and
    /// so is what nobody is named for within three minutes.
    pub(crate) fn incidents_since(&self, since_us: u64) -> u64 {
        let anonymous = self.times.iter().filter(|(at, who)| *at >= since_us && who.is_none());
        let mut bursts = 0;
        let mut last: Option<u64> = None;
        for (at, _) in anonymous {
            if last.is_none_or(|first| at.saturating_sub(first) > BURST_US) {
                bursts += 1;
                last = Some(*at);
            }
        }
        bursts + self.causers_since(since_us).len() as u64
    }

    /// Distinct jobs, or programs where no job is known, that met it since then.
    pub(crate) fn causers_since(&self, since_us: u64) -> BTreeSet<&str> {
        let recent = self.times.iter().filter(|(at, _)| *at >= since_us);
        recent.filter_map(|(_, who)| who.as_deref()).take(CAUSERS_MAX).collect()
    }

    /// What the last line says after the code.
    pub(crate) fn detail(&self) -> &str {
        gpu_line(&self.last_text).map_or("", |line| line.detail)
    }
}

impl GpuFaults {
    /// Takes in lines, each once per boot and sequence number.
    pub(crate) fn absorb(&mut self, log: &KernelLog, owners: &[ProcessOwner]) {
        let next_seq = self.next_seq;
        for event in log.events.iter().filter(|event| event.seq >= next_seq) {
            let Some(line) = gpu_line(&event.text) else { continue };
            let who = line.process.map(|(pid, name)| {
                let owner = owners.iter().find(|owner| owner.pid == pid);
                let user = owner.and_then(|owner| owner.user);
                let user = user.map_or_else(String::new, |user| format!(" of user {user}"));
                match owner.and_then(|owner| owner.job.as_deref()) {
                    Some(job) => format!("job {job}{user}"),
                    None => format!("{name} (pid {pid}){user}"),
                }
            });
            let same = |fault: &&mut GpuFault| {
                (fault.event, &fault.address, fault.variant.as_str())
                    == (line.event, &line.address, line.variant())
            };
            let full = self.faults.len() == FAULTS_MAX;
            match self.faults.iter_mut().find(same) {
                Some(fault) => {
                    fault.count = fault.count.saturating_add(1);
                    fault.last_us = event.at_us;
                    fault.last_seq = event.seq;
                    fault.last_text.clone_from(&event.text);
                    if fault.times.len() == TIMES_MAX {
                        fault.times.remove(0);
                    }
                    fault.times.push((event.at_us, who));
                }
                None if full => self.dropped += 1,
                None => self.faults.push(GpuFault {
                    event: line.event,
                    address: line.address.clone(),
                    variant: line.variant().to_owned(),
                    count: 1,
                    last_us: event.at_us,
                    last_seq: event.seq,
                    last_text: event.text.clone(),
                    times: vec![(event.at_us, who)],
                }),
            }
        }
        if let Some(last) = log.events.last() {
            self.next_seq = self.next_seq.max(last.seq.saturating_add(1));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &GpuFault> {
        self.faults.iter()
    }
}
