//! What a node says about itself. Passive and read-only: nothing here changes the node, and but for a short spin of one
//! processor nothing puts load on it.
//!
//! Everything is read through a [`Machine`], which is either this machine or a tree of files that stands in for one.
//! A reader never fails: what it cannot read becomes an absent reading with its reason.

pub mod gpu;
pub mod host;
mod kernel_log;
mod machine;
pub mod parse;
pub mod storage;

pub use machine::{Machine, TreeError};

use plimsoll_judge::Data;
use plimsoll_model::{Body, SAMPLE_VERSION, Sample};

/// What a probe is asked to collect, beyond what every probe reads.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Asked {
    /// Services to look for, by unit or process name.
    pub services: Vec<String>,
    /// What sits near what.
    pub topology: bool,
    /// Count log lines that a process wrote into the kernel's log as if the kernel had. For tests.
    pub admit_injected_log: bool,
}

/// Collects one sample of the host domain.
pub fn sample_host(machine: &Machine, data: &Data, asked: &Asked) -> Sample {
    let clock = machine.begin_sample();
    let body = Body::Host(Box::new(host::collect(machine, data, asked)));
    Sample { version: SAMPLE_VERSION, clock, body }
}

/// Collects one sample of the gpu domain, without asking the driver's library.
pub fn sample_gpu(machine: &Machine, asked: &Asked) -> Sample {
    let clock = machine.begin_sample();
    let body = Body::Gpu(Box::new(gpu::collect(machine, asked)));
    Sample { version: SAMPLE_VERSION, clock, body }
}

/// Collects one sample of the storage domain, without asking any mount.
pub fn sample_storage(machine: &Machine, data: &Data) -> Sample {
    let clock = machine.begin_sample();
    let body = Body::Storage(Box::new(storage::collect(machine, data)));
    Sample { version: SAMPLE_VERSION, clock, body }
}
