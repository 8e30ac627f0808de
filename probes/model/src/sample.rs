//! A sample: all readings of one domain at one time. A recording is a stream of these.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Blame, Clock, GpuSample, HostSample, StorageSample};

/// Version of the sample format.
pub const SAMPLE_VERSION: u32 = 1;

/// A part of the node that is collected by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// Processors, memory, kernel.
    Host,
    /// NVIDIA GPUs, their links and their driver.
    Gpu,
    /// Mounts, drives, arrays.
    Storage,
}

impl Domain {
    /// Every domain, in the order in which people read them.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Host, Self::Storage];
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Host => "host",
            Self::Gpu => "gpu",
            Self::Storage => "storage",
        })
    }
}

/// All readings of one domain at one time, or why there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`SAMPLE_VERSION`] of the writer.
    pub version: u32,
    /// When it was begun.
    pub clock: Clock,
    /// The readings.
    pub body: Body,
}

/// The readings of one domain, or the failure to collect them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// The host domain.
    Host(Box<HostSample>),
    /// The gpu domain.
    Gpu(Box<GpuSample>),
    /// The storage domain.
    Storage(Box<StorageSample>),
    /// A domain that could not be collected.
    Failed {
        /// Which.
        domain: Domain,
        /// Why.
        failure: Failure,
    },
}

impl Body {
    /// The domain it is about.
    #[must_use]
    pub const fn domain(&self) -> Domain {
        match self {
            Self::Host(_) => Domain::Host,
            Self::Gpu(_) => Domain::Gpu,
            Self::Storage(_) => Domain::Storage,
            Self::Failed { domain, .. } => *domain,
        }
    }
}

/// Why a probe brought nothing back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Whose fault it is.
    pub blame: Blame,
    /// What happened, naming the culprit.
    pub reason: String,
    /// The way out, for a person.
    pub advice: String,
}
