//! Errors that the hardware reported and counted.

use plimsoll_model::{Action, ClearsBy, Device, Domain, Origin, SkipWhy};

use crate::{
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "host.memory.edac-uncorrected",
        domain: Domain::Host,
        asks: "Has a memory controller counted uncorrected errors?",
        reads: &["/sys/devices/system/edac/mc/mc*/ue_count"],
        compares: "zero",
        verdicts: "Fails at the first one. One finding a controller.",
        why: "The data that was read is lost; the next one may be a job's weights.",
        clears_by: ClearsBy::NewBoot,
        action: Action::Repair,
        advice: "drain, find the DIMM in the kernel's or the BMC's log, and have it replaced",
        judge: Judge::HostDevices(uncorrected),
    },
    Check {
        id: "host.memory.edac-corrected",
        domain: Domain::Host,
        asks: "Is a memory controller correcting errors right now?",
        reads: &["/sys/devices/system/edac/mc/mc*/ce_count"],
        compares: "no growth between two readings; the total since boot is shown and never judged",
        verdicts: "Warns when the count grew. One finding a controller.",
        why: "Corrected errors that keep coming slow the processor and announce an uncorrected one.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Watch,
        advice: "if it keeps growing, have the DIMM replaced at the next opportunity",
        judge: Judge::HostDevices(corrected),
    },
    Check {
        id: "host.machine-check",
        domain: Domain::Host,
        asks: "Has a processor raised a machine check exception since the boot?",
        reads: &["/proc/interrupts"],
        compares: "zero",
        verdicts: "Fails at the first one.",
        why: "An exception that the machine survived is an uncorrected error in memory, cache or interconnect.",
        clears_by: ClearsBy::NewBoot,
        action: Action::Repair,
        advice: "read the record in the kernel's log (or with rasdaemon, or in the BMC's log), reboot, and repair if it comes back",
        judge: Judge::Host(machine_check),
    },
];

/// One finding a controller, or one for the node when there is none.
fn each_controller(
    context: &HostContext<'_>,
    judge: impl Fn(usize, &plimsoll_model::EdacController) -> Verdicted,
) -> Vec<Judged> {
    let mut draft = Draft::node();
    let controllers =
        match draft.want("memory controllers", &context.now().memory.edac, |all| all.len().to_string()) {
            Ok(controllers) => controllers,
            Err(early) => return vec![*early],
        };
    if controllers.is_empty() {
        return vec![draft.skip(SkipWhy::NotPresent, "no memory controller reports errors to this kernel")];
    }
    controllers.iter().enumerate().map(|(at, one)| judge(at, one).unwrap_or_else(|early| *early)).collect()
}

fn uncorrected(context: &HostContext<'_>) -> Vec<Judged> {
    each_controller(context, |_, controller| {
        let mut draft = Draft::new(Device(controller.name.clone()));
        let count = *draft.need("uncorrected errors", &controller.uncorrected, ToString::to_string)?;
        draft.expect("0", rule());
        let is = format!("{count} uncorrected memory errors since its driver was loaded");
        Ok(if count == 0 { draft.pass(is) } else { draft.fail(is) })
    })
}

fn corrected(context: &HostContext<'_>) -> Vec<Judged> {
    each_controller(context, |at, controller| {
        let mut draft = Draft::new(Device(controller.name.clone()));
        let total = *draft.need("corrected errors", &controller.corrected, ToString::to_string)?;
        let Some(rate) = context.signals.corrected.get(at) else {
            return Ok(draft.skip(
                SkipWhy::NoBaseline,
                format!("{total} corrected errors so far; a rate needs two samples"),
            ));
        };
        let rate = draft.need("growth", rate, ToString::to_string)?;
        draft.expect("no growth", rule());
        Ok(if rate.delta == 0 {
            draft.pass(format!("none in {} ms; {total} so far", rate.over_ms))
        } else {
            draft.warn(format!(
                "{} corrected memory errors in {} ms; {total} so far",
                rate.delta, rate.over_ms
            ))
        })
    })
}

fn machine_check(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let count =
        *draft.want("machine check exceptions", &context.now().machine_checks, ToString::to_string)?;
    draft.expect("0", Origin::Rule { source: "Linux kernel documentation, x86 machine checks".to_owned() });
    let is = format!("{count} machine check exceptions since the boot");
    Ok(if count == 0 { draft.pass(is) } else { draft.fail(is) })
}

fn rule() -> Origin {
    Origin::Rule { source: "Linux kernel documentation, EDAC".to_owned() }
}
