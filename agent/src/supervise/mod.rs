//! The parent's side: starts children, listens to them until a deadline, ends them, and never waits without a limit.

mod child;
mod ending;
mod ledger;
mod signals;

use std::{
    collections::VecDeque,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::probe::Message;
use child::{Child, Going, Heard};

pub(crate) use child::Job;
pub(crate) use ending::{Ending, Outcome};
pub(crate) use ledger::Ledger;
pub(crate) use signals::Interrupts;

/// Children at one time. Each that hangs holds its place until the deadline, so this is more than any node's dead
/// mounts; children that do not hang come and go in milliseconds.
const CHILDREN_MAX: usize = 64;
/// Time that a child has to go after its pipe was closed, and again after it was killed.
const END_WAIT: Duration = Duration::from_millis(40);
/// How often a child that closed its pipe is looked after.
const GOING_LOOK: Duration = Duration::from_millis(1);

/// What came of a pack of children.
#[derive(Debug, Default)]
pub(crate) struct Pack {
    /// How each job ended, in no particular order.
    pub(crate) outcomes: Vec<Outcome>,
    /// A signal ended it early.
    pub(crate) interrupted: bool,
}

/// Runs jobs until all have ended, the deadline is reached, or a signal arrives. `on_message` is told what each child
/// says, and may give further jobs.
pub(crate) fn run(
    jobs: Vec<Job>,
    deadline: Instant,
    ledger: Option<&Ledger>,
    interrupts: &Interrupts,
    mut on_message: impl FnMut(&Job, Message) -> Vec<Job>,
) -> Pack {
    let mut queue = VecDeque::from(jobs);
    let mut running: Vec<Child> = Vec::new();
    let mut going: Vec<Going> = Vec::new();
    let mut pack = Pack::default();
    loop {
        while running.len() < CHILDREN_MAX
            && Instant::now() < deadline
            && let Some(job) = queue.pop_front()
        {
            match start(job, deadline, ledger) {
                Ok(child) => running.push(child),
                Err(outcome) => pack.outcomes.push(*outcome),
            }
        }
        pack.outcomes.extend(going.extract_if(.., Going::has_gone).map(Going::outcome));
        if running.is_empty() && going.is_empty() && queue.is_empty() {
            return pack;
        }
        let now = Instant::now();
        pack.interrupted = pack.interrupted || interrupts.arrived();
        if pack.interrupted || now >= deadline {
            break;
        }
        let left = deadline.duration_since(now);
        wait(&running, interrupts, if going.is_empty() { left } else { left.min(GOING_LOOK) });
        let mut at = 0;
        while let Some(child) = running.get_mut(at) {
            match child.listen(|job, message| queue.extend(on_message(job, message))) {
                Heard::More => at += 1,
                Heard::End(broken) => {
                    going.push(running.swap_remove(at).going(broken));
                }
            }
        }
    }
    let interrupted = pack.interrupted;
    let never = queue.into_iter().map(|job| Outcome::never(job, interrupted));
    pack.outcomes.extend(never);
    let leaving = running.into_iter().map(|child| child.close(interrupted));
    let ended = end_all(leaving.chain(going.into_iter().map(Going::give_up)).collect());
    if let Some(ledger) = ledger {
        let stuck = ended.iter().filter_map(|outcome| match outcome.ending {
            Ending::LeftStuck(pid) => Some((outcome.job.subject.clone(), pid)),
            _ => None,
        });
        ledger.record(&stuck.collect::<Vec<_>>());
    }
    pack.outcomes.extend(ended);
    pack
}

fn start(job: Job, deadline: Instant, ledger: Option<&Ledger>) -> Result<Child, Box<Outcome>> {
    if let Some(stuck) = ledger.and_then(|ledger| ledger.still_stuck(&job.subject)) {
        return Err(Outcome::new(job, Ending::StillStuck(stuck)).into());
    }
    Child::start(job, deadline)
}

fn wait(running: &[Child], interrupts: &Interrupts, at_most: Duration) {
    let mut fds: Vec<_> =
        running.iter().map(|child| PollFd::from_borrowed_fd(child.pipe(), PollFlags::IN)).collect();
    fds.push(PollFd::from_borrowed_fd(interrupts.as_fd(), PollFlags::IN));
    let timeout = Timespec::try_from(at_most).ok();
    // An error is an interruption; the loop looks at the clock and everybody's pipe in any case.
    let _ = poll(&mut fds, timeout.as_ref());
}

/// Ends children all together: by closing their pipes, then by signal; whoever is left is written down and left.
fn end_all(mut leaving: Vec<child::Leaving>) -> Vec<Outcome> {
    let gone = |leaving: &mut Vec<child::Leaving>| {
        let until = Instant::now() + END_WAIT;
        while leaving.iter_mut().any(|child| !child.has_gone()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    gone(&mut leaving);
    leaving.iter_mut().for_each(child::Leaving::kill);
    gone(&mut leaving);
    leaving.into_iter().map(child::Leaving::outcome).collect()
}
