//! Wrong arguments and configurations: a clear error and exit status 2, before anything is judged.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{fs, process::Output};

use plimsoll_tests::{err, node::healthy_tree, out, plimsoll, run};

fn with_config(text: &str) -> Output {
    let tree = healthy_tree();
    tree.write("/etc/plimsoll/plimsoll.toml", text.as_bytes());
    run(&["check", "--sysroot", tree.arg()])
}

#[track_caller]
fn assert_usage(output: &Output, told: &[&str]) {
    assert_eq!(output.status.code(), Some(2), "{}{}", out(output), err(output));
    assert_eq!(out(output), "", "nothing is printed where a result would be");
    for part in told {
        assert!(err(output).contains(part), "{part:?} is not in {:?}", err(output));
    }
}

#[test]
fn no_arguments_show_the_verbs() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("check") && err(&output).contains("explain"), "{}", err(&output));
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["--version"], &["check", "--help"], &["explain", "--help"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!out(&output).contains("__probe"), "the children's verb is nobody's business");
    }
}

#[test]
fn an_unknown_verb_or_flag_names_what_is_near() {
    assert_usage(&run(&["chekc"]), &["chekc", "check"]);
    assert_usage(&run(&["check", "--jsn"]), &["--jsn", "--json"]);
    assert_usage(&run(&["check", "--json", "--nagios"]), &["cannot be used with"]);
}

#[test]
fn an_unknown_check_names_what_is_near() {
    assert_usage(
        &run(&["check", "--only", "storage.mount.spce"]),
        &["storage.mount.spce", "storage.mount.space"],
    );
    assert_usage(&run(&["check", "--only", ""]), &["no check"]);
    assert_usage(&run(&["explain", "host.clock.sinc"]), &["host.clock.sync"]);
    assert_usage(&run(&["explain", "space"]), &["storage.mount.space"]);
}

#[test]
fn an_impossible_budget_says_what_is_accepted() {
    for budget in ["8", "0s", "-1s", "1h", "soon", "100ms"] {
        assert_usage(&run(&["check", &format!("--budget={budget}")]), &["500ms", "10min"]);
    }
}

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_accepted_ones() {
    assert_usage(
        &with_config("[host]\nsockets = 2\ncoers = 96\n"),
        &["plimsoll.toml", "line 3", "coers", "cores"],
    );
    assert_usage(&with_config("[hots]\n"), &["line 1", "hots", "host"]);
    assert_usage(&with_config("[[mount]]\npath = \"/a\"\ntpye = \"xfs\"\n"), &["line 3", "tpye", "type"]);
    assert_usage(
        &with_config("[limits]\nsteal_percent = 3\n"),
        &["steal_percent", "did you mean", "steal_percent_max"],
    );
}

#[test]
fn a_wrong_unit_or_value_is_shown_with_its_line_and_what_is_accepted() {
    let wrong = [
        ("[host]\nmemory = \"2 TiBs\"\n", "1.9 TiB"),
        ("[host]\nmemory = \"2048\"\n", "1.9 TiB"),
        ("[host]\nmemory = 2048\n", "string"),
        ("[host]\nmemory = \"0 GiB\"\n", "1.9 TiB"),
        ("[host]\ncores = 0\n", "1 to 65536"),
        ("[host]\ncores = -4\n", "1 to 65536"),
        ("[host]\ncores = 99999999999999999999\n", "line 2"),
        ("[host]\ngovernor = \"fast\"\n", "performance"),
        ("[host]\ntransparent_hugepages = \"on\"\n", "madvise"),
        ("[host]\nmemlock_min = \"lots\"\n", "unlimited"),
        ("[host]\nopen_files_min = 0\n", "unlimited"),
        ("[host]\nfree_in_large_blocks_percent_min = 130\n", "0 to 100"),
        ("[check]\nbudget = \"1h\"\n", "10min"),
        ("[[mount]]\npath = \"scratch\"\n", "/scratch"),
        ("[[mount]]\npath = \"/scratch/../etc\"\n", "absolute"),
        ("[[mount]]\npath = \"/a\"\nbacking = \"cloud\"\n", "network"),
        ("[limits]\nsteal_percent_max = 130\n", "100 or less"),
        ("[limits]\nzombies_max = nan\n", "0 or more"),
        ("[host]\nservices = [\"../../etc\"]\n", "letters, digits"),
        ("[[mount]]\npath = \"/a\"\n[[mount]]\npath = \"/a\"\n", "twice"),
        ("[host]\nservices = [\"slurmd\", \"slurmd\"]\n", "twice"),
        ("[host\n", "line 1"),
        ("\u{0}", "plimsoll.toml"),
    ];
    for (text, told) in wrong {
        assert_usage(&with_config(text), &["plimsoll.toml", told]);
    }
}

#[test]
fn a_configuration_that_was_named_must_be_there() {
    assert_usage(&run(&["check", "--config", "/no/such/file.toml"]), &["/no/such/file.toml", "No such file"]);
    assert_usage(&run(&["check", "--config", "/"]), &["a directory where a file should be"]);
    let output =
        plimsoll().arg("check").env("PLIMSOLL_CONFIG", "/no/such/file.toml").output().expect("it starts");
    assert_usage(&output, &["/no/such/file.toml"]);
}

#[test]
fn a_configuration_with_binary_rubbish_or_without_end_is_refused() {
    let tree = healthy_tree();
    tree.write("/etc/plimsoll/plimsoll.toml", &[0xff, 0xfe, 0x00]);
    assert_usage(&run(&["check", "--sysroot", tree.arg()]), &["plimsoll.toml", "not text"]);
    tree.remove("/etc/plimsoll/plimsoll.toml");
    fs::File::create(tree.place("/etc/plimsoll/plimsoll.toml"))
        .and_then(|f| f.set_len(1 << 40))
        .expect("a sparse file");
    assert_usage(&run(&["check", "--sysroot", tree.arg()]), &["plimsoll.toml", "larger than"]);
}

#[test]
fn a_tree_that_is_not_there_is_a_usage_error() {
    assert_usage(&run(&["check", "--sysroot", "/no/such/tree"]), &["/no/such/tree", "No such file"]);
    assert_usage(&run(&["check", "--sysroot", "/etc/passwd"]), &["/etc/passwd", "Not a directory"]);
}

#[test]
fn an_empty_tree_is_undecided_and_nothing_in_it_passes() {
    let empty = tempfile::tempdir().expect("a directory");
    let output = run(&["check", "--all", "--sysroot", empty.path().to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3), "{}", out(&output));
    assert!(!out(&output).contains("PASS"), "{}", out(&output));
}

#[test]
fn a_selection_in_which_nothing_is_judged_is_undecided() {
    let empty = tempfile::tempdir().expect("a directory");
    let output =
        run(&["check", "--only", "storage.nvme", "--sysroot", empty.path().to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3), "{}", out(&output));
    assert!(out(&output).contains("nothing was judged"), "{}", out(&output));
}

#[test]
fn a_selection_judges_nothing_else() {
    let tree = healthy_tree();
    let report = plimsoll_tests::check(&["--sysroot", tree.arg(), "--only", "storage.mount.space,host.cpu"]);
    let outside = |id: &str| !(id == "storage.mount.space" || id.starts_with("host.cpu."));
    assert!(!report.findings.iter().any(|f| outside(&f.check.0)), "{report:?}");
    assert!(report.findings.iter().any(|f| f.check.0 == "host.cpu.smt"));
}

#[test]
fn every_key_and_limit_of_the_configuration_is_documented() {
    let documented = include_str!("../../docs/configuration.md");
    for section in ["[check]", "[host]", "[gpu]", "[xid.94]", "[storage]", "[[mount]]", "[limits]"] {
        let output = with_config(&format!("{section}\nno_such_key = 1\n"));
        let message = err(&output);
        let (_, accepted) =
            message.split_once("expected").or(message.split_once("accepted are")).expect(section);
        let keys: Vec<_> = accepted.split('`').skip(1).step_by(2).collect();
        assert!(!keys.is_empty(), "{section}: {message}");
        for key in keys {
            assert!(
                documented.contains(&format!("`{key}`")),
                "{section} {key} is not in docs/configuration.md"
            );
        }
    }
}

#[test]
fn every_listed_check_can_be_explained() {
    let list = out(&run(&["check", "--list"]));
    let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 40, "{list}");
    for name in names {
        let output = run(&["explain", name]);
        assert_eq!(output.status.code(), Some(0), "{name}");
        for part in ["asks", "reads", "compares", "verdicts", "why", "clears by", "do"] {
            let line =
                out(&output).lines().find(|line| line.starts_with(part)).unwrap_or_default().to_owned();
            assert!(line.len() > 12, "{name} does not say {part}: {}", out(&output));
        }
    }
}
