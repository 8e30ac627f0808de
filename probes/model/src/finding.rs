//! What the judge says about one check on one device.

use std::{borrow::Cow, cmp::Ordering, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a check: `storage.mount.space`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CheckId(pub Cow<'static, str>);

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What was judged: `node`, `/scratch`, `nvme0`, `node1/Normal`. Stable from one run to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Device(pub String);

impl Device {
    /// The node as a whole.
    #[must_use]
    pub fn node() -> Self {
        Self("node".to_owned())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whose fault an `Unknown` is, which decides what a gate does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The device's or the node's: it hangs, or its answer makes no sense.
    Device,
    /// Something that many nodes share does not answer, such as a file server.
    Shared,
    /// Plimsoll's own: a missing permission, a bug, a probe killed from outside, a budget too small.
    Plimsoll,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Device => "the device's fault",
            Self::Shared => "a shared resource's fault",
            Self::Plimsoll => "Plimsoll's own trouble",
        })
    }
}

/// Why a check was not judged. None of these is a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipWhy {
    /// Nobody says what the value should be.
    NothingToCompareWith,
    /// This machine has no such device or source.
    NotPresent,
    /// The device or the kernel says that it does not do this.
    NotSupported,
    /// A rate needs two samples.
    NoBaseline,
    /// It shows only under load, and there is none.
    Idle,
}

impl fmt::Display for SkipWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NothingToCompareWith => "nothing to compare with",
            Self::NotPresent => "not present",
            Self::NotSupported => "not supported",
            Self::NoBaseline => "no baseline",
            Self::Idle => "idle",
        })
    }
}

/// The judgement. Ordered from the least to the most serious:
/// skipped, pass, warn, unknown, fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Not judged.
    Skipped {
        /// Why not.
        why: SkipWhy,
    },
    /// As it should be.
    Pass,
    /// Not as it should be; a job may run.
    Warn,
    /// Could not be told.
    Unknown {
        /// Whose fault that is.
        blame: Blame,
    },
    /// A job must not run here.
    Fail,
}

impl Verdict {
    const fn rank(self) -> u8 {
        match self {
            Self::Skipped { .. } => 0,
            Self::Pass => 1,
            Self::Warn => 2,
            Self::Unknown { .. } => 3,
            Self::Fail => 4,
        }
    }

    /// The word, in capitals, for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Skipped { .. } => "SKIPPED",
            Self::Pass => "PASS",
            Self::Warn => "WARN",
            Self::Unknown { .. } => "UNKNOWN",
            Self::Fail => "FAIL",
        }
    }

    /// Whether a person should look: a warning, an unknown or a failure.
    #[must_use]
    pub const fn is_problem(self) -> bool {
        self.rank() >= Self::Warn.rank()
    }
}

impl PartialOrd for Verdict {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Verdict {
    fn cmp(&self, other: &Self) -> Ordering {
        let inner = |v: &Self| match v {
            Self::Skipped { why } => *why as u8,
            Self::Unknown { blame } => *blame as u8,
            Self::Pass | Self::Warn | Self::Fail => 0,
        };
        self.rank().cmp(&other.rank()).then_with(|| inner(self).cmp(&inner(other)))
    }
}

/// One thing that was seen, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What it is: `available`, `MemTotal`.
    pub what: String,
    /// Its value, with its unit.
    pub value: String,
    /// The file or call that said so; `*` stands for "each of them".
    pub source: String,
}

/// Where an expectation comes from, most binding first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Origin {
    /// The operator said so, in this file.
    Config {
        /// The file.
        file: String,
    },
    /// What a machine of this type should be.
    Profile {
        /// The profile.
        name: String,
    },
    /// Other devices of the same kind on this node.
    Peers {
        /// How many.
        count: u32,
    },
    /// This device's own past.
    History,
    /// True of every machine; the source is cited.
    Rule {
        /// Who says so.
        source: String,
    },
    /// There is nothing to compare with.
    None,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { file } => write!(f, "configured in {file}"),
            Self::Profile { name } => write!(f, "profile {name}"),
            Self::Peers { count } => write!(f, "{count} peers on this node"),
            Self::History => f.write_str("its own history"),
            Self::Rule { .. } => f.write_str("general rule"),
            Self::None => f.write_str("nothing"),
        }
    }
}

/// What a value was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// What was expected, with its unit; empty when there was nothing to compare with.
    pub what: String,
    /// Where that comes from.
    pub origin: Origin,
}

/// What to do about a problem, from the mildest to the most drastic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Nothing.
    None,
    /// Keep an eye on it.
    Watch,
    /// Find out more.
    Diagnose,
    /// Start the application or service again.
    RestartApp,
    /// Reset the GPU.
    ResetGpu,
    /// Reboot the node.
    Reboot,
    /// Take the node out of service.
    Drain,
    /// Have it repaired.
    Repair,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Watch => "watch",
            Self::Diagnose => "diagnose",
            Self::RestartApp => "restart-app",
            Self::ResetGpu => "reset-gpu",
            Self::Reboot => "reboot",
            Self::Drain => "drain",
            Self::Repair => "repair",
        })
    }
}

/// What ends a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClearsBy {
    /// The next reading that is as it should be.
    GoodReading,
    /// A reset of the GPU, or a new boot.
    GpuReset,
    /// A new boot; being quiet is not enough.
    NewBoot,
    /// An active test that finds nothing.
    ActiveTest,
    /// A person who says so.
    Person,
}

impl fmt::Display for ClearsBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::GoodReading => "a good reading",
            Self::GpuReset => "a reset of the GPU",
            Self::NewBoot => "a new boot",
            Self::ActiveTest => "an active test that finds nothing",
            Self::Person => "a person",
        })
    }
}

/// What the judge says about one check on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The check.
    pub check: CheckId,
    /// The device.
    pub device: Device,
    /// What a person calls it or pulls: `GPU 3, serial 1653123010003`; empty where the device says it all.
    pub part: String,
    /// The judgement.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// One line: what is, and what should be.
    pub reason: String,
    /// What was seen, and where.
    pub evidence: Vec<Evidence>,
    /// What it was compared with.
    pub expectation: Expectation,
    /// What to do; `none` unless it is a problem.
    pub action: Action,
    /// What to do, in words; empty unless it is a problem or a way to have it judged.
    pub advice: String,
    /// What ends it.
    pub clears_by: ClearsBy,
    /// Age of the sample behind it when it was judged, in milliseconds.
    pub age_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_one_order_from_skipped_to_fail() {
        let ordered = [
            Verdict::Skipped { why: SkipWhy::NothingToCompareWith },
            Verdict::Skipped { why: SkipWhy::NoBaseline },
            Verdict::Pass,
            Verdict::Warn,
            Verdict::Unknown { blame: Blame::Device },
            Verdict::Unknown { blame: Blame::Plimsoll },
            Verdict::Fail,
        ];
        assert!(ordered.is_sorted());
        assert_eq!(ordered.iter().filter(|v| v.is_problem()).count(), 4);
    }
}
