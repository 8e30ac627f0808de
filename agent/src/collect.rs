//! Collecting a node: each domain and each mount in a child process, all under one deadline.

use std::{collections::BTreeSet, ffi::OsString, time::Instant};

use jiff::Timestamp;
use plimsoll_judge::{Config, Data, mounts_to_ask};
use plimsoll_model::{
    Absence, Absent, Blame, Body, Clock, Domain, Failure, MountAnswer, MountPoint, Reading, SAMPLE_VERSION,
    Sample,
};
use plimsoll_probes::Asked;

use crate::{
    probe::{Message, STEP_BETWEEN, Task},
    supervise::{Ending, Interrupts, Job, Ledger, Outcome, run},
};

/// What to collect.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) domains: BTreeSet<Domain>,
    pub(crate) config: &'a Config,
    pub(crate) data: &'a Data,
    pub(crate) sysroot: Option<OsString>,
    pub(crate) admit_injected_log: bool,
}

/// Two samples of each domain, in time; or, for a domain, one that says why there are none.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) samples: Vec<(Option<Sample>, Sample)>,
    pub(crate) interrupted: bool,
}

/// Collects until `deadline` at the latest.
pub(crate) fn collect(wanted: &Wanted<'_>, deadline: Instant, interrupts: &Interrupts) -> Collected {
    // A tree's mounts are lines in a file; nothing there can hang for ever.
    let ledger = if wanted.sysroot.is_none() { Ledger::open() } else { None };
    let mut heard: Vec<(Domain, Sample)> = Vec::new();
    let mut answers: Vec<MountAnswer> = Vec::new();
    let jobs = wanted.domains.iter().map(|domain| domain_job(wanted, *domain)).collect();
    let pack = run(jobs, deadline, ledger.as_ref(), interrupts, |job, message| {
        match (message, domain_of(&job.task)) {
            (Message::Sample(sample), Some(domain)) if sample.body.domain() == domain => {
                let is_first = !heard.iter().any(|(known, _)| *known == domain);
                let mounts = if is_first { mount_jobs(wanted, &sample) } else { Vec::new() };
                heard.push((domain, *sample));
                mounts
            }
            (Message::Mount(answer), None) => {
                answers.push(*answer);
                Vec::new()
            }
            _ => Vec::new(),
        }
    });
    for outcome in &pack.outcomes {
        if let Task::Mount(point) = &outcome.job.task
            && !answers.iter().any(|answer| answer.point == *point)
        {
            answers.push(no_answer(point, outcome));
        }
    }
    let samples = wanted.domains.iter().map(|domain| {
        let outcome = pack.outcomes.iter().find(|outcome| domain_of(&outcome.job.task) == Some(*domain));
        let of_domain = heard.iter().filter(|(known, _)| known == domain).map(|(_, sample)| sample.clone());
        pair(*domain, of_domain.collect(), outcome, &answers)
    });
    Collected { samples: samples.collect(), interrupted: pack.interrupted }
}

fn domain_job(wanted: &Wanted<'_>, domain: Domain) -> Job {
    let asked = Asked {
        services: wanted.config.host.services.clone(),
        admit_injected_log: wanted.admit_injected_log,
    };
    let task = match domain {
        Domain::Host => Task::Host,
        Domain::Storage => Task::Storage,
    };
    Job { subject: domain.to_string(), task, asked, sysroot: wanted.sysroot.clone() }
}

const fn domain_of(task: &Task) -> Option<Domain> {
    match task {
        Task::Host => Some(Domain::Host),
        Task::Storage => Some(Domain::Storage),
        Task::Mount(_) => None,
    }
}

fn mount_jobs(wanted: &Wanted<'_>, sample: &Sample) -> Vec<Job> {
    let Body::Storage(storage) = &sample.body else { return Vec::new() };
    let job = |mount: &plimsoll_model::Mount| Job {
        // With its device number: another file system mounted at the same place is another subject.
        subject: format!("mount {} {}", mount.point, mount.device_number),
        task: Task::Mount(mount.point.clone()),
        asked: Asked::default(),
        sysroot: wanted.sysroot.clone(),
    };
    mounts_to_ask(storage, wanted.config, wanted.data).into_iter().map(job).collect()
}

/// The two samples of a domain, the mounts' answers added; or a failed one when its child did not bring both.
fn pair(
    domain: Domain,
    mut samples: Vec<Sample>,
    outcome: Option<&Outcome>,
    answers: &[MountAnswer],
) -> (Option<Sample>, Sample) {
    for sample in &mut samples {
        if let Body::Storage(storage) = &mut sample.body {
            storage.answers = answers.to_vec();
        }
    }
    let mut samples = samples.into_iter();
    match (samples.next(), samples.next(), outcome.map(|outcome| &outcome.ending)) {
        (Some(first), Some(second), Some(Ending::Complete)) => (Some(first), second),
        _ => {
            let clock = Clock { wall: Timestamp::now(), since_boot: None, boot_id: None };
            let body = Body::Failed { domain, failure: failure(domain, outcome) };
            (None, Sample { version: SAMPLE_VERSION, clock, body })
        }
    }
}

/// Why a domain brought nothing, and whose fault that is.
fn failure(domain: Domain, outcome: Option<&Outcome>) -> Failure {
    let say = |blame, reason: String, advice: &str| Failure { blame, reason, advice: advice.to_owned() };
    let own = |reason: String| say(Blame::Plimsoll, reason, "run plimsoll again; report it if it comes back");
    let Some(outcome) = outcome else {
        return own(format!("the {domain} probe was never started"));
    };
    let step = outcome.last_step.as_deref();
    let at = step.map_or(String::new(), |step| format!(" while reading {step}"));
    let took = outcome.took.as_secs_f64();
    match &outcome.ending {
        Ending::TimedOut if matches!(step, None | Some(STEP_BETWEEN)) => say(
            Blame::Plimsoll,
            format!("the {domain} probe had too little time ({took:.1} s)"),
            "give it more with --budget; look for what keeps the processors busy",
        ),
        Ending::TimedOut => say(
            Blame::Device,
            format!("the {domain} probe hung{at} and was ended after {took:.1} s"),
            "see what hangs there",
        ),
        Ending::LeftStuck(pid) => say(
            Blame::Device,
            format!("the {domain} probe (pid {pid}) hangs{at} and cannot be killed"),
            "see where it waits in /proc/PID/stack; such a process goes only with a reboot or when what it waits for answers",
        ),
        Ending::StillStuck(stuck) => say(
            Blame::Device,
            format!(
                "a {domain} probe of an earlier run (pid {}) still hangs and cannot be killed; none was started",
                stuck.pid
            ),
            "see where it waits in /proc/PID/stack; such a process goes only with a reboot or when what it waits for answers",
        ),
        Ending::Stopped => own(format!("the {domain} probe was stopped (SIGSTOP) from outside{at}")),
        Ending::Killed(signal) => own(format!("the {domain} probe was killed by signal {signal}{at}")),
        Ending::Complete => own(format!("the {domain} probe did not say all{at}")),
        Ending::Exited(code) => own(format!("the {domain} probe ended with status {code}{at}")),
        Ending::Garbled(why) => own(format!("the {domain} probe: {why}{at}")),
        Ending::Bug(bug) => own(format!("this is a bug in plimsoll: the {domain} probe: {bug}")),
        Ending::NotStarted(error) => own(format!("cannot start the {domain} probe: {error}")),
        Ending::NoTime => own(format!("no time was left for the {domain} probe; give it more with --budget")),
        Ending::Interrupted => own(format!("interrupted before the {domain} probe was done")),
    }
}

/// What stands for the answer of a mount that gave none.
fn no_answer(point: &MountPoint, outcome: &Outcome) -> MountAnswer {
    let at = outcome.last_step.clone().unwrap_or_else(|| format!("statvfs({point})"));
    let took = outcome.took.as_secs_f64();
    let (kind, detail) = match &outcome.ending {
        Ending::TimedOut => (Absence::TimedOut, format!("no answer within {took:.1} s")),
        Ending::LeftStuck(pid) => (
            Absence::TimedOut,
            format!("no answer within {took:.1} s; the probe (pid {pid}) cannot be killed and was left"),
        ),
        Ending::StillStuck(stuck) => (
            Absence::TimedOut,
            format!("a probe of an earlier run (pid {}) still hangs in it; none was started", stuck.pid),
        ),
        Ending::Stopped => (Absence::NotAsked, "the probe was stopped (SIGSTOP) from outside".to_owned()),
        Ending::Killed(signal) => (Absence::NotAsked, format!("the probe was killed by signal {signal}")),
        Ending::Complete => (Absence::NotAsked, "the probe said nothing".to_owned()),
        Ending::Exited(code) => (Absence::NotAsked, format!("the probe ended with status {code}")),
        Ending::Garbled(why) => (Absence::NotAsked, format!("the probe: {why}")),
        Ending::Bug(bug) => (Absence::NotAsked, format!("this is a bug in plimsoll: {bug}")),
        Ending::NotStarted(error) => (Absence::NotAsked, format!("cannot start a probe: {error}")),
        Ending::NoTime => (Absence::NotAsked, "no time was left to ask it".to_owned()),
        Ending::Interrupted => (Absence::NotAsked, "interrupted before it answered".to_owned()),
    };
    let absent = Absent::new(kind, detail);
    MountAnswer {
        point: point.clone(),
        space: Reading::new(at.clone(), 0, Err(absent.clone())),
        write: Reading::new(at, 0, Err(absent)),
        took_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
    }
}
