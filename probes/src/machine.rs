//! The one door to the machine: bounded, never blocking on a file of the wrong kind, and never leaving a tree that
//! stands in for the machine.

use std::{
    cell::Cell,
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use jiff::Timestamp;
use plimsoll_model::{Absence, Absent, BootId, Clock, Reading, SinceBoot};
use rustix::{
    fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat},
    io::Errno,
    time::{ClockId, clock_gettime},
};

use crate::parse;

/// Largest file that is read whole. `/proc/interrupts` of a machine with 448 threads is 3 MiB.
const FILE_BYTES_MAX: usize = 8 << 20;
/// Most entries that are read from one directory.
const DIRECTORY_ENTRIES_MAX: usize = 131_072;

/// This machine, or a tree of files that stands in for it.
pub struct Machine {
    tree: Option<Tree>,
    made: Instant,
    sample_began: Cell<Instant>,
    on_step: Box<dyn Fn(&str)>,
}

struct Tree {
    root: OwnedFd,
    path: PathBuf,
}

/// A tree cannot stand in for the machine.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It cannot be opened.
    #[error("cannot open {} as a tree to stand in for the machine: {error}", path.display())]
    Open {
        /// The tree.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The kernel cannot keep a path inside a tree.
    #[error("--sysroot needs Linux 5.6 or newer (openat2), to keep symbolic links inside the tree")]
    Kernel,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn live() -> Self {
        let now = Instant::now();
        Self { tree: None, made: now, sample_began: Cell::new(now), on_step: Box::new(|_| {}) }
    }

    /// Has `on_step` told what is about to be read, so that whoever waits can name the culprit of a hang.
    #[must_use]
    pub fn telling(self, on_step: impl Fn(&str) + 'static) -> Self {
        Self { on_step: Box::new(on_step), ..self }
    }

    /// Tells what is about to be read.
    pub fn step(&self, what: &str) {
        (self.on_step)(what);
    }

    /// A tree that stands in for the machine. No symbolic link in it leads out of it.
    ///
    /// # Errors
    /// When `path` is no readable directory, or the kernel is too old.
    pub fn tree(path: &Path) -> Result<Self, TreeError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty())
            .map_err(|error| TreeError::Open { path: path.to_owned(), error: error.into() })?;
        match openat2(&root, "/", flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            Err(Errno::NOSYS) => return Err(TreeError::Kernel),
            Err(error) => return Err(TreeError::Open { path: path.to_owned(), error: error.into() }),
            Ok(_) => {}
        }
        Ok(Self { tree: Some(Tree { root, path: path.to_owned() }), ..Self::live() })
    }

    /// The tree's path, when a tree stands in.
    #[must_use]
    pub fn sysroot(&self) -> Option<&Path> {
        self.tree.as_ref().map(|tree| tree.path.as_path())
    }

    /// Whether system calls answer for the machine that is judged.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.tree.is_none()
    }

    /// Begins a sample: readings from now on count their time from here.
    pub fn begin_sample(&self) -> Clock {
        self.sample_began.set(Instant::now());
        self.clock()
    }

    /// The machine's clocks. A tree's time since boot is what its `/proc/uptime` says, and goes on from there.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let since_boot = if self.is_live() {
            let time = clock_gettime(ClockId::Boottime);
            let ms = u64::try_from(time.tv_sec).ok().map(|s| s.saturating_mul(1000));
            ms.map(|ms| ms.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000))
        } else {
            let elapsed = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.text("/proc/uptime")
                .ok()
                .and_then(|t| parse::uptime_ms(&t).ok())
                .map(|ms| ms.saturating_add(elapsed))
        };
        let boot_id = self.text("/proc/sys/kernel/random/boot_id").and_then(|t| parse::boot_id(&t)).ok();
        Clock { wall: Timestamp::now(), since_boot: since_boot.map(SinceBoot), boot_id: boot_id.map(BootId) }
    }

    /// Wraps what a reader returned into a reading with its time.
    pub fn reading<T>(&self, source: impl Into<String>, result: Result<T, Absent>) -> Reading<T> {
        let at_us = u64::try_from(self.sample_began.get().elapsed().as_micros()).unwrap_or(u64::MAX);
        Reading::new(source, at_us, result)
    }

    /// Reads one file and makes sense of it.
    pub fn read<T>(&self, path: &str, parse: impl FnOnce(&str) -> Result<T, Absent>) -> Reading<T> {
        let result = self.text(path).and_then(|text| parse(&text));
        self.reading(path, result)
    }

    /// A text file, whole.
    ///
    /// # Errors
    /// Whatever keeps it from being read; also when it is larger than any sane file of its kind, is not text, or lies
    /// in `/proc` and does not end with a line feed, as every whole file there does.
    pub fn text(&self, path: &str) -> Result<String, Absent> {
        let bytes = self.bytes(path, FILE_BYTES_MAX)?;
        if path.starts_with("/proc/") && bytes.last().is_some_and(|last| *last != b'\n') {
            return Err(Absent::new(Absence::Malformed, "cut short: it does not end with a line feed"));
        }
        String::from_utf8(bytes).map_err(|_| Absent::new(Absence::Malformed, "not text"))
    }

    /// A text file whose bytes may be anything, because a user chose some of them.
    ///
    /// # Errors
    /// As [`Machine::text`], but for the text.
    pub fn lossy_text(&self, path: &str) -> Result<String, Absent> {
        self.bytes(path, FILE_BYTES_MAX).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's bytes, whole.
    ///
    /// # Errors
    /// As [`Machine::text`], but for the text.
    pub fn bytes(&self, path: &str, bytes_max: usize) -> Result<Vec<u8>, Absent> {
        let file = self.open_file(path)?;
        read_bounded(&file, bytes_max)
    }

    /// A regular file, opened.
    ///
    /// # Errors
    /// What the kernel says, or that something else lies there.
    pub fn open_file(&self, path: &str) -> Result<OwnedFd, Absent> {
        // Without O_NONBLOCK a FIFO where a file should be would hold us for ever.
        let file = self.open(path.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = fstat(&file).map_err(absent)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            other => {
                let what = match other {
                    FileType::Directory => "a directory",
                    FileType::Fifo => "a FIFO",
                    FileType::CharacterDevice | FileType::BlockDevice => "a device",
                    _ => "something else",
                };
                return Err(Absent::new(Absence::Malformed, format!("{what} where a file should be")));
            }
        }
        Ok(file)
    }

    /// The names in a directory, in an order in which `cpu2` comes before `cpu10`.
    ///
    /// # Errors
    /// Whatever keeps it from being read, or more entries than any sane directory of its kind.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Absent> {
        let file = self.open(path.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::new(file).map_err(absent)? {
            let entry = entry.map_err(absent)?;
            let name = entry.file_name().to_string_lossy();
            if name == "." || name == ".." {
                continue;
            }
            if names.len() >= DIRECTORY_ENTRIES_MAX {
                let detail = format!("more than {DIRECTORY_ENTRIES_MAX} entries");
                return Err(Absent::new(Absence::TooLarge, detail));
            }
            names.push(name.into_owned());
        }
        names.sort_by(|a, b| (a.len(), a.as_str()).cmp(&(b.len(), b.as_str())));
        Ok(names)
    }

    /// Whether a directory is there.
    #[must_use]
    pub fn has_directory(&self, path: &str) -> bool {
        self.open(path.as_bytes(), OFlags::PATH | OFlags::DIRECTORY).is_ok()
    }

    /// Whether anything is there, of whatever kind.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.open(path.as_bytes(), OFlags::PATH).is_ok_and(|_| true)
    }

    /// Where a symbolic link points, as it is written.
    ///
    /// # Errors
    /// When it is no link or cannot be read.
    pub fn link_target(&self, path: &str) -> Result<String, Absent> {
        let link = self.open(path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW)?;
        let target = readlinkat(&link, c"", Vec::new()).map_err(|error| match error {
            Errno::NOENT | Errno::INVAL => Absent::new(Absence::Malformed, "not a symbolic link"),
            other => absent(other),
        })?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// Opens a path of this machine or of the tree.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Absent> {
        let path = Path::new(OsStr::from_bytes(path));
        let flags = flags | OFlags::CLOEXEC;
        match &self.tree {
            None => openat(CWD, path, flags, Mode::empty()),
            Some(tree) => {
                let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                openat2(tree.root.as_fd(), path, flags, Mode::empty(), resolve)
            }
        }
        .map_err(absent)
    }
}

fn read_bounded(file: &OwnedFd, bytes_max: usize) -> Result<Vec<u8>, Absent> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; 16 << 10];
    loop {
        match rustix::io::read(file, &mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(absent(error)),
        }
        if bytes.len() > bytes_max {
            return Err(Absent::new(Absence::TooLarge, format!("larger than {} MiB", bytes_max >> 20)));
        }
    }
}

/// What an error of the kernel's means for a reading.
pub(crate) fn absent(error: Errno) -> Absent {
    let kind = match error {
        Errno::NOENT => Absence::NotPresent,
        Errno::ACCESS | Errno::PERM => Absence::PermissionDenied,
        Errno::OPNOTSUPP => Absence::NotSupported,
        Errno::TIMEDOUT => Absence::TimedOut,
        Errno::LOOP | Errno::NOTDIR => Absence::Malformed,
        _ => Absence::Unreadable,
    };
    let told = std::io::Error::from(error).to_string();
    Absent::new(kind, told.split(" (os error").next().unwrap_or_default())
}
