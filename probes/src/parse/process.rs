//! Processes: state and limits.

use plimsoll_model::{Absent, Limit};

use super::{malformed, number};

/// What we use of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its name, at most 15 bytes of whatever it likes.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, ….
    pub state: char,
    /// Processor time used, in ticks.
    pub cpu_ticks: u64,
    /// When it was started, in ticks after boot.
    pub start_ticks: u64,
}

/// `/proc/PID/stat`. The name is in parentheses and may hold any of them itself.
///
/// # Errors
/// When it is of another form.
pub fn process_stat(text: &str) -> Result<ProcessStat, Absent> {
    let (head, tail) = text.rsplit_once(')').ok_or_else(|| malformed("no name"))?;
    let (_, name) = head.split_once('(').ok_or_else(|| malformed("no name"))?;
    let mut fields = tail.split_ascii_whitespace();
    let state = fields.next().and_then(|field| field.chars().next()).ok_or_else(|| malformed("no state"))?;
    // Counting from 1 as proc(5) does, the state is field 3; utime 14, stime 15, starttime 22.
    let mut fields = fields.skip(10);
    let user: u64 = number(fields.next(), "utime")?;
    let system: u64 = number(fields.next(), "stime")?;
    let start_ticks = number(fields.nth(6), "starttime")?;
    Ok(ProcessStat { name: name.to_owned(), state, cpu_ticks: user.saturating_add(system), start_ticks })
}

/// What we use of `/proc/PID/limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Soft limit of locked memory, in bytes.
    pub memlock: Limit,
    /// Soft limit of open files.
    pub open_files: Limit,
}

/// `/proc/PID/limits`.
///
/// # Errors
/// When a line that we need is missing or of another form.
pub fn limits(text: &str) -> Result<ProcessLimits, Absent> {
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_ascii_whitespace().next());
        match word {
            Some("unlimited") => Ok(Limit::Unlimited),
            other => number(other, name).map(Limit::At),
        }
    };
    Ok(ProcessLimits { memlock: soft("Max locked memory")?, open_files: soft("Max open files")? })
}
/// The user that a process runs as: the first number of `Uid:` in `/proc/PID/status`.
#[must_use]
pub fn user_id(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().next()?.parse().ok()
}

/// The Slurm job that a process is part of, by its control group: `…/job_4711/step_0/…`.
#[must_use]
pub fn slurm_job(cgroup: &str) -> Option<String> {
    let parts = cgroup.lines().flat_map(|line| line.split('/'));
    let mut numbers = parts.filter_map(|part| part.strip_prefix("job_"));
    numbers
        .find(|id| !id.is_empty() && id.len() <= 20 && id.bytes().all(|b| b.is_ascii_digit()))
        .map(str::to_owned)
}
