//! What a check may look at.

use plimsoll_model::{
    GpuRates, GpuReadings, GpuSample, GpuSignals, HostSample, HostSignals, Origin, StorageSample,
    StorageSignals,
};

use crate::{Config, Data, State};

/// What a check of the host domain may look at.
#[derive(Debug)]
pub(crate) struct HostContext<'a> {
    pub(crate) signals: &'a HostSignals<'a>,
    pub(crate) config: &'a Config,
    pub(crate) data: &'a Data,
    pub(crate) state: &'a State,
}

impl HostContext<'_> {
    /// The newest values.
    pub(crate) fn now(&self) -> &HostSample {
        self.signals.now
    }

    /// A limit by its name, and where it comes from.
    pub(crate) fn limit(&self, name: &str) -> (f64, Origin) {
        self.config.limit(name, self.data)
    }
}

/// What a check of the storage domain may look at.
#[derive(Debug)]
pub(crate) struct StorageContext<'a> {
    pub(crate) signals: &'a StorageSignals<'a>,
    pub(crate) config: &'a Config,
    pub(crate) data: &'a Data,
}

impl StorageContext<'_> {
    /// The newest values.
    pub(crate) fn now(&self) -> &StorageSample {
        self.signals.now
    }

    /// A limit by its name, and where it comes from.
    pub(crate) fn limit(&self, name: &str) -> (f64, Origin) {
        self.config.limit(name, self.data)
    }
}

/// What a check of the gpu domain may look at.
#[derive(Debug)]
pub(crate) struct GpuContext<'a> {
    pub(crate) signals: &'a GpuSignals<'a>,
    pub(crate) config: &'a Config,
    pub(crate) data: &'a Data,
    pub(crate) state: &'a State,
}

/// One GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct One<'a> {
    pub(crate) now: &'a GpuReadings,
    pub(crate) rates: &'a GpuRates,
    /// All GPUs that the driver counts, this one among them.
    pub(crate) all: &'a [GpuReadings],
}

impl GpuContext<'_> {
    /// The newest values.
    pub(crate) fn now(&self) -> &GpuSample {
        self.signals.now
    }

    /// A limit by its name, and where it comes from.
    pub(crate) fn limit(&self, name: &str) -> (f64, Origin) {
        self.config.limit(name, self.data)
    }
}
