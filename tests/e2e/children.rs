//! Killing, freezing or hanging any part yields `Unknown`: never a hang, never a pass.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use plimsoll_model::{Blame, Finding, Report, Verdict};
use plimsoll_tests::{
    check,
    freezer::Freezer,
    node::healthy_tree,
    out, plimsoll,
    processes::{child, children, open_files, session, state, wait_for},
    report,
    silent::Silent,
};
use rustix::process::{Pid, Signal, kill_process};

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not 0");
    kill_process(pid, signal).expect("the process is there");
}

fn start(arguments: &[&str]) -> Child {
    let mut command = plimsoll();
    command.args(["check", "--json"]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts")
}

fn assert_gone(pid: u32) {
    wait_for("a process to be gone", || matches!(state(pid), None | Some('Z')).then_some(()));
}

/// Findings of a domain, which must all be unknown and Plimsoll's own.
fn assert_own_unknown(report: &Report, domain: &str, told: &str) {
    let of_domain: Vec<_> = report.findings.iter().filter(|f| f.check.0.starts_with(domain)).collect();
    assert!(of_domain.len() > 5, "{} findings", of_domain.len());
    for finding in of_domain {
        assert_eq!(finding.verdict, Verdict::Unknown { blame: Blame::Plimsoll }, "{finding:?}");
        assert!(finding.reason.contains(told), "{finding:?}");
    }
}

#[test]
fn a_killed_probe_leaves_its_domain_unknown_and_the_other_judged() {
    let tree = healthy_tree();
    for (domain, other) in [("host", "storage"), ("storage", "host")] {
        let check = start(&["--sysroot", tree.arg()]);
        send(child(check.id(), &format!("plimsoll: {domain}")), Signal::KILL);
        let output = check.wait_with_output().expect("it ends");
        let report = report(&output);
        assert_own_unknown(&report, domain, "killed by signal 9");
        let others = report.findings.iter().filter(|f| f.check.0.starts_with(other));
        assert!(others.filter(|f| f.verdict == Verdict::Pass).count() > 5, "{other} is judged all the same");
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn a_stopped_probe_leaves_its_domain_unknown_at_the_deadline() {
    let tree = healthy_tree();
    let began = Instant::now();
    let check = start(&["--sysroot", tree.arg(), "--budget", "1500ms"]);
    let probe = child(check.id(), "plimsoll: host");
    send(probe, Signal::STOP);
    let report = report(&check.wait_with_output().expect("it ends"));
    assert_own_unknown(&report, "host", "stopped (SIGSTOP)");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_gone(probe);
}

#[test]
fn a_child_holds_nothing_but_dev_null_and_its_pipe_and_has_a_session_of_its_own() {
    let tree = healthy_tree();
    // A caller that left a file open to us: it must not reach the children.
    let script = "exec 9>/dev/zero; exec \"$0\" check --json --sysroot \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(plimsoll_tests::binary()).arg(tree.path()).stdout(Stdio::piped());
    let check = shell.spawn().expect("a shell");
    let probe = child(check.id(), "plimsoll: host");
    wait_for("the probe to be in a session of its own", || (session(probe) == Some(probe)).then_some(()));
    let open = open_files(probe);
    for (fd, file) in &open {
        let name = file.display().to_string();
        let expected = match fd {
            0 | 2 => name == "/dev/null",
            1 => name.starts_with("pipe:"),
            // What it reads at this moment.
            _ => file.starts_with(tree.path()),
        };
        assert!(expected, "{open:?}");
    }
    assert!(open.len() >= 3, "{open:?}");
    let _ = report(&check.wait_with_output().expect("it ends"));
}

#[test]
fn children_go_when_their_parent_is_killed() {
    let tree = healthy_tree();
    let mut check = start(&["--sysroot", tree.arg()]);
    let probes = [child(check.id(), "plimsoll: host"), child(check.id(), "plimsoll: storage")];
    check.kill().expect("it is there");
    check.wait().expect("it ends");
    probes.into_iter().for_each(assert_gone);
}

#[test]
fn ctrl_c_ends_the_command_with_a_whole_report_of_what_is_known() {
    let tree = healthy_tree();
    for signal in [Signal::INT, Signal::TERM] {
        let check = start(&["--sysroot", tree.arg()]);
        let probe = child(check.id(), "plimsoll: host");
        send(check.id(), signal);
        let output = check.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(4), "{}", out(&output));
        let report = report(&output);
        assert!(report.interrupted);
        // Whether the first reading had come by then or not, there was no second.
        let rates = ["host.cpu.steal", "host.memory.edac-corrected", "host.processes.blocked"];
        let passes = |f: &&Finding| rates.contains(&f.check.0.as_ref()) && f.verdict == Verdict::Pass;
        assert!(report.findings.iter().find(passes).is_none(), "{report:?}");
        assert_gone(probe);
    }
}

#[test]
fn what_was_read_before_an_interruption_is_kept() {
    let tree = healthy_tree();
    let check = start(&["--sysroot", tree.arg()]);
    // Drives are asked once the first reading of storage has arrived.
    let _ = child(check.id(), "plimsoll: drive nvme1");
    send(check.id(), Signal::INT);
    let output = check.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(4), "{}", out(&output));
    let report = report(&output);
    let verdict = |check: &str| report.findings.iter().find(|f| f.check.0 == check).map(|f| f.verdict);
    assert_eq!(verdict("storage.nvme.count"), Some(Verdict::Pass));
    assert!(matches!(verdict("storage.nvme.media-errors"), Some(v) if v != Verdict::Pass), "{report:?}");
}

fn responds(report: &Report, mount: &str) -> (Verdict, String) {
    let same = |f: &&Finding| f.check.0 == "storage.mount.responds" && f.device.0 == mount;
    let finding =
        report.findings.iter().find(same).unwrap_or_else(|| panic!("nothing of {mount}: {report:?}"));
    (finding.verdict, finding.reason.clone())
}

#[test]
fn a_frozen_file_system_costs_its_own_checks_and_is_not_asked_again_until_it_answers() {
    let Some(freezer) = Freezer::new() else { return };
    let mount = freezer.arg();
    let ask = |budget: &str| check(&["--only", "storage.mount", "--budget", budget]);
    assert_eq!(responds(&ask("5s"), mount).0, Verdict::Pass);

    freezer.freeze();
    let first = ask("1500ms");
    let (verdict, reason) = responds(&first, mount);
    assert_eq!(verdict, Verdict::Unknown { blame: Blame::Device });
    assert!(reason.contains("cannot be killed"), "{reason}");
    assert_eq!(responds(&first, "/").0, Verdict::Pass, "one dead mount costs no other");
    let pid = reason.split("(pid ").nth(1).and_then(|rest| rest.split(')').next());
    let stuck: u32 = pid.and_then(|pid| pid.parse().ok()).expect("its pid");
    assert_eq!(state(stuck), Some('D'));

    let began = Instant::now();
    let (verdict, reason) = responds(&ask("6s"), mount);
    assert_eq!(verdict, Verdict::Unknown { blame: Blame::Device });
    assert!(reason.contains(&format!("pid {stuck}")) && reason.contains("none was started"), "{reason}");
    assert!(began.elapsed() < Duration::from_secs(5), "nothing was waited for: {:?}", began.elapsed());

    freezer.thaw();
    assert_gone(stuck);
    assert_eq!(responds(&ask("5s"), mount).0, Verdict::Pass, "it is asked again");
}

#[test]
fn a_caller_that_captures_the_output_is_not_held_up_by_a_probe_that_cannot_be_killed() {
    let Some(freezer) = Freezer::new() else { return };
    freezer.freeze();
    let mut check = plimsoll()
        .args(["check", "--nagios", "--only", "storage.mount", "--budget", "1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let probe = child(check.id(), &format!("plimsoll: mount {}", freezer.arg()));
    let mut line = String::new();
    let mut captured = BufReader::new(check.stdout.take().expect("a pipe"));
    captured.read_line(&mut line).expect("a line");
    // Reading to the end returns only when nobody holds the other end any more.
    captured.read_to_string(&mut String::new()).expect("the end");
    check.stderr.take().expect("a pipe").read_to_string(&mut String::new()).expect("the end");
    assert_eq!(state(probe), Some('D'), "it still hangs, and holds nothing of ours");
    assert!(line.starts_with("PLIMSOLL UNKNOWN"), "{line}");
    assert_eq!(check.wait().expect("it ends").code(), Some(3));
}

#[test]
fn no_child_is_left_behind_by_a_normal_run() {
    let tree = healthy_tree();
    let check = start(&["--sysroot", tree.arg()]);
    let id = check.id();
    let probe = child(id, "plimsoll: host");
    let _ = report(&check.wait_with_output().expect("it ends"));
    assert!(children(id, "plimsoll:").is_empty());
    assert_eq!(state(probe), None);
}

#[test]
fn a_server_that_never_answers_costs_its_mount_only_and_is_blamed_by_its_kind() {
    let directory = tempfile::tempdir().expect("a directory");
    for (fs_type, blame) in [("fuse.sshfs", Blame::Shared), ("fuse.mergerfs", Blame::Device)] {
        let place = directory.path().join(fs_type);
        let Some(_silent) = Silent::at(&place, fs_type) else { return };
        let mount = place.to_str().expect("UTF-8");
        let config = directory.path().join("plimsoll.toml");
        std::fs::write(&config, format!("[[mount]]\npath = \"{mount}\"\n")).expect("a configuration");
        let config = config.to_str().expect("UTF-8");
        let report = check(&["--only", "storage.mount", "--budget", "1s", "--config", config]);
        let (verdict, reason) = responds(&report, mount);
        assert_eq!(verdict, Verdict::Unknown { blame }, "{reason}");
        assert!(reason.contains("no answer within"), "{reason}");
        assert_eq!(responds(&report, "/").0, Verdict::Pass, "one dead server costs no other mount");
    }
}

#[test]
fn a_read_that_never_ends_costs_its_domain_and_is_named() {
    let tree = healthy_tree();
    tree.remove("/sys/devices/system/edac");
    let Some(_silent) = Silent::at(&tree.place("/sys/devices/system/edac"), "fuse") else { return };
    let report = check(&["--sysroot", tree.arg(), "--budget", "1s"]);
    for finding in report.findings.iter().filter(|f| f.check.0.starts_with("host.")) {
        assert_eq!(finding.verdict, Verdict::Unknown { blame: Blame::Device }, "{finding:?}");
        assert!(finding.reason.contains("hung while reading memory"), "{finding:?}");
    }
    assert!(report.findings.iter().any(|f| f.check.0.starts_with("storage.") && f.verdict == Verdict::Pass));
}

#[test]
fn a_configuration_that_cannot_be_read_for_hanging_ends_within_the_budget() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("silent");
    let Some(_silent) = Silent::at(&place, "fuse") else { return };
    for flag in ["--config", "--sysroot"] {
        let mut command = plimsoll();
        command.args(["check", "--budget", "1s", flag]).arg(place.join("plimsoll.toml"));
        let began = Instant::now();
        let output = command.output().expect("the binary starts");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!((output.status.code(), out(&output)), (Some(3), String::new()));
        assert!(
            plimsoll_tests::err(&output).contains("no answer within"),
            "{}",
            plimsoll_tests::err(&output)
        );
    }
}

/// What a pipe holds unless somebody says otherwise (pipe(7)).
const PIPE_BYTES: u64 = 65_536;

#[test]
fn a_reader_that_does_not_read_leaves_the_command_to_be_ended_by_a_signal() {
    let tree = healthy_tree();
    let mut table = String::new();
    for n in 0..240 {
        table.push_str(&format!("{} 27 8:{n} / /many/{n} rw - ext4 /dev/sd{n} rw\n", 100 + n));
    }
    let root = "27 1 259:1 / / rw,relatime - ext4 /dev/nvme0n1p1 rw\n";
    tree.write("/proc/self/mountinfo", format!("{root}{table}").as_bytes());
    let mut check = start(&["--sysroot", tree.arg()]);
    let pipe = check.stdout.take().expect("a pipe");
    wait_for("the report to fill the pipe", || {
        (rustix::io::ioctl_fionread(&pipe).expect("a pipe can be asked") >= PIPE_BYTES).then_some(())
    });
    send(check.id(), Signal::TERM);
    let status = wait_for("the command to end", || check.try_wait().expect("it can be asked"));
    assert_eq!(status.code(), None, "ended by the signal itself");
}

#[test]
fn a_ledger_that_somebody_locks_or_spoils_holds_nobody_up() {
    let Some(freezer) = Freezer::new() else { return };
    freezer.freeze();
    let ledger = std::path::Path::new("/run/plimsoll");
    std::fs::create_dir_all(ledger).expect("its directory");
    let lock = std::fs::File::create(ledger.join("lock")).expect("its lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
    let began = Instant::now();
    let report = check(&["--only", "storage.mount", "--budget", "1s"]);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(responds(&report, freezer.arg()).0, Verdict::Unknown { blame: Blame::Device });
    assert_eq!(responds(&report, "/").0, Verdict::Pass);
}
