//! Collecting a node: each domain and each mount in a child process, all under one deadline.

mod nvml;

use std::{collections::BTreeSet, ffi::OsString, time::Instant};

use jiff::Timestamp;
use plimsoll_judge::{Config, Data, MOUNTS_ASKED_MAX, mounts_to_ask};
use plimsoll_model::{
    Absence, Absent, Blame, Body, Clock, Domain, Failure, Mount, MountAnswer, MountPoint, NvmeController,
    Reading, SAMPLE_VERSION, Sample, StorageSample,
};
use plimsoll_probes::{Asked, gpu::nvml::LIBRARY};

use nvml::NvmlAnswer;

use crate::{
    probe::{DriveAnswer, Message, STEP_BETWEEN, Setup, Task},
    supervise::{Ending, Interrupts, Job, Ledger, Outcome, run},
};

/// What to collect.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) domains: BTreeSet<Domain>,
    pub(crate) config: &'a Config,
    pub(crate) data: &'a Data,
    pub(crate) sysroot: Option<OsString>,
    /// The driver's library, when it is not the system's.
    pub(crate) nvml: Option<String>,
    pub(crate) topology: bool,
    pub(crate) admit_injected_log: bool,
}

/// Two samples of each domain, in time; or, for a domain, one that says why there are none.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) samples: Vec<Pair>,
    pub(crate) interrupted: bool,
}

/// The two samples of one domain.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) first: Option<Sample>,
    pub(crate) second: Sample,
    /// When the second arrived here: the node's clocks have gone on since.
    pub(crate) arrived: Instant,
}

/// What children that were asked about one thing each have said.
#[derive(Default)]
struct Answers {
    mounts: Vec<MountAnswer>,
    drives: Vec<DriveAnswer>,
    nvml: NvmlAnswer,
}

/// What must be known before anything is collected, or why it cannot be.
pub(crate) fn setup(
    config: Option<String>,
    sysroot: Option<OsString>,
    deadline: Instant,
    interrupts: &Interrupts,
) -> Result<Setup, SetupError> {
    let mut answer = None;
    let job =
        Job { subject: "setup".to_owned(), task: Task::Setup(config), asked: Asked::default(), sysroot };
    let pack = run(vec![job], deadline, None, interrupts, |_, message| {
        match message {
            Message::Setup(setup) => answer = Some(Ok(*setup)),
            Message::BadTree(error) => answer = Some(Err(SetupError::Tree(error))),
            _ => {}
        }
        Vec::new()
    });
    match (answer, pack.outcomes.first()) {
        (Some(answer), _) => answer,
        (None, _) if pack.interrupted => Err(SetupError::Interrupted),
        (None, Some(outcome)) => Err(SetupError::Silent(outcome.told())),
        (None, None) => Err(SetupError::Silent("it was never started".to_owned())),
    }
}

/// The configuration could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("{0}")]
    Tree(String),
    #[error("interrupted before anything was collected")]
    Interrupted,
    #[error("nothing was judged, as reading the configuration came to nothing: {0}")]
    Silent(String),
}

/// Collects until `deadline` at the latest.
pub(crate) fn collect(wanted: &Wanted<'_>, deadline: Instant, interrupts: &Interrupts) -> Collected {
    // A tree's mounts are lines in a file; nothing there can hang for ever.
    let ledger = if wanted.sysroot.is_none() { Ledger::open() } else { None };
    let mut heard: Vec<(Domain, Sample, Instant)> = Vec::new();
    let mut answers = Answers::default();
    let jobs = wanted.domains.iter().flat_map(|domain| domain_jobs(wanted, *domain)).collect();
    let pack = run(jobs, deadline, ledger.as_ref(), interrupts, |job, message| {
        match (message, domain_of(&job.task)) {
            (Message::Sample(sample), Some(domain)) if sample.body.domain() == domain => {
                let is_first = !heard.iter().any(|(known, ..)| *known == domain);
                let jobs = if is_first { jobs_for(wanted, &sample) } else { Vec::new() };
                heard.push((domain, *sample, Instant::now()));
                jobs
            }
            (Message::Mount(answer), None) => {
                answers.mounts.push(*answer);
                Vec::new()
            }
            (Message::Nvml(told), None) => {
                answers.nvml.hear(*told);
                Vec::new()
            }
            (Message::Drive(answer), None) => {
                answers.drives.push(*answer);
                Vec::new()
            }
            _ => Vec::new(),
        }
    });
    answers.fill(&pack.outcomes);
    let samples = wanted.domains.iter().map(|domain| {
        let outcome = pack.outcomes.iter().find(|outcome| domain_of(&outcome.job.task) == Some(*domain));
        let of_domain = heard.iter().filter(|(known, ..)| known == domain);
        pair(*domain, of_domain.map(|(_, sample, at)| (sample.clone(), *at)).collect(), outcome, &answers)
    });
    Collected { samples: samples.collect(), interrupted: pack.interrupted }
}

impl Answers {
    /// Says for each that gave no answer why.
    fn fill(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            match &outcome.job.task {
                Task::Mount(point) if !self.mounts.iter().any(|answer| answer.point == *point) => {
                    self.mounts.push(no_answer(point, outcome));
                }
                Task::Drive(name) if !self.drives.iter().any(|answer| answer.name == *name) => {
                    let silent = Reading::new(format!("/dev/{name}"), 0, Err(absent(outcome)));
                    self.drives.push(DriveAnswer { name: name.clone(), readings: [silent.clone(), silent] });
                }
                Task::Nvml(library) => self.nvml.end(library, outcome),
                _ => {}
            }
        }
    }

    /// Puts the answers into the first or second sample.
    fn put_into(&self, storage: &mut StorageSample, which: usize) {
        storage.answers.clone_from(&self.mounts);
        let plimsoll_model::Outcome::Value(controllers) = &mut storage.nvme.outcome else { return };
        for controller in controllers {
            let answer = self.drives.iter().find(|answer| answer.name == controller.name);
            if let Some(reading) = answer.and_then(|answer| answer.readings.get(which)) {
                controller.smart.clone_from(reading);
            }
        }
    }
}

fn domain_jobs(wanted: &Wanted<'_>, domain: Domain) -> Vec<Job> {
    let asked = Asked {
        services: wanted.config.host.services.clone(),
        admit_injected_log: wanted.admit_injected_log,
        topology: wanted.topology,
    };
    let task = match domain {
        Domain::Host => Task::Host,
        Domain::Gpu => Task::Gpu,
        Domain::Storage => Task::Storage,
    };
    let job =
        |subject: String, task| Job { subject, task, asked: asked.clone(), sysroot: wanted.sysroot.clone() };
    let mut jobs = vec![job(domain.to_string(), task)];
    // A tree has no driver; whoever wants its GPUs asked names a library that answers for it.
    let library = wanted.nvml.clone().or_else(|| wanted.sysroot.is_none().then(|| LIBRARY.to_owned()));
    if let Some(library) = library.filter(|_| domain == Domain::Gpu) {
        jobs.push(job("the driver's library".to_owned(), Task::Nvml(library)));
    }
    jobs
}

const fn domain_of(task: &Task) -> Option<Domain> {
    match task {
        Task::Host => Some(Domain::Host),
        Task::Gpu => Some(Domain::Gpu),
        Task::Storage => Some(Domain::Storage),
        Task::Nvml(_) | Task::Mount(_) | Task::Drive(_) | Task::Setup(_) => None,
    }
}

/// Each mount and each drive that the first sample of storage names is asked by itself.
fn jobs_for(wanted: &Wanted<'_>, sample: &Sample) -> Vec<Job> {
    let Body::Storage(storage) = &sample.body else { return Vec::new() };
    let job = |subject: String, task: Task| Job {
        subject,
        task,
        asked: Asked::default(),
        sysroot: wanted.sysroot.clone(),
    };
    let mounts = mounts_to_ask(storage, wanted.config, wanted.data).into_iter().take(MOUNTS_ASKED_MAX);
    // With its device number: another file system mounted at the same place is another subject.
    let of_mount = |mount: &Mount| {
        job(format!("mount {} {}", mount.point, mount.device_number), Task::Mount(mount.point.clone()))
    };
    let is_asked =
        |drive: &&NvmeController| matches!(drive.smart.get(), Err(a) if a.kind == Absence::NotAsked);
    let drives = storage.nvme.ok().into_iter().flatten().filter(is_asked);
    let of_drive =
        |drive: &NvmeController| job(format!("drive {}", drive.name), Task::Drive(drive.name.clone()));
    mounts.map(of_mount).chain(drives.map(of_drive)).collect()
}

/// The two samples of a domain, the answers added; or a failed one when its child did not bring both.
fn pair(
    domain: Domain,
    mut samples: Vec<(Sample, Instant)>,
    outcome: Option<&Outcome>,
    answers: &Answers,
) -> Pair {
    for (which, (sample, _)) in samples.iter_mut().enumerate() {
        match &mut sample.body {
            Body::Storage(storage) => answers.put_into(storage, which),
            Body::Gpu(gpu) => {
                if let Some(nvml) = answers.nvml.sample(which) {
                    gpu.nvml = nvml;
                }
            }
            Body::Host(_) | Body::Failed { .. } => {}
        }
    }
    let mut samples = samples.into_iter();
    match (samples.next(), samples.next(), outcome.map(|outcome| &outcome.ending)) {
        (Some((first, _)), Some((second, arrived)), Some(Ending::Complete)) => {
            Pair { first: Some(first), second, arrived }
        }
        // Somebody stopped the command, not the node: what was read by then is kept, without rates.
        (Some((first, arrived)), _, Some(Ending::Interrupted)) => {
            Pair { first: None, second: first, arrived }
        }
        _ => {
            let clock = Clock { wall: Timestamp::now(), since_boot: None, boot_id: None };
            let body = Body::Failed { domain, failure: failure(domain, outcome) };
            let second = Sample { version: SAMPLE_VERSION, clock, body };
            Pair { first: None, second, arrived: Instant::now() }
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
        Ending::OutOfTime => say(
            Blame::Plimsoll,
            format!("the {domain} probe was not done within {took:.1} s{at}"),
            "give it more with --budget; look for what keeps the processors busy",
        ),
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
    MountAnswer {
        point: point.clone(),
        space: Reading::new(at.clone(), 0, Err(absent(outcome))),
        write: Reading::new(at, 0, Err(absent(outcome))),
        took_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Why one thing that was asked by itself gave no answer. Silence is its own fault, everything else ours.
fn absent(outcome: &Outcome) -> Absent {
    let kind = match outcome.ending {
        Ending::TimedOut | Ending::LeftStuck(_) | Ending::StillStuck(_) => Absence::TimedOut,
        _ => Absence::NotAsked,
    };
    Absent::new(kind, outcome.told())
}
