//! The kernel's log: the lines that some rule is about, and how far back it reaches.

use std::collections::{HashMap, VecDeque};

use plimsoll_judge::Data;
use plimsoll_model::{Absence, Absent, KernelLog, LogEvent, Reading};
use rustix::{fs::OFlags, io::Errno};

use crate::{
    Machine, machine,
    parse::{self, FACILITY_KERNEL},
};

const SOURCE: &str = "/dev/kmsg";
/// Of the lines that one rule finds about one device the last are kept, so that no noisy drive displaces another's only
/// line,
const REPEATS_MAX: usize = 8;
/// and of so many rules and devices.
const KINDS_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 512;
/// Larger than any record of the kernel's.
const RECORD_BYTES_MAX: usize = 8192;
/// Far more than the buffer holds: a writer that never stops must not hold us for ever.
const RECORDS_MAX: u64 = 1 << 20;
/// Largest log of a tree.
const TREE_LOG_BYTES_MAX: usize = 64 << 20;

pub(super) fn collect(machine: &Machine, data: &Data, admit_injected: bool) -> Reading<KernelLog> {
    let mut log = Collected { data, admit_injected, events: HashMap::new(), log: empty() };
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

struct Collected<'a> {
    data: &'a Data,
    admit_injected: bool,
    /// By the rule, which is told by its place in memory, and the device.
    events: HashMap<(usize, Option<String>), VecDeque<LogEvent>>,
    log: KernelLog,
}

impl Collected<'_> {
    fn add(&mut self, record: &str) -> Result<(), Absent> {
        let record = parse::kmsg_record(record)?;
        self.log.records += 1;
        self.log.first_seq.get_or_insert(record.seq);
        self.log.first_us.get_or_insert(record.at_us);
        let admitted = record.facility == FACILITY_KERNEL || self.admit_injected;
        let text = parse::clip(record.text, TEXT_BYTES_MAX);
        let Some(rule) = self.data.log_rule(text).filter(|_| admitted) else { return Ok(()) };
        let kind = (std::ptr::from_ref(rule).addr(), rule.device(text).map(str::to_owned));
        if !self.events.contains_key(&kind) && self.events.len() == KINDS_MAX {
            self.log.events_lost += 1;
            return Ok(());
        }
        let events = self.events.entry(kind).or_default();
        if events.len() == REPEATS_MAX {
            events.pop_front();
        }
        events.push_back(LogEvent { seq: record.seq, at_us: record.at_us, text: text.to_owned() });
        Ok(())
    }

    fn finish(self) -> Result<KernelLog, Absent> {
        if self.log.records == 0 {
            return Err(Absent::new(Absence::Unreadable, "the log holds no record at all"));
        }
        let mut events: Vec<LogEvent> = self.events.into_values().flatten().collect();
        events.sort_by_key(|event| event.seq);
        Ok(KernelLog { events, ..self.log })
    }
}

fn live(machine: &Machine, log: &mut Collected<'_>) -> Result<(), Absent> {
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

/// In a tree the log is a file with a record a line. Its last line may have been cut; any other that is no record
/// means that this is no log.
fn tree(machine: &Machine, log: &mut Collected<'_>) -> Result<(), Absent> {
    let bytes = machine.bytes(SOURCE, TREE_LOG_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    for line in text.split_inclusive('\n') {
        match log.add(line.trim_end_matches('\n')) {
            Err(absent) if line.ends_with('\n') && !line.starts_with(' ') => return Err(absent),
            _ => {}
        }
    }
    Ok(())
}
