//! What the host says about itself: processors, memory, kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Megahertz, Percent, Reading};

/// All readings of the host domain at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Processors.
    pub cpu: CpuReadings,
    /// Memory.
    pub memory: MemoryReadings,
    /// Machine-check exceptions since boot, all processors together.
    pub machine_checks: Reading<u64>,
    /// Resource limits that a job would inherit.
    pub limits: LimitReadings,
    /// Processes.
    pub processes: Reading<ProcessTable>,
    /// Pressure stall information.
    pub pressure: PressureReadings,
    /// Name of the clock source in use.
    pub clock_source: Reading<String>,
    /// State of the kernel's clock discipline.
    pub clock_sync: Reading<ClockSync>,
    /// The kernel's taint bits.
    pub taint: Reading<u64>,
    /// The kernel's log, only what may matter.
    pub log: Reading<KernelLog>,
    /// Services that the configuration names.
    pub services: Vec<ServiceReading>,
    /// Number of RDMA devices; they need locked memory.
    pub rdma_devices: Reading<u32>,
}

/// Readings about processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuReadings {
    /// Processors that the machine has, by number.
    pub present: Reading<Vec<u32>>,
    /// Processors that are in use, by number.
    pub online: Reading<Vec<u32>>,
    /// Sockets, cores and threads in use.
    pub topology: Reading<CpuTopology>,
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt: Reading<String>,
    /// Governor, and how many processors have it.
    pub governors: Reading<BTreeMap<String, u32>>,
    /// Name of the frequency driver.
    pub driver: Reading<String>,
    /// Highest frequency of any processor by its driver.
    pub max: Reading<Megahertz>,
    /// Guaranteed frequency by its driver.
    pub base: Reading<Megahertz>,
    /// Frequency in `/proc/cpuinfo`; on virtual machines the nominal one.
    pub nominal: Reading<Megahertz>,
    /// Best frequency seen while one processor was kept busy for a moment.
    pub observed: Reading<Megahertz>,
    /// Time accounts of all processors together.
    pub times: Reading<CpuTimes>,
}

/// How many processors of which kind are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTopology {
    /// Packages.
    pub sockets: u32,
    /// Physical cores.
    pub cores: u32,
    /// Hardware threads.
    pub threads: u32,
}

/// Time accounts of `/proc/stat`, in ticks since boot. Guest time is part of user time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// All accounts together.
    pub total: u64,
    /// Time that the hypervisor gave to somebody else while this machine had work.
    pub steal: u64,
}

/// Readings about memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryReadings {
    /// `/proc/meminfo`.
    pub info: Reading<MemInfo>,
    /// Memory by NUMA node.
    pub numa: Reading<Vec<NumaNode>>,
    /// Pools of huge pages, one a size.
    pub hugepages: Vec<HugepagePool>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub thp: Reading<String>,
    /// Swap areas by name.
    pub swap: Reading<Vec<String>>,
    /// Free memory by size of block.
    pub buddy: Reading<Vec<BuddyZone>>,
    /// Memory controllers with error counters.
    pub edac: Reading<Vec<EdacController>>,
}

/// What we use of `/proc/meminfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemInfo {
    /// `MemTotal`.
    pub total: Bytes,
    /// `MemAvailable`, on kernels that have it.
    pub available: Option<Bytes>,
    /// `Hugepagesize`, on kernels that have huge pages.
    pub hugepage: Option<Bytes>,
}

impl MemInfo {
    /// Size of an ordinary page, told by that of the default huge page: a page table of one page holds 8 bytes for each
    /// page of it (2 MiB of 4 KiB, 32 MiB of 16 KiB, 512 MiB of 64 KiB). 4 KiB where the default was set to another.
    #[must_use]
    pub fn page(&self) -> Bytes {
        let of = |page: &u64| self.hugepage == Some(Bytes(page / 8 * page));
        Bytes([4096, 16_384, 65_536].into_iter().find(of).unwrap_or(4096))
    }
}

/// One NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Its number.
    pub id: u32,
    /// Its memory.
    pub total: Bytes,
    /// Its processors; none on a node of memory only.
    pub cpus: u32,
}

/// The pool of huge pages of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugepagePool {
    /// Size of a page.
    pub page: Bytes,
    /// Pages that the kernel was asked for on its command line, if it was.
    pub asked: Reading<Option<u64>>,
    /// Pages in the pool.
    pub total: Reading<u64>,
    /// Pages of them that are free.
    pub free: Reading<u64>,
}

/// Free blocks of one zone: `free[n]` blocks of 2^n pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuddyZone {
    /// NUMA node.
    pub node: u32,
    /// Name of the zone.
    pub zone: String,
    /// Free blocks by order.
    pub free: Vec<u64>,
}

/// One memory controller's error counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdacController {
    /// Its name: `mc0`.
    pub name: String,
    /// Uncorrected errors since its driver was loaded.
    pub uncorrected: Reading<u64>,
    /// Corrected errors since its driver was loaded.
    pub corrected: Reading<u64>,
}

/// A resource limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// At most this many of the limit's unit.
    At(u64),
    /// No limit.
    Unlimited,
}

/// Limits of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReadings {
    /// Whose limits: `slurmd (pid 812)` or `this shell`.
    pub whose: String,
    /// Soft limit of locked memory, in bytes.
    pub memlock: Reading<Limit>,
    /// Soft limit of open files.
    pub open_files: Reading<Limit>,
}

/// What the process list says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessTable {
    /// Processes.
    pub total: u32,
    /// Processes that ended and were not waited for.
    pub zombies: u32,
    /// Processes in uninterruptible sleep, the first few hundred.
    pub blocked: Vec<BlockedTask>,
}

/// A process in uninterruptible sleep (state D).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedTask {
    /// Its id.
    pub pid: u32,
    /// When it was started, in ticks after boot: with the pid this names it.
    pub start_ticks: u64,
    /// Its name.
    pub name: String,
    /// Processor time that it has used, in ticks: a task that does not move does not use any.
    pub cpu_ticks: u64,
}

/// Pressure of the three resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureReadings {
    /// Processors.
    pub cpu: Reading<Pressure>,
    /// Memory.
    pub memory: Reading<Pressure>,
    /// Storage.
    pub io: Reading<Pressure>,
}

/// Shares of the last minute in which work was held up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// At least one task waited.
    pub some_60s: Percent,
    /// All tasks that were not idle waited; not told for processors on old kernels.
    pub full_60s: Option<Percent>,
}

/// What `adjtimex` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSync {
    /// The call's return value: 5 is `TIME_ERROR`.
    pub state: i32,
    /// The status bits: 0x40 is `STA_UNSYNC`.
    pub status: u32,
    /// The kernel's bound on the error, in microseconds.
    pub max_error_us: i64,
}

/// What the kernel's log says, only lines that some rule may be about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLog {
    /// Records read, of any facility.
    pub records: u64,
    /// Sequence number of the oldest record that the buffer still holds; above 0 the older ones are lost.
    pub first_seq: Option<u64>,
    /// Time of that record, in microseconds after boot.
    pub first_us: Option<u64>,
    /// Lines that some rule is about, oldest first; of each rule and device the last few.
    pub events: Vec<LogEvent>,
    /// Lines about further rules and devices, beyond the reader's limit.
    pub events_lost: u64,
}

/// One line of the kernel's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Its number; with the boot id this names it.
    pub seq: u64,
    /// Its time, in microseconds after boot.
    pub at_us: u64,
    /// Its text, cut to a length.
    pub text: String,
}

/// A service that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceReading {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: Reading<ServiceState>,
}

/// How a service is, by its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceState {
    /// It has this many living processes of its name.
    Alive(u32),
    /// It has this many living processes, and none of its name: a daemon of another name, or what a dead one left.
    Unrecognised(u32),
    /// It has no such process.
    Dead,
}
