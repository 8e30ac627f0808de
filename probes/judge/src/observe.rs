//! Two samples become signals: values as they are, and counters as rates that survive resets and wraps.

use std::time::Duration;

use plimsoll_model::{
    Absence, Absent, BlockedTask, Body, Clock, CpuTimes, GpuRates, GpuReadings, GpuSample, GpuSignals,
    HostSample, HostSignals, NvLink, NvLinkRates, Percent, Rate, Reading, Sample, Signals, StorageSample,
    StorageSignals,
};

/// Two readings of a counter nearer than this say nothing about its rate.
pub const GAP_MS_MIN: u64 = 200;

/// What `sample` says, beside the `previous` sample of the same domain, if there is one.
#[must_use]
pub fn observe<'a>(previous: Option<&Sample>, sample: &'a Sample) -> Signals<'a> {
    let gap = gap(previous, sample);
    match &sample.body {
        Body::Host(now) => {
            let before = previous.and_then(|sample| match &sample.body {
                Body::Host(host) => Some(host.as_ref()),
                _ => None,
            });
            Signals::Host(host(&sample.clock, before, now, gap))
        }
        Body::Gpu(now) => {
            let before = previous.and_then(|sample| match &sample.body {
                Body::Gpu(gpu) => Some(gpu.as_ref()),
                _ => None,
            });
            Signals::Gpu(gpu(&sample.clock, before, now, gap))
        }
        Body::Storage(now) => {
            let before = previous.and_then(|sample| match &sample.body {
                Body::Storage(storage) => Some(storage.as_ref()),
                _ => None,
            });
            Signals::Storage(storage(&sample.clock, before, now, gap))
        }
        Body::Failed { domain, failure } => Signals::Failed { domain: *domain, failure },
    }
}

fn no_baseline(detail: &str) -> Absent {
    Absent::new(Absence::NoBaseline, detail)
}

/// Time between two samples of one boot, in milliseconds.
fn gap(previous: Option<&Sample>, sample: &Sample) -> Result<u64, Absent> {
    let previous = previous.ok_or_else(|| no_baseline("a rate needs two samples and this is the first"))?;
    let (before, now) = (&previous.clock, &sample.clock);
    if before.boot_id != now.boot_id {
        return Err(no_baseline("the node was rebooted between the samples"));
    }
    let (Some(before), Some(now)) = (before.since_boot, now.since_boot) else {
        return Err(no_baseline("the node does not tell the time since its boot"));
    };
    let ms = now.0.saturating_sub(before.0);
    if ms < GAP_MS_MIN {
        return Err(no_baseline("the samples are too near to each other"));
    }
    Ok(ms)
}

fn host<'a>(
    clock: &'a Clock,
    before: Option<&HostSample>,
    now: &'a HostSample,
    gap: Result<u64, Absent>,
) -> HostSignals<'a> {
    let times = paired(before.map(|b| &b.cpu.times), &now.cpu.times, &gap, steal);
    let blocked = paired(before.map(|b| &b.processes), &now.processes, &gap, |before, now, ms| {
        let same = |task: &&BlockedTask| before.blocked.contains(task);
        Ok((now.blocked.iter().filter(same).cloned().collect(), Duration::from_millis(ms)))
    });
    let no_edac = Vec::new();
    let controllers = now.memory.edac.ok().unwrap_or(&no_edac);
    let earlier = before.and_then(|b| b.memory.edac.ok()).unwrap_or(&no_edac);
    let corrected = controllers
        .iter()
        .map(|controller| {
            let before = earlier.iter().find(|old| old.name == controller.name).map(|old| &old.corrected);
            // The kernel's EDAC counters are 32 bits wide.
            paired(before, &controller.corrected, &gap, |a, b, ms| {
                Ok(growth(*a, *b, CounterBits::Thirty2, ms))
            })
        })
        .collect();
    HostSignals { clock, now, steal: times, blocked, corrected }
}

fn steal(before: &CpuTimes, now: &CpuTimes, ms: u64) -> Result<(Percent, Duration), Absent> {
    // A total that ran backwards was reset, as after a migration; it says nothing then.
    let total = now.total.checked_sub(before.total).filter(|ticks| *ticks > 0);
    let total = total.ok_or_else(|| no_baseline("the time accounts ran backwards or stood still"))?;
    let stolen = now.steal.saturating_sub(before.steal);
    let share = Percent::ratio(stolen, total).unwrap_or_default();
    Ok((share, Duration::from_millis(ms)))
}

fn storage<'a>(
    clock: &'a Clock,
    before: Option<&StorageSample>,
    now: &'a StorageSample,
    gap: Result<u64, Absent>,
) -> StorageSignals<'a> {
    let none = Vec::new();
    let controllers = now.nvme.ok().unwrap_or(&none);
    let earlier = before.and_then(|b| b.nvme.ok()).unwrap_or(&none);
    let media_errors = controllers
        .iter()
        .map(|controller| {
            let count = |reading: &Reading<_>| {
                reading.and_then(|log: &plimsoll_model::SmartLog| Ok(log.media_errors))
            };
            let before = earlier.iter().find(|old| old.name == controller.name).map(|old| count(&old.smart));
            let now = count(&controller.smart);
            paired(before.as_ref(), &now, &gap, |a, b, ms| Ok(growth(*a, *b, CounterBits::Sixty4, ms)))
        })
        .collect();
    StorageSignals { clock, now, media_errors }
}

fn gpu<'a>(
    clock: &'a Clock,
    before: Option<&GpuSample>,
    now: &'a GpuSample,
    gap: Result<u64, Absent>,
) -> GpuSignals<'a> {
    let gpus = |sample: &'a GpuSample| sample.nvml.ok().map_or(&[][..], |nvml| nvml.gpus.as_slice());
    let earlier = before.and_then(|before| before.nvml.ok()).map_or(&[][..], |nvml| nvml.gpus.as_slice());
    let rates = gpus(now).iter().map(|gpu| {
        // An index may have gone to another GPU between the samples; an address does not.
        let same = |old: &&GpuReadings| old.index == gpu.index && old.address.ok() == gpu.address.ok();
        gpu_rates(earlier.iter().find(same), gpu, &gap)
    });
    GpuSignals { clock, now, rates: rates.collect() }
}

fn gpu_rates(before: Option<&GpuReadings>, now: &GpuReadings, gap: &Result<u64, Absent>) -> GpuRates {
    // Each GPU's two readings have their own times.
    let own_gap = gap.clone().and_then(|_| {
        let before = before.ok_or_else(|| no_baseline("the GPU was not there in the sample before"))?;
        let ms = now.at_ms.saturating_sub(before.at_ms);
        if ms < GAP_MS_MIN { Err(no_baseline("the readings are too near to each other")) } else { Ok(ms) }
    });
    let wide = |a: &u64, b: &u64, ms| Ok(growth(*a, *b, CounterBits::Sixty4, ms));
    let no_links = Vec::new();
    let links = now.nvlinks.ok().unwrap_or(&no_links);
    let earlier = before.and_then(|before| before.nvlinks.ok()).unwrap_or(&no_links);
    let of_link = |link: &NvLink| {
        let before = earlier.iter().find(|old| old.link == link.link);
        NvLinkRates {
            replays: paired(before.map(|old| &old.replays), &link.replays, &own_gap, wide),
            recoveries: paired(before.map(|old| &old.recoveries), &link.recoveries, &own_gap, wide),
            crc_errors: paired(before.map(|old| &old.crc_errors), &link.crc_errors, &own_gap, wide),
        }
    };
    GpuRates {
        // NVML gives this counter as 32 bits.
        replays: paired(before.map(|old| &old.pcie.replays), &now.pcie.replays, &own_gap, |a, b, ms| {
            Ok(growth(*a, *b, CounterBits::Thirty2, ms))
        }),
        held_by: paired(before.map(|old| &old.clocks.held_by), &now.clocks.held_by, &own_gap, |a, b, _| {
            Ok(a & b)
        }),
        nvlinks: links.iter().map(of_link).collect(),
    }
}

/// A signal from two readings; absent when either is, with the newer one's source and time.
fn paired<T, U>(
    before: Option<&Reading<T>>,
    now: &Reading<T>,
    gap: &Result<u64, Absent>,
    signal: impl FnOnce(&T, &T, u64) -> Result<U, Absent>,
) -> Reading<U> {
    now.and_then(|value| {
        let ms = gap.clone()?;
        let before = before.ok_or_else(|| no_baseline("it was not there in the sample before"))?;
        let before =
            before.get().map_err(|absent| no_baseline(&format!("before this: {}", absent.detail)))?;
        signal(before, value, ms)
    })
}

/// Width of a counter, for wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterBits {
    Thirty2,
    Sixty4,
}

/// How much a counter grew. One that fell from near its end to near its beginning has wrapped; one that fell from
/// anywhere else was reset, and has grown at least to what it is.
fn growth(before: u64, now: u64, bits: CounterBits, over_ms: u64) -> Rate {
    let end = match bits {
        CounterBits::Thirty2 => u64::from(u32::MAX),
        CounterBits::Sixty4 => u64::MAX,
    };
    let delta = match now.checked_sub(before) {
        Some(delta) => delta,
        None if before > end / 4 * 3 && before <= end && now < end / 4 => {
            (end - before).saturating_add(now).saturating_add(1)
        }
        None => now,
    };
    Rate { delta, over_ms }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_counter_that_wraps_has_grown_by_the_distance() {
        let rate = growth(u64::from(u32::MAX) - 4, 5, CounterBits::Thirty2, 1000);
        assert_eq!(rate.delta, 10);
        assert_eq!(growth(u64::MAX, 0, CounterBits::Sixty4, 1000).delta, 1);
    }

    #[test]
    fn a_counter_that_was_reset_has_grown_to_what_it_is() {
        assert_eq!(growth(1_000_000, 3, CounterBits::Thirty2, 1000).delta, 3);
        assert_eq!(growth(7, 0, CounterBits::Sixty4, 1000).delta, 0);
    }

    #[test]
    fn time_accounts_that_run_backwards_are_no_baseline() {
        let at = |total, steal| CpuTimes { total, steal };
        assert_eq!(steal(&at(100, 5), &at(90, 5), 200).map_err(|a| a.kind), Err(Absence::NoBaseline));
        assert_eq!(steal(&at(100, 5), &at(200, 15), 200).map(|(p, _)| p), Ok(Percent(10.0)));
    }

    proptest! {
        #[test]
        fn growth_never_overflows_and_never_exceeds_the_counter(before: u64, now: u64) {
            let rate = growth(before, now, CounterBits::Sixty4, 200);
            prop_assert!(now < before || rate.delta == now - before);
        }
    }
}
