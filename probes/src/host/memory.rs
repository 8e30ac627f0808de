//! Memory.

use plimsoll_model::{
    Absence, Absent, Bytes, EdacController, HugepagePool, MemoryReadings, NumaNode, Reading,
};

use crate::{Machine, parse};

const NODES: &str = "/sys/devices/system/node";
const POOLS: &str = "/sys/kernel/mm/hugepages";
/// Far more than any machine has.
const CONTROLLERS_MAX: usize = 1024;
const EDAC: &str = "/sys/devices/system/edac/mc";

pub(super) fn collect(machine: &Machine) -> MemoryReadings {
    let info = machine.read("/proc/meminfo", parse::meminfo);
    let default_page = info.ok().and_then(|info| info.hugepage).unwrap_or(Bytes(2 << 20));
    MemoryReadings {
        info,
        numa: machine.reading(format!("{NODES}/node*/{{meminfo,cpulist}}"), numa(machine)),
        hugepages: hugepages(machine, default_page),
        thp: machine.read("/sys/kernel/mm/transparent_hugepage/enabled", parse::selected_word),
        swap: machine.read("/proc/swaps", parse::swaps),
        buddy: machine.read("/proc/buddyinfo", parse::buddyinfo),
        edac: machine.reading(format!("{EDAC}/mc*"), edac(machine)),
    }
}

/// The entries of a directory that are `prefix` and a number, with that number.
fn numbered(machine: &Machine, path: &str, prefix: &str) -> Result<Vec<(String, u32)>, Absent> {
    let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
    Ok(machine.list(path)?.into_iter().filter_map(|name| number(&name).map(|n| (name, n))).collect())
}

fn numa(machine: &Machine) -> Result<Vec<NumaNode>, Absent> {
    let mut nodes = Vec::new();
    for (name, id) in numbered(machine, NODES, "node")? {
        let part = |file: &str| {
            let text = machine.text(&format!("{NODES}/{name}/{file}"));
            text.map_err(|absent| lost(absent, &format!("{name}/{file}")))
        };
        let cpus = parse::cpu_list(&part("cpulist")?)?.len();
        let total = parse::node_total(&part("meminfo")?)?;
        nodes.push(NumaNode { id, total, cpus: u32::try_from(cpus).unwrap_or(u32::MAX) });
    }
    if nodes.is_empty() { Err(parse::malformed("no NUMA node")) } else { Ok(nodes) }
}

/// The directory is there, so a file that it lacks is a fault and not a property of the machine.
fn lost(absent: Absent, file: &str) -> Absent {
    let kind = if absent.kind == Absence::NotPresent { Absence::Unreadable } else { absent.kind };
    Absent::new(kind, format!("{file}: {}", absent.detail))
}

fn hugepages(machine: &Machine, default_page: Bytes) -> Vec<HugepagePool> {
    let names = machine.list(POOLS).unwrap_or_default();
    let mut pages: Vec<Bytes> = names.iter().filter_map(|name| parse::hugepage_directory(name)).collect();
    // The two sizes that configurations ask for are always spoken of, so that a pool that is gone is seen.
    for size in [Bytes(2 << 20), Bytes(1 << 30)] {
        if !pages.contains(&size) {
            pages.push(size);
        }
    }
    pages.sort_unstable();
    pages
        .into_iter()
        .map(|page| {
            let pool = format!("{POOLS}/hugepages-{}kB", page.0 / Bytes::KIB);
            HugepagePool {
                page,
                asked: machine.read("/proc/cmdline", |line| parse::hugepages_asked(line, page, default_page)),
                total: machine.read(&format!("{pool}/nr_hugepages"), parse::one_number),
                free: machine.read(&format!("{pool}/free_hugepages"), parse::one_number),
            }
        })
        .collect()
}

fn edac(machine: &Machine) -> Result<Vec<EdacController>, Absent> {
    let controllers = numbered(machine, EDAC, "mc")?;
    if controllers.len() > CONTROLLERS_MAX {
        return Err(Absent::new(
            Absence::TooLarge,
            format!("more than {CONTROLLERS_MAX} memory controllers"),
        ));
    }
    let read = |path: String| -> Reading<u64> {
        let result =
            machine.text(&path).map_err(|absent| lost(absent, &path)).and_then(|t| parse::one_number(&t));
        machine.reading(path, result)
    };
    Ok(controllers
        .into_iter()
        .map(|(name, _)| EdacController {
            uncorrected: read(format!("{EDAC}/{name}/ue_count")),
            corrected: read(format!("{EDAC}/{name}/ce_count")),
            name,
        })
        .collect())
}
