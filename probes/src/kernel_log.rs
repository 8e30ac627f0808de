//! The kernel's log: the lines that some rule is about, and how far back it reaches.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    hash::Hash,
    io::{BufRead as _, BufReader, Read as _},
};

use plimsoll_model::{Absence, Absent, KernelLog, LogEvent, Reading};
use rustix::{fs::OFlags, io::Errno};

use crate::{
    Machine, machine,
    parse::{self, FACILITY_KERNEL},
};

const SOURCE: &str = "/dev/kmsg";
/// Of so many kinds of lines the last few are kept, so that no noisy device displaces another's only line.
const KINDS_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 512;
/// Larger than any record of the kernel's.
const RECORD_BYTES_MAX: usize = 8192;
/// Far more than the buffer holds: a writer that never stops must not hold us for ever.
const RECORDS_MAX: u64 = 1 << 20;
/// With more than one broken line among so many, a file is no log.
const BROKEN_OF: u64 = 100;
/// Largest log of a tree.
const TREE_LOG_BYTES_MAX: u64 = 256 << 20;

/// Reads the kernel's log. `kind` says of a line which kind it is of, if it is of any; of each kind the last `repeats`
/// lines are kept.
pub(crate) fn collect<K: Hash + Eq>(
    machine: &Machine,
    admit_injected: bool,
    repeats: usize,
    kind: impl Fn(&str) -> Option<K>,
) -> Reading<KernelLog> {
    let mut log =
        Collected { kind, admit_injected, repeats, events: HashMap::new(), broken: 0, log: empty() };
    if !machine.exists(SOURCE) {
        let detail = "there is none here, as in most containers; run Plimsoll on the node itself, or give it /dev/kmsg";
        return machine.reading(SOURCE, Err(Absent::new(Absence::NotAsked, detail)));
    }
    let result = if machine.is_live() { live(machine, &mut log) } else { tree(machine, &mut log) };
    machine.reading(SOURCE, result.and_then(|()| log.finish()))
}

const fn empty() -> KernelLog {
    KernelLog { records: 0, first_seq: None, first_us: None, events: Vec::new(), events_lost: 0 }
}

struct Collected<K, F> {
    kind: F,
    admit_injected: bool,
    repeats: usize,
    events: HashMap<K, VecDeque<LogEvent>>,
    /// Lines that are no records.
    broken: u64,
    log: KernelLog,
}

impl<K: Hash + Eq, F: Fn(&str) -> Option<K>> Collected<K, F> {
    fn add(&mut self, record: &str) -> Result<(), Absent> {
        let record = parse::kmsg_record(record)?;
        self.log.records += 1;
        self.log.first_seq.get_or_insert(record.seq);
        self.log.first_us.get_or_insert(record.at_us);
        let admitted = record.facility == FACILITY_KERNEL || self.admit_injected;
        let text = parse::clip(record.text, TEXT_BYTES_MAX);
        let Some(kind) = (self.kind)(text).filter(|_| admitted) else { return Ok(()) };
        if !self.events.contains_key(&kind) && self.events.len() == KINDS_MAX {
            self.log.events_lost += 1;
            return Ok(());
        }
        let events = self.events.entry(kind).or_default();
        if events.len() == self.repeats {
            events.pop_front();
        }
        events.push_back(LogEvent { seq: record.seq, at_us: record.at_us, text: text.to_owned() });
        Ok(())
    }

    fn finish(self) -> Result<KernelLog, Absent> {
        if self.log.records == 0 {
            return Err(Absent::new(Absence::Unreadable, "the log holds no record at all"));
        }
        if self.broken > self.log.records / BROKEN_OF {
            let detail = format!(
                "{} of {} lines are no records of a log",
                self.broken,
                self.broken + self.log.records
            );
            return Err(Absent::new(Absence::Malformed, detail));
        }
        let mut events: Vec<LogEvent> = self.events.into_values().flatten().collect();
        events.sort_by_key(|event| event.seq);
        Ok(KernelLog { events, ..self.log })
    }
}

fn live<K: Hash + Eq>(
    machine: &Machine,
    log: &mut Collected<K, impl Fn(&str) -> Option<K>>,
) -> Result<(), Absent> {
    let file = machine.open(SOURCE.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK)?;
    let mut record = vec![0_u8; RECORD_BYTES_MAX];
    for _ in 0..RECORDS_MAX {
        match rustix::io::read(&file, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(count) => log.add(&String::from_utf8_lossy(record.get(..count).unwrap_or_default()))?,
            // Overwritten before it was read: the next read goes on with the oldest that is left.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(machine::absent(error)),
        }
    }
    Ok(())
}

/// In a tree the log is a file with a record a line. Its last line may have been cut, and of many lines a few others.
fn tree<K: Hash + Eq>(
    machine: &Machine,
    log: &mut Collected<K, impl Fn(&str) -> Option<K>>,
) -> Result<(), Absent> {
    let file = machine.open_file(SOURCE)?;
    let mut file = BufReader::with_capacity(256 << 10, File::from(file).take(TREE_LOG_BYTES_MAX));
    let mut line = Vec::new();
    let mut bytes = 0;
    loop {
        line.clear();
        let mut whole = (&mut file).take(RECORD_BYTES_MAX as u64);
        let count = whole.read_until(b'\n', &mut line);
        let count = count.map_err(|error| Absent::new(Absence::Unreadable, error.to_string()))?;
        bytes += count as u64;
        if count == 0 && bytes >= TREE_LOG_BYTES_MAX {
            return Err(Absent::new(
                Absence::TooLarge,
                format!("larger than {} MiB", TREE_LOG_BYTES_MAX >> 20),
            ));
        }
        if count == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let is_whole = text.ends_with('\n') && !text.starts_with(' ');
        if log.add(text.trim_end_matches('\n')).is_err() && is_whole {
            log.broken += 1;
        }
    }
}
