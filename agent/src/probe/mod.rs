//! The child's side: collects one domain or asks one mount, and says so through its only pipe.
//!
//! A child may hang for ever in a call that nothing interrupts. So it holds nothing but `/dev/null` and that pipe, is in
//! a session of its own, and ends by itself when the parent closes the pipe or its time is up.

mod protocol;
mod watcher;

use std::{
    ffi::OsStr,
    io::Write as _,
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use plimsoll_judge::{Data, DataError};
use plimsoll_probes::{
    Machine,
    gpu::nvml,
    parse, sample_gpu, sample_host, sample_storage,
    storage::{ask_mount, health},
};

use crate::config_file;

use protocol::GAP;
pub(crate) use protocol::{DriveAnswer, Message, Order, PROBE_VERB, STEP_BETWEEN, Setup, Task};

/// Time in which a child says which call of the driver's library has not returned.
const SAY_SO: Duration = Duration::from_millis(100);

/// What the parent is told goes through here, one JSON object a line.
type Pipe = Arc<Mutex<std::io::Stdout>>;

fn tell(pipe: &Pipe, message: &Message) {
    let Ok(mut line) = serde_json::to_vec(message) else { return };
    line.push(b'\n');
    let mut out = pipe.lock().unwrap_or_else(PoisonError::into_inner);
    // A parent that is gone does not care, and the watcher ends us.
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

/// Runs a child: `order` is JSON, `sysroot` the tree that stands in for the machine.
pub(crate) fn run(order: &str, sysroot: Option<&OsStr>) -> ExitCode {
    let began = Instant::now();
    // Fails only for the leader of a process group, which a child of ours is not.
    let _ = rustix::process::setsid();
    // Started through /proc/self/exe it would be called `exe`.
    let _ = rustix::thread::set_name(c"plimsoll-probe");
    let no_core = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, no_core);
    let Ok(order) = serde_json::from_str::<Order>(order) else { return ExitCode::from(2) };
    if watcher::start(Duration::from_millis(order.remaining_ms)).is_err() {
        return ExitCode::from(3);
    }
    let pipe: Pipe = Arc::new(Mutex::new(std::io::stdout()));
    let hook_pipe = Arc::clone(&pipe);
    std::panic::set_hook(Box::new(move |info| tell(&hook_pipe, &Message::Bug(info.to_string()))));
    let step_pipe = Arc::clone(&pipe);
    let on_step = move |step: &str| tell(&step_pipe, &Message::Step(step.to_owned()));
    let machine = match sysroot {
        None => Machine::live(),
        Some(path) => match Machine::tree(Path::new(path)) {
            Ok(machine) => machine,
            Err(error) => {
                tell(&pipe, &Message::BadTree(error.to_string()));
                return ExitCode::SUCCESS;
            }
        },
    }
    .telling(on_step);
    match collect(&order, &machine, &pipe, began) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&pipe, &Message::Bug(error.to_string()));
            ExitCode::from(3)
        }
    }
}

fn collect(order: &Order, machine: &Machine, pipe: &Pipe, began: Instant) -> Result<(), DataError> {
    let twice = |sample: &dyn Fn() -> plimsoll_model::Sample| {
        tell(pipe, &Message::Sample(Box::new(sample())));
        machine.step(STEP_BETWEEN);
        std::thread::sleep(GAP);
        tell(pipe, &Message::Sample(Box::new(sample())));
    };
    match &order.task {
        Task::Host => {
            let data = Data::built_in()?;
            twice(&|| sample_host(machine, &data, &order.asked));
        }
        Task::Gpu => twice(&|| sample_gpu(machine, &order.asked)),
        Task::Nvml(library) => {
            // A call that hangs is named by us, while there is time for it.
            let deadline = began + Duration::from_millis(order.remaining_ms).saturating_sub(SAY_SO);
            let on_step = |step: &str| machine.step(step);
            nvml::ask(library, GAP, deadline, on_step, |told| tell(pipe, &Message::Nvml(Box::new(told))));
            // The library's own threads and exit handlers may hang as its calls do.
            watcher::leave();
        }
        Task::Storage => {
            let data = Data::built_in()?;
            twice(&|| sample_storage(machine, &data));
        }
        Task::Mount(point) => tell(pipe, &Message::Mount(Box::new(ask_mount(machine, point)))),
        Task::Drive(name) => tell(pipe, &Message::Drive(Box::new(ask_drive(machine, name)))),
        Task::Setup(config) => {
            machine.step("the configuration");
            let config = config_file::read(machine, config.as_deref());
            let hostname =
                machine.text("/proc/sys/kernel/hostname").and_then(|text| parse::one_line(&text)).ok();
            tell(pipe, &Message::Setup(Box::new(Setup { config, hostname })));
        }
    }
    Ok(())
}

fn ask_drive(machine: &Machine, name: &str) -> DriveAnswer {
    machine.begin_sample();
    let first = health(machine, name);
    let second = if first.ok().is_some() {
        std::thread::sleep(GAP);
        health(machine, name)
    } else {
        first.clone()
    };
    DriveAnswer { name: name.to_owned(), readings: [first, second] }
}
