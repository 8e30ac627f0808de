//! The rule that all kernel-log checks share.

use std::time::Duration;

use plimsoll_model::{Absence, Absent, ClearsBy, Device, KernelLog};

use crate::{
    context::HostContext,
    draft::{Draft, Judged},
    state::LogFault,
};

/// Judges what the log says for one check: a finding a device that lines speak of, or one for the node.
pub(crate) fn judge(context: &HostContext<'_>, check: &str) -> Vec<Judged> {
    match judged(context, check) {
        Ok(judged) => judged,
        Err(early) => vec![*early],
    }
}

fn judged(context: &HostContext<'_>, check: &str) -> Result<Vec<Judged>, Box<Judged>> {
    let mut draft = Draft::node();
    let reading = &context.now().log;
    let clock = context.signals.clock;
    let log = draft.need("kernel log", reading, |log| format!("{} records", log.records))?;
    let absent = |what: &str, source: &str| {
        let absent =
            plimsoll_model::Absent::new(plimsoll_model::Absence::Unreadable, "the node does not tell");
        Box::new(draft.clone().absent(what, &absent, source, false))
    };
    let boot_id =
        clock.boot_id.as_ref().ok_or_else(|| absent("boot id", "/proc/sys/kernel/random/boot_id"))?;
    let now = clock.since_boot.ok_or_else(|| absent("time since boot", "/proc/uptime"))?;
    draft.saw("boot id", &boot_id.0, "/proc/sys/kernel/random/boot_id");
    draft.saw("up", humantime::format_duration(Duration::from_secs(now.0 / 1000)), "/proc/uptime");
    if log.events_lost > 0 {
        draft.saw("older lines that did not fit", log.events_lost, &reading.source);
    }

    let age = |fault: &LogFault| Duration::from_secs(now.0.saturating_sub(fault.last_us / 1000) / 1000);
    let stands = |fault: &&LogFault| fault.window.is_none_or(|window| age(fault) < window);
    let mut devices: Vec<&Device> =
        context.state.log_faults(check).filter(stands).map(|fault| &fault.device).collect();
    devices.sort();
    devices.dedup();
    if devices.is_empty() && log.events_lost > 0 {
        let absent =
            Absent::new(Absence::TooLarge, format!("{} lines more than can be kept", log.events_lost));
        return Ok(vec![draft.absent("kernel log", &absent, &reading.source, false)]);
    }
    if devices.is_empty() {
        return Ok(vec![
            draft.pass(format!("no such line in the kernel's log, which reaches back {}", reach(log, now.0))),
        ]);
    }
    let of_device = |device: &Device| {
        let mut draft = draft.clone_for(device.clone());
        let mut faults: Vec<_> =
            context.state.log_faults(check).filter(stands).filter(|fault| fault.device == *device).collect();
        faults.sort_by_key(|fault| (!fault.fails, fault.place(context.data)));
        let mut reason = String::new();
        for fault in &faults {
            draft.saw("line", &fault.last_text, &reading.source);
            if reason.is_empty() {
                let times = if fault.count == 1 {
                    String::new()
                } else {
                    format!("{} times or more, last ", fault.count)
                };
                let ago = humantime::format_duration(age(fault));
                reason = format!("{times}{ago} ago: {}", fault.last_text);
            }
        }
        let rule = faults.first().map(|fault| fault.source.clone()).unwrap_or_default();
        draft.expect("no such line", plimsoll_model::Origin::Rule { source: rule });
        let judged =
            if faults.iter().any(|fault| fault.fails) { draft.fail(reason) } else { draft.warn(reason) };
        let lasts = faults.first().is_some_and(|fault| fault.window.is_none());
        Judged { clears_by: lasts.then_some(ClearsBy::NewBoot), ..judged }
    };
    Ok(devices.into_iter().map(of_device).collect())
}

/// How far the log reaches back: the kernel writes over its oldest lines.
pub(crate) fn reach(log: &KernelLog, now_ms: u64) -> String {
    match (log.first_seq, log.first_us) {
        (Some(0), _) => "to the boot".to_owned(),
        (_, Some(first_us)) => {
            let seconds = now_ms.saturating_sub(first_us / 1000) / 1000;
            format!(
                "{} of {}",
                humantime::format_duration(Duration::from_secs(seconds)),
                humantime::format_duration(Duration::from_secs(now_ms / 1000))
            )
        }
        _ => "nowhere".to_owned(),
    }
}
