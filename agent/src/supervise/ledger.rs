//! Children that could not be ended, written down so that no further one is started into the same hang.
//!
//! A process in uninterruptible sleep cannot be killed. Each check of a dead mount would leave one more behind; so its
//! pid, start time and boot id are kept in a file under a lock in `/run`, until it is gone.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use plimsoll_probes::parse;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

const ENTRIES_MAX: usize = 256;
const BYTES_MAX: u64 = 4 << 20;
/// Others hold the lock for microseconds; longer means that something is wrong, and a check must go on.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// A child that could not be ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stuck {
    subject: String,
    /// Its process id.
    pub(crate) pid: u32,
    start_ticks: u64,
    boot_id: String,
}

impl Stuck {
    /// How long ago it was started.
    pub(crate) fn age(&self) -> Option<Duration> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let began = self.start_ticks / rustix::param::clock_ticks_per_second().max(1);
        u64::try_from(now.tv_sec).ok()?.checked_sub(began).map(Duration::from_secs)
    }
}

/// The file that they are written down in.
#[derive(Debug)]
pub(crate) struct Ledger {
    directory: PathBuf,
    boot_id: String,
    known: Vec<Stuck>,
}

impl Ledger {
    /// Opens the ledger of this user, or gives none where no private directory can be had.
    pub(crate) fn open() -> Option<Self> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let mut ledger = Self { directory: private_directory()?, boot_id, known: Vec::new() };
        // Once and without the lock, which nobody may hold us up with: the file is only ever replaced whole.
        ledger.known = ledger.entries();
        Some(ledger)
    }

    /// The child of an earlier run that still hangs with this subject, if there is one.
    pub(crate) fn still_stuck(&self, subject: &str) -> Option<Stuck> {
        self.known.iter().find(|entry| entry.subject == subject).cloned()
    }

    /// Writes children down: subjects and process ids.
    pub(crate) fn record(&self, stuck: &[(String, u32)]) {
        if stuck.is_empty() {
            return;
        }
        let Some(_lock) = self.lock() else { return };
        let mut entries = self.entries();
        entries.extend(stuck.iter().filter_map(|(subject, pid)| {
            let (subject, boot_id) = (subject.clone(), self.boot_id.clone());
            Some(Stuck { subject, pid: *pid, start_ticks: stat(*pid)?.start_ticks, boot_id })
        }));
        let excess = entries.len().saturating_sub(ENTRIES_MAX);
        entries.drain(..excess);
        // Without it one more child may be started into the hang next time; nothing else depends on it.
        let _ = self.write(&entries);
    }

    fn file(&self) -> PathBuf {
        self.directory.join("stuck.json")
    }

    fn lock(&self) -> Option<File> {
        let file =
            open_private(&self.directory.join("lock"), OpenOptions::new().write(true).create(true)).ok()?;
        let until = Instant::now() + LOCK_WAIT;
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(file)
    }

    /// The entries whose process is still there, by its start time and this boot.
    fn entries(&self) -> Vec<Stuck> {
        let mut text = String::new();
        let read = open_private(&self.file(), OpenOptions::new().read(true))
            .and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        let all: Vec<Stuck> = read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default();
        let is_there = |entry: &Stuck| {
            // A zombie has come to its end; it only waits for whoever inherited it.
            let lives = |stat: &parse::ProcessStat| {
                stat.start_ticks == entry.start_ticks && !matches!(stat.state, 'Z' | 'X')
            };
            entry.boot_id == self.boot_id && stat(entry.pid).is_some_and(|stat| lives(&stat))
        };
        all.into_iter().filter(is_there).collect()
    }

    fn write(&self, entries: &[Stuck]) -> std::io::Result<()> {
        let new = self.directory.join("stuck.json.new");
        let mut file = open_private(&new, OpenOptions::new().write(true).create(true).truncate(true))?;
        file.write_all(serde_json::to_string(entries)?.as_bytes())?;
        fs::rename(new, self.file())
    }
}

fn open_private(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK).bits();
    options.mode(0o600).custom_flags(flags.cast_signed()).open(path)
}

/// `/run/plimsoll` for root; for others a directory that only they can write to.
fn private_directory() -> Option<PathBuf> {
    let uid = rustix::process::geteuid();
    let mut places = Vec::new();
    if uid.is_root() {
        places.push(PathBuf::from("/run/plimsoll"));
    } else {
        places.extend(std::env::var_os("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("plimsoll")));
        places.push(PathBuf::from(format!("/tmp/plimsoll-{}", uid.as_raw())));
    }
    places.into_iter().find(|place| {
        let made = fs::DirBuilder::new().mode(0o700).create(place);
        let usable =
            made.is_ok() || made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists);
        // Somebody else may have put a link or a directory of his own there.
        usable
            && fs::symlink_metadata(place)
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == uid.as_raw() && meta.mode() & 0o022 == 0)
    })
}

fn stat(pid: u32) -> Option<parse::ProcessStat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse::process_stat(&String::from_utf8_lossy(&text)).ok()
}

/// `R`, `S`, `D`, `T`, … of a process.
pub(super) fn process_state(pid: u32) -> Option<char> {
    stat(pid).map(|stat| stat.state)
}
