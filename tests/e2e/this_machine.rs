//! The machine that the tests run on: what is said of it must agree with what other tools say.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::Command,
};

use plimsoll_model::{Finding, Overall, Report, Verdict};
use plimsoll_tests::{check, freezer::Freezer, is_root, out, plimsoll, skip};

fn finding<'r>(report: &'r Report, check: &str, device: &str) -> &'r Finding {
    let same = |f: &&Finding| f.check.0 == check && f.device.0 == device;
    report.findings.iter().find(same).unwrap_or_else(|| panic!("no {check} of {device}: {report:#?}"))
}

fn evidence(finding: &Finding, what: &str) -> String {
    let seen = finding.evidence.iter().find(|seen| seen.what == what);
    seen.unwrap_or_else(|| panic!("no {what}: {finding:?}")).value.clone()
}

fn tool(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name).args(arguments).env("LC_ALL", "C").output().expect("the tool is there");
    out(&output)
}

#[test]
fn the_exit_status_is_that_of_the_verdict_and_every_check_says_something() {
    let output = plimsoll().args(["check", "--json"]).output().expect("it runs");
    let report = plimsoll_tests::report(&output);
    let status = match report.overall {
        Overall::Fit => 0,
        Overall::Unfit => 1,
        Overall::Undecided => 3,
    };
    assert_eq!(output.status.code(), Some(status));
    let said: BTreeSet<_> = report.findings.iter().map(|f| f.check.0.to_string()).collect();
    let silent: Vec<_> =
        plimsoll_judge::checks().map(|check| check.id).filter(|id| !said.contains(*id)).collect();
    assert!(silent.is_empty(), "{silent:?} say nothing");
}

#[test]
fn processors_and_memory_are_those_that_other_tools_count() {
    let report = check(&["--only", "host"]);
    let online = tool("getconf", &["_NPROCESSORS_ONLN"]);
    assert_eq!(evidence(finding(&report, "host.cpu.online", "node"), "online"), online.trim());
    let free = tool("free", &["--kibi"]);
    let total =
        free.lines().find_map(|line| line.strip_prefix("Mem:")).and_then(|l| l.split_whitespace().next());
    let total: u64 = total.and_then(|n| n.parse().ok()).expect("a total");
    let shown = plimsoll_model::Bytes::from_kib(total).to_string();
    assert_eq!(evidence(finding(&report, "host.memory.size", "node"), "MemTotal"), shown);
}

#[test]
fn space_on_the_root_file_system_is_what_df_says() {
    let report = check(&["--only", "storage.mount"]);
    let reason = &finding(&report, "storage.mount.space", "/").reason;
    let df = tool("df", &["--output=pcent", "/"]);
    // df rounds up to a whole percent.
    let rounded: f64 =
        df.trim().rsplit('\n').next().and_then(|n| n.trim().trim_end_matches('%').parse().ok()).expect("df");
    let ours: f64 = reason.split(' ').next().and_then(|n| n.parse().ok()).expect("a percentage");
    assert!((ours.ceil() - rounded).abs() <= 1.0, "{ours} and {rounded}");
    assert_eq!(finding(&report, "storage.mount.responds", "/").verdict, Verdict::Pass);
}

#[test]
fn asking_a_mount_leaves_no_trace_on_it() {
    let Some(freezer) = Freezer::new() else { return };
    let state = || {
        let meta = fs::metadata(freezer.arg()).expect("the mount");
        (meta.mtime_nsec(), meta.ctime_nsec(), fs::read_dir(freezer.arg()).expect("its names").count())
    };
    let before = state();
    let report = check(&["--only", "storage.mount"]);
    assert_eq!(finding(&report, "storage.mount.responds", freezer.arg()).verdict, Verdict::Pass);
    assert_eq!(state(), before);
}

#[test]
fn the_busy_clock_is_a_frequency_that_processors_have() {
    let report = check(&["--only", "host.cpu.clock"]);
    let observed = evidence(finding(&report, "host.cpu.clock", "node"), "observed");
    let mhz: u32 = observed.trim_end_matches(" MHz").parse().expect("a frequency");
    assert!((500..7000).contains(&mhz), "{mhz} MHz");
}

#[test]
fn a_line_that_a_process_wrote_into_the_kernels_log_is_no_evidence() {
    if !is_root() {
        return skip("only root may write to /dev/kmsg");
    }
    let Ok(mut log) = fs::OpenOptions::new().write(true).open("/dev/kmsg") else {
        return skip("/dev/kmsg cannot be written to here");
    };
    let line = format!("<1>Out of memory: Killed process 1 (plimsoll-test-{})", std::process::id());
    log.write_all(line.as_bytes()).expect("the kernel takes the line");
    let verdict = |arguments: &[&str]| {
        let report = check(&[&["--only", "host.log.oom-kill"], arguments].concat());
        let found = finding(&report, "host.log.oom-kill", "node");
        (found.verdict, found.reason.clone())
    };
    let (injected, reason) = verdict(&["--admit-injected-log"]);
    assert_eq!(injected, Verdict::Warn, "{reason}");
    let (ours, reason) = verdict(&[]);
    assert!(!reason.contains("plimsoll-test"), "{reason}");
    assert_ne!(ours, Verdict::Fail);
}

#[test]
fn without_permission_a_check_is_unknown_and_says_how_to_get_it() {
    if !is_root() {
        return skip("only root can become somebody else");
    }
    // The binary may lie where nobody else can reach it.
    let copy = tempfile::Builder::new().prefix("plimsoll").tempfile_in("/tmp").expect("a file");
    fs::copy(plimsoll_tests::binary(), copy.path()).expect("a copy of the binary");
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).expect("anybody may run it");
    let path = copy.into_temp_path();
    let script = format!(
        "exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all {} check --json --only host.log",
        path.display()
    );
    let restricted = fs::read_to_string("/proc/sys/kernel/dmesg_restrict").unwrap_or_default();
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let report = plimsoll_tests::report(&output);
    let log = finding(&report, "host.log.oom-kill", "node");
    if restricted.trim() == "0" {
        assert_eq!(log.verdict, Verdict::Pass, "{log:?}");
        return skip("this kernel lets everybody read its log");
    }
    assert_eq!(log.verdict, Verdict::Unknown { blame: plimsoll_model::Blame::Plimsoll }, "{log:?}");
    assert!(log.advice.contains("root"), "{log:?}");
    assert_eq!(output.status.code(), Some(3));
}
