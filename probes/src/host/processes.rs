//! Processes, what limits they have, and which services live in them.

use plimsoll_model::{
    Absence, Absent, BlockedTask, Limit, LimitReadings, ProcessTable, Reading, ServiceReading, ServiceState,
};
use rustix::fs::OFlags;

use crate::{
    Machine,
    parse::{self, ProcessLimits, ProcessStat},
};

const BLOCKED_MAX: usize = 256;
/// The kernel cuts a process's name to this.
const NAME_BYTES_MAX: usize = 15;

/// The process list, or why there is none.
pub(super) type List = Result<Vec<(u32, ProcessStat)>, Absent>;

/// Reads every process's state. A process that goes meanwhile is no fault; one that is there and cannot be read is.
pub(super) fn list(machine: &Machine) -> List {
    let mut processes = Vec::new();
    for name in machine.list("/proc")? {
        let Ok(pid) = name.parse::<u32>() else { continue };
        match machine.text(&format!("/proc/{pid}/stat")) {
            Ok(text) => {
                let stat = parse::process_stat(&text).map_err(|absent| {
                    Absent::new(absent.kind, format!("/proc/{pid}/stat: {}", absent.detail))
                })?;
                processes.push((pid, stat));
            }
            Err(_) if !machine.has_directory(&format!("/proc/{pid}")) => {}
            Err(absent) => {
                return Err(Absent::new(Absence::Unreadable, format!("/proc/{pid}/stat: {}", absent.detail)));
            }
        }
    }
    if processes.iter().any(|(pid, _)| *pid == 1) {
        Ok(processes)
    } else {
        // With hidepid a user sees only his own processes and would take the node for a quiet one.
        Err(Absent::new(Absence::PermissionDenied, "process 1 is hidden, so others are too (hidepid)"))
    }
}

pub(super) fn table(machine: &Machine, list: &List) -> Reading<ProcessTable> {
    let result = list.as_ref().map_err(Clone::clone).map(|list| {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        ProcessTable {
            total: count(list.len()),
            zombies: count(list.iter().filter(|(_, stat)| stat.state == 'Z').count()),
            blocked: list
                .iter()
                .filter(|(_, stat)| stat.state == 'D')
                .take(BLOCKED_MAX)
                .map(|(pid, stat)| BlockedTask {
                    pid: *pid,
                    start_ticks: stat.start_ticks,
                    name: stat.name.clone(),
                    cpu_ticks: stat.cpu_ticks,
                })
                .collect(),
        }
    });
    machine.reading("/proc/*/stat", result)
}

/// The limits of slurmd, from which jobs inherit, or of this process where no slurmd runs.
pub(super) fn limits(machine: &Machine, list: &List) -> LimitReadings {
    let slurmd = list.iter().flatten().find(|(_, stat)| stat.name == "slurmd" && is_alive(stat));
    let (whose, path) = match slurmd {
        Some((pid, _)) => (format!("slurmd (pid {pid})"), format!("/proc/{pid}/limits")),
        None => ("this process".to_owned(), "/proc/self/limits".to_owned()),
    };
    let limits = machine.read(&path, parse::limits);
    let part = |field: fn(&ProcessLimits) -> Limit| limits.and_then(|limits| Ok(field(limits)));
    LimitReadings { whose, memlock: part(|l| l.memlock), open_files: part(|l| l.open_files) }
}

const fn is_alive(stat: &ProcessStat) -> bool {
    !matches!(stat.state, 'Z' | 'X' | 'x')
}

pub(super) fn services(machine: &Machine, list: &List, names: &[String]) -> Vec<ServiceReading> {
    names
        .iter()
        .map(|name| ServiceReading { name: name.clone(), state: service(machine, list, name) })
        .collect()
}

/// Asks systemd's control groups first, which no job can enter; else looks for a process of that name.
fn service(machine: &Machine, list: &List, name: &str) -> Reading<ServiceState> {
    let list = match list {
        Ok(list) => list,
        Err(absent) => return machine.reading("/proc/*/stat", Err(absent.clone())),
    };
    let state = |alive: usize| match u32::try_from(alive).unwrap_or(u32::MAX) {
        0 => ServiceState::Dead,
        alive => ServiceState::Alive(alive),
    };
    let unit = if name.ends_with(".service") { name.to_owned() } else { format!("{name}.service") };
    for hierarchy in ["", "unified/", "systemd/"] {
        let path = format!("/sys/fs/cgroup/{hierarchy}system.slice/{unit}/cgroup.procs");
        if !machine.has_directory(path.trim_end_matches("/cgroup.procs")) {
            continue;
        }
        let result = machine.text(&path).map_err(|absent| {
            let kind = if absent.kind == Absence::NotPresent { Absence::Unreadable } else { absent.kind };
            Absent::new(kind, absent.detail)
        });
        let result = result.and_then(|text| {
            let mut alive = 0;
            for line in text.lines() {
                let pid: u32 = parse::number(Some(line), "process id")?;
                alive += usize::from(list.iter().any(|(p, stat)| *p == pid && is_alive(stat)));
            }
            Ok(state(alive))
        });
        return machine.reading(path, result);
    }
    let process = name.strip_suffix(".service").unwrap_or(name);
    let process = parse::clip(process, NAME_BYTES_MAX);
    let alive = list
        .iter()
        .filter(|(pid, stat)| stat.name == process && is_alive(stat) && belongs_to_system(machine, *pid))
        .count();
    machine.reading("/proc/*/stat", Ok(state(alive)))
}

/// Any user may call a process of his `slurmd`; a service runs as root or another system user.
fn belongs_to_system(machine: &Machine, pid: u32) -> bool {
    const FIRST_USER: u32 = 1000;
    if !machine.is_live() {
        return true;
    }
    let directory = machine.open(format!("/proc/{pid}").as_bytes(), OFlags::PATH | OFlags::DIRECTORY);
    directory.ok().and_then(|fd| rustix::fs::fstat(fd).ok()).is_some_and(|stat| stat.st_uid < FIRST_USER)
}
