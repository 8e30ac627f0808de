//! One child: started with nothing but a pipe, listened to, ended.

use std::{
    ffi::OsString,
    io::ErrorKind,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use plimsoll_probes::Asked;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process},
};

use super::{
    ending::{Ending, Outcome},
    ledger::process_state,
};
use crate::probe::{Message, Order, PROBE_VERB, Task};

/// Most that a child may say: a node with thousands of mounts and log lines says a tenth of it.
const SAID_BYTES_MAX: usize = 16 << 20;
/// A program's name as this process sees it; also right when the binary was replaced or removed meanwhile.
const OURSELVES: &str = "/proc/self/exe";

/// Something for a child to do.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// What it is about, the same in every run: `host`, `mount /scratch 0:45`.
    pub(crate) subject: String,
    /// What to do.
    pub(crate) task: Task,
    /// What to collect beyond what every probe does.
    pub(crate) asked: Asked,
    /// The tree that stands in for the machine.
    pub(crate) sysroot: Option<OsString>,
}

/// A running child.
#[derive(Debug)]
pub(super) struct Child {
    job: Job,
    process: std::process::Child,
    pipe: OwnedFd,
    unparsed: Vec<u8>,
    said_bytes: usize,
    last_step: Option<String>,
    bug: Option<String>,
    began: Instant,
}

/// What listening to a child came to.
pub(super) enum Heard {
    /// It may say more.
    More,
    /// It said its last, or what it says is broken.
    End(Option<&'static str>),
}

impl Child {
    pub(super) fn start(job: Job, deadline: Instant) -> Result<Self, Box<Outcome>> {
        let began = Instant::now();
        let remaining_ms = u64::try_from(deadline.duration_since(began).as_millis()).unwrap_or(u64::MAX);
        let order = Order { task: job.task.clone(), remaining_ms, asked: job.asked.clone() };
        let started = serde_json::to_string(&order).map_err(std::io::Error::from).and_then(|order| {
            let mut command = Command::new(OURSELVES);
            command.arg0(format!("plimsoll: {}", job.subject)).arg(PROBE_VERB).arg(order);
            command.args(&job.sysroot).current_dir("/");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        });
        let mut process = match started {
            Ok(process) => process,
            Err(error) => return Err(Outcome::new(job, Ending::NotStarted(error.to_string())).into()),
        };
        let Some(pipe) = process.stdout.take().map(OwnedFd::from) else {
            return Err(Outcome::new(job, Ending::NotStarted("it has no pipe".to_owned())).into());
        };
        // A reader that blocks could be held up by a child that says half a line.
        let nonblocking = fcntl_getfl(&pipe).and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK));
        let child = Self {
            job,
            process,
            pipe,
            unparsed: Vec::new(),
            said_bytes: 0,
            last_step: None,
            bug: None,
            began,
        };
        match nonblocking {
            Ok(()) => Ok(child),
            Err(error) => {
                let mut leaving = child.close(false);
                leaving.kill();
                Err(Outcome::new(leaving.job, Ending::NotStarted(std::io::Error::from(error).to_string()))
                    .into())
            }
        }
    }

    pub(super) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Takes in what the child has said by now.
    pub(super) fn listen(&mut self, mut on_message: impl FnMut(&Job, Message)) -> Heard {
        let mut chunk = vec![0_u8; 64 << 10];
        loop {
            match rustix::io::read(&self.pipe, &mut chunk) {
                Ok(0) => return Heard::End(None),
                Ok(count) => {
                    self.said_bytes += count;
                    if self.said_bytes > SAID_BYTES_MAX {
                        return Heard::End(Some("it said more than any probe may"));
                    }
                    self.unparsed.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    if !self.take_lines(&mut on_message) {
                        return Heard::End(Some("what it said makes no sense"));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => {
                    return Heard::More;
                }
                Err(_) => return Heard::End(Some("its pipe broke")),
            }
        }
    }

    fn take_lines(&mut self, on_message: &mut impl FnMut(&Job, Message)) -> bool {
        let Some(end) = self.unparsed.iter().rposition(|byte| *byte == b'\n') else { return true };
        let rest = self.unparsed.split_off(end + 1);
        let lines = std::mem::replace(&mut self.unparsed, rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(Message::Step(step)) => self.last_step = Some(step),
                Ok(Message::Bug(bug)) => self.bug = Some(bug),
                Ok(message) => on_message(&self.job, message),
                Err(_) => return false,
            }
        }
        true
    }

    /// A child that said its last, which means that it is about to go.
    pub(super) fn going(self, broken: Option<&'static str>) -> Going {
        let bug = self.bug.clone();
        Going { leaving: self.close(false), broken, bug }
    }

    /// Closes the pipe, which tells the child to go.
    pub(super) fn close(self, interrupted: bool) -> Leaving {
        let ending = match (interrupted, process_state(self.process.id())) {
            (true, _) => Ending::Interrupted,
            (false, Some('T' | 't')) => Ending::Stopped,
            (false, Some('R')) => Ending::OutOfTime,
            (false, _) => Ending::TimedOut,
        };
        Leaving {
            job: self.job,
            process: self.process,
            status: None,
            ending,
            last_step: self.last_step,
            took: self.began.elapsed(),
        }
    }
}

/// A child that closed its pipe, or was told to go as what it said is broken; its status is still to come. On a busy
/// machine that takes a while, and is no fault of the child's.
#[derive(Debug)]
pub(super) struct Going {
    leaving: Leaving,
    broken: Option<&'static str>,
    bug: Option<String>,
}

impl Going {
    pub(super) fn has_gone(&mut self) -> bool {
        self.leaving.has_gone()
    }

    /// What came of one that has gone.
    pub(super) fn outcome(self) -> Outcome {
        let ending = match (self.broken, self.bug, self.leaving.status) {
            (Some(why), _, _) => Ending::Garbled(why),
            (None, Some(bug), _) => Ending::Bug(bug),
            (None, None, Some(status)) => from_status(status),
            (None, None, None) => Ending::TimedOut,
        };
        Outcome { ending, ..self.leaving.outcome() }
    }

    /// It stayed until the deadline. Something that it had open may keep it.
    pub(super) fn give_up(self) -> Leaving {
        Leaving { ending: Ending::TimedOut, ..self.leaving }
    }
}

fn from_status(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ending::Complete,
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Killed(signal),
        (None, None) => Ending::Exited(-1),
    }
}

/// A child that was told to go.
#[derive(Debug)]
pub(super) struct Leaving {
    job: Job,
    process: std::process::Child,
    status: Option<ExitStatus>,
    ending: Ending,
    last_step: Option<String>,
    took: Duration,
}

impl Leaving {
    pub(super) fn has_gone(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.process.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    pub(super) fn kill(&mut self) {
        if !self.has_gone()
            && let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw)
        {
            // It fails only for a process that is gone.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// What came of it. One that stays in spite of SIGKILL is left.
    pub(super) fn outcome(mut self) -> Outcome {
        if !self.has_gone() {
            self.ending = Ending::LeftStuck(self.process.id());
        }
        Outcome { job: self.job, ending: self.ending, last_step: self.last_step, took: self.took }
    }
}
