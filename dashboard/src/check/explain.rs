//! The registry, for people and machines.

use plimsoll_judge::{Check, Data};
use plimsoll_model::ClearsBy;
use serde_json::json;

use crate::wrap::{pad, wrap};

/// A line a check.
#[must_use]
pub fn check_list(checks: &[&Check], columns: Option<usize>) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    if let Some(columns) = columns.filter(|columns| *columns > width + 30) {
        let indent = " ".repeat(width + 2);
        let entry = |check: &&Check| {
            let lines = wrap(check.asks, columns - width - 2).join(&format!("\n{indent}"));
            format!("{}  {lines}\n", pad(check.id, width))
        };
        return checks.iter().map(entry).collect();
    }
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
pub fn explanation(check: &Check, data: &Data, columns: usize) -> String {
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
    for name in data.limit_names().filter(|name| check.compares.contains(name)) {
        if let Some(limit) = data.limit(name) {
            part("", &format!("{name} is {} unless [limits] says otherwise. {}", limit.value, limit.source));
        }
    }
    for (at, rule) in data.kernel_log.iter().filter(|rule| rule.check == check.id).enumerate() {
        part(if at == 0 { "lines" } else { "" }, &rule.told());
    }
    part("verdicts", check.verdicts);
    part("why", check.why);
    let lasts = check.verdicts.contains("until the next boot") && check.clears_by == ClearsBy::GoodReading;
    let or_boot = if lasts { "; what fails until the next boot, by that" } else { "" };
    part("clears by", &format!("{}{or_boot}", check.clears_by));
    part("do", &format!("{}: {}", check.action, check.advice));
    text
}
