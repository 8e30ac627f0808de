//! Plimsoll's vocabulary as types.
//!
//! No I/O and no dependency on another crate of ours: everything else stands on these words, so that a recording made
//! by one part can be judged by another, on another machine.

mod clock;
mod exit;
mod finding;
mod gpu;
mod host;
mod reading;
mod report;
mod sample;
mod signal;
mod storage;
mod topology;
mod units;

pub use clock::{BootId, Clock, SinceBoot};
pub use exit::{Exit, NagiosExit};
pub use finding::{
    Action, Blame, CheckId, ClearsBy, Device, Evidence, Expectation, Finding, Origin, SkipWhy, Verdict,
};
pub use gpu::{
    BankHistogram, ClockReadings, EccCounters, EccReadings, FabricInfo, FabricState, GpuIdentity, GpuProcess,
    GpuReadings, GpuSample, GpuTrouble, ModeReadings, NVML_DRIVER_NOT_LOADED, NvLink, NvmlSample,
    PageReadings, PciAddress, PciGpu, PcieReadings, PowerReadings, ProcessOwner, RecoveryAction,
    RecoveryReadings, RemappedRows, RowReadings, Setting, SramStatus, ThermalReadings, TroubleKind,
};
pub use host::{
    BlockedTask, BuddyZone, ClockSync, CpuReadings, CpuTimes, CpuTopology, EdacController, HostSample,
    HugepagePool, KernelLog, Limit, LimitReadings, LogEvent, MemInfo, MemoryReadings, NumaNode, Pressure,
    PressureReadings, ProcessTable, ServiceReading, ServiceState,
};
pub use reading::{Absence, Absent, Outcome, Reading};
pub use report::{NodeIdentity, Overall, Report, SCHEMA_VERSION, Summary};
pub use sample::{Body, Domain, Failure, SAMPLE_VERSION, Sample};
pub use signal::{GpuRates, GpuSignals, HostSignals, NvLinkRates, Rate, Signals, StorageSignals};
pub use storage::{
    Backing, FileSystemKind, FileSystemSpace, FstabEntry, LinkReadings, MdArray, Mount, MountAnswer,
    MountPoint, NvmeController, SmartLog, StorageSample, WriteProbe,
};
pub use topology::{PciDevice, PciKind, Topology};
pub use units::{Bytes, Celsius, Megahertz, Megatransfers, Milliwatts, Percent};
