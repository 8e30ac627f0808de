//! The envelope in which findings leave Plimsoll.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Exit, Finding, Verdict};

/// Version of the envelope. A new field does not change it; a field that goes or changes its meaning does.
pub const SCHEMA_VERSION: u32 = 1;

/// What `plimsoll check --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this envelope.
    pub schema_version: u32,
    /// Version of Plimsoll that wrote it.
    pub plimsoll_version: String,
    /// The node that was judged.
    pub node: NodeIdentity,
    /// When the judgement was made (RFC 3339).
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub judged_at: Timestamp,
    /// How long the command took to get there, in milliseconds.
    pub took_ms: u64,
    /// A signal ended the command early; what was missing by then is `unknown`.
    pub interrupted: bool,
    /// Whether a job may run here.
    pub overall: Overall,
    /// How many findings of each verdict.
    pub summary: Summary,
    /// The findings, most serious first.
    pub findings: Vec<Finding>,
}

/// Which node this is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeIdentity {
    /// Its host name, if it told.
    pub hostname: Option<String>,
    /// The tree that stood in for the machine, if one did.
    pub sysroot: Option<String>,
    /// The configuration that said what it should be, if there was one.
    pub config: Option<String>,
}

/// How many findings of each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Failures.
    pub fail: u32,
    /// Could not be told.
    pub unknown: u32,
    /// Warnings.
    pub warn: u32,
    /// Passes.
    pub pass: u32,
    /// Not judged.
    pub skipped: u32,
}

impl Summary {
    /// Counts findings.
    #[must_use]
    pub fn of(findings: &[Finding]) -> Self {
        let mut sum = Self::default();
        for finding in findings {
            let count = match finding.verdict {
                Verdict::Fail => &mut sum.fail,
                Verdict::Unknown { .. } => &mut sum.unknown,
                Verdict::Warn => &mut sum.warn,
                Verdict::Pass => &mut sum.pass,
                Verdict::Skipped { .. } => &mut sum.skipped,
            };
            *count = count.saturating_add(1);
        }
        sum
    }
}

/// Whether a job may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overall {
    /// Nothing that was judged stands against it.
    Fit,
    /// Something failed.
    Unfit,
    /// Nothing failed, but something could not be told, or nothing was judged at all.
    Undecided,
}

impl Overall {
    /// A failure decides; then an unknown; and where nothing was judged there is nothing to call fit.
    #[must_use]
    pub const fn of(sum: &Summary) -> Self {
        if sum.fail > 0 {
            Self::Unfit
        } else if sum.unknown > 0 || sum.pass + sum.warn == 0 {
            Self::Undecided
        } else {
            Self::Fit
        }
    }

    /// The exit status that says so.
    #[must_use]
    pub const fn exit(self) -> Exit {
        match self {
            Self::Fit => Exit::Fit,
            Self::Unfit => Exit::Unfit,
            Self::Undecided => Exit::Undecided,
        }
    }
}

impl fmt::Display for Overall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fit => "FIT",
            Self::Unfit => "UNFIT",
            Self::Undecided => "UNDECIDED",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_which_nothing_was_judged_is_not_fit() {
        assert_eq!(Overall::of(&Summary { skipped: 40, ..Summary::default() }), Overall::Undecided);
        assert_eq!(Overall::of(&Summary { pass: 1, skipped: 40, ..Summary::default() }), Overall::Fit);
        assert_eq!(Overall::of(&Summary { pass: 9, unknown: 1, ..Summary::default() }), Overall::Undecided);
        assert_eq!(Overall::of(&Summary { fail: 1, unknown: 1, ..Summary::default() }), Overall::Unfit);
    }
}
