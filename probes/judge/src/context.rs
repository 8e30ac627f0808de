//! What a check may look at.

use plimsoll_model::{HostSample, HostSignals, Origin, StorageSample, StorageSignals};

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
