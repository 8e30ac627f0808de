//! The driver's library gone wrong in every way: no pass that leans on what it did not say, no hang, no wrong blame.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::PathBuf,
    process::Output,
    sync::Mutex,
    time::{Duration, Instant},
};

use plimsoll_model::{Blame, Finding, Report, Verdict};
use plimsoll_tests::{
    err,
    node::Node,
    nvml::{FakeNvml, say},
    out, plimsoll, report,
    tree::Tree,
};

const NODE: &str = "gpu-healthy";

/// The healthy node with eight GPUs.
struct Eight {
    tree: Tree,
    scenario: Vec<PathBuf>,
}

impl Eight {
    fn new() -> Self {
        let node = Node::named(NODE);
        Self { tree: node.tree(NODE), scenario: node.scenario(NODE) }
    }

    fn output(&self, library: &FakeNvml, more: &str, arguments: &[&str]) -> Output {
        let mut command = plimsoll();
        command.args(["check", "--only", "gpu", "--sysroot", self.tree.arg()]);
        let mut scenario = self.scenario.clone();
        scenario.push(library.scenario(more));
        say(&mut command, library, &scenario).args(arguments).output().expect("the binary starts")
    }

    fn check(&self, library: &FakeNvml, more: &str) -> Report {
        report(&self.output(library, more, &["--json"]))
    }

    /// With a library of another kind, by its path.
    fn check_with(&self, library: &str) -> Report {
        let arguments = ["check", "--only", "gpu", "--json", "--sysroot", self.tree.arg(), "--nvml", library];
        report(&plimsoll().args(arguments).output().expect("the binary starts"))
    }
}

fn find<'r>(report: &'r Report, check: &str, device: &str) -> &'r Finding {
    let same = |finding: &&Finding| finding.check.0 == check && finding.device.0 == device;
    report.findings.iter().find(same).unwrap_or_else(|| panic!("no {check} {device}"))
}

fn passes(report: &Report) -> BTreeMap<(String, String), BTreeSet<String>> {
    let passing = report.findings.iter().filter(|finding| finding.verdict == Verdict::Pass);
    let sources = |finding: &Finding| finding.evidence.iter().map(|seen| seen.source.clone()).collect();
    passing.map(|f| ((f.check.to_string(), f.device.to_string()), sources(f))).collect()
}

/// Runs each of many on a few threads.
fn on_each<T: Sync>(all: &[T], run: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let next = Mutex::new(all.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(one) = next.lock().ok().and_then(|mut all| all.next()) {
                    let found = run(one);
                    wrong.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    wrong.into_inner().expect("no panic")
}

/// Calls that are made when a newer one is missing, by the newer one.
const OLDER: [(&str, &str); 2] = [
    ("nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo"),
    ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
];

/// What a passing finding shows beside what it leans on: it passes without.
const BESIDE: [(&str, &str); 2] = [
    // The total is what decides; where the errors were and how many there ever were is for people.
    ("gpu.ecc.uncorrected", "nvmlDeviceGetMemoryErrorCounter"),
    // A GPU that never had a serial number says that it does not support one.
    ("gpu.identity", "nvmlDeviceGetSerial"),
];

/// The call of a source: `nvmlDeviceGetFieldValues(82)` is one of a call's fields.
fn call(source: &str) -> &str {
    source.split('(').next().unwrap_or(source)
}

/// Findings that pass on the healthy node because of `symbol`, and pass all the same.
fn passes_all_the_same(healthy: &Report, now: &Report, symbol: &str, devices: &[&str]) -> Vec<String> {
    let passing = passes(now);
    let leaning = passes(healthy).into_iter().filter(|((_, device), sources)| {
        devices.contains(&device.as_str()) && sources.iter().any(|source| call(source) == symbol)
    });
    leaning
        .filter(|((check, _), _)| !BESIDE.contains(&(check.as_str(), symbol)))
        .filter(|(key, _)| {
            let older = OLDER.iter().find(|(newer, _)| *newer == symbol).map(|(_, older)| *older);
            passing.get(key).is_some_and(|sources| {
                !older.is_some_and(|older| sources.iter().any(|source| call(source) == older))
            })
        })
        .map(|((check, device), _)| format!("{check} {device} passes without {symbol}"))
        .collect()
}

/// All calls that some passing finding of the healthy node leans on.
fn symbols(healthy: &Report) -> Vec<String> {
    let all: BTreeSet<String> =
        passes(healthy).into_values().flatten().map(|source| call(&source).to_owned()).collect();
    let all: Vec<String> = all.into_iter().filter(|source| source.starts_with("nvml")).collect();
    assert!(all.len() >= 25, "{all:?}");
    all
}

const EVERY: [&str; 9] = [
    "node",
    "0000:53:00.0",
    "0000:64:00.0",
    "0000:75:00.0",
    "0000:86:00.0",
    "0000:97:00.0",
    "0000:a8:00.0",
    "0000:b9:00.0",
    "0000:ca:00.0",
];

#[test]
fn without_any_one_symbol_no_check_that_needs_it_passes() {
    let eight = Eight::new();
    let healthy = eight.check(&FakeNvml::new(), "");
    let wrong = on_each(&symbols(&healthy), |symbol| {
        let now = eight.check(&FakeNvml::without(&[symbol]), "");
        passes_all_the_same(&healthy, &now, symbol, &EVERY)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_call_that_fails_on_one_gpu_leaves_its_checks_unknown_and_the_other_gpus_alone() {
    let eight = Eight::new();
    let healthy = eight.check(&FakeNvml::new(), "");
    let healthy_passes = passes(&healthy);
    let of_gpus: Vec<String> =
        symbols(&healthy).into_iter().filter(|symbol| symbol.starts_with("nvmlDeviceGet")).collect();
    let wrong = on_each(&of_gpus, |symbol| {
        let more = format!("[gpu3]\nfaults = {{ {symbol} = \"UNKNOWN\" }}\n");
        let now = eight.check(&FakeNvml::new(), &more);
        let mut wrong = passes_all_the_same(&healthy, &now, symbol, &["0000:86:00.0"]);
        let passing = passes(&now);
        let lost = healthy_passes.keys().filter(|(check, device)| {
            let of_another = device != "0000:86:00.0" && device != "node";
            of_another && !passing.contains_key(&(check.clone(), device.clone()))
        });
        wrong.extend(
            lost.map(|(check, device)| format!("{check} {device} does not pass while GPU 3 has no {symbol}")),
        );
        wrong
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn without_any_one_value_no_check_that_needs_it_passes_unseen() {
    let eight = Eight::new();
    let base = fs::read_to_string(eight.scenario.first().expect("a scenario")).expect("it is text");
    let keys: Vec<&str> = base
        .lines()
        .skip_while(|line| *line != "[gpu]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = ").map(|(key, _)| key))
        .collect();
    assert!(keys.len() > 40, "{keys:?}");
    let healthy = eight.check(&FakeNvml::new(), "");
    // Evidence by what it is called: a passing finding that lost some leans on less than it says.
    let told = |report: &Report| -> BTreeMap<(String, String), Vec<String>> {
        let passing = report.findings.iter().filter(|finding| finding.verdict == Verdict::Pass);
        let what = |f: &Finding| f.evidence.iter().map(|seen| seen.what.clone()).collect();
        passing.map(|f| ((f.check.to_string(), f.device.to_string()), what(f))).collect()
    };
    let before = told(&healthy);
    let wrong = on_each(&keys, |key| {
        let library = FakeNvml::new();
        let without: String = base
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} = ")))
            .map(|line| format!("{line}\n"))
            .collect();
        let mut command = plimsoll();
        command.args(["check", "--only", "gpu", "--json", "--sysroot", eight.tree.arg()]);
        let now =
            report(&say(&mut command, &library, &[library.scenario(&without)]).output().expect("it starts"));
        let after = told(&now);
        let lost = after.iter().filter(|(finding, what)| {
            let beside = BESIDE.iter().any(|(check, _)| finding.0 == *check);
            !beside && before.get(*finding).is_some_and(|before| before != *what)
        });
        let mut wrong: Vec<_> =
            lost.map(|(finding, _)| format!("{finding:?} passes without {key}")).collect();
        if after == before {
            wrong.push(format!("no finding leans on {key}"));
        }
        wrong
    });
    // Only shown or compared with when there is no other GPU.
    let shown = [
        // 0 is what drivers say that have no such mask.
        "fabric_health",
        "power_mw",
        "power_limit_default_mw",
        "ecc_dram_aggregate_corrected",
        "ecc_dram_aggregate_uncorrected",
        "ecc_sram_aggregate_corrected",
        "ecc_sram_aggregate_uncorrected",
        "ecc_total_aggregate_corrected",
        "ecc_total_volatile_corrected",
        "sm_mhz",
        "sm_max_mhz",
        "memory_mhz",
        "memory_max_mhz",
        "processes",
        "busy_percent",
    ];
    let wrong: Vec<_> = wrong
        .into_iter()
        .filter(|told| !shown.iter().any(|key| *told == format!("no finding leans on {key}")))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_library_that_crashes_is_the_drivers_fault_and_the_log_is_read_all_the_same() {
    let eight = Eight::new();
    let now =
        eight.check(&FakeNvml::new(), "[gpu3]\nfaults = { nvmlDeviceGetTemperature = { crash = true } }\n");
    let finding = find(&now, "gpu.temperature", "0000:86:00.0");
    assert_eq!(finding.verdict, Verdict::Unknown { blame: Blame::Device }, "{finding:?}");
    assert!(now.findings.iter().any(|f| f.reason.contains("crashed (signal 6)")), "{now:#?}");
    assert_eq!(find(&now, "gpu.xid", "node").verdict, Verdict::Pass);
    assert_eq!(find(&now, "gpu.driver", "node").verdict, Verdict::Fail);
    assert!(!now.findings.iter().any(|f| f.verdict == Verdict::Fail && f.device.0 != "node"), "{now:#?}");
    // What was told once is not believed to be all when the second reading ends in a crash.
    let later = "[gpu3]\nfaults = { nvmlDeviceGetPcieReplayCounter = { crash = true, after = 1 } }\n";
    assert_eq!(find(&eight.check(&FakeNvml::new(), later), "gpu.driver", "node").verdict, Verdict::Fail);
    let at_once = eight.check(&FakeNvml::new(), "faults = { nvmlInit_v2 = { crash = true } }\n");
    let driver = find(&at_once, "gpu.driver", "node");
    assert_eq!(driver.verdict, Verdict::Fail, "{driver:?}");
    assert!(driver.reason.contains("crashed (signal 6) in or after nvmlInit_v2"), "{driver:?}");
}

#[test]
fn calls_that_never_return_are_named_within_the_budget() {
    let eight = Eight::new();
    for (fault, named) in [
        ("nvmlInit_v2 = { hang = true }", "nvmlInit_v2"),
        ("nvmlDeviceGetCount_v2 = { hang = true }", "nvmlDeviceGetCount_v2"),
        ("nvmlDeviceGetHandleByIndex_v2 = { hang = true }", "nvmlDeviceGetHandleByIndex_v2"),
        ("\"*\" = { hang = true }", "nvmlInit_v2"),
    ] {
        let began = Instant::now();
        let output = eight.output(
            &FakeNvml::new(),
            &format!("faults = {{ {fault} }}\n"),
            &["--json", "--budget", "1s"],
        );
        assert!(began.elapsed() < Duration::from_secs(3), "{fault}: {:?}", began.elapsed());
        let report = report(&output);
        let told = |f: &Finding| {
            f.reason.contains(named) || f.evidence.iter().any(|seen| seen.source.contains(named))
        };
        assert!(report.findings.iter().any(|f| f.verdict.is_problem() && told(f)), "{fault}: {report:#?}");
        // What was told before the call that hangs stands: the driver's version and the count.
        let of_gpus = |f: &Finding| {
            f.evidence
                .iter()
                .any(|e| e.source.starts_with("nvmlDeviceGet") && e.source != "nvmlDeviceGetCount_v2")
        };
        let of_library = |f: &&Finding| f.verdict == Verdict::Pass && of_gpus(f);
        assert_eq!(report.findings.iter().find(of_library), None, "{fault}");
        assert!(
            !report.findings.iter().any(|f| f.verdict == Verdict::Unknown { blame: Blame::Plimsoll }),
            "{fault}: {report:#?}"
        );
    }
}

#[test]
fn too_little_time_for_a_gpu_that_answers_accuses_nobody_but_plimsoll() {
    let eight = Eight::new();
    let slow = "[gpu3]\nfaults = { nvmlDeviceGetNvLinkErrorCounter = { delay_ms = 40 } }\n";
    let report = report(&eight.output(&FakeNvml::new(), slow, &["--json", "--budget", "1s"]));
    assert!(!report.findings.iter().any(|f| f.verdict == Verdict::Fail), "{report:#?}");
    let answers = find(&report, "gpu.answers", "0000:86:00.0");
    assert_eq!(answers.verdict, Verdict::Unknown { blame: Blame::Plimsoll }, "{answers:?}");
    assert_eq!(find(&report, "gpu.answers", "0000:53:00.0").verdict, Verdict::Pass);
}

#[test]
fn gpus_that_start_slowly_are_waited_for() {
    let eight = Eight::new();
    let slow = "faults = { nvmlDeviceGetHandleByIndex_v2 = { delay_ms = 1200 } }\n";
    let report = eight.check(&FakeNvml::new(), slow);
    assert!(!report.findings.iter().any(|f| f.verdict.is_problem()), "{report:#?}");
}

#[test]
fn what_is_no_nvml_is_a_driver_that_does_not_work() {
    let eight = Eight::new();
    let library = FakeNvml::new();
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let mut foreign = fs::read(library.path()).expect("the library");
    // The machine in the ELF header: 0xf3 is RISC-V.
    *foreign.get_mut(18).expect("a header") = 0xf3;
    let cut = fs::read(library.path()).expect("the library").into_iter().take(4096).collect::<Vec<u8>>();
    let nameless = FakeNvml::without(&["nvmlInit_v2"]);
    let cases = [
        (place("text", b"all your base"), "file too short"),
        (place("foreign", &foreign), "cannot open shared object file"),
        (place("cut", &cut), "cut"),
        (nameless.path().display().to_string(), "is not NVML"),
    ];
    for (path, told) in &cases {
        let now = eight.check_with(path);
        let driver = find(&now, "gpu.driver", "node");
        assert_eq!(driver.verdict, Verdict::Fail, "{path}: {driver:?}");
        assert!(driver.reason.contains(told), "{told}: {driver:?}");
        let of_library =
            |f: &&Finding| f.verdict == Verdict::Pass && f.evidence.iter().any(|e| e.source.contains("nvml"));
        assert_eq!(now.findings.iter().find(of_library), None, "{path}");
    }
}

#[test]
fn a_library_that_was_named_wrongly_is_not_the_nodes_fault() {
    let eight = Eight::new();
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing").display().to_string();
    let driver = eight.check_with(&missing);
    let driver = find(&driver, "gpu.driver", "node");
    assert_eq!(driver.verdict, Verdict::Unknown { blame: Blame::Plimsoll }, "{driver:?}");
    assert!(driver.reason.contains("mend --nvml"), "{driver:?}");
    let text = out(&plimsoll_tests::run(&["check", "--only", "gpu", "--nvml", &missing]));
    assert!(text.contains("mend --nvml"), "{text}");
}

#[test]
fn a_name_without_an_end_or_of_10_kb_is_no_name() {
    let eight = Eight::new();
    let long = "x".repeat(10_240);
    for more in
        [format!("[gpu3]\nname = \"{long}\"\n"), format!("rude_text = 1\n[gpu3]\nname = \"{long}\"\n")]
    {
        let now = eight.check(&FakeNvml::new(), &more);
        let name = find(&now, "gpu.identity", "0000:86:00.0");
        let polite = name.verdict == Verdict::Unknown { blame: Blame::Device };
        assert!(polite || name.reason.len() < 400, "{name:?}");
        assert_ne!(find(&now, "gpu.same.model", "0000:86:00.0").verdict, Verdict::Pass);
        assert_eq!(find(&now, "gpu.identity", "0000:53:00.0").verdict, Verdict::Pass);
    }
}

#[test]
fn a_log_of_100_mb_with_lines_cut_in_the_middle_is_read_to_its_end() {
    let eight = Eight::new();
    let path = eight.tree.place("/dev/kmsg");
    let mut log = fs::read(&path).expect("a log");
    let filler = b"6,10,3000000,-;NVRM: GPU at PCI:0000:18:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7\n SUBSYSTEM=pci\n";
    log.extend(filler.iter().cycle().take(100 << 20));
    log.push(b'\n');
    // Cut in the middle of a number, of an address and of a record's head.
    for cut in [
        "3,11,80000000000,-;NVRM: Xid (PCI:0000:53:00): 7\n",
        "3,12,80000000000,-;NVRM: Xid (PCI:0000:5\n",
        "3,13,80000000000,-;NVRM: Xid (PCI:0000:86:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
        "3,14,800",
    ] {
        log.extend(cut.as_bytes());
    }
    fs::File::create(&path).and_then(|mut file| file.write_all(&log)).expect("a long log");
    let now = eight.check(&FakeNvml::new(), "");
    assert_eq!(find(&now, "gpu.xid", "0000:86:00.0").verdict, Verdict::Fail);
    // Of the one whose number was cut it is known that it was one.
    let cut = find(&now, "gpu.xid", "0000:53:00.0");
    assert_eq!(cut.verdict, Verdict::Unknown { blame: Blame::Device }, "{cut:?}");
    assert_eq!(now.findings.iter().filter(|f| f.check.0 == "gpu.xid").count(), 2);
}

#[test]
fn the_library_is_asked_anew_at_each_reading() {
    let eight = Eight::new();
    let library = FakeNvml::new();
    let scenario = library.scenario("[gpu3]\nrows_pending = 0\n");
    let mut files = eight.scenario.clone();
    files.push(scenario.clone());
    let mut command = plimsoll();
    command.args([
        "check",
        "--only",
        "gpu.remap",
        "--json",
        "--budget",
        "20s",
        "--sysroot",
        eight.tree.arg(),
    ]);
    // The first reading of GPU 3 is slow, so that the scenario changes before the second.
    fs::write(&scenario, "[gpu3]\nfaults = { nvmlDeviceGetEccMode = { delay_ms = 700 } }\n")
        .expect("a scenario");
    let check =
        say(&mut command, &library, &files).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let probe = plimsoll_tests::processes::child(check.id(), "plimsoll: the driver's library");
    plimsoll_tests::processes::wait_for("the GPUs' threads", || {
        let threads = fs::read_dir(format!("/proc/{probe}/task")).ok()?.count();
        (threads > 8).then_some(())
    });
    let new = scenario.with_extension("new");
    fs::write(&new, "[gpu3]\nrows_pending = 1\n").expect("a scenario");
    fs::rename(&new, &scenario).expect("it takes its place");
    let now = report(&check.wait_with_output().expect("it ends"));
    assert_eq!(find(&now, "gpu.remap.pending", "0000:86:00.0").verdict, Verdict::Fail);
}

/// The fake keeps to NVML's interface as NVIDIA's own bindings have it: values, enumerations, versioned structures.
#[test]
fn nvidias_own_bindings_read_from_the_fake_what_its_scenario_says() {
    let Some(bindings) = std::env::var_os("PLIMSOLL_NVML_PYTHON") else {
        return plimsoll_tests::skip(
            "NVIDIA's Python bindings (nvidia-ml-py) are not installed; tests/run installs them",
        );
    };
    let eight = Eight::new();
    let library = FakeNvml::new();
    let odd = library.scenario(
        "[gpu3]\nrows_corrected = 5\nrows_uncorrected = 6\nrows_pending = 1\nrows_failed = 1\nbanks = [600, 30, 8, 1, 1]\n\
         ecc_dram_volatile_uncorrected = 4294967299\nsram_threshold_exceeded = 1\nfabric_state = 2\nfabric_status = 999\n\
         fabric_health = 0x59a\ntemperature_memory = 41\nrecovery_action = 4\ntemperature_margin = -3\n\
         clocks_held_by = 0x10000000048\nprocesses = [[7311, 81000000000], [7312, 1]]\n",
    );
    let files: Vec<String> =
        eight.scenario.iter().chain([&odd]).map(|file| file.display().to_string()).collect();
    let output = std::process::Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/nvml.py"))
        .env("PYTHONPATH", bindings)
        .env("LD_LIBRARY_PATH", library.path().parent().expect("it lies in a directory"))
        .env("PLIMSOLL_FAKE_NVML", files.join(":"))
        .output()
        .expect("python3 starts");
    let told: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    let wanted = serde_json::json!({
        "driver": "570.133.20",
        "gpus": 8,
        "name": "NVIDIA H100 80GB HBM3",
        "serial": "1653123010003",
        "pci": "00000000:86:00.0",
        "rows": [5, 6, 1, 1],
        "banks": [600, 30, 8, 1, 1],
        "uncorrected": 4_294_967_299_u64,
        "sram_threshold": 1,
        "fabric": [2, 999, 0x59a],
        "fields": [[0, 41], [0, 4]],
        "margin": -3,
        "held_by": 0x100_0000_0048_u64,
        "processes": [[7311, 81_000_000_000_u64], [7312, 1]],
    });
    assert_eq!(told, wanted);
}

#[test]
fn a_policy_that_makes_no_sense_is_refused_with_the_place_and_the_way_out() {
    for (text, told) in [
        ("[xid.94]\nverdict = \"fail\"\n[xid.94]\nverdict = \"warn\"\n", "duplicate key"),
        ("[xid.94]\naction = \"explode\"\n", "expected one of `none`, `watch`, `diagnose`"),
        ("[xid.94]\nverdict = \"bad\"\n", "expected one of `pass`, `warn`, `fail`"),
        ("[xid.ninety]\nverdict = \"fail\"\n", "[xid.94]"),
        ("[xid.094]\nverdict = \"fail\"\n", "[xid.94]"),
        ("[xid.94]\nverdct = \"fail\"\n", "verdict"),
        ("[gpu]\ndriver_min = \"new\"\n", "a version such as"),
        ("[gpu]\ncount = -1\n", "count"),
    ] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("a configuration");
        let path = file.path().to_str().expect("UTF-8");
        let output = plimsoll_tests::run(&["check", "--config", path]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(err(&output).contains(told) && out(&output).is_empty(), "{text}: {}", err(&output));
    }
}

#[test]
fn explain_answers_for_every_check_and_every_code() {
    let data = plimsoll_judge::Data::built_in().expect("the data");
    let checks: Vec<&str> = plimsoll_judge::checks().map(|check| check.id).collect();
    let wrong = on_each(&checks, |check| {
        let output = plimsoll_tests::run(&["explain", check]);
        let whole = ["asks", "compares", "verdicts", "why", "clears by", "do"]
            .iter()
            .all(|part| out(&output).contains(part));
        if output.status.success() && whole { Vec::new() } else { vec![format!("{check}: {}", out(&output))] }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    let xids: Vec<(&str, u32)> = data.catalogue.xids.keys().map(|code| ("xid", *code)).collect();
    let sxids: Vec<(&str, u32)> = data.catalogue.sxids.keys().map(|code| ("sxid", *code)).collect();
    assert!(xids.len() == 173 && sxids.len() > 90);
    let wrong = on_each(&[xids, sxids].concat(), |(kind, code)| {
        let output = plimsoll_tests::run(&["explain", kind, &code.to_string()]);
        let whole = ["verdict", "clears by", "do", "says who"].iter().all(|part| out(&output).contains(part));
        if output.status.success() && whole {
            Vec::new()
        } else {
            vec![format!("{kind} {code}: {}", out(&output))]
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn explain_shows_what_the_site_has_changed() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "[xid.94]\nverdict = \"fail\"\naction = \"repair\"\n").expect("a configuration");
    let path = file.path().to_str().expect("UTF-8");
    let text = out(&plimsoll_tests::run(&["explain", "xid", "94", "--config", path]));
    for part in
        ["fails", "repair", "changed in the configuration", "warns for 1day", "imbue: error", "DCGM: warn"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn without_gpus_one_line_says_so_and_nothing_is_alarmed() {
    let tree = plimsoll_tests::node::healthy_tree();
    let output = plimsoll_tests::run(&["check", "--sysroot", tree.arg()]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.to_lowercase().contains("gpu")).skip(1).collect();
    assert_eq!(lines, ["No GPU was judged: this machine has no NVIDIA GPU and no NVIDIA driver"], "{text}");
}

#[test]
fn what_sits_near_what_is_told_by_switch_and_numa_node() {
    let eight = Eight::new();
    let library = FakeNvml::new();
    let mut command = plimsoll();
    command.args(["check", "--topology", "--sysroot", eight.tree.arg()]);
    let text = out(&say(&mut command, &library, &eight.scenario).output().expect("it starts"));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("GPU 3 NVIDIA H100")).expect("the GPU");
    assert_eq!(lines.get(at - 1), Some(&"  PCIe switch 0000:82:00.0"), "{text}");
    assert!(lines.get(at + 1).is_some_and(|line| line.contains("rdmap132s0")), "{text}");
    assert!(text.contains("NUMA node 1, cores 2-3,6-7"), "{text}");
}
