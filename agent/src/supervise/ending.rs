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
    /// It did not finish in time and was ended. It was busy, and not waiting, when it was.
    OutOfTime,
    /// It waited for something when its time was up, and was ended.
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

    /// What happened, for people.
    pub(crate) fn told(&self) -> String {
        let took = self.took.as_secs_f64();
        match &self.ending {
            Ending::OutOfTime => format!("it was not done within {took:.1} s"),
            Ending::TimedOut => format!("no answer within {took:.1} s"),
            Ending::LeftStuck(pid) => {
                format!("no answer within {took:.1} s; the probe (pid {pid}) cannot be killed and was left")
            }
            Ending::StillStuck(stuck) => {
                format!("a probe of an earlier run (pid {}) still hangs in it; none was started", stuck.pid)
            }
            Ending::Stopped => "the probe was stopped (SIGSTOP) from outside".to_owned(),
            Ending::Killed(signal) => format!("the probe was killed by signal {signal}"),
            Ending::Complete => "the probe said nothing".to_owned(),
            Ending::Exited(code) => format!("the probe ended with status {code}"),
            Ending::Garbled(why) => format!("the probe: {why}"),
            Ending::Bug(bug) => format!("this is a bug in plimsoll: {bug}"),
            Ending::NotStarted(error) => format!("cannot start a probe: {error}"),
            Ending::NoTime => "no time was left to ask".to_owned(),
            Ending::Interrupted => "interrupted before the answer".to_owned(),
        }
    }
}
