//! Counters that grow between the two readings, in trees that a test changes while they are read.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use plimsoll_model::{Report, Verdict};
use plimsoll_tests::{check, node::healthy_tree, tree::Tree};

/// Checks a tree while a thread writes one file again and again, each time with the next number.
fn check_while(tree: &Tree, file: &str, content: impl Fn(u64) -> Vec<u8> + Sync) -> Report {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                tree.write(file, &content(step));
                thread::yield_now();
            }
        });
        let report = check(&["--sysroot", tree.arg()]);
        done.store(true, Ordering::Relaxed);
        report
    })
}

fn verdict(report: &Report, check: &str, device: &str) -> Option<Verdict> {
    report.findings.iter().find(|f| f.check.0 == check && f.device.0 == device).map(|f| f.verdict)
}

#[test]
fn time_that_the_hypervisor_takes_is_a_warning() {
    let times = |step: u64| {
        let (user, steal) = (100_000 + step * 700, 40 + step * 300);
        format!("cpu  {user} 200 30000 68000000 500 0 900 {steal} 0 0\n").into_bytes()
    };
    let report = check_while(&healthy_tree(), "/proc/stat", times);
    assert_eq!(verdict(&report, "host.cpu.steal", "node"), Some(Verdict::Warn));
}

#[test]
fn time_that_the_machine_has_for_itself_is_a_pass() {
    let times =
        |step: u64| format!("cpu  {} 200 30000 68000000 500 0 900 40 0 0\n", 100_000 + step).into_bytes();
    let report = check_while(&healthy_tree(), "/proc/stat", times);
    assert_eq!(verdict(&report, "host.cpu.steal", "node"), Some(Verdict::Pass));
}

#[test]
fn corrected_errors_that_keep_coming_are_a_warning_of_their_controller_only() {
    let file = "/sys/devices/system/edac/mc/mc1/ce_count";
    let report = check_while(&healthy_tree(), file, |step| format!("{}\n", 3 + step).into_bytes());
    assert_eq!(verdict(&report, "host.memory.edac-corrected", "mc1"), Some(Verdict::Warn));
    assert_eq!(verdict(&report, "host.memory.edac-corrected", "mc0"), Some(Verdict::Pass));
    assert_eq!(verdict(&report, "host.memory.edac-uncorrected", "mc1"), Some(Verdict::Pass));
}

#[test]
fn media_errors_that_keep_coming_are_a_warning_of_their_drive_only() {
    let page = |step: u64| {
        let mut page = vec![0_u8; 512];
        page.splice(1..5, [0x37, 0x01, 100, 10]);
        page.splice(160..168, (7 + step).to_le_bytes());
        page
    };
    let report = check_while(&healthy_tree(), "/answers/nvme1-smart-log", page);
    assert_eq!(verdict(&report, "storage.nvme.media-errors", "nvme1"), Some(Verdict::Warn));
    assert_eq!(verdict(&report, "storage.nvme.media-errors", "nvme2"), Some(Verdict::Pass));
    assert_eq!(verdict(&report, "storage.nvme.health", "nvme1"), Some(Verdict::Pass));
}

#[test]
fn many_processes_that_do_not_move_at_all_are_a_warning() {
    let tree = healthy_tree();
    for pid in 2000..2020 {
        let stat = format!("{pid} (lost) D 1 {pid} {pid} 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 900 0 0\n");
        tree.write(&format!("/proc/{pid}/stat"), stat.as_bytes());
    }
    let report = check(&["--sysroot", tree.arg()]);
    assert_eq!(verdict(&report, "host.processes.blocked", "node"), Some(Verdict::Warn));
}

#[test]
fn a_process_that_goes_while_the_list_is_read_is_no_fault() {
    let tree = healthy_tree();
    std::fs::create_dir(tree.place("/proc/4000")).expect("a directory");
    let report = check(&["--sysroot", tree.arg()]);
    // Its directory stands and its file does not: that is no process that went, but one that cannot be read.
    assert!(matches!(verdict(&report, "host.processes.zombies", "node"), Some(Verdict::Unknown { .. })));
    tree.remove("/proc/4000");
    let report = check(&["--sysroot", tree.arg()]);
    assert_eq!(verdict(&report, "host.processes.zombies", "node"), Some(Verdict::Pass));
}

#[test]
fn a_missing_file_beside_a_bad_reading_does_not_hide_it() {
    let tree = healthy_tree();
    tree.remove("/sys/class/nvme/nvme1/address");
    tree.write("/sys/class/nvme/nvme1/state", b"dead\n");
    tree.remove("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver");
    tree.write("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", b"powersave\n");
    let report = check(&["--sysroot", tree.arg()]);
    assert_eq!(verdict(&report, "storage.nvme.state", "nvme1"), Some(Verdict::Fail));
    assert_eq!(verdict(&report, "host.cpu.governor", "node"), Some(Verdict::Warn));
}

#[test]
fn what_the_operator_expects_is_never_skipped_because_it_cannot_be_read() {
    let tree = healthy_tree();
    let gone = [
        ("/sys/devices/system/cpu/smt", "host.cpu.smt"),
        ("/proc/pressure/io", "host.pressure.io"),
        ("/proc/swaps", "host.memory.swap"),
        ("/proc/buddyinfo", "host.memory.fragmentation"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "host.memory.thp"),
    ];
    gone.iter().for_each(|(file, _)| tree.remove(file));
    tree.remove("/sys/class/block/md0");
    let report = check(&["--sysroot", tree.arg()]);
    for (file, check) in gone {
        let found = verdict(&report, check, "node");
        assert!(matches!(found, Some(Verdict::Unknown { .. })), "{check} without {file}: {found:?}");
    }
    let backing = verdict(&report, "storage.mount.backing", "/scratch");
    assert!(matches!(backing, Some(Verdict::Unknown { .. })), "{backing:?}");
}
