//! Words that several formats share.

use plimsoll_model::{Action, Blame, Finding, Origin, Verdict};

/// What is, and beside it what should be and who says so, or whose fault it is that it cannot be told; before it, which
/// part it is about.
pub(super) fn told(finding: &Finding) -> String {
    if finding.part.is_empty() {
        without_part(finding)
    } else {
        format!("{}: {}", finding.part, without_part(finding))
    }
}

/// The same of several parts that say the same.
pub(super) fn without_part(finding: &Finding) -> String {
    let reason = &finding.reason;
    match (&finding.expectation.origin, finding.verdict) {
        (_, Verdict::Unknown { blame: Blame::Plimsoll }) => format!("{reason} (Plimsoll's own trouble)"),
        (_, Verdict::Unknown { blame: Blame::Shared }) => format!("{reason} (a shared resource's fault)"),
        (_, Verdict::Skipped { why }) => format!("{reason} ({why})"),
        (origin, Verdict::Warn | Verdict::Fail) if *origin != Origin::None => {
            format!("{reason}; expected: {} ({origin})", finding.expectation.what)
        }
        _ => reason.clone(),
    }
}

/// What to do: how drastic it is, and in words.
pub(super) fn action(finding: &Finding) -> String {
    let plain = finding.action == Action::None || !finding.verdict.is_problem() || finding.advice.is_empty();
    if plain { finding.advice.clone() } else { format!("{}: {}", finding.action, finding.advice) }
}
