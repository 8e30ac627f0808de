//! The kernel's clocks and its own opinion of itself.

use plimsoll_model::{Action, ClearsBy, Domain, Origin, SkipWhy};

use crate::{
    Weight,
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Verdicted},
};

/// `TIME_ERROR` of adjtimex(2).
const TIME_ERROR: i32 = 5;
/// `STA_UNSYNC` of adjtimex(2).
const STA_UNSYNC: u32 = 0x40;

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "host.clock.source",
        domain: Domain::Host,
        asks: "Is reading the clock cheap?",
        reads: &["/sys/devices/system/clocksource/clocksource0/current_clocksource"],
        compares: "[host] clock_source in the configuration; else the list of sources known to be fast or slow",
        verdicts: "Warns when it is another than configured, or a slow one.",
        why: "A kernel that lost its trust in the TSC reads a device register instead: every timestamp costs a microsecond.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Reboot,
        advice: "look for `clocksource: timekeeping watchdog` in the kernel's log; reboot to get the TSC back; on Xen instances set the source to tsc",
        judge: Judge::Host(source),
    },
    Check {
        id: "host.clock.sync",
        domain: Domain::Host,
        asks: "Is the clock kept in step by a time daemon?",
        reads: &["adjtimex()"],
        compares: "the kernel's own bit for an unsynchronised clock",
        verdicts: "Warns when it is set.",
        why: "A clock that drifts breaks munge and TLS first, then every comparison of logs and latencies between nodes.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "start chrony or another time daemon and see that it reaches its servers (chronyc tracking)",
        judge: Judge::Host(sync),
    },
    Check {
        id: "host.kernel.taint",
        domain: Domain::Host,
        asks: "Has the kernel marked itself as damaged?",
        reads: &["/proc/sys/kernel/tainted"],
        compares: "what each taint bit means for a job; proprietary, out-of-tree and unsigned modules are normal here",
        verdicts: "Fails after an oops, a bad page or a machine check; warns after a soft lockup or a forced module.",
        why: "After an oops part of the kernel is dead with its locks held: the node fails later, and elsewhere.",
        clears_by: ClearsBy::NewBoot,
        action: Action::Reboot,
        advice: "save the kernel's log for whoever looks into it, then reboot",
        judge: Judge::Host(taint),
    },
];

fn source(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let is = draft.want("clock source", &context.now().clock_source, Clone::clone)?;
    if let Some(want) = &context.config.host.clock_source {
        draft.expect(want, context.config.origin());
        return Ok(if is == want { draft.pass(is) } else { draft.warn(is) });
    }
    let known = &context.data.clock_sources;
    draft.expect("a clock source that is read in user space", Origin::Rule { source: known.source.clone() });
    Ok(if known.slow.contains(is) {
        draft.warn(format!("{is}, which is slow to read"))
    } else if known.fast.contains(is) {
        draft.pass(is)
    } else {
        draft.incomparable(format!("{is}, of which nothing is known"), "host.clock_source")
    })
}

fn sync(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let sync = draft.need("clock discipline", &context.now().clock_sync, |sync| {
        format!("state {}, status {:#x}, error at most {} us", sync.state, sync.status, sync.max_error_us)
    })?;
    draft.expect("synchronised", Origin::Rule { source: "adjtimex(2): STA_UNSYNC, TIME_ERROR".to_owned() });
    let unsynchronised = sync.status & STA_UNSYNC != 0 || sync.state == TIME_ERROR;
    Ok(match sync.state {
        _ if unsynchronised => draft.warn("the clock is not synchronised"),
        0..TIME_ERROR => draft.pass(format!("synchronised, off by at most {} us", sync.max_error_us)),
        other => {
            draft.skip(SkipWhy::NotSupported, format!("the kernel gives a state that is not known: {other}"))
        }
    })
}

fn taint(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let bits = *draft.need("taint", &context.now().taint, ToString::to_string)?;
    let known = &context.data.taint;
    draft.expect("no bit that speaks of damage", Origin::Rule { source: known.source.clone() });
    let set: Vec<_> = known.bit.iter().filter(|bit| bits >> bit.bit & 1 == 1).collect();
    let worst = set.iter().map(|bit| bit.verdict).max().unwrap_or(Weight::Pass);
    let told: Vec<_> = set
        .iter()
        .filter(|bit| bit.verdict == worst)
        .map(|bit| format!("{} ({})", bit.what, bit.letter))
        .collect();
    let told = told.join("; ");
    Ok(match worst {
        Weight::Fail => draft.fail(told),
        Weight::Warn => draft.warn(told),
        Weight::Pass if bits == 0 => draft.pass("not tainted"),
        Weight::Pass => draft.pass(format!("harmless: {told}")),
    })
}
