//! Looking at processes: whose children they are, what they have open, whether they are there.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Waits until `condition` gives something, at most ten seconds.
///
/// # Panics
/// When it never does.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < until, "waited ten seconds for {what}");
        std::thread::yield_now();
    }
}

fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, tail) = text.rsplit_once(')')?;
    Some(tail.split_ascii_whitespace().map(str::to_owned).collect())
}

/// `R`, `S`, `D`, `Z`, …; `None` when it is gone.
#[must_use]
pub fn state(pid: u32) -> Option<char> {
    stat_fields(pid)?.first()?.chars().next()
}

/// Session of a process.
#[must_use]
pub fn session(pid: u32) -> Option<u32> {
    stat_fields(pid)?.get(3)?.parse().ok()
}

/// Children of a process whose first argument begins with `name`.
#[must_use]
pub fn children(parent: u32, name: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| stat_fields(*pid).and_then(|fields| fields.get(1)?.parse().ok()) == Some(parent))
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(name.as_bytes()))
        })
        .collect()
}

/// The first child of that name, once there is one.
#[must_use]
pub fn child(parent: u32, name: &str) -> u32 {
    wait_for(name, || children(parent, name).first().copied())
}

/// What a process has open, by number.
#[must_use]
pub fn open_files(pid: u32) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut open: Vec<_> = entries
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse().ok()?, fs::read_link(entry.path()).ok()?))
        })
        .collect();
    open.sort();
    open
}
