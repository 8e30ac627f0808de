//! What parent and child say to each other.

use std::time::Duration;

use plimsoll_judge::GAP_MS_MIN;
use plimsoll_model::{MountAnswer, MountPoint, Reading, Sample, SmartLog};
use plimsoll_probes::{Asked, gpu::nvml::Told};
use serde::{Deserialize, Serialize};

use crate::config_file::ConfigText;

/// Time between the two readings of every counter; a little more than the judge asks for, as clocks round down.
pub(crate) const GAP: Duration = Duration::from_millis(GAP_MS_MIN + 3);

/// The verb with which the binary starts itself as a child.
pub(crate) const PROBE_VERB: &str = "__probe";

/// What a child says while it waits between two readings.
pub(crate) const STEP_BETWEEN: &str = "nothing, between two readings";

/// What a child is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Task {
    /// Two samples of the host domain.
    Host,
    /// Two samples of the gpu domain, the driver's library not asked.
    Gpu,
    /// What the driver's library says, twice: this library.
    Nvml(String),
    /// Two samples of the storage domain, no mount asked.
    Storage,
    /// One mount's answer.
    Mount(MountPoint),
    /// Two readings of one drive's health log.
    Drive(String),
    /// The configuration: this file, or the default one.
    Setup(Option<String>),
}

/// What the parent tells a child on its command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What it is for.
    pub(crate) task: Task,
    /// Time that it has, in milliseconds: what remains of the whole command's.
    pub(crate) remaining_ms: u64,
    /// What it collects beyond what every probe does.
    pub(crate) asked: Asked,
}

/// Two readings of a drive's health log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DriveAnswer {
    pub(crate) name: String,
    pub(crate) readings: [Reading<SmartLog>; 2],
}

/// What must be known before anything is collected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) config: ConfigText,
    pub(crate) hostname: Option<String>,
}

/// What a child tells its parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Message {
    /// What it is about to read.
    Step(String),
    /// A sample.
    Sample(Box<Sample>),
    /// A mount's answer.
    Mount(Box<MountAnswer>),
    /// A drive's health log.
    Drive(Box<DriveAnswer>),
    /// A part of what the driver's library says.
    Nvml(Box<Told>),
    /// The configuration.
    Setup(Box<Setup>),
    /// The tree that should stand in for the machine cannot.
    BadTree(String),
    /// It cannot go on, and that is our fault.
    Bug(String),
}
