//! What two samples say together.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BlockedTask, Clock, Domain, Failure, GpuSample, HostSample, Percent, Reading, StorageSample};

/// How much a counter grew over a time, resets and wraps already taken care of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Growth.
    pub delta: u64,
    /// Time between the two readings, in milliseconds; never 0.
    pub over_ms: u64,
}

impl Rate {
    /// Growth a second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        self.delta as f64 * 1000.0 / self.over_ms as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} ms", self.delta, self.over_ms)
    }
}

/// What the newest sample of a domain, beside the one before it, says.
#[derive(Clone, Debug)]
pub enum Signals<'a> {
    /// The host domain.
    Host(HostSignals<'a>),
    /// The gpu domain.
    Gpu(GpuSignals<'a>),
    /// The storage domain.
    Storage(StorageSignals<'a>),
    /// The domain could not be collected.
    Failed {
        /// Which.
        domain: Domain,
        /// Why.
        failure: &'a Failure,
    },
}

/// Signals of the host domain.
#[derive(Clone, Debug)]
pub struct HostSignals<'a> {
    /// When the newest sample was taken.
    pub clock: &'a Clock,
    /// The newest values.
    pub now: &'a HostSample,
    /// Share of the processors' time that the hypervisor gave away, and the time it was watched for.
    pub steal: Reading<(Percent, Duration)>,
    /// Processes that were in the same uninterruptible sleep in both samples, and the time between these.
    pub blocked: Reading<(Vec<BlockedTask>, Duration)>,
    /// Corrected memory errors, in the order of `now.memory.edac`.
    pub corrected: Vec<Reading<Rate>>,
}

/// Signals of the storage domain.
#[derive(Clone, Debug)]
pub struct StorageSignals<'a> {
    /// When the newest sample was taken.
    pub clock: &'a Clock,
    /// The newest values.
    pub now: &'a StorageSample,
    /// Media errors, in the order of `now.nvme`.
    pub media_errors: Vec<Reading<Rate>>,
}

/// Signals of the gpu domain.
#[derive(Clone, Debug)]
pub struct GpuSignals<'a> {
    /// When the newest sample was taken.
    pub clock: &'a Clock,
    /// The newest values.
    pub now: &'a GpuSample,
    /// Rates of each GPU, in the order of `now.nvml`.
    pub rates: Vec<GpuRates>,
}

/// Rates of one GPU's counters.
#[derive(Clone, Debug)]
pub struct GpuRates {
    /// PCIe packets sent again.
    pub replays: Reading<Rate>,
    /// What held the clocks down in both samples: a set of bits.
    pub held_by: Reading<u64>,
    /// Its NVLinks, in the order of the readings.
    pub nvlinks: Vec<NvLinkRates>,
}

/// Rates of one NVLink's error counters.
#[derive(Clone, Debug)]
pub struct NvLinkRates {
    /// Frames sent again.
    pub replays: Reading<Rate>,
    /// Trainings.
    pub recoveries: Reading<Rate>,
    /// Wrong checksums.
    pub crc_errors: Reading<Rate>,
}
