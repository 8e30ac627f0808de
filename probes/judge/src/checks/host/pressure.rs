//! Pressure stall information: is the node held up right now?

use plimsoll_model::{Action, ClearsBy, Domain, Percent, Pressure, Reading};

use crate::{
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Verdicted},
};

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "host.pressure.memory",
        domain: Domain::Host,
        asks: "Does everything stand still for want of memory?",
        reads: &["/proc/pressure/memory"],
        compares: "the limit memory_pressure_full_percent_max, over the last minute",
        verdicts: "Warns above it.",
        why: "Before a job starts, a node that is already out of memory has a leftover of the last one.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "find what uses the memory: a leftover process, /dev/shm, huge pages that were kept",
        judge: Judge::Host(memory),
    },
    Check {
        id: "host.pressure.cpu",
        domain: Domain::Host,
        asks: "Do tasks wait for a processor?",
        reads: &["/proc/pressure/cpu"],
        compares: "[host] cpu_pressure_percent_max in the configuration; without it there is nothing to compare with",
        verdicts: "Warns above it.",
        why: "A busy node is healthy; before a job on a node of its own it has a leftover of the last one.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "find what keeps the processors busy",
        judge: Judge::Host(cpu),
    },
    Check {
        id: "host.pressure.io",
        domain: Domain::Host,
        asks: "Do tasks wait for storage?",
        reads: &["/proc/pressure/io"],
        compares: "[host] io_pressure_percent_max in the configuration; without it there is nothing to compare with",
        verdicts: "Warns above it.",
        why: "As for processors; a drive that is about to fail also shows here first.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "find which drive is busy (iostat -x) and who keeps it so",
        judge: Judge::Host(io),
    },
];

fn memory(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let pressure = draft.want("last minute", &context.now().pressure.memory, shown)?;
    let full = pressure.full_60s.unwrap_or(pressure.some_60s);
    let (max, origin) = context.limit("memory_pressure_full_percent_max");
    draft.expect(format!("at most {max} %"), origin);
    let is = format!("everything waited for memory {full} of the last minute");
    Ok(if full.0 <= max { draft.pass(is) } else { draft.warn(is) })
}

fn cpu(context: &HostContext<'_>) -> Verdicted {
    let max = context.config.host.cpu_pressure_percent_max;
    some(context, &context.now().pressure.cpu, "a processor", max, "host.cpu_pressure_percent_max")
}

fn io(context: &HostContext<'_>) -> Verdicted {
    let max = context.config.host.io_pressure_percent_max;
    some(context, &context.now().pressure.io, "storage", max, "host.io_pressure_percent_max")
}

fn some(
    context: &HostContext<'_>,
    reading: &Reading<Pressure>,
    resource: &str,
    max: Option<f64>,
    key: &str,
) -> Verdicted {
    let mut draft = Draft::node();
    let Percent(some) = draft.want_unless(max.is_some(), "last minute", reading, shown)?.some_60s;
    let is = format!("some task waited for {resource} {} of the last minute", Percent(some));
    let Some(max) = max else {
        return Ok(draft.incomparable(is, key));
    };
    draft.expect(format!("at most {max} %"), context.config.origin());
    Ok(if some <= max { draft.pass(is) } else { draft.warn(is) })
}

fn shown(pressure: &Pressure) -> String {
    let full = pressure.full_60s.map_or(String::new(), |full| format!(", all {full}"));
    format!("some {}{full}", pressure.some_60s)
}
