//! One line for Nagios and its kin.

use plimsoll_model::{Finding, NagiosExit, Overall, Report};

use super::words::told;
use crate::clean::clean;

/// Problems that are named in the line; the rest are counted.
const NAMED_MAX: usize = 5;

/// The status and the line for Nagios.
#[must_use]
pub fn nagios(report: &Report) -> (NagiosExit, String) {
    let sum = &report.summary;
    let exit = match report.overall {
        Overall::Unfit => NagiosExit::Critical,
        Overall::Undecided => NagiosExit::Unknown,
        Overall::Fit if sum.warn > 0 => NagiosExit::Warning,
        Overall::Fit => NagiosExit::Ok,
    };
    let problems: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.verdict.is_problem()).collect();
    let mut named: Vec<String> = problems
        .iter()
        .take(NAMED_MAX)
        .map(|f| format!("{} {} {}: {}", f.verdict.word(), f.check, f.device, told(f)))
        .collect();
    if problems.len() > NAMED_MAX {
        named.push(format!("and {} more", problems.len() - NAMED_MAX));
    }
    let counts = format!(
        "{} failed, {} unknown, {} warnings, {} passed, {} skipped",
        sum.fail, sum.unknown, sum.warn, sum.pass, sum.skipped
    );
    let told = if named.is_empty() { String::new() } else { format!("; {}", named.join("; ")) };
    // The bar begins performance data, so none may stand in the text.
    let text = clean(&format!("{counts}{told}")).replace('|', "/");
    let line = format!(
        "PLIMSOLL {} - {text} | fail={} unknown={} warn={} pass={} skipped={} time={}ms\n",
        exit.word(),
        sum.fail,
        sum.unknown,
        sum.warn,
        sum.pass,
        sum.skipped,
        report.took_ms
    );
    (exit, line)
}
