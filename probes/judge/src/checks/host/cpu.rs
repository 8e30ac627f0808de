//! Processors.

use plimsoll_model::{Action, ClearsBy, Domain, Megahertz, Origin, Percent, SkipWhy};

use crate::{
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Verdicted},
};

pub(super) static CHECKS: [Check; 6] = [
    Check {
        id: "host.cpu.count",
        domain: Domain::Host,
        asks: "Are there as many sockets and cores as there should be?",
        reads: &[
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/cpu/cpu*/topology/{physical_package_id,core_id}",
        ],
        compares: "[host] sockets, cores in the configuration; without them there is nothing to compare with",
        verdicts: "Fails when there are fewer; warns when there are more.",
        why: "A socket or core that firmware took out of use halves a job's data loading and moves its NUMA nodes.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "look for processors taken offline by firmware or by hand; reboot, and repair if it stays",
        judge: Judge::Host(count),
    },
    Check {
        id: "host.cpu.online",
        domain: Domain::Host,
        asks: "Are all processors that the machine has in use?",
        reads: &[
            "/sys/devices/system/cpu/present",
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/cpu/smt/control",
        ],
        compares: "the processors that the kernel says are present",
        verdicts: "Warns when one is present and not online, unless SMT is switched off, which takes the second threads.",
        why: "A processor taken offline after errors, or by hand and forgotten, slows the job that is bound to it.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "write 1 to the processor's `online` file under /sys/devices/system/cpu, or find out who took it offline",
        judge: Judge::Host(online),
    },
    Check {
        id: "host.cpu.smt",
        domain: Domain::Host,
        asks: "Is SMT (hyper-threading) on or off as it should be?",
        reads: &["/sys/devices/system/cpu/smt/control"],
        compares: "[host] smt in the configuration; without it there is nothing to compare with",
        verdicts: "Warns when it differs.",
        why: "MPI jobs laid out for one rank a core run two ranks a core, or leave half of the threads unused.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "set it with /sys/devices/system/cpu/smt/control or in firmware",
        judge: Judge::Host(smt),
    },
    Check {
        id: "host.cpu.governor",
        domain: Domain::Host,
        asks: "Does every processor have the frequency governor that it should have?",
        reads: &[
            "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        ],
        compares: "[host] governor in the configuration; else the other processors of the node",
        verdicts: "Warns when a processor has another; skipped when all agree and nobody says what is right.",
        why: "One processor on `powersave` among others on `performance` makes one rank late at every barrier.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "set the governor on every processor, for example with `cpupower frequency-set -g performance`",
        judge: Judge::Host(governor),
    },
    Check {
        id: "host.cpu.clock",
        domain: Domain::Host,
        asks: "Does a busy processor run as fast as it can?",
        reads: &[
            "a short spin of one processor",
            "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency",
            "/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq",
            "/proc/cpuinfo",
        ],
        compares: "the base frequency of the driver, else its maximum, else the nominal frequency of /proc/cpuinfo, \
                   each with the limit of its name: cpu_base_percent_min, cpu_max_percent_min, cpu_nominal_percent_min",
        verdicts: "Warns when the best of several short bursts stays below the limit.",
        why: "A power brake, a failed fan or a firmware cap holds processors at a fraction of their speed and is seen by no counter.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "look at power capping and temperatures in the BMC's log, and at the governor",
        judge: Judge::Host(clock),
    },
    Check {
        id: "host.cpu.steal",
        domain: Domain::Host,
        asks: "Does the hypervisor leave the processors to this machine?",
        reads: &["/proc/stat"],
        compares: "the limit steal_percent_max",
        verdicts: "Warns when more was stolen between two readings; a few ticks are never enough.",
        why: "A machine whose processors are shared makes every other rank wait, and all its benchmarks lie.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Watch,
        advice: "run again; if it lasts, ask the provider for another host",
        judge: Judge::Host(steal),
    },
];

fn count(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let cpu = &context.now().cpu;
    draft.need("online", &cpu.online, |cpus| format!("{} threads", cpus.len()))?;
    let topology = draft.need("topology", &cpu.topology, |t| {
        format!("{} sockets, {} cores, {} threads", t.sockets, t.cores, t.threads)
    })?;
    let config = &context.config.host;
    let wanted = [("sockets", config.sockets, topology.sockets), ("cores", config.cores, topology.cores)];
    let is = format!(
        "{} with {}, {}",
        plural(topology.sockets, "socket"),
        plural(topology.cores, "core"),
        plural(topology.threads, "thread")
    );
    let known: Vec<_> =
        wanted.iter().filter_map(|(name, want, is)| want.map(|want| (*name, want, *is))).collect();
    if known.is_empty() {
        return Ok(draft.incomparable(is, "host.cores"));
    }
    let want: Vec<_> = known.iter().map(|(name, want, _)| format!("{want} {name}")).collect();
    let want = want.join(", ");
    draft.expect(want.clone(), context.config.origin());
    Ok(if known.iter().any(|(_, want, is)| is < want) {
        draft.fail(is)
    } else if known.iter().any(|(_, want, is)| is > want) {
        draft.warn(is).advise(Action::None, "mend the configuration: the machine has more than it says")
    } else {
        draft.pass(is)
    })
}

fn online(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let cpu = &context.now().cpu;
    let present = draft.need("present", &cpu.present, |cpus| cpus.len().to_string())?;
    let online = draft.need("online", &cpu.online, |cpus| cpus.len().to_string())?;
    let missing: Vec<_> = present.iter().filter(|cpu| !online.contains(cpu)).collect();
    draft.expect(format!("{} processors", present.len()), rule("Linux kernel documentation, cputopology"));
    if missing.is_empty() {
        return Ok(draft.pass(format!("all {} processors are online", online.len())));
    }
    let smt = draft.need("SMT", &cpu.smt, Clone::clone)?;
    if matches!(smt.as_str(), "off" | "forceoff") && online.len() * 2 >= present.len() {
        return Ok(
            draft.pass(format!("{} processors are online; SMT is off, which takes the others", online.len()))
        );
    }
    let named: Vec<_> = missing.iter().take(8).map(ToString::to_string).collect();
    let more = if missing.len() > 8 { ", …" } else { "" };
    Ok(draft.warn(format!(
        "{} of {} processors are offline: {}{more}",
        missing.len(),
        present.len(),
        named.join(", ")
    )))
}

fn smt(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let control =
        draft.want_unless(context.config.host.smt.is_some(), "SMT", &context.now().cpu.smt, Clone::clone)?;
    let is_on = match control.as_str() {
        "on" => true,
        "off" | "forceoff" | "notsupported" => false,
        "notimplemented" => {
            return Ok(draft.skip(SkipWhy::NotSupported, "this kernel cannot tell whether SMT is on"));
        }
        other => {
            let absent = plimsoll_model::Absent::new(
                plimsoll_model::Absence::Malformed,
                format!("unknown state {other:?}"),
            );
            return Ok(draft.absent("SMT", &absent, "/sys/devices/system/cpu/smt/control", false));
        }
    };
    let word = |on: bool| if on { "on" } else { "off" };
    let Some(want) = context.config.host.smt else {
        return Ok(draft.incomparable(format!("SMT is {}", word(is_on)), "host.smt"));
    };
    draft.expect(word(want), context.config.origin());
    Ok(if is_on == want {
        draft.pass(format!("SMT is {}", word(is_on)))
    } else {
        draft.warn(format!("SMT is {}", word(is_on)))
    })
}

fn governor(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let cpu = &context.now().cpu;
    let expected = context.config.host.governor.is_some();
    let governors = draft.want_unless(expected, "governor", &cpu.governors, |all| {
        let each: Vec<_> = all.iter().map(|(name, count)| format!("{name} on {count}")).collect();
        each.join(", ")
    })?;
    let is: Vec<_> =
        governors.iter().map(|(name, count)| format!("{name} on {}", plural(*count, "processor"))).collect();
    let driver = cpu.driver.ok().map_or(String::new(), |driver| format!(" (driver {driver})"));
    let is = format!("{}{driver}", is.join(", "));
    if let Some(want) = context.config.host.governor.map(crate::config::Governor::name) {
        draft.expect(want, context.config.origin());
        let all = governors.keys().all(|name| name == want);
        return Ok(if all { draft.pass(is) } else { draft.warn(is) });
    }
    if governors.len() < 2 {
        return Ok(draft.incomparable(is, "host.governor"));
    }
    let total: u32 = governors.values().sum();
    draft.expect("the same on all processors", Origin::Peers { count: total.saturating_sub(1) });
    Ok(draft.warn(format!("processors differ: {is}")))
}

fn clock(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let cpu = &context.now().cpu;
    let observed = *draft.need("observed", &cpu.observed, ToString::to_string)?;
    let references = [
        (&cpu.base, "base frequency", "cpu_base_percent_min"),
        (&cpu.max, "maximum", "cpu_max_percent_min"),
        (&cpu.nominal, "nominal frequency", "cpu_nominal_percent_min"),
    ];
    for (reading, name, limit) in references {
        let absent = match reading.get() {
            Ok(reference) => {
                draft.saw(name, reference, &reading.source);
                return Ok(compare_clock(draft, observed, *reference, name, context.limit(limit)));
            }
            Err(absent) => absent,
        };
        // A driver that is there and cannot be read is no reason to take a weaker reference.
        if absent.kind != plimsoll_model::Absence::NotPresent {
            return Ok(draft.absent(name, absent, &reading.source, true));
        }
    }
    Ok(draft.skip(
        SkipWhy::NothingToCompareWith,
        format!("{observed} seen; the machine names no frequency to compare with"),
    ))
}

fn compare_clock(
    mut draft: Draft,
    observed: Megahertz,
    reference: Megahertz,
    name: &str,
    (percent, origin): (f64, Origin),
) -> crate::draft::Judged {
    let share = Percent(f64::from(observed.0) * 100.0 / f64::from(reference.0.max(1)));
    draft.expect(format!("at least {percent} % of the {name}, {reference}"), origin);
    let is = format!("{observed} while busy, {share} of the {name}");
    if share.0 >= percent { draft.pass(is) } else { draft.warn(is) }
}

fn steal(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let now = context.now();
    let (share, over) = draft.need("stolen", &context.signals.steal, |(share, over)| {
        format!("{share} of {} ms", over.as_millis())
    })?;
    let (percent_max, origin) = context.limit("steal_percent_max");
    let (ticks_min, _) = context.limit("steal_ticks_min");
    draft.expect(format!("at most {percent_max} %"), origin);
    // 100 ticks a second and processor is what user space sees whatever the kernel's own tick.
    let threads = now.cpu.online.ok().map_or(1.0, |cpus| cpus.len() as f64);
    let ticks = share.0 / 100.0 * over.as_secs_f64() * 100.0 * threads;
    let is = format!("{share} of the processors' time was stolen over {} ms", over.as_millis());
    Ok(if share.0 > percent_max && ticks >= ticks_min { draft.warn(is) } else { draft.pass(is) })
}

fn plural(count: u32, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn rule(source: &str) -> Origin {
    Origin::Rule { source: source.to_owned() }
}
