//! Processors: lists, time accounts, frequencies.

use plimsoll_model::{Absent, CpuTimes, Megahertz};

use super::{malformed, number};

/// Most processors that a list may name; the kernel's own limit is 8,192.
const CPUS_MAX: u32 = 65_536;

/// A list like `0-3,8,10-11`; an empty one is an empty list.
///
/// # Errors
/// When it is anything else, runs backwards, or names impossible processors.
pub fn cpu_list(text: &str) -> Result<Vec<u32>, Absent> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u32 = number(Some(first), "processor")?;
        let last: u32 = number(Some(last), "processor")?;
        if last < first || last >= CPUS_MAX {
            return Err(malformed(format!("impossible range of processors {first}-{last}")));
        }
        cpus.extend(first..=last);
        if cpus.len() > CPUS_MAX as usize {
            return Err(malformed("more processors than any machine has"));
        }
    }
    Ok(cpus)
}

/// The first line of `/proc/stat`.
///
/// # Errors
/// When it is not there or has no account of steal.
pub fn cpu_times(text: &str) -> Result<CpuTimes, Absent> {
    let line =
        text.lines().find_map(|line| line.strip_prefix("cpu ")).ok_or_else(|| malformed("no cpu line"))?;
    // user nice system idle iowait irq softirq steal; guest and guest_nice, after these, are part of user and nice.
    let mut fields = line.split_ascii_whitespace();
    let mut times = CpuTimes::default();
    for name in ["user", "nice", "system", "idle", "iowait", "irq", "softirq"] {
        times.total = times.total.saturating_add(number(fields.next(), name)?);
    }
    times.steal = number(fields.next(), "steal")?;
    times.total = times.total.saturating_add(times.steal);
    Ok(times)
}

/// The nominal frequency by `/proc/cpuinfo`: what the model's name says (`@ 2.00GHz`), else `cpu MHz` where that is a
/// constant. With the flag `aperfmperf` it is the present speed, with which a measurement cannot be compared.
///
/// # Errors
/// When it names none, as on arm64.
pub fn cpuinfo_mhz(text: &str) -> Result<Megahertz, Absent> {
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value)
    };
    let of_model = field("model name").and_then(|name| name.rsplit_once('@')).and_then(|(_, rate)| {
        let ghz: f64 = rate.trim().strip_suffix("GHz")?.trim().parse().ok()?;
        Some(ghz * 1000.0)
    });
    if let Some(mhz) = of_model {
        return mhz_from(mhz);
    }
    let moves =
        field("flags").is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "aperfmperf"));
    match field("cpu MHz") {
        Some(mhz) if !moves => mhz_from(number(Some(mhz), "cpu MHz")?),
        _ => Err(Absent::new(plimsoll_model::Absence::NotPresent, "it names no nominal frequency")),
    }
}

/// A frequency in kHz, as cpufreq files hold.
///
/// # Errors
/// When it is none.
pub fn khz(text: &str) -> Result<Megahertz, Absent> {
    let khz: u64 = super::one_number(text)?;
    mhz_from(khz as f64 / 1000.0)
}

fn mhz_from(mhz: f64) -> Result<Megahertz, Absent> {
    if (1.0..=100_000.0).contains(&mhz) {
        Ok(Megahertz(mhz.round() as u32))
    } else {
        Err(malformed(format!("no processor runs at {mhz} MHz")))
    }
}
