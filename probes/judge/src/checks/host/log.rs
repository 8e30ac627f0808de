//! What the kernel wrote into its log. The lines themselves are in `data/kernel_log.toml`.

use plimsoll_model::{Action, ClearsBy, Domain};

use crate::check::{Check, Judge};

const READS: &[&str] = &["/dev/kmsg", "/proc/sys/kernel/random/boot_id", "/proc/uptime"];
const COMPARES: &str = "the lines below; only those that the kernel itself wrote are evidence, and none that begins with a process's name";

const fn check(id: &'static str, asks: &'static str, verdicts: &'static str) -> Check {
    Check {
        id,
        domain: Domain::Host,
        asks,
        reads: READS,
        compares: COMPARES,
        verdicts,
        why: "",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "",
        judge: Judge::HostLog,
    }
}

pub(super) static CHECKS: [Check; 6] = [
    Check {
        why: "What was killed may be a daemon that the next job needs; a leftover may still hold the memory.",
        advice: "see what was killed and what used the memory; restart daemons that are gone",
        ..check(
            "host.log.oom-kill",
            "Did the kernel kill a process for want of memory?",
            "Warns for an hour. A job that ran into its own cgroup's limit does not count.",
        )
    },
    Check {
        why: "The task waits for a driver, drive or server that does not answer, and cannot be killed.",
        advice: "see where the task waits in /proc/PID/stack",
        ..check(
            "host.log.hung-task",
            "Did the kernel find a task that was blocked for minutes?",
            "Warns for an hour.",
        )
    },
    Check {
        why: "A processor that was stuck in the kernel stopped everything that was bound to it.",
        advice: "save the kernel's log; reboot if it comes back; on virtual machines look at steal first",
        action: Action::Watch,
        ..check(
            "host.log.lockup",
            "Did a processor get stuck in the kernel?",
            "Warns for an hour after a soft lockup or an RCU stall; fails until the next boot after a hard lockup.",
        )
    },
    Check {
        why: "A drive that cannot read back what it stored, or does not answer, loses checkpoints.",
        advice: "see the drive's health (nvme smart-log), and have it replaced if errors come back",
        ..check(
            "host.log.io-error",
            "Did a drive fail to read, write or answer?",
            "Warns for a day; fails until the next boot when the drive lost data or was given up. One finding a drive.",
        )
    },
    Check {
        why: "A file system that found itself damaged stops taking writes: jobs die at their next checkpoint.",
        advice: "unmount and check the file system, then look at the drive below it",
        action: Action::Repair,
        clears_by: ClearsBy::NewBoot,
        ..check(
            "host.log.read-only",
            "Did a file system find itself damaged?",
            "Fails until the next boot. One finding a device.",
        )
    },
    Check {
        why: "Errors in memory, caches or interconnect; the uncorrected ones lose data.",
        advice: "read the record (rasdaemon, the BMC's log) to find the part; have it replaced if it was uncorrected",
        action: Action::Repair,
        ..check(
            "host.log.machine-check",
            "Did the hardware report errors?",
            "Warns for a day after corrected errors; fails until the next boot after others.",
        )
    },
];
