//! `plimsoll check`: judges this node now.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use plimsoll_dashboard::{
    Style, check_list, check_list_json, json, junit, nagios, table, topology, topology_json,
};
use plimsoll_judge::{
    BUDGET_ACCEPTED, Data, Policy, State, checks, decide, nearest, observe, parse_budget, select,
};
use plimsoll_model::{
    Body, Clock, Domain, Exit, Finding, NagiosExit, NodeIdentity, Overall, Report, SCHEMA_VERSION, SinceBoot,
    Summary,
};

use super::{VerbError, print};
use crate::{
    collect::{Collected, Pair, Wanted, collect, setup},
    config_file,
    supervise::Interrupts,
};

/// Time for the whole command unless somebody says otherwise.
pub(super) const BUDGET: Duration = Duration::from_secs(8);
/// Part of the budget that is kept for ending children, judging and printing.
const RESERVE: Duration = Duration::from_millis(150);

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 fit, 1 unfit, 2 wrong usage or configuration, 3 undecided, 4 interrupted.\n\
                        With --nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN."
)]
pub(crate) struct Arguments {
    /// Show passes and skipped checks too
    #[arg(long)]
    all: bool,
    /// Print JSON; its schema is dashboard/schema/check.v1.json
    #[arg(long, group = "format")]
    json: bool,
    /// Print JUnit XML
    #[arg(long, group = "format")]
    junit: bool,
    /// Print one line and use the exit codes that Nagios expects
    #[arg(long, group = "format")]
    nagios: bool,
    /// List the checks and judge nothing
    #[arg(long, conflicts_with_all = ["all", "junit", "nagios"])]
    list: bool,
    /// Show which GPUs, network devices, drives and cores share a PCIe switch or NUMA node, and judge nothing
    #[arg(long, conflicts_with_all = ["all", "junit", "nagios", "list", "only"])]
    topology: bool,
    /// Judge only these: a check, or the beginning of names (`storage.mount`); may be repeated or separated by commas
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    only: Vec<String>,
    /// Time for the whole command, from 500ms to 10min [default: 8s]
    #[arg(long, value_name = "TIME", value_parser = budget, allow_hyphen_values = true)]
    budget: Option<Duration>,
    /// Configuration file [default: $PLIMSOLL_CONFIG, else /etc/plimsoll/plimsoll.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A tree of files that stands in for this machine's /proc, /sys, /dev and /etc
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// NVIDIA's library NVML, by its path [default: libnvidia-ml.so.1, and none with --sysroot]
    #[arg(long, value_name = "FILE")]
    nvml: Option<PathBuf>,
    /// Count kernel-log lines that a process wrote as if the kernel had (for tests)
    #[arg(long, hide = true)]
    admit_injected_log: bool,
}

fn budget(text: &str) -> Result<Duration, String> {
    parse_budget(text).ok_or_else(|| format!("expected {BUDGET_ACCEPTED}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8, VerbError> {
    match judge_node(arguments) {
        // Nagios reads one line and would take status 2 for critical.
        Err(error) if arguments.nagios => {
            print::result(&format!("PLIMSOLL UNKNOWN - {}\n", error.line()))?;
            Ok(NagiosExit::Unknown.code())
        }
        other => other,
    }
}

fn judge_node(arguments: &Arguments) -> Result<u8, VerbError> {
    let began = Instant::now();
    let only = selected(&arguments.only)?;
    if arguments.list {
        let listed: Vec<_> =
            checks().filter(|check| only.as_ref().is_none_or(|only| only.contains(check.id))).collect();
        let text = if arguments.json {
            check_list_json(&listed).map_err(VerbError::own)?
        } else {
            check_list(&listed, print::terminal_columns())
        };
        print::result(&text)?;
        return Ok(Exit::Fit.code());
    }
    let interrupts = Interrupts::catch()
        .map_err(|error| VerbError::own(anyhow!(error).context("cannot catch signals")))?;
    let data = Data::built_in().map_err(VerbError::own)?;
    let sysroot = match &arguments.sysroot {
        Some(path) => Some(std::path::absolute(path).map_err(VerbError::usage)?.into_os_string()),
        None => None,
    };
    let deadline = |budget: Duration| began + (budget - RESERVE.min(budget / 2));
    let setup = setup(
        named_config(arguments.config.as_deref())?,
        sysroot.clone(),
        deadline(arguments.budget.unwrap_or(BUDGET)),
        &interrupts,
    )
    .map_err(VerbError::setup)?;
    let config_path = setup.config.path().map(str::to_owned);
    let config = config_file::parse(setup.config, &data).map_err(|error| {
        let of_tree = arguments.sysroot.as_ref().filter(|_| arguments.config.is_none());
        let place = of_tree.map_or(String::new(), |tree| format!("in {}: ", tree.display()));
        VerbError::usage(anyhow!("{place}{error}"))
    })?;
    let budget = arguments.budget.or(config.check.budget).unwrap_or(BUDGET);
    let domains = if arguments.topology {
        [Domain::Gpu].into()
    } else {
        checks()
            .filter(|check| only.as_ref().is_none_or(|only| only.contains(check.id)))
            .map(|check| check.domain)
            .collect()
    };
    let wanted = Wanted {
        domains,
        config: &config,
        data: &data,
        sysroot,
        nvml: library(arguments)?,
        topology: arguments.topology,
        admit_injected_log: arguments.admit_injected_log,
    };
    let collected = collect(&wanted, deadline(budget), &interrupts);
    interrupts.release();
    if arguments.topology {
        return show_topology(arguments, &collected);
    }
    let policy = Policy { config: &config, data: &data, only: only.as_ref() };
    let sysroot = arguments.sysroot.as_ref().map(|path| path.display().to_string());
    let report = judge(
        &collected,
        &policy,
        NodeIdentity { hostname: setup.hostname, sysroot, config: config_path },
        began,
    );
    let style = Style { all: arguments.all, columns: print::terminal_columns(), colour: print::colour() };
    print::result(&render(arguments, &report, &style)?)?;
    Ok(status(arguments, &report))
}

/// The configuration that was named on the command line or in the environment, as an absolute path.
pub(super) fn named_config(config: Option<&Path>) -> Result<Option<String>, VerbError> {
    let of_environment =
        || std::env::var_os("PLIMSOLL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(path) = config.map(Path::to_owned).or_else(of_environment) else { return Ok(None) };
    let absolute = std::path::absolute(path).map_err(VerbError::usage)?;
    match absolute.into_os_string().into_string() {
        Ok(path) => Ok(Some(path)),
        Err(path) => {
            Err(VerbError::usage(anyhow!("the configuration's path {} is not UTF-8", path.display())))
        }
    }
}

fn show_topology(arguments: &Arguments, collected: &Collected) -> Result<u8, VerbError> {
    let Some(pair) = collected.samples.first() else {
        return Err(VerbError::own(anyhow!("nothing was collected")));
    };
    let untold = |reason: &str| VerbError::own(anyhow!("cannot tell what sits near what: {reason}"));
    let gpu = match &pair.second.body {
        Body::Gpu(gpu) => gpu,
        Body::Failed { failure, .. } => return Err(untold(&failure.reason)),
        _ => return Err(untold("another domain answered")),
    };
    let reading = gpu.topology.as_ref().ok_or_else(|| untold("it was not read"))?;
    let mut found =
        reading.get().map_err(|absent| untold(&format!("{}: {}", reading.source, absent.detail)))?.clone();
    for known in gpu.nvml.ok().map_or(&[][..], |nvml| nvml.gpus.as_slice()) {
        let device = found.devices.iter_mut().find(|device| Some(&device.address) == known.address.ok());
        if let Some(device) = device {
            device.names.push(format!("GPU {}", known.index));
            device.names.extend(known.identity.name.ok().cloned());
        }
    }
    print::result(&if arguments.json {
        topology_json(&found).map_err(VerbError::own)?
    } else {
        topology(&found)
    })?;
    Ok(Exit::Fit.code())
}

/// The library that was named on the command line, as an absolute path.
fn library(arguments: &Arguments) -> Result<Option<String>, VerbError> {
    let Some(path) = &arguments.nvml else { return Ok(None) };
    let absolute = std::path::absolute(path).map_err(VerbError::usage)?;
    absolute
        .into_os_string()
        .into_string()
        .map(Some)
        .map_err(|path| VerbError::usage(anyhow!("the library's path {} is not UTF-8", path.display())))
}

/// The checks that the selectors name; `None` when there are no selectors.
fn selected(selectors: &[String]) -> Result<Option<BTreeSet<&'static str>>, VerbError> {
    let mut only = BTreeSet::new();
    for selector in selectors.iter().map(|selector| selector.trim()) {
        let named: Vec<_> = select(selector).map(|check| check.id).collect();
        if named.is_empty() {
            let near = nearest(selector, checks().map(|check| check.id));
            return Err(VerbError::usage(anyhow!(
                "there is no check `{selector}`{near}; `plimsoll check --list` lists them"
            )));
        }
        only.extend(named);
    }
    Ok((!selectors.is_empty()).then_some(only))
}

fn judge(collected: &Collected, policy: &Policy<'_>, node: NodeIdentity, began: Instant) -> Report {
    let mut findings = Vec::new();
    for Pair { first, second, arrived } in &collected.samples {
        // The same two steps as the agent's, from an empty state: the first sample gives what the second compares with.
        let mut state = State::default();
        if let Some(first) = first {
            state = decide(&state, &observe(None, first), policy, &first.clock).0;
        }
        let now = later(&second.clock, arrived.elapsed());
        let (_, judged) = decide(&state, &observe(first.as_ref(), second), policy, &now);
        findings.extend(judged);
    }
    sort(&mut findings);
    let summary = Summary::of(&findings);
    Report {
        schema_version: SCHEMA_VERSION,
        plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
        node,
        judged_at: Timestamp::now(),
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        interrupted: collected.interrupted,
        overall: Overall::of(&summary),
        summary,
        findings,
    }
}

/// The node's clocks so much later.
fn later(clock: &Clock, by: Duration) -> Clock {
    let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    let since_boot = clock.since_boot.map(|then| SinceBoot(then.0.saturating_add(ms)));
    Clock { wall: Timestamp::now(), since_boot, boot_id: clock.boot_id.clone() }
}

/// Most serious first; within a verdict in the order of the registry.
fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
}

fn render(arguments: &Arguments, report: &Report, style: &Style) -> Result<String, VerbError> {
    if arguments.json {
        json(report).map_err(VerbError::own)
    } else if arguments.junit {
        junit(report).map_err(VerbError::own)
    } else if arguments.nagios {
        Ok(nagios(report).1)
    } else {
        Ok(table(report, style))
    }
}

fn status(arguments: &Arguments, report: &Report) -> u8 {
    if arguments.nagios {
        nagios(report).0.code()
    } else if report.interrupted {
        Exit::Interrupted.code()
    } else {
        report.overall.exit().code()
    }
}
