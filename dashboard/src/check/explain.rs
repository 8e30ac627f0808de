//! The registry, for people and machines.

use plimsoll_judge::{Check, Data, GpuEvent, Overrides, Ruling, Weight, XidRow};
use plimsoll_model::ClearsBy;
use serde_json::json;

use crate::{
    clean::clean,
    wrap::{pad, wrap},
};

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

/// Names and what is told of them, in lines of at most some columns.
struct Parts {
    text: String,
    columns: usize,
}

impl Parts {
    const INDENT: usize = 12;

    fn new(title: &str, columns: usize) -> Self {
        Self { text: format!("{title}\n\n"), columns }
    }

    fn add(&mut self, name: &str, content: &str) {
        let room = self.columns.saturating_sub(Self::INDENT);
        // A site's own advice may hold anything.
        for (at, line) in wrap(&clean(content), room).iter().enumerate() {
            self.text.push_str(&pad(if at == 0 { name } else { "" }, Self::INDENT));
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Several lines under one name.
    fn list(&mut self, name: &str, lines: impl Iterator<Item = String>) {
        for (at, line) in lines.enumerate() {
            self.add(if at == 0 { name } else { "" }, &line);
        }
    }
}

/// All that is known of one check, in lines of at most `columns`.
#[must_use]
pub fn explanation(check: &Check, data: &Data, columns: usize) -> String {
    let mut parts = Parts::new(check.id, columns);
    parts.add("asks", check.asks);
    parts.list("reads", check.reads.iter().map(|source| (*source).to_owned()));
    parts.add("compares", check.compares);
    let limits = data.limit_names().filter(|name| check.compares.contains(name));
    for (name, limit) in limits.filter_map(|name| Some((name, data.limit(name)?))) {
        parts.add("", &format!("{name} is {} unless [limits] says otherwise. {}", limit.value, limit.source));
    }
    let rules = data.kernel_log.iter().filter(|rule| rule.check == check.id);
    parts.list("lines", rules.map(plimsoll_judge::LogRule::told));
    parts.add("verdicts", check.verdicts);
    parts.add("why", check.why);
    let lasts = check.verdicts.contains("until the next boot") && check.clears_by == ClearsBy::GoodReading;
    let or_boot = if lasts { "; what fails until the next boot, by that" } else { "" };
    parts.add("clears by", &format!("{}{or_boot}", check.clears_by));
    parts.add("do", &format!("{}: {}", check.action, check.advice));
    parts.text
}

/// All that is known of one error of a GPU: what it means here, who says so, and what others make of it. `None` for a
/// number that nobody has.
#[must_use]
pub fn xid_explanation(code: u32, data: &Data, overrides: &Overrides, columns: usize) -> Option<String> {
    let row = data.catalogue.xids.get(&code);
    if row.is_none() && !overrides.xid.contains_key(&code) {
        return None;
    }
    let mut parts = Parts::new(&format!("xid {code}"), columns);
    if let Some(row) = row {
        parts.add("name", &row.name);
        parts.add("NVIDIA", &catalogue_words(row));
    }
    ruling(&mut parts, GpuEvent::Xid(code), "", data, overrides);
    let mut beside = data.xid_policy.refinements(code);
    let now = data.xid_policy.ruling(GpuEvent::Xid(code), "", &data.catalogue, overrides);
    if now.overridden {
        // The site's own word is not refined.
        beside.clear();
    } else if now.verdict == Weight::Fail && now.clears_by == ClearsBy::GpuReset {
        beside.extend(data.xid_policy.after_reset(code));
    }
    parts.list("beside", beside.into_iter());
    let views = row.into_iter().flat_map(XidRow::views);
    parts.list("others", views.map(|(who, view)| format!("{who}: {view}")));
    Some(parts.text)
}

fn catalogue_words(row: &XidRow) -> String {
    if row.severity.is_empty() {
        return "the catalogue does not have it".to_owned();
    }
    let open = |text: &str| if text == "-" { "nothing named".to_owned() } else { text.to_owned() };
    format!(
        "{}; at once {}, then {}; on {}",
        row.severity,
        open(&row.immediate),
        open(&row.investigate),
        if row.applies_to == "none" { "no GPU since A100" } else { &row.applies_to }
    )
}

/// The same of an error of an NVSwitch.
#[must_use]
pub fn sxid_explanation(code: u32, data: &Data, overrides: &Overrides, columns: usize) -> Option<String> {
    let row = data.catalogue.sxids.get(&code);
    if row.is_none() && !overrides.sxid.contains_key(&code) {
        return None;
    }
    let mut parts = Parts::new(&format!("sxid {code}"), columns);
    if let Some(row) = row {
        parts.add("name", &row.name);
        parts.add("fatal", &format!("perhaps: {}, always: {}", row.potentially_fatal, row.always_fatal));
    }
    ruling(&mut parts, GpuEvent::Sxid(code), "Non-fatal", data, overrides);
    parts.add("beside", "a line that says Fatal fails until the next boot, whatever the table says");
    if let Some(row) = row {
        parts.add("others", &format!("gpud: {}, {}", row.severity, row.gpud));
    }
    Some(parts.text)
}

fn ruling(parts: &mut Parts, event: GpuEvent, detail: &str, data: &Data, overrides: &Overrides) {
    let words = |ruling: &Ruling| {
        let verdict = match ruling.verdict {
            Weight::Pass => "nothing by itself",
            Weight::Warn => "warns",
            Weight::Fail => "fails",
        };
        match ruling.window {
            Some(window) => format!("{verdict} for {}", humantime::format_duration(window)),
            None => verdict.to_owned(),
        }
    };
    let built_in = data.xid_policy.ruling(event, detail, &data.catalogue, &Overrides::default());
    let now = data.xid_policy.ruling(event, detail, &data.catalogue, overrides);
    parts.add("verdict", &words(&now));
    parts.add("clears by", &now.clears_by.to_string());
    parts.add("do", &format!("{}: {}", now.action, now.advice));
    if now.overridden {
        let was = format!(
            "changed in the configuration; built in: {}, {}, cleared by {}. {}",
            words(&built_in),
            built_in.action,
            built_in.clears_by,
            built_in.source
        );
        parts.add("says who", &was);
    } else {
        parts.add("says who", &now.source);
    }
}
