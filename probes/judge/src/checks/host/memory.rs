//! Memory: size, placement, pages.

use plimsoll_model::{
    Absence, Action, Bytes, ClearsBy, Device, Domain, HugepagePool, NumaNode, Origin, Percent, SkipWhy,
};

use crate::{
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Judged, Verdicted},
};

/// Blocks of this size and more can become huge pages.
const LARGE: u64 = 2 << 20;

pub(super) static CHECKS: [Check; 6] = [
    Check {
        id: "host.memory.size",
        domain: Domain::Host,
        asks: "Is all of the memory there?",
        reads: &["/proc/meminfo"],
        compares: "[host] memory in the configuration, less memory_below_percent_max; without it there is nothing to compare with",
        verdicts: "Fails when there is less.",
        why: "A DIMM that firmware mapped out lowers both capacity and bandwidth, and jobs sized to the node die of memory.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "look for a DIMM that was mapped out in the BMC's log, then have it replaced",
        judge: Judge::Host(size),
    },
    Check {
        id: "host.memory.numa",
        domain: Domain::Host,
        asks: "Are there as many NUMA nodes as there should be, and has each as much memory as the others?",
        reads: &["/sys/devices/system/node/node*/{meminfo,cpulist}"],
        compares: "[host] numa_nodes in the configuration for the count; the other NUMA nodes for the memory",
        verdicts: "Warns when a node with processors has less memory than the largest by more than \
                   numa_memory_percent_apart_max, or the count is another.",
        why: "A DIMM lost on one socket leaves the total plausible and one socket short of bandwidth.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "look for a DIMM that was mapped out on that socket, and at the NUMA settings of the firmware",
        judge: Judge::Host(numa),
    },
    Check {
        id: "host.memory.hugepages",
        domain: Domain::Host,
        asks: "Did the kernel give as many huge pages as it was asked for, and are they free?",
        reads: &["/proc/cmdline", "/sys/kernel/mm/hugepages/hugepages-*kB/{nr_hugepages,free_hugepages}"],
        compares: "[host] hugepages_2mib, hugepages_1gib and their _free_min in the configuration; else the kernel's command line",
        verdicts: "Warns when there are fewer, or fewer free. One finding a page size.",
        why: "EFA's provider and many MPI libraries take huge pages and fail, or fall back silently, when there are none.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "look for a process that kept its pages; ask for pages at boot, before memory is fragmented",
        judge: Judge::HostDevices(hugepages),
    },
    Check {
        id: "host.memory.thp",
        domain: Domain::Host,
        asks: "Are transparent huge pages set as they should be?",
        reads: &["/sys/kernel/mm/transparent_hugepage/enabled"],
        compares: "[host] transparent_hugepages in the configuration; without it there is nothing to compare with",
        verdicts: "Warns when it differs.",
        why: "Nodes of one cluster that differ here differ in speed and in their tails.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "write the setting to /sys/kernel/mm/transparent_hugepage/enabled, and to the kernel's command line",
        judge: Judge::Host(thp),
    },
    Check {
        id: "host.memory.swap",
        domain: Domain::Host,
        asks: "Is there swap, and should there be?",
        reads: &["/proc/swaps"],
        compares: "[host] swap in the configuration; without it there is nothing to compare with",
        verdicts: "Warns when it differs.",
        why: "A rank that swaps makes every other rank wait; a job that would have died in a second drags on for hours.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "swapoff -a, and take it out of /etc/fstab; or mend the configuration",
        judge: Judge::Host(swap),
    },
    Check {
        id: "host.memory.fragmentation",
        domain: Domain::Host,
        asks: "Does free memory lie in blocks large enough for huge pages?",
        reads: &["/proc/buddyinfo"],
        compares: "[host] free_in_large_blocks_percent_min in the configuration; without it there is nothing to compare with",
        verdicts: "Warns when a NUMA node has a smaller share of its free memory in blocks of 2 MiB or more.",
        why: "On a fragmented node huge pages cannot be had and GPU drivers stall while the kernel compacts memory.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Watch,
        advice: "write 1 to /proc/sys/vm/compact_memory between jobs; reboot if it stays",
        judge: Judge::HostDevices(fragmentation),
    },
];

fn size(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let info = draft.need("MemTotal", &context.now().memory.info, |info| info.total.to_string())?;
    let Some(want) = context.config.host.memory else {
        return Ok(draft.incomparable(info.total.to_string(), "host.memory"));
    };
    let (below, _) = context.limit("memory_below_percent_max");
    draft.expect(format!("{want}, at most {below} % less"), context.config.origin());
    let share = info.total.percent_of(want).unwrap_or_default();
    let is = format!("{}, {share} of {want}", info.total);
    Ok(if share.0 >= 100.0 - below { draft.pass(is) } else { draft.fail(is) })
}

fn numa(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let nodes = draft.need("NUMA nodes", &context.now().memory.numa, |nodes| {
        let each: Vec<_> =
            nodes.iter().map(|n| format!("node{}: {}, {} CPUs", n.id, n.total, n.cpus)).collect();
        each.join("; ")
    })?;
    // Nodes without processors hold memory of another kind (HBM, CXL, a GPU's own).
    let with_cpus: Vec<&NumaNode> = nodes.iter().filter(|node| node.cpus > 0).collect();
    if let Some(want) = context.config.host.numa_nodes.filter(|want| *want as usize != with_cpus.len()) {
        draft.expect(format!("{want} NUMA nodes"), context.config.origin());
        let advice = "look at the NUMA settings of the firmware, or mend the configuration";
        return Ok(draft.warn(format!("{} NUMA nodes", with_cpus.len())).advise(Action::Diagnose, advice));
    }
    let largest = with_cpus.iter().map(|node| node.total).max().unwrap_or_default();
    let (apart, origin) = context.limit("numa_memory_percent_apart_max");
    let peers = u32::try_from(with_cpus.len().saturating_sub(1)).unwrap_or(u32::MAX);
    if peers == 0 {
        return Ok(match context.config.host.numa_nodes {
            Some(want) => {
                draft.expect(format!("{want} NUMA nodes"), context.config.origin());
                draft.pass("one NUMA node, as configured")
            }
            None => draft.incomparable("one NUMA node, so no other to compare with", "host.numa_nodes"),
        });
    }
    let origin =
        if matches!(origin, Origin::Config { .. }) { origin } else { Origin::Peers { count: peers } };
    draft.expect(format!("within {apart} % of the largest, {largest}"), origin);
    let short = with_cpus
        .iter()
        .map(|node| (node, 100.0 - node.total.percent_of(largest).unwrap_or_default().0))
        .find(|(_, less)| *less > apart);
    Ok(match short {
        Some((node, less)) => {
            draft.warn(format!("node{} has {}, {} less than the largest", node.id, node.total, Percent(less)))
        }
        None => draft.pass(format!("{} NUMA nodes of up to {largest}", with_cpus.len())),
    })
}

fn hugepages(context: &HostContext<'_>) -> Vec<Judged> {
    let pools = &context.now().memory.hugepages;
    pools.iter().map(|pool| hugepage_pool(context, pool).unwrap_or_else(|early| *early)).collect()
}

fn hugepage_pool(context: &HostContext<'_>, pool: &HugepagePool) -> Verdicted {
    let config = &context.config.host;
    let (want, free_min, key) = match pool.page {
        Bytes(0x20_0000) => (config.hugepages_2mib, config.hugepages_2mib_free_min, "host.hugepages_2mib"),
        Bytes(0x4000_0000) => (config.hugepages_1gib, config.hugepages_1gib_free_min, "host.hugepages_1gib"),
        _ => (None, None, "host.hugepages_2mib"),
    };
    let mut draft = Draft::new(Device(format!("pages of {}", pool.page)));
    // A pool that is not there has no page, which is no answer only where nobody asked for any.
    let is_gone = matches!(pool.total.get(), Err(absent) if absent.kind == Absence::NotPresent);
    let (total, free) = if is_gone && want.or(free_min).is_some() {
        draft.saw("in the pool", "there is no such pool", &pool.total.source);
        (0, 0)
    } else {
        let total = *draft.want("in the pool", &pool.total, ToString::to_string)?;
        (total, *draft.need("free", &pool.free, ToString::to_string)?)
    };
    let is = format!("{total} pages, {free} free");
    let (want, origin) = match want {
        Some(want) => (want, context.config.origin()),
        None => {
            let asked =
                draft.need("asked for", &pool.asked, |n| n.map_or("none".to_owned(), |n| n.to_string()))?;
            match asked {
                Some(asked) => (*asked, Origin::Config { file: "/proc/cmdline".to_owned() }),
                None if free_min.is_some() => (0, context.config.origin()),
                None => return Ok(draft.incomparable(is, key)),
            }
        }
    };
    let free_min = free_min.unwrap_or(0);
    draft.expect(format!("at least {want} pages, {free_min} free"), origin);
    Ok(if total < want || free < free_min { draft.warn(is) } else { draft.pass(is) })
}

fn thp(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let is = draft.want_unless(
        context.config.host.transparent_hugepages.is_some(),
        "setting",
        &context.now().memory.thp,
        Clone::clone,
    )?;
    let Some(want) = context.config.host.transparent_hugepages.map(|want| want.name()) else {
        return Ok(draft.incomparable(is, "host.transparent_hugepages"));
    };
    draft.expect(want, context.config.origin());
    Ok(if is == want { draft.pass(is) } else { draft.warn(is) })
}

fn swap(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let areas = draft.want_unless(
        context.config.host.swap.is_some(),
        "areas",
        &context.now().memory.swap,
        |areas| areas.join(", "),
    )?;
    let is = if areas.is_empty() { "no swap".to_owned() } else { format!("swap on {}", areas.join(", ")) };
    let Some(want) = context.config.host.swap else {
        return Ok(draft.incomparable(is, "host.swap"));
    };
    draft.expect(if want { "swap" } else { "no swap" }, context.config.origin());
    Ok(match (areas.is_empty(), want) {
        (true, false) | (false, true) => draft.pass(is),
        (false, false) => draft.warn(is),
        (true, true) => {
            draft.warn(is).advise(Action::Diagnose, "swapon -a, and see that /etc/fstab names the swap area")
        }
    })
}

fn fragmentation(context: &HostContext<'_>) -> Vec<Judged> {
    let mut draft = Draft::node();
    let expected = context.config.host.free_in_large_blocks_percent_min.is_some();
    let zones = match draft
        .want_unless(expected, "zones", &context.now().memory.buddy, |zones| zones.len().to_string())
    {
        Ok(zones) => zones,
        Err(early) => return vec![*early],
    };
    // Only zones that ordinary memory comes from.
    let normal: Vec<_> =
        zones.iter().filter(|zone| matches!(zone.zone.as_str(), "Normal" | "Movable")).collect();
    if normal.is_empty() {
        return vec![draft.skip(SkipWhy::NotPresent, "no Normal zone")];
    }
    normal
        .into_iter()
        .map(|zone| {
            let mut draft = draft.clone_for(Device(format!("node{}/{}", zone.node, zone.zone)));
            let pages = |order: usize, count: u64| count.saturating_mul(1_u64 << order.min(32));
            let page = context.now().memory.info.ok().map_or(4096, |info| info.page().0);
            let large_order = (LARGE / page).max(1).ilog2() as usize;
            let sum = |from: usize| {
                zone.free
                    .iter()
                    .enumerate()
                    .skip(from)
                    .fold(0_u64, |sum, (order, n)| sum.saturating_add(pages(order, *n)))
            };
            let (large, all) = (sum(large_order), sum(0));
            let share = Percent::ratio(large, all).unwrap_or_default();
            let is = format!(
                "{share} of {} free lies in blocks of 2 MiB or more",
                Bytes(all.saturating_mul(page))
            );
            draft.saw("free pages by order", format!("{:?}", zone.free), "/proc/buddyinfo");
            let Some(min) = context.config.host.free_in_large_blocks_percent_min else {
                return draft.incomparable(is, "host.free_in_large_blocks_percent_min");
            };
            draft.expect(format!("at least {min} %"), context.config.origin());
            if share.0 >= min { draft.pass(is) } else { draft.warn(is) }
        })
        .collect()
}
