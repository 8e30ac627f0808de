//! What is printed: for people, for scripts, for CI, for Nagios.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{fs::File, process::Stdio};

use plimsoll_tests::{
    err,
    node::{Node, healthy_tree},
    out, plimsoll, run,
    tree::Tree,
};
use serde_json::Value;

fn sick(name: &str) -> Tree {
    Node::named(name).tree(name)
}

#[test]
fn json_keeps_to_the_published_schema_whatever_is_found() {
    let schema: Value = serde_json::from_str(include_str!("../../dashboard/schema/check.v1.json"))
        .expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
    let empty = tempfile::tempdir().expect("a directory");
    let trees = [healthy_tree(), sick("nvme-failing"), sick("scratch-missing"), Tree::copy_of(empty.path())];
    for tree in trees {
        let output = run(&["check", "--json", "--sysroot", tree.arg()]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        assert_eq!(report.get("schema_version"), Some(&Value::from(1)));
    }
}

#[test]
fn problems_come_first_and_passes_only_when_asked_for() {
    let tree = sick("scratch-shut-down");
    let text = out(&run(&["check", "--sysroot", tree.arg()]));
    let verdicts: Vec<_> = text.lines().skip(2).map_while(|line| line.split_whitespace().next()).collect();
    assert!(text.contains("No GPU was judged: this machine has no NVIDIA GPU"), "{text}");
    assert_eq!(verdicts, ["FAIL", "FAIL", "WARN"], "{text}");
    assert!(
        text.starts_with("gpu-017 (the tree ")
            && text.contains(" is UNFIT by its host and storage: 2 failures, 1 warning"),
        "{text}"
    );
    let all = out(&run(&["check", "--all", "--sysroot", tree.arg()]));
    assert!(all.contains("PASS") && all.contains("SKIPPED"), "{all}");
}

#[test]
fn each_problem_is_one_line_with_what_where_evidence_and_action() {
    let text = out(&run(&["check", "--sysroot", sick("disks-full").arg()]));
    let line = text
        .lines()
        .find(|line| line.contains("storage.mount.space") && line.contains("/scratch"))
        .unwrap_or("");
    for part in [
        "FAIL",
        "91.4 % used",
        "expected: at most 90 % used",
        "configured in /etc/plimsoll/plimsoll.toml",
        "-> diagnose:",
    ] {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
}

#[test]
fn findings_with_one_cause_share_a_line() {
    let tree = healthy_tree();
    tree.remove("/dev/kmsg");
    let text = out(&run(&["check", "--sysroot", tree.arg()]));
    let lines: Vec<_> = text.lines().filter(|line| line.contains("kernel log")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines.first().is_some_and(|line| line.contains("host.log.* (6 checks)")), "{text}");
}

#[test]
fn nothing_is_coloured_off_a_terminal() {
    let tree = sick("disks-full");
    for arguments in [&["check", "--all", "--sysroot"][..], &["check", "--nagios", "--sysroot"]] {
        let output =
            plimsoll().args(arguments).arg(tree.path()).env_remove("NO_COLOR").output().expect("it starts");
        assert!(!out(&output).contains('\u{1b}'), "{}", out(&output));
    }
}

#[test]
fn a_hostile_name_reaches_no_terminal() {
    let tree = healthy_tree();
    tree.write(
        "/proc/640/stat",
        b"640 (chr\x1b]0;owned\x07ony) D 1 640 640 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 9 0 0\n",
    );
    let table =
        String::from_utf8_lossy(&std::fs::read(tree.place("/proc/self/mountinfo")).unwrap_or_default())
            .into_owned();
    tree.write(
        "/proc/self/mountinfo",
        format!("{table}90 27 8:1 / /mnt/\x1b[31mred\u{202e} rw - ext4 /dev/sda1 rw\n").as_bytes(),
    );
    for format in ["--all", "--nagios", "--junit"] {
        let text = out(&run(&["check", format, "--sysroot", tree.arg()]));
        assert!(text.contains("red"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{format}: {text:?}");
    }
}

#[test]
fn nagios_gets_its_own_line_and_status() {
    let cases = [
        (healthy_tree(), "PLIMSOLL OK - ", 0),
        (sick("oom-kill"), "PLIMSOLL WARNING - ", 1),
        (sick("disks-full"), "PLIMSOLL CRITICAL - ", 2),
    ];
    for (tree, begin, status) in cases {
        let output = run(&["check", "--nagios", "--sysroot", tree.arg()]);
        let text = out(&output);
        assert!(text.starts_with(begin), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(text.matches('|').count(), 1, "one bar, before the performance data: {text}");
        assert_eq!(output.status.code(), Some(status));
    }
    let tree = healthy_tree();
    tree.remove("/proc/meminfo");
    let output = run(&["check", "--nagios", "--sysroot", tree.arg()]);
    assert_eq!(
        (output.status.code(), out(&output).starts_with("PLIMSOLL UNKNOWN - ")),
        (Some(3), true),
        "{}",
        out(&output)
    );
}

#[test]
fn junit_counts_failures_errors_and_skips() {
    let tree = sick("nvme-failing");
    let text = out(&run(&["check", "--junit", "--sysroot", tree.arg()]));
    let report = plimsoll_tests::check(&["--sysroot", tree.arg()]);
    let suite = text.lines().find(|line| line.contains("<testsuite ")).unwrap_or_default();
    let (sum, total) = (report.summary, report.findings.len());
    for part in [
        format!("tests=\"{total}\""),
        format!("failures=\"{}\"", sum.fail),
        format!("errors=\"{}\"", sum.unknown),
        format!("skipped=\"{}\"", sum.skipped),
    ] {
        assert!(suite.contains(&part), "{part} is not in {suite}");
    }
    assert_eq!(text.matches("<testcase ").count(), total);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let tree = healthy_tree();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = plimsoll()
        .args(["check", "--all", "--sysroot", tree.arg()])
        .stdout(Stdio::from(writer))
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("it runs");
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
}

#[test]
fn a_full_disk_under_the_output_is_said() {
    let tree = healthy_tree();
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let output =
        plimsoll().args(["check", "--json", "--sysroot", tree.arg()]).stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3));
    assert!(err(&output).contains("cannot write the result"), "{}", err(&output));
}

#[test]
fn nagios_is_told_of_wrong_usage_in_its_own_way() {
    for arguments in
        [&["--config", "/no/such/file"][..], &["--only", "nope"], &["--sysroot", "/no/such/tree"]]
    {
        let output = run(&[&["check", "--nagios"], arguments].concat());
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert!(
            out(&output).starts_with("PLIMSOLL UNKNOWN - ") && out(&output).lines().count() == 1,
            "{}",
            out(&output)
        );
    }
}

#[test]
fn a_configuration_cannot_drive_the_terminal_through_its_error() {
    let tree = healthy_tree();
    let text = format!(
        "[host]\ngovernor = \"\\u001b[31m\"\n# {}\n\"\\u001b]0;x\\u0007\" = 1 # \u{1b}[2J\n",
        "x".repeat(100_000)
    );
    tree.write("/etc/plimsoll/plimsoll.toml", text.as_bytes());
    let output = run(&["check", "--sysroot", tree.arg()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!err(&output).contains(['\u{1b}', '\u{7}']) && err(&output).len() < 30_000, "{:?}", err(&output));
}

#[test]
fn the_most_telling_line_of_the_log_is_the_one_that_is_shown() {
    let text = out(&run(&["check", "--sysroot", sick("memory-uncorrected").arg()]));
    assert!(text.contains("EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0"), "{text}");
}
