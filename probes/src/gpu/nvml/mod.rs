//! What the driver's library, NVML, says. Each GPU is asked by a thread of its own: a GPU that does not answer keeps
//! nobody from hearing of the others.

mod call;
mod device;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use nvml_wrapper::{Nvml, error::NvmlError};
use plimsoll_model::{
    Absence, Absent, ClockReadings, EccCounters, EccReadings, GpuIdentity, GpuReadings, GpuTrouble,
    ModeReadings, PageReadings, PcieReadings, PowerReadings, Reading, RecoveryReadings, RowReadings,
    ThermalReadings, TroubleKind,
};
use serde::{Deserialize, Serialize};

use call::{Asking, Gpu};
use device::GROUPS;

/// The name under which every driver installs it.
pub const LIBRARY: &str = "libnvidia-ml.so.1";
/// No machine has more.
const GPUS_MAX: u32 = 64;

/// Calls take microseconds to milliseconds; one that is out for less than this may well return.
const PROGRESS: Duration = Duration::from_millis(100);
/// Longer than this takes no call about a GPU that works, also while others are being started.
const HANGS: Duration = Duration::from_secs(5);
/// Without persistence the first call about a GPU starts it, one after the other, which takes seconds each.
const STARTS: (&str, Duration) = ("nvmlDeviceGetHandleByIndex_v2", Duration::from_secs(30));

/// What the library says, in the order in which it becomes known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// It cannot be used at all.
    Unusable(Absent),
    /// About the node.
    Driver {
        /// The library.
        library: String,
        /// Version of the driver.
        version: Reading<String>,
        /// How many GPUs there are.
        count: Reading<u32>,
    },
    /// What kept a GPU from being read a second time.
    Trouble {
        /// Which.
        index: u32,
        /// The call that is out.
        trouble: GpuTrouble,
    },
    /// The first or second reading of one GPU.
    Gpu {
        /// The second.
        second: bool,
        /// The reading.
        readings: Box<GpuReadings>,
    },
}

/// Asks the library until `deadline`, each GPU twice with `gap` between. `on_step` is told what is about to happen,
/// `tell` what came of it. Calls that have not returned by then are left alone, so the process should end after this.
pub fn ask(
    library: &str,
    gap: Duration,
    deadline: Instant,
    on_step: impl Fn(&str),
    mut tell: impl FnMut(Told),
) {
    // A name is looked up where libraries are; a path that somebody has given should be that of a file.
    if library.contains('/') && !std::fs::metadata(library).is_ok_and(|meta| meta.is_file()) {
        let detail = format!("{library}: no such file; mend --nvml");
        return tell(Told::Unusable(Absent::new(Absence::NotAsked, detail)));
    }
    on_step(&format!("nvmlInit_v2 ({library})"));
    let nvml = match Nvml::builder().lib_path(OsStr::new(library)).init() {
        // It is never closed: a thread that hangs in it may come back at any time.
        Ok(nvml) => Box::leak(Box::new(nvml)),
        Err(error) => return tell(Told::Unusable(unusable(library, &error))),
    };
    let began = Instant::now();
    let reading = |name: &str, result: Result<String, NvmlError>| {
        let result =
            result.map_err(|error| of_wrapper(&error)).and_then(|text| crate::parse::one_line(&text));
        Reading::new(name, elapsed_us(began), result)
    };
    on_step("nvmlSystemGetDriverVersion");
    let version = reading("nvmlSystemGetDriverVersion", nvml.sys_driver_version());
    on_step("nvmlDeviceGetCount_v2");
    let count = nvml.device_count().map_err(|error| of_wrapper(&error)).and_then(|count| {
        let sane = count <= GPUS_MAX;
        if sane {
            Ok(count)
        } else {
            Err(crate::parse::malformed(format!("{count} GPUs: no machine has that")))
        }
    });
    let count = Reading::new("nvmlDeviceGetCount_v2", elapsed_us(began), count);
    let indices = 0..count.ok().copied().unwrap_or(0);
    tell(Told::Driver { library: library.to_owned(), version, count });

    on_step("calls about single GPUs");
    let (sender, receiver) = channel();
    let workers: Vec<Worker> =
        indices.map(|index| Worker::start(nvml, index, gap, began, sender.clone())).collect();
    drop(sender);
    let silent = listen(&receiver, &workers, deadline, &mut tell);
    for worker in workers.iter().filter(|worker| silent.contains(&worker.index)) {
        worker.asking.give_up();
        if let Some(known) = worker.what_is_known() {
            tell(known);
        }
    }
}

/// Passes on what the workers say; gives the GPUs that had not said all by the deadline.
fn listen(
    receiver: &Receiver<Told>,
    workers: &[Worker],
    deadline: Instant,
    tell: &mut impl FnMut(Told),
) -> BTreeSet<u32> {
    let mut waiting: BTreeSet<u32> = workers.iter().map(|worker| worker.index).collect();
    while !waiting.is_empty() {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(told) => {
                if let Told::Gpu { second: true, readings } = &told {
                    waiting.remove(&readings.index);
                }
                tell(told);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    waiting
}

/// One GPU's thread, and what it has found out by now.
struct Worker {
    index: u32,
    asking: Arc<Asking>,
    known: Arc<Mutex<(bool, GpuReadings)>>,
}

impl Worker {
    fn start(nvml: &'static Nvml, index: u32, gap: Duration, began: Instant, sender: Sender<Told>) -> Self {
        let silent = Absent::new(Absence::TimedOut, "the driver's library has not answered");
        let known = Arc::new(Mutex::new((false, unread(index, &silent))));
        let worker = Self { index, asking: Arc::new(Asking::new()), known: Arc::clone(&known) };
        let asking = Arc::clone(&worker.asking);
        let run = move || {
            for second in [false, true] {
                let readings = read(nvml, index, began, &asking, |so_far| {
                    *known.lock().unwrap_or_else(PoisonError::into_inner) = (second, so_far.clone());
                });
                if sender.send(Told::Gpu { second, readings: Box::new(readings) }).is_err() {
                    return;
                }
                asking.rest();
                if !second {
                    thread::sleep(gap);
                }
            }
        };
        // Without a thread the GPU is one that has not answered, which is what its readings say already.
        let _ = thread::Builder::new().name(format!("gpu{index}")).spawn(run);
        worker
    }

    /// What is known of a GPU that has not answered everything when the time is up, and the call that is out. Nothing
    /// when it only waits for its second reading: the first is known already.
    fn what_is_known(&self) -> Option<Told> {
        let (call, since) = self.asking.get()?;
        let out = since.elapsed();
        let (second, mut readings) = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answers = out < PROGRESS;
        let most = if call == STARTS.0 { STARTS.1 } else { HANGS };
        let kind = if out < most { TroubleKind::Slow } else { TroubleKind::Hung };
        let call = format!("{call} has not returned for {:.1} s", out.as_secs_f64());
        let trouble = GpuTrouble { kind, call };
        if second {
            // The first reading is whole, and says more than half of a second one.
            return (!answers).then_some(Told::Trouble { index: self.index, trouble });
        }
        if !answers {
            readings.troubles.push(trouble);
        } else if readings.troubles.is_empty() {
            // It answers, and there was too little time to ask it everything.
            let why = Absent::new(
                Absence::NotAsked,
                "the time was up before it was asked; give more with --budget",
            );
            readings = unread(self.index, &why);
        }
        Some(Told::Gpu { second, readings: Box::new(readings) })
    }
}

/// Reads everything about one GPU. `keep` is given what is known after each group.
fn read(
    nvml: &'static Nvml,
    index: u32,
    began: Instant,
    asking: &Asking,
    mut keep: impl FnMut(&GpuReadings),
) -> GpuReadings {
    let silent = Absent::new(Absence::TimedOut, "the driver's library has not answered");
    let mut readings = unread(index, &silent);
    readings.at_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    keep(&readings);
    let nobody = Gpu::new(std::ptr::null_mut(), began, asking);
    let opened = device::open(&nobody, nvml.lib(), index);
    let device = match opened.get() {
        Ok(device) => *device,
        Err(absent) => {
            let mut none = unread(index, absent);
            none.at_ms = readings.at_ms;
            none.handle = Reading::new(opened.source.clone(), opened.at_us, Err(absent.clone()));
            none.troubles = nobody.troubles.into_inner().unwrap_or_else(PoisonError::into_inner);
            return none;
        }
    };
    readings.handle = Reading::new(opened.source.clone(), opened.at_us, Ok(()));
    let gpu = Gpu::new(device, began, asking);
    for group in GROUPS {
        group(&gpu, nvml.lib(), &mut readings);
        readings.troubles.clone_from(&gpu.troubles.lock().unwrap_or_else(PoisonError::into_inner));
        keep(&readings);
    }
    readings
}

/// What each call about the GPU with this index took, in so many readings of it.
///
/// # Errors
/// When the library cannot be used.
pub fn costs(library: &str, index: u32, rounds: u32) -> Result<Vec<(&'static str, Duration)>, Absent> {
    let nvml =
        Nvml::builder().lib_path(OsStr::new(library)).init().map_err(|error| unusable(library, &error))?;
    let nvml: &'static Nvml = Box::leak(Box::new(nvml));
    let asking = Asking::measuring();
    let mut all = Vec::new();
    for _ in 0..rounds {
        read(nvml, index, Instant::now(), &asking, |_| {});
        all.extend(asking.costs());
    }
    Ok(all)
}

fn elapsed_us(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Why the library cannot be used at all.
fn unusable(library: &str, error: &NvmlError) -> Absent {
    match error {
        NvmlError::LibloadingError(error) => {
            let told = error.to_string();
            let missing = told.contains("cannot open shared object file: No such file");
            let kind = if missing { Absence::NotPresent } else { Absence::Malformed };
            Absent::new(kind, crate::parse::clip(&told, 200))
        }
        NvmlError::FailedToLoadSymbol(_) => {
            Absent::new(Absence::Malformed, format!("{library} is not NVML: it has no nvmlInit_v2"))
        }
        other => of_wrapper(other),
    }
}

fn of_wrapper(error: &NvmlError) -> Absent {
    let code = match error {
        NvmlError::FailedToLoadSymbol(_) => {
            return Absent::new(Absence::Malformed, "the library lacks a call that every driver has");
        }
        NvmlError::Uninitialized => 1,
        NvmlError::InvalidArg => 2,
        NvmlError::NotSupported => 3,
        NvmlError::NoPermission => 4,
        NvmlError::NotFound => 6,
        NvmlError::InsufficientPower => 8,
        NvmlError::DriverNotLoaded => 9,
        NvmlError::Timeout => 10,
        NvmlError::IrqIssue => 11,
        NvmlError::LibraryNotFound => 12,
        NvmlError::FunctionNotFound => 13,
        NvmlError::CorruptedInfoROM => 14,
        NvmlError::GpuLost => 15,
        NvmlError::ResetRequired => 16,
        NvmlError::OperatingSystem => 17,
        NvmlError::LibRmVersionMismatch => 18,
        NvmlError::InUse => 19,
        NvmlError::InsufficientMemory => 20,
        other => return Absent::new(Absence::Unreadable, crate::parse::clip(&other.to_string(), 200)),
    };
    // Only calls about the node come here.
    call::essential(&call::refused(code))
}

/// A GPU of which nothing is known, and why.
#[must_use]
pub fn unread(index: u32, why: &Absent) -> GpuReadings {
    fn no<T>(why: &Absent) -> Reading<T> {
        Reading::new("NVML", 0, Err(why.clone()))
    }
    let counters = || EccCounters {
        volatile_uncorrected: no(why),
        volatile_corrected: no(why),
        aggregate_uncorrected: no(why),
        aggregate_corrected: no(why),
    };
    GpuReadings {
        index,
        at_ms: 0,
        handle: no(why),
        troubles: Vec::new(),
        address: no(why),
        identity: GpuIdentity {
            name: no(why),
            uuid: no(why),
            serial: no(why),
            minor: no(why),
            vbios: no(why),
            inforom: no(why),
            gsp_firmware: no(why),
        },
        ecc: EccReadings {
            mode: no(why),
            total: counters(),
            dram: counters(),
            sram: counters(),
            sram_threshold: no(why),
        },
        rows: RowReadings { remapped: no(why), banks: no(why) },
        pages: PageReadings { single_bit: no(why), double_bit: no(why), pending: no(why) },
        nvlinks: no(why),
        fabric: no(why),
        pcie: PcieReadings {
            generation: no(why),
            generation_max: no(why),
            width: no(why),
            width_max: no(why),
            replays: no(why),
        },
        clocks: ClockReadings {
            sm: no(why),
            sm_max: no(why),
            memory: no(why),
            memory_max: no(why),
            held_by: no(why),
        },
        power: PowerReadings { draw: no(why), limit: no(why), limit_default: no(why) },
        thermal: ThermalReadings {
            gpu: no(why),
            memory: no(why),
            margin: no(why),
            slowdown: no(why),
            gpu_max: no(why),
            memory_max: no(why),
        },
        mode: ModeReadings { persistence: no(why), mig: no(why), compute: no(why) },
        recovery: RecoveryReadings { action: no(why), reset_required: no(why) },
        processes: no(why),
        utilization: no(why),
    }
}
