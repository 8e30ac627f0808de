//! JUnit XML: a suite for the node, a case for each finding.

use std::time::Duration;

use super::words::{action, told};
use crate::clean::clean_lines;
use plimsoll_model::{Finding, Report, Verdict};
use quick_junit::{NonSuccessKind, Report as Junit, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// The report as JUnit XML. A failure is a failure, an unknown an error, and a warning passes with its text as output,
/// as JUnit has no word for it.
///
/// # Errors
/// Only for a bug of ours.
pub fn junit(report: &Report) -> Result<String, SerializeError> {
    let node = report.node.hostname.as_deref().unwrap_or("node");
    let mut suite = TestSuite::new(format!("plimsoll check {node}"));
    suite.set_time(Duration::from_millis(report.took_ms));
    suite.add_property(("overall", report.overall.to_string().as_str()));
    suite.add_property(("interrupted", report.interrupted.to_string().as_str()));
    suite.add_test_cases(report.findings.iter().map(case));
    let mut junit = Junit::new("plimsoll");
    junit.add_test_suite(suite);
    let text = junit.to_string()?;
    Ok(clean_lines(text.trim_end_matches('\n')) + "\n")
}

fn case(finding: &Finding) -> TestCase {
    let status = match finding.verdict {
        Verdict::Pass | Verdict::Warn => TestCaseStatus::success(),
        Verdict::Skipped { .. } => TestCaseStatus::skipped(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Unknown { .. } => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let mut case = TestCase::new(format!("{} [{}]", finding.check, finding.device), status);
    case.set_classname(finding.check.to_string());
    let told = told(finding);
    case.status.set_message(told.clone());
    let mut out = format!("{}: {told}", finding.verdict.word());
    for evidence in &finding.evidence {
        out.push_str(&format!("\n{} = {} ({})", evidence.what, evidence.value, evidence.source));
    }
    if !finding.advice.is_empty() {
        out.push_str(&format!("\n{}", action(finding)));
    }
    case.set_system_out(out);
    case
}
