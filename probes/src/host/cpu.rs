//! Processors.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::{Absence, Absent, CpuReadings, CpuTopology, Megahertz, Reading};

use super::spin;
use crate::{Machine, parse};

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn collect(machine: &Machine) -> CpuReadings {
    let some = |text: &str| match parse::cpu_list(text)?.as_slice() {
        [] => Err(parse::malformed("it names no processor")),
        cpus => Ok(cpus.to_vec()),
    };
    let present = machine.read(&format!("{CPU}/present"), some);
    let online = machine.read(&format!("{CPU}/online"), some);
    CpuReadings {
        topology: each_online(machine, &online, "topology/{physical_package_id,core_id}", |cpus| {
            topology(machine, cpus)
        }),
        smt: machine.read(&format!("{CPU}/smt/control"), parse::one_line),
        governors: each_online(machine, &online, "cpufreq/scaling_governor", |cpus| governors(machine, cpus)),
        driver: machine.read(&format!("{CPU}/cpu0/cpufreq/scaling_driver"), parse::one_word),
        max: each_online(machine, &online, "cpufreq/cpuinfo_max_freq", |cpus| highest(machine, cpus)),
        base: machine.read(&format!("{CPU}/cpu0/cpufreq/base_frequency"), parse::khz),
        nominal: machine.read("/proc/cpuinfo", parse::cpuinfo_mhz),
        observed: spin::observe(machine),
        times: machine.read("/proc/stat", parse::cpu_times),
        present,
        online,
    }
}

fn each_online<T>(
    machine: &Machine,
    online: &Reading<Vec<u32>>,
    file: &str,
    collect: impl FnOnce(&[u32]) -> Result<T, Absent>,
) -> Reading<T> {
    let result = match online.get() {
        Ok(cpus) => collect(cpus),
        Err(absent) => {
            Err(Absent::new(absent.kind, format!("the list of online processors: {}", absent.detail)))
        }
    };
    machine.reading(format!("{CPU}/cpu*/{file}"), result)
}

/// One file of every processor; the first that cannot be read makes the whole absent, and names itself.
fn of_each<T>(
    machine: &Machine,
    cpus: &[u32],
    file: &str,
    parse: impl Fn(&str) -> Result<T, Absent>,
) -> Result<Vec<T>, Absent> {
    let mut missing = 0;
    let mut values = Vec::with_capacity(cpus.len());
    let mut first = None;
    for cpu in cpus {
        match machine.text(&format!("{CPU}/cpu{cpu}/{file}")).and_then(|text| parse(&text)) {
            Ok(value) => values.push(value),
            Err(absent) => {
                missing += usize::from(absent.kind == Absence::NotPresent);
                first.get_or_insert_with(|| Absent::new(absent.kind, format!("cpu{cpu}: {}", absent.detail)));
            }
        }
    }
    match first {
        None => Ok(values),
        // That no processor has it is a property of the machine; that some lack it is a fault.
        Some(absent) if missing == cpus.len() => Err(Absent::new(Absence::NotPresent, absent.detail)),
        Some(absent) => Err(Absent::new(not_lacking(absent.kind), absent.detail)),
    }
}

fn not_lacking(kind: Absence) -> Absence {
    if kind == Absence::NotPresent { Absence::Unreadable } else { kind }
}

fn topology(machine: &Machine, cpus: &[u32]) -> Result<CpuTopology, Absent> {
    let sockets = of_each(machine, cpus, "topology/physical_package_id", parse::one_number::<i64>)?;
    let cores = of_each(machine, cpus, "topology/core_id", parse::one_number::<i64>)?;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let pairs: BTreeSet<_> = sockets.iter().zip(&cores).collect();
    Ok(CpuTopology {
        sockets: count(sockets.iter().collect::<BTreeSet<_>>().len()),
        cores: count(pairs.len()),
        threads: count(cpus.len()),
    })
}

fn governors(machine: &Machine, cpus: &[u32]) -> Result<BTreeMap<String, u32>, Absent> {
    let mut count = BTreeMap::new();
    for name in of_each(machine, cpus, "cpufreq/scaling_governor", parse::one_line)? {
        *count.entry(name).or_insert(0) += 1;
    }
    Ok(count)
}

fn highest(machine: &Machine, cpus: &[u32]) -> Result<Megahertz, Absent> {
    let all = of_each(machine, cpus, "cpufreq/cpuinfo_max_freq", parse::khz)?;
    all.into_iter().max().ok_or_else(|| parse::malformed("no processor is online"))
}
