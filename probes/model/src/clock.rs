//! When something was read. Ages use the time since boot and the boot's id, never the wall clock, which may be set.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kernel's id of one boot (`/proc/sys/kernel/random/boot_id`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

/// Time since the kernel started, in milliseconds, suspended time included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SinceBoot(pub u64);

impl SinceBoot {
    /// Time from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// The clocks of a node at one moment. The wall clock is for people, the other two are for ages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Wall clock of the machine that collected.
    pub wall: Timestamp,
    /// Absent when the node would not say.
    pub since_boot: Option<SinceBoot>,
    /// Absent when the node would not say.
    pub boot_id: Option<BootId>,
}
