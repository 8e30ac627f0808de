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
pub(crate) type List = Result<Vec<(u32, ProcessStat)>, Absent>;

/// Reads every process's state. A process that goes meanwhile is no fault; one that is there and cannot be read is.
pub(crate) fn list(machine: &Machine) -> List {
    let mut processes = Vec::new();
    for name in machine.list("/proc")? {
        let Ok(pid) = name.parse::<u32>() else { continue };
        match machine.lossy_text(&format!("/proc/{pid}/stat")) {
            Ok(text) => {
                let stat = parse::process_stat(&text).map_err(|absent| {
                    Absent::new(absent.kind, format!("/proc/{pid}/stat: {}", absent.detail))
                })?;
                processes.push((pid, stat));
            }
            Err(_) if !machine.has_directory(&format!("/proc/{pid}")) => {}
            Err(absent) => {
                let kind = match absent.kind {
                    Absence::PermissionDenied => Absence::PermissionDenied,
                    _ => Absence::Unreadable,
                };
                return Err(Absent::new(kind, format!("/proc/{pid}/stat: {}", absent.detail)));
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

/// Asks systemd's control groups first; where the service has none, looks for a process of its name.
pub(crate) fn service(machine: &Machine, list: &List, named: &str) -> Reading<ServiceState> {
    let list = match list {
        Ok(list) => list,
        Err(absent) => return machine.reading("/proc/*/stat", Err(absent.clone())),
    };
    let (unit, process) = named.split_once('=').unwrap_or((named, named));
    let unit = unit.strip_suffix(".service").unwrap_or(unit);
    // The kernel cuts names, and a template's instance (`agent@1`) runs the template's program.
    let process = process.strip_suffix(".service").unwrap_or(process).split('@').next().unwrap_or_default();
    let process = parse::clip(process, NAME_BYTES_MAX);
    if let Some(directory) = unit_directory(machine, unit) {
        let source = format!("{directory}/cgroup.procs");
        return machine.reading(source, of_unit(machine, list, &directory, process));
    }
    let count = list
        .iter()
        .filter(|(pid, stat)| stat.name == process && is_alive(stat) && belongs_to_system(machine, *pid))
        .count();
    let state = match u32::try_from(count).unwrap_or(u32::MAX) {
        0 => ServiceState::Dead,
        count => ServiceState::Alive(count),
    };
    machine.reading("/proc/*/stat", Ok(state))
}

/// Where systemd keeps the processes of a unit, in the unified hierarchy or its own old one.
fn unit_directory(machine: &Machine, unit: &str) -> Option<String> {
    let slice =
        unit.split_once('@').map(|(template, _)| format!("system-{}.slice/", template.replace('-', "\\x2d")));
    ["", "unified/", "systemd/"]
        .into_iter()
        .flat_map(|hierarchy| {
            let base = format!("/sys/fs/cgroup/{hierarchy}system.slice");
            let plain = format!("{base}/{unit}.service");
            let of_template = slice.iter().map(move |slice| format!("{base}/{slice}{unit}.service"));
            [plain].into_iter().chain(of_template.collect::<Vec<_>>())
        })
        .find(|directory| machine.has_directory(directory))
}

/// The state of a unit by its control group. What a dead daemon has left there (the steps of a dead slurmd) is alive
/// and is not the daemon, so one process must have the right name.
fn of_unit(
    machine: &Machine,
    list: &[(u32, ProcessStat)],
    directory: &str,
    process: &str,
) -> Result<ServiceState, Absent> {
    let (mut named, mut others) = (0, 0);
    for pid in processes_below(machine, directory)? {
        match list.iter().find(|(known, stat)| *known == pid && is_alive(stat)) {
            Some((_, stat)) if stat.name == process => named += 1,
            Some(_) => others += 1,
            None => {}
        }
    }
    Ok(match (named, others) {
        (0, 0) => ServiceState::Dead,
        (0, others) => ServiceState::Unrecognised(others),
        (named, _) => ServiceState::Alive(named),
    })
}

/// Processes of a control group and of those below it, where containers and delegated units keep theirs.
fn processes_below(machine: &Machine, directory: &str) -> Result<Vec<u32>, Absent> {
    const DIRECTORIES_MAX: usize = 256;
    let mut pids = Vec::new();
    let mut queue = vec![directory.to_owned()];
    let mut seen = 0;
    while let Some(directory) = queue.pop() {
        seen += 1;
        if seen > DIRECTORIES_MAX {
            return Err(Absent::new(
                Absence::TooLarge,
                format!("more than {DIRECTORIES_MAX} control groups"),
            ));
        }
        let text = machine.text(&format!("{directory}/cgroup.procs")).map_err(|absent| {
            let kind = if absent.kind == Absence::NotPresent { Absence::Unreadable } else { absent.kind };
            Absent::new(kind, absent.detail)
        })?;
        for line in text.lines() {
            pids.push(parse::number(Some(line), "process id")?);
        }
        let below = machine.list(&directory)?.into_iter().map(|name| format!("{directory}/{name}"));
        queue.extend(below.filter(|path| machine.has_directory(path)));
    }
    Ok(pids)
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
