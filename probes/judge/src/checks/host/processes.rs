//! Processes that hang, were forgotten, or should be alive.

use std::time::Duration;

use plimsoll_model::{Action, Blame, ClearsBy, Device, Domain, ServiceReading, ServiceState, Verdict};

use crate::{
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "host.processes.blocked",
        domain: Domain::Host,
        asks: "Do processes sit in uninterruptible sleep without moving?",
        reads: &["/proc/*/stat"],
        compares: "the limits blocked_at_once_max and blocked_seconds_max, over two or more readings",
        verdicts: "Warns when many processes do not move at all between two readings, or one does not for long. One \
                   reading proves nothing: every process that waits for storage looks like this for a moment.",
        why: "They wait for a driver or a server that does not answer, and cannot be killed.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see where they wait in /proc/PID/stack; a dead file server or driver is behind it",
        judge: Judge::Host(blocked),
    },
    Check {
        id: "host.processes.zombies",
        domain: Domain::Host,
        asks: "Do ended processes pile up?",
        reads: &["/proc/*/stat"],
        compares: "the limit zombies_max",
        verdicts: "Warns when there are more.",
        why: "A parent that does not wait for its children runs the node out of process ids.",
        clears_by: ClearsBy::GoodReading,
        action: Action::RestartApp,
        advice: "restart the process that is their parent",
        judge: Judge::Host(zombies),
    },
    Check {
        id: "host.services",
        domain: Domain::Host,
        asks: "Are the services alive that should be?",
        reads: &["/sys/fs/cgroup/**/system.slice/NAME.service/cgroup.procs", "/proc/*/stat"],
        compares: "[host] services in the configuration; without it there is nothing to compare with",
        verdicts: "Fails when a service has no living process; a zombie is not alive. Unknown when its unit has processes \
                   and none of its name. One finding a service.",
        why: "A dead slurmd, fabric manager or time daemon is found by the next job otherwise.",
        clears_by: ClearsBy::GoodReading,
        action: Action::RestartApp,
        advice: "systemctl status NAME, and start it again",
        judge: Judge::HostDevices(services),
    },
];

fn blocked(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    draft.need("processes", &context.now().processes, |table| {
        format!("{}, {} of them in uninterruptible sleep", table.total, table.blocked.len())
    })?;
    draft.need("unmoved", &context.signals.blocked, |(tasks, over)| {
        format!("{} over {} ms", tasks.len(), over.as_millis())
    })?;
    let (at_once, origin) = context.limit("blocked_at_once_max");
    let (seconds, _) = context.limit("blocked_seconds_max");
    draft.expect(format!("at most {at_once} at once, none for {seconds} s"), origin);
    // Our own children wait for whatever hangs, and for each other while they are being started.
    let own = |name: &str| name == "exe" || name.starts_with("plimsoll");
    let tasks: Vec<_> = context.state.blocked().iter().filter(|(task, _)| !own(&task.name)).collect();
    let since = context.signals.clock.since_boot;
    let age = |at: &plimsoll_model::SinceBoot| since.map_or(Duration::ZERO, |now| now.since(*at));
    let oldest = tasks.iter().max_by_key(|(_, at)| age(at));
    Ok(match oldest {
        Some((task, at)) if age(at).as_secs_f64() >= seconds => draft.warn(format!(
            "{} (pid {}) has not moved for {} s, and {} others",
            task.name,
            task.pid,
            age(at).as_secs(),
            tasks.len().saturating_sub(1)
        )),
        Some((task, _)) if tasks.len() as f64 > at_once => draft.warn(format!(
            "{} processes or more do not move, {} (pid {}) among them",
            tasks.len(),
            task.name,
            task.pid
        )),
        Some((_, at)) => draft.pass(format!(
            "{} did not move for {} ms; before that nobody watched",
            if tasks.len() == 1 { "one process".to_owned() } else { format!("{} processes", tasks.len()) },
            age(at).as_millis()
        )),
        None => draft.pass("no process waited without moving"),
    })
}

fn zombies(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let table = draft
        .need("zombies", &context.now().processes, |table| format!("{} of {}", table.zombies, table.total))?;
    let (max, origin) = context.limit("zombies_max");
    draft.expect(format!("at most {max}"), origin);
    let is = format!("{} of {} processes are zombies", table.zombies, table.total);
    Ok(if f64::from(table.zombies) <= max { draft.pass(is) } else { draft.warn(is) })
}

fn services(context: &HostContext<'_>) -> Vec<Judged> {
    let services = &context.now().services;
    if services.is_empty() {
        return vec![Draft::node().incomparable("no service is named in the configuration", "host.services")];
    }
    services.iter().map(|one| service(context, one).unwrap_or_else(|early| *early)).collect()
}

fn service(context: &HostContext<'_>, service: &ServiceReading) -> Verdicted {
    let mut draft = Draft::new(Device(service.name.clone()));
    draft.need("processes", &context.now().processes, |table| table.total.to_string())?;
    let state = draft.need("alive", &service.state, |state| match state {
        ServiceState::Alive(count) => format!("{count} processes"),
        ServiceState::Unrecognised(count) => format!("{count} processes of other names"),
        ServiceState::Dead => "none".to_owned(),
    })?;
    draft.expect("alive", context.config.origin());
    Ok(match state {
        ServiceState::Alive(count) => draft.pass(format!("alive, processes: {count}")),
        ServiceState::Unrecognised(count) => {
            let blame = Blame::Plimsoll;
            let judged = draft.end(
                Verdict::Unknown { blame },
                format!("its unit has {count} living processes, none of its name: another name, or what a dead one left"),
            );
            let advice = "name the process too, as UNIT=PROCESS: `nvidia-fabricmanager=nv-fabricmanager`";
            Judged { action: Some(Action::None), advice: Some(advice.to_owned()), ..judged }
        }
        ServiceState::Dead => draft.fail(format!("{} is not alive", service.name)),
    })
}
