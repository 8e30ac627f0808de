//! The table for people: problems first, one line each of what, where, evidence and action.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::{Finding, Overall, Report, SkipWhy, Verdict};
use unicode_width::UnicodeWidthStr;

use super::words::{action, told, without_part};
use crate::{
    clean::clean,
    wrap::{pad, wrap},
};

/// How to lay the table out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Show passes and skipped checks too.
    pub all: bool,
    /// Width of the terminal; `None` puts each finding on one line, however long.
    pub columns: Option<usize>,
    /// Use colours.
    pub colour: bool,
}

/// Several findings that say the same for the same reason: one cause, one line.
struct Row<'a> {
    verdict: Verdict,
    checks: Vec<&'a str>,
    device: &'a str,
    /// Further findings that say the same of other devices.
    more: Vec<&'a Finding>,
    finding: &'a Finding,
}

impl Row<'_> {
    fn devices(&self) -> String {
        match self.more.len() {
            0 => clean(self.device).into_owned(),
            more => format!("{} and {more} more", clean(self.device)),
        }
    }
}

/// The report as a table.
#[must_use]
pub fn table(report: &Report, style: &Style) -> String {
    let shown: Vec<&Finding> =
        report.findings.iter().filter(|finding| style.all || finding.verdict.is_problem()).collect();
    let rows = rows(&shown);
    let mut text = headline(report, style);
    if !rows.is_empty() {
        text.push('\n');
    }
    let width = |cell: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(cell).max().unwrap_or(0);
    let check_width = width(&|row| checks(row).width()).min(44);
    let device_width = width(&|row| row.devices().width()).min(28);
    for row in &rows {
        text.push_str(&line(row, style, check_width, device_width));
    }
    if let Some(line) = without_gpus(report).filter(|_| !style.all) {
        text.push_str(&format!("\n{line}\n"));
    }
    let (passed, skipped) = (report.summary.pass, report.summary.skipped);
    if !style.all && passed + skipped > 0 {
        let skipped = if skipped > 0 { format!(", {skipped} were not judged") } else { String::new() };
        let bare = Verdict::Skipped { why: SkipWhy::NothingToCompareWith };
        let for_want_of_it = report.findings.iter().any(|finding| finding.verdict == bare);
        let no_config = if report.node.config.is_none() && for_want_of_it {
            " (there is no configuration to compare with)"
        } else {
            ""
        };
        let hint = format!(
            "{passed} passed{skipped}{no_config}; --all shows them, `plimsoll explain CHECK` explains one"
        );
        let lines = style.columns.map_or_else(|| vec![hint.clone()], |columns| wrap(&hint, columns));
        lines.iter().for_each(|line| text.push_str(&format!("\n{line}")));
        text.push('\n');
    }
    text
}

fn headline(report: &Report, style: &Style) -> String {
    let sum = &report.summary;
    let mut parts = Vec::new();
    let mut count = |number: u32, one: &str, many: &str| {
        if number > 0 {
            parts.push(format!("{number} {}", if number == 1 { one } else { many }));
        }
    };
    count(sum.fail, "failure", "failures");
    count(sum.unknown, "unknown", "unknown");
    count(sum.warn, "warning", "warnings");
    let mut told = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    if sum.fail + sum.unknown + sum.warn + sum.pass == 0 {
        told.push_str(": nothing was judged");
    }
    if report.interrupted {
        told.push_str(" (interrupted, so this is not all)");
    }
    let mut node = clean(report.node.hostname.as_deref().unwrap_or("this node")).into_owned();
    if let Some(tree) = &report.node.sysroot {
        node = format!("{node} (the tree {})", clean(tree));
    }
    // What a verdict rests on: all that was judged, or what stands against the node.
    let is_fit = report.overall == Overall::Fit;
    let counts = |finding: &&Finding| match finding.verdict {
        Verdict::Skipped { .. } => false,
        Verdict::Pass | Verdict::Warn => is_fit,
        Verdict::Unknown { .. } => report.overall == Overall::Undecided,
        Verdict::Fail => true,
    };
    let domains: BTreeSet<&str> =
        report.findings.iter().filter(counts).filter_map(|f| f.check.0.split('.').next()).collect();
    let domains = listed(&domains.into_iter().collect::<Vec<_>>());
    let colour = match report.overall.to_string().as_str() {
        "FIT" => "32;1",
        "UNFIT" => "31;1",
        _ => "35;1",
    };
    let word = paint(&report.overall.to_string(), colour, style.colour);
    let by = if domains.is_empty() { String::new() } else { format!(" by its {domains}") };
    format!("{node} is {word}{by}{told}  ({:.1} s)\n", report.took_ms as f64 / 1000.0)
}

/// `gpu, host and storage`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// One line about GPUs that are not there: their checks are all skipped, and silence would read like health.
fn without_gpus(report: &Report) -> Option<String> {
    let of_gpus = |finding: &&Finding| finding.check.0.starts_with("gpu.");
    let nothing = report
        .findings
        .iter()
        .filter(of_gpus)
        .all(|finding| matches!(finding.verdict, Verdict::Skipped { .. }));
    let driver =
        report.findings.iter().find(|finding| finding.check.0 == "gpu.driver").filter(|_| nothing)?;
    Some(format!("No GPU was judged: {}", clean(&driver.reason)))
}

/// Findings of one verdict, device and reason become one row, at the place of the first.
fn rows<'a>(findings: &[&'a Finding]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut places = BTreeMap::new();
    for finding in findings {
        let cause = (finding.verdict, finding.device.0.as_str(), finding.reason.as_str());
        let may_join = finding.verdict != Verdict::Pass;
        match places.get(&cause).and_then(|at: &usize| rows.get_mut(*at)) {
            Some(row) if may_join => row.checks.push(&finding.check.0),
            _ => {
                places.insert(cause, rows.len());
                let (verdict, device) = (finding.verdict, finding.device.0.as_str());
                rows.push(Row { verdict, checks: vec![&finding.check.0], device, more: Vec::new(), finding });
            }
        }
    }
    alike(rows)
}

/// Rows of the same checks on several devices, which say the same of each, become one.
fn alike(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let mut joined: Vec<Row<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    for row in rows {
        let cause = (row.verdict, row.checks.clone(), without_part(row.finding), action(row.finding));
        match places.get(&cause).and_then(|at: &usize| joined.get_mut(*at)) {
            Some(first) => first.more.push(row.finding),
            None => {
                places.insert(cause, joined.len());
                joined.push(row);
            }
        }
    }
    joined
}

/// `storage.mount.space`, `storage.mount.{space,inodes}`, or `host.* (29 checks)`.
fn checks(row: &Row<'_>) -> String {
    let [first, rest @ ..] = row.checks.as_slice() else { return String::new() };
    if rest.is_empty() {
        return (*first).to_owned();
    }
    let common = common_prefix(&row.checks);
    let tails: Vec<&str> = row.checks.iter().map(|id| id.get(common.len()..).unwrap_or_default()).collect();
    let listed = format!("{common}{{{}}}", tails.join(","));
    if listed.width() <= 44 { listed } else { format!("{common}* ({} checks)", row.checks.len()) }
}

/// What all names begin with, up to and with a dot.
fn common_prefix<'a>(names: &[&'a str]) -> &'a str {
    let Some(first) = names.first() else { return "" };
    let ends = first.match_indices('.').map(|(at, _)| at + 1).rev();
    let mut prefixes = ends.filter_map(|end| first.get(..end));
    prefixes.find(|prefix| names.iter().all(|name| name.starts_with(prefix))).unwrap_or("")
}

fn line(row: &Row<'_>, style: &Style, check_width: usize, device_width: usize) -> String {
    let finding = row.finding;
    let word = pad(row.verdict.word(), 7);
    let head = format!(
        "{}  {}  {}",
        paint(&word, colour(row.verdict), style.colour),
        pad(&checks(row), check_width),
        pad(&row.devices(), device_width)
    );
    let head = head.trim_end();
    let evidence = if row.more.is_empty() {
        told(finding)
    } else {
        // Each by its short name: `GPU 3` of `GPU 3, serial 1653123010003`.
        let name = |f: &Finding| {
            f.part.split(',').next().filter(|part| !part.is_empty()).unwrap_or(&f.device.0).to_owned()
        };
        let names: Vec<String> = std::iter::once(&finding).chain(&row.more).map(|f| name(f)).collect();
        format!("{}: {}", names.join(", "), without_part(finding))
    };
    let evidence = clean(&evidence).into_owned();
    let action = clean(&action(finding)).into_owned();
    let Some(columns) = style.columns else {
        let action = if action.is_empty() { String::new() } else { format!("  -> {action}") };
        return format!("{head}  {evidence}{action}\n");
    };
    // The head has colours, which take no room.
    let head_width =
        7 + 2 + check_width.max(checks(row).width()) + 2 + device_width.max(row.devices().width()) + 2;
    let mut text = String::new();
    if head_width + evidence.width().min(40) <= columns {
        let lines = wrap(&evidence, columns - head_width);
        let padding = " ".repeat(head_width.saturating_sub(visible_width(head)));
        for (at, part) in lines.iter().enumerate() {
            text.push_str(&if at == 0 {
                format!("{head}{padding}{part}\n")
            } else {
                format!("{}{part}\n", " ".repeat(head_width))
            });
        }
    } else {
        text.push_str(&format!("{head}\n"));
        wrap(&evidence, columns.saturating_sub(9))
            .iter()
            .for_each(|part| text.push_str(&format!("         {part}\n")));
    }
    if !action.is_empty() {
        for (at, part) in wrap(&action, columns.saturating_sub(12)).iter().enumerate() {
            text.push_str(&format!("         {} {part}\n", if at == 0 { "->" } else { "  " }));
        }
    }
    text
}

fn visible_width(text: &str) -> usize {
    let mut width = 0;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        width += before.width();
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    width + rest.width()
}

const fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "31;1",
        Verdict::Unknown { .. } => "35;1",
        Verdict::Warn => "33;1",
        Verdict::Pass => "32",
        Verdict::Skipped { .. } => "2",
    }
}

fn paint(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}
