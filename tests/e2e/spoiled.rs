//! Any file taken away from a healthy node, with GPUs and without, or spoiled, never yields a pass for the check that needed it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::{
    fs,
    os::unix::fs::symlink,
    sync::Mutex,
    time::{Duration, Instant},
};

use plimsoll_model::{Origin, Report, Verdict};
use plimsoll_tests::{
    err,
    node::{Node, healthy_tree},
    nvml::{FakeNvml, say},
    out, plimsoll,
    tree::Tree,
};

/// Files that no check needs: the first only names the node in the headline. A drive's entry among an array's members
/// says where blocks are; that a member is missing shows in the array's own state.
const CONTEXT: [&str; 7] = [
    "/proc/sys/kernel/hostname",
    // Words beside a judgement that does not lean on them: which driver, which part to pull.
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    "/sys/class/nvme/nvme0/address",
    "/sys/class/nvme/nvme1/address",
    "/sys/class/nvme/nvme2/address",
    "/sys/class/block/md0/slaves/nvme1n1",
    "/sys/class/block/md0/slaves/nvme2n1",
];

/// Files that only `check --topology` reads.
fn is_topology(file: &str) -> bool {
    file.starts_with("/sys/devices/pci") && (file.ends_with("/numa_node") || file.contains("/infiniband/"))
}

const CONFIG: &str = "/etc/plimsoll/plimsoll.toml";

/// Findings may take this long in a run that the others slow down; a hang takes the whole budget, 8 s.
const TIME_MAX: Duration = Duration::from_secs(6);

/// A PCI device's file by the name that everybody reads it by.
fn on_the_bus(file: &str) -> Option<String> {
    if file.strip_prefix("/sys/bus/pci/devices/").is_some_and(|device| !device.contains('/')) {
        // The device itself, which is a link to where it sits.
        return Some(format!("{file}/vendor"));
    }
    let mut parts = file.strip_prefix("/sys/devices/pci")?.rsplit('/');
    let (name, device) = (parts.next()?, parts.next()?);
    Some(format!("/sys/bus/pci/devices/{device}/{name}"))
}

/// Whether a source (`/sys/a*/{b,c}`) is about this file.
fn is_about(source: &str, file: &str) -> bool {
    // In a machine `device` is a link and this the port above it; in the tree it is a directory.
    let source = &source.replace("/device/../", "/");
    if let Some(alias) = on_the_bus(file) {
        return is_about(source, &alias);
    }
    if let Some((before, rest)) = source.split_once('{')
        && let Some((names, after)) = rest.split_once('}')
    {
        return names.split(',').any(|name| is_about(&format!("{before}{name}{after}"), file));
    }
    let (source, file): (Vec<_>, Vec<_>) = (source.split('/').collect(), file.split('/').collect());
    let part = |(pattern, name): (&&str, &&str)| match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => pattern == name,
    };
    source.len() == file.len() && source.iter().zip(&file).all(part)
}

/// Checks and devices whose finding leans on this file: as evidence, or as what it was compared with.
fn leaning_on(report: &Report, file: &str) -> Vec<(String, String)> {
    let leans = |finding: &&plimsoll_model::Finding| {
        let compared = matches!(&finding.expectation.origin, Origin::Config { file: named } if named == file);
        compared || finding.evidence.iter().any(|seen| is_about(&seen.source, file))
    };
    report.findings.iter().filter(leans).map(|f| (f.check.to_string(), f.device.to_string())).collect()
}

/// A healthy node that is spoiled file by file.
struct Whole {
    node: &'static str,
    tree: Tree,
    library: Option<FakeNvml>,
    files: Vec<String>,
}

const GPU_NODE: &str = "gpu-healthy";

impl Whole {
    fn without_gpus() -> Self {
        let tree = healthy_tree();
        let files = tree.files();
        Self { node: "healthy", tree, library: None, files }
    }

    /// Of the files that only a node with GPUs has, those of two of its eight GPUs: the others are like them.
    fn with_gpus() -> Self {
        let tree = Node::named(GPU_NODE).tree(GPU_NODE);
        let known = healthy_tree().files();
        let of_two = |file: &str| file.contains("0000:53:00.0") || file.contains("0000:ca:00.0");
        let of_devices =
            |file: &str| file.starts_with("/sys/bus/pci/") || file.starts_with("/sys/devices/pci");
        let wanted = |file: &String| !known.contains(file) && (!of_devices(file) || of_two(file));
        let files = tree.files().into_iter().filter(wanted).collect();
        Self { node: GPU_NODE, tree, library: Some(FakeNvml::new()), files }
    }

    fn copy(&self) -> Tree {
        Node::named(self.node).tree(self.node)
    }

    fn output(&self, tree: &Tree) -> std::io::Result<std::process::Output> {
        let mut command = plimsoll();
        command.args(["check", "--json", "--sysroot", tree.arg()]);
        match &self.library {
            Some(library) => say(&mut command, library, &Node::named(self.node).scenario(self.node)).output(),
            None => command.output(),
        }
    }
}

/// What a run on a spoiled tree came to: no report is acceptable only as a usage error that says why.
fn judge(whole: &Whole, tree: &Tree) -> Result<Option<Report>, String> {
    let began = Instant::now();
    let output = whole.output(tree).map_err(|e| e.to_string())?;
    if began.elapsed() > TIME_MAX {
        return Err(format!("it took {:?}", began.elapsed()));
    }
    match output.status.code() {
        Some(0 | 1 | 3) => {
            serde_json::from_slice(&output.stdout).map(Some).map_err(|error| error.to_string())
        }
        Some(2) if out(&output).is_empty() && err(&output).contains("plimsoll.toml") => Ok(None),
        other => Err(format!("status {other:?}: {}{}", out(&output), err(&output))),
    }
}

/// Spoils each file of the healthy trees in turn, and gives the passes that lean on it all the same.
fn passes_when_spoiled(spoil: impl Fn(&Tree, &str) + Sync) -> Vec<String> {
    let wholes = [Whole::without_gpus(), Whole::with_gpus()];
    wholes.iter().flat_map(|whole| passes_on(whole, &spoil)).collect()
}

fn passes_on(whole: &Whole, spoil: &(impl Fn(&Tree, &str) + Sync)) -> Vec<String> {
    let healthy = judge(whole, &whole.tree).ok().flatten().expect("a healthy report");
    let files = Mutex::new(whole.files.clone());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let next = || files.lock().ok()?.pop();
                while let Some(file) = next() {
                    let tree = whole.copy();
                    spoil(&tree, &file);
                    let found = match judge(whole, &tree) {
                        Ok(None) => continue,
                        Ok(Some(report)) => report,
                        Err(error) => {
                            wrong.lock().expect("no panic").push(format!("{file}: {error}"));
                            continue;
                        }
                    };
                    for (check, device) in leaning_on(&healthy, &file) {
                        let same = |f: &&plimsoll_model::Finding| f.check.0 == check && f.device.0 == device;
                        let compared = |f: &&plimsoll_model::Finding| {
                            // Without the operator's word a check may fall back on a weaker one, and says so.
                            file != CONFIG
                                || matches!(&f.expectation.origin, Origin::Config { file } if file == CONFIG)
                        };
                        let passes = found
                            .findings
                            .iter()
                            .filter(same)
                            .filter(compared)
                            .any(|f| f.verdict == Verdict::Pass);
                        if passes {
                            wrong
                                .lock()
                                .expect("no panic")
                                .push(format!("{check} {device} passes without {file}"));
                        }
                    }
                }
            });
        }
    });
    wrong.into_inner().expect("no panic")
}

#[test]
fn every_file_of_the_healthy_node_is_needed_by_some_check() {
    for whole in [Whole::without_gpus(), Whole::with_gpus()] {
        let report = judge(&whole, &whole.tree).ok().flatten().expect("a healthy report");
        let unneeded: Vec<_> = whole
            .files
            .iter()
            .filter(|file| !CONTEXT.contains(&file.as_str()) && !file.starts_with("/sys/class/infiniband/"))
            .filter(|file| !is_topology(file))
            .filter(|file| leaning_on(&report, file).is_empty())
            .collect();
        assert!(unneeded.is_empty(), "no finding leans on {unneeded:#?}");
    }
}

#[test]
fn a_file_taken_away_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| tree.remove(file));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_empty_file_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| tree.write(file, b""));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn garbage_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| tree.write(file, b"all your base ;;; are belong\nto us\n"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn binary_rubbish_never_yields_a_pass() {
    let rubbish: Vec<u8> = (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let wrong = passes_when_spoiled(|tree, file| tree.write(file, &rubbish));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_fifo_where_a_file_should_be_never_hangs_and_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| {
        tree.remove(file);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.place(file),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a FIFO");
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_directory_where_a_file_should_be_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| {
        tree.remove(file);
        fs::create_dir(tree.place(file)).expect("a directory");
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_loop_of_links_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| {
        tree.remove(file);
        let name = tree.place(file);
        symlink(name.file_name().expect("a name"), &name).expect("a link to itself");
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_enormous_file_never_yields_a_pass() {
    let wrong = passes_when_spoiled(|tree, file| {
        tree.remove(file);
        fs::File::create(tree.place(file)).and_then(|f| f.set_len(1 << 40)).expect("a sparse file of 1 TiB");
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_file_cut_in_the_middle_breaks_nothing() {
    // Half a list may be a whole list, so this asks only for a report in time.
    let wrong = passes_when_spoiled(|tree, file| {
        if let Ok(content) = fs::read(tree.place(file)) {
            tree.write(file, content.get(..content.len() / 2).unwrap_or_default());
        }
    });
    let broken: Vec<_> = wrong.iter().filter(|told| !told.contains(" passes without ")).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_link_out_of_the_tree_leads_back_into_it() {
    let tree = healthy_tree();
    tree.remove("/proc/meminfo");
    symlink("/proc/self/../meminfo", tree.place("/proc/meminfo")).expect("a link");
    let whole = Whole::without_gpus();
    let report = judge(&whole, &tree).ok().flatten().expect("a report");
    let memory = report.findings.iter().find(|f| f.check.0 == "host.memory.size").expect("the check");
    assert!(matches!(memory.verdict, Verdict::Unknown { .. }), "{memory:?}");
}
