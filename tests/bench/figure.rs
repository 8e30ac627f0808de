//! One measured figure: its runs, its median, and what it should hold.

use std::fs;

use serde_json::json;

/// More steal than this during the runs and the figure is called noisy; as the check `host.cpu.steal` does.
const STEAL_PERCENT_MAX: f64 = 5.0;

/// A figure with all its runs.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// The median should stay below this, where a number to hold was given.
    pub(crate) below: Option<f64>,
    pub(crate) runs: Vec<f64>,
    pub(crate) noisy: bool,
}

impl Figure {
    /// Runs `measure` so many times, after one run that does not count.
    pub(crate) fn measure(
        name: &str,
        unit: &'static str,
        below: Option<f64>,
        runs: u32,
        mut measure: impl FnMut() -> f64,
    ) -> Self {
        measure();
        let before = accounts();
        let runs = (0..runs).map(|_| measure()).collect();
        let after = accounts();
        let (total, steal) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        let noisy = steal as f64 * 100.0 > STEAL_PERCENT_MAX * total as f64;
        Self { name: name.to_owned(), unit, below, runs, noisy }
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.runs.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
            (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
            (_, Some(middle)) => *middle,
            _ => f64::NAN,
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.below.is_none_or(|below| self.median() < below)
    }

    pub(crate) fn line(&self) -> String {
        let low = self.runs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let held = match self.below {
            Some(below) if self.holds() => format!("below {below}"),
            Some(below) => format!("NOT below {below}"),
            None => String::new(),
        };
        let noisy = if self.noisy { "  noisy" } else { "" };
        let Self { name, unit, runs, .. } = self;
        format!(
            "{name:<48} median {:>8.1} {unit:<4} ({low:.1} to {high:.1}, {} runs)  {held}{noisy}",
            self.median(),
            runs.len()
        )
    }

    pub(crate) fn json(&self) -> String {
        json!({
            "figure": self.name,
            "unit": self.unit,
            "ours": self.runs,
            "peer": null,
            "ratio": null,
            "noisy": self.noisy,
        })
        .to_string()
    }
}

/// All ticks and stolen ticks since boot.
fn accounts() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
    (ticks.iter().sum(), ticks.get(7).copied().unwrap_or(0))
}
