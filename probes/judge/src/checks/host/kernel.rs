//! The kernel's clocks and its own opinion of itself.

use plimsoll_model::{Action, ClearsBy, Domain, Origin, SkipWhy};

use crate::{
    Weight,
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Verdicted},
};

/// `STA_UNSYNC` of adjtimex(2).
const STA_UNSYNC: u32 = 0x40;
/// The kernel's bound on the clock's error grows by 500 us a second while nobody sets it, and stops here
/// (`NTP_PHASE_LIMIT`, include/linux/timex.h).
const NEVER_SYNCHRONISED_US: u128 = 16_000_000;

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
        compares: "the kernel's bound on the clock's error with the limit clock_error_seconds_max. Not with the bit for an \
                   unsynchronised clock: the kernel sets it hours late, and some daemons never clear it",
        verdicts: "Warns when the clock may be off by more.",
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
    let is = draft.want_unless(
        context.config.host.clock_source.is_some(),
        "clock source",
        &context.now().clock_source,
        Clone::clone,
    )?;
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
    let (seconds, origin) = context.limit("clock_error_seconds_max");
    draft.expect(format!("kept in step to within {seconds} s"), origin);
    let error = std::time::Duration::from_micros(sync.max_error_us.try_into().unwrap_or(u64::MAX));
    let is = format!("off by at most {} ms", error.as_millis());
    // A bound of 0 beside the bit is no bound: somewhere the call is answered with zeroes.
    let tells_nothing = sync.max_error_us == 0 && sync.status & STA_UNSYNC != 0;
    Ok(if tells_nothing {
        draft.warn("the clock is not synchronised, and the kernel does not say how far it is off")
    } else if error.as_secs_f64() <= seconds {
        draft.pass(is)
    } else if error.as_micros() >= NEVER_SYNCHRONISED_US {
        draft.warn("the clock is not synchronised, and has not been for hours or ever")
    } else {
        draft.warn(format!("{is}, growing: no time daemon has set it for long"))
    })
}

fn taint(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let bits = *draft.need("taint", &context.now().taint, ToString::to_string)?;
    let known = &context.data.taint;
    draft.expect("no bit that speaks of damage", Origin::Rule { source: known.source.clone() });
    let set: Vec<_> = known.bit.iter().filter(|bit| bits >> bit.bit & 1 == 1).collect();
    let worst = set.iter().map(|bit| bit.verdict).max().unwrap_or(Weight::Pass);
    let named = known.bit.iter().fold(0_u64, |sum, bit| sum | 1 << bit.bit);
    if worst == Weight::Pass && bits & !named != 0 {
        let unknown = bits & !named;
        return Ok(draft
            .skip(SkipWhy::NothingToCompareWith, format!("bits {unknown:#x}, of which nothing is known")));
    }
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
