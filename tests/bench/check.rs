//! `plimsoll check` on this machine: how long it takes, cold and beside a hung mount, and how much memory.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use plimsoll_tests::{
    freezer::Freezer,
    node::Node,
    nvml::{FakeNvml, say},
    plimsoll,
    processes::children,
    tree::Tree,
};

use crate::figure::Figure;

const RUNS: u32 = 11;

pub(crate) fn figures() -> Vec<Figure> {
    let mut figures = vec![
        Figure::measure("check_cold_ms", "ms", None, RUNS, || milliseconds(check(&[]))),
        eight_gpus(),
        hung_nvml(),
        Figure::measure("check_pss_mib", "MiB", Some(40.0), RUNS, peak_pss_mib),
    ];
    match Freezer::new() {
        Some(freezer) => figures.push(hung_mount(&freezer)),
        None => eprintln!("check_hung_mount_over_deadline_ms: not measured, see above"),
    }
    figures
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn start(arguments: &[&str]) -> Child {
    let mut command: Command = plimsoll();
    command.arg("check").args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary starts")
}

fn check(arguments: &[&str]) -> Duration {
    let began = Instant::now();
    start(arguments).wait().expect("it ends");
    began.elapsed()
}

/// A node with eight GPUs that the fake library answers for.
struct GpuNode {
    tree: Tree,
    library: FakeNvml,
}

const GPU_NODE: &str = "gpu-healthy";

impl GpuNode {
    fn new() -> Self {
        Self { tree: Node::named(GPU_NODE).tree(GPU_NODE), library: FakeNvml::new() }
    }

    fn check(&self, scenario: &[PathBuf], arguments: &[&str]) -> Duration {
        let mut command = plimsoll();
        command.args(["check", "--sysroot", self.tree.arg()]).args(arguments);
        say(&mut command, &self.library, scenario).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        command.status().expect("the binary ends");
        began.elapsed()
    }
}

/// The whole command on a node with eight GPUs: host, storage and GPUs, all read twice.
fn eight_gpus() -> Figure {
    let node = GpuNode::new();
    let scenario = Node::named(GPU_NODE).scenario(GPU_NODE);
    Figure::measure("check_8gpu_ms", "ms", Some(250.0), RUNS, || milliseconds(node.check(&scenario, &[])))
}

/// The same when no call of the library returns, less the time that it was given.
fn hung_nvml() -> Figure {
    const BUDGET: Duration = Duration::from_secs(2);
    let node = GpuNode::new();
    let mut scenario = Node::named(GPU_NODE).scenario(GPU_NODE);
    scenario.push(node.library.scenario("faults = { \"*\" = { hang = true } }\n"));
    Figure::measure("check_hung_nvml_over_deadline_ms", "ms", Some(200.0), RUNS, || {
        milliseconds(node.check(&scenario, &["--budget", "2s"])) - milliseconds(BUDGET)
    })
}

/// The whole command beside a mount that does not answer, less the time that it was given. Each run freezes anew, so
/// that each has a probe of its own that cannot be killed.
fn hung_mount(freezer: &Freezer) -> Figure {
    const BUDGET: Duration = Duration::from_secs(2);
    Figure::measure("check_hung_mount_over_deadline_ms", "ms", Some(200.0), RUNS, || {
        freezer.freeze();
        let took = check(&["--budget", "2s"]);
        freezer.thaw();
        milliseconds(took) - milliseconds(BUDGET)
    })
}

/// The most that the command and its children had together, by their proportional set sizes.
fn peak_pss_mib() -> f64 {
    let mut check = start(&[]);
    let mut peak_kib = 0;
    while check.try_wait().expect("it can be asked").is_none() {
        let all = children(check.id(), "plimsoll:").into_iter().chain([check.id()]);
        peak_kib = peak_kib.max(all.map(pss_kib).sum());
    }
    peak_kib as f64 / 1024.0
}

fn pss_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}
