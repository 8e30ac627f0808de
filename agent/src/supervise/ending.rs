//! How a child's work ended, and what that means.

use std::time::Duration;

use super::{Job, ledger::Stuck};

/// How a child's work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It said everything and went.
    Complete,
    /// It went with this status.
    Exited(i32),
    /// A signal that was not ours ended it.
    Killed(i32),
    /// It did not finish in time and was ended.
    TimedOut,
    /// It did not finish in time because somebody had stopped it; it was ended.
    Stopped,
    /// It did not finish in time and cannot be ended; it is written down.
    LeftStuck(u32),
    /// One from an earlier run still cannot be ended, so none was started.
    StillStuck(Stuck),
    /// It said more than it may, or nothing that makes sense.
    Garbled(&'static str),
    /// It met a bug of ours.
    Bug(String),
    /// It could not be started.
    NotStarted(String),
    /// The time was up before its turn came.
    NoTime,
    /// A signal ended the whole command first.
    Interrupted,
}

/// What came of one job.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The job.
    pub(crate) job: Job,
    /// How it ended.
    pub(crate) ending: Ending,
    /// What it was about to read when it was last heard of.
    pub(crate) last_step: Option<String>,
    /// How long it ran.
    pub(crate) took: Duration,
}

impl Outcome {
    pub(super) fn new(job: Job, ending: Ending) -> Self {
        Self { job, ending, last_step: None, took: Duration::ZERO }
    }

    pub(super) fn never(job: Job, interrupted: bool) -> Self {
        Self::new(job, if interrupted { Ending::Interrupted } else { Ending::NoTime })
    }
}
