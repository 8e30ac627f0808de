//! The registry, for people and machines.

use plimsoll_judge::Check;
use serde_json::json;

use crate::wrap::{pad, wrap};

/// A line a check.
#[must_use]
pub fn check_list(checks: &[&Check]) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    checks.iter().map(|check| format!("{}  {}\n", pad(check.id, width), check.asks)).collect()
}

/// The same as JSON, with all that is known of each.
///
/// # Errors
/// Only for a bug of ours.
pub fn check_list_json(checks: &[&Check]) -> Result<String, serde_json::Error> {
    let all: Vec<_> = checks
        .iter()
        .map(|check| {
            json!({
                "id": check.id,
                "domain": check.domain,
                "asks": check.asks,
                "reads": check.reads,
                "compares": check.compares,
                "verdicts": check.verdicts,
                "why": check.why,
                "clears_by": check.clears_by,
                "action": check.action,
                "advice": check.advice,
            })
        })
        .collect();
    let list = json!({ "schema_version": plimsoll_model::SCHEMA_VERSION, "checks": all });
    serde_json::to_string_pretty(&list).map(|text| text + "\n")
}

/// All that is known of one check, in lines of at most `columns`.
#[must_use]
pub fn explanation(check: &Check, columns: usize) -> String {
    const INDENT: usize = 12;
    let mut text = format!("{}\n\n", check.id);
    let mut part = |name: &str, content: &str| {
        for (at, line) in wrap(content, columns.saturating_sub(INDENT)).iter().enumerate() {
            text.push_str(&pad(if at == 0 { name } else { "" }, INDENT));
            text.push_str(line);
            text.push('\n');
        }
    };
    part("asks", check.asks);
    for (at, source) in check.reads.iter().enumerate() {
        part(if at == 0 { "reads" } else { "" }, source);
    }
    part("compares", check.compares);
    part("verdicts", check.verdicts);
    part("why", check.why);
    part("clears by", &check.clears_by.to_string());
    part("do", &format!("{}: {}", check.action, check.advice));
    text
}
