//! What a code means here: the row of its bucket, its own row, and what the site says.

use std::{collections::BTreeMap, time::Duration};

use plimsoll_model::{Action, ClearsBy};
use serde::Deserialize;

use super::{Catalogue, GpuEvent};
use crate::Weight;

/// `data/xid_policy.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XidPolicy {
    bucket: BTreeMap<String, Row>,
    xid: BTreeMap<String, Row>,
    form: BTreeMap<String, Row>,
    switch: BTreeMap<String, Row>,
    pub(crate) repeats: Repeats,
    nvlink_models: Vec<String>,
    /// Codes whose errors the GPU counts as uncorrected until it is reset.
    pub(crate) counted_by_ecc: Vec<u32>,
    /// Codes for which the driver says by its recovery action that something is to be done.
    pub(crate) marked_for_recovery: Vec<u32>,
    pub(crate) nvlink_bits: Vec<NvLinkBits>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    verdict: Weight,
    action: Action,
    clears_by: ClearsBy,
    #[serde(default, deserialize_with = "window")]
    window: Option<Duration>,
    advice: String,
    source: String,
}

/// When repeats ask for a diagnosis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repeats {
    #[serde(deserialize_with = "window")]
    pub(crate) window: Option<Duration>,
    /// Errors of one code.
    pub(crate) same_code: u64,
    /// Jobs or programs that met one code.
    pub(crate) jobs_or_programs: usize,
    /// Page faults (31).
    pub(crate) page_faults: u64,
    /// Codes that applications cause.
    pub(crate) codes: Vec<u32>,
    pub(crate) source: String,
}

/// What bits of one register of XID 74 say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NvLinkBits {
    pub(crate) register: usize,
    pub(crate) bits: Vec<u32>,
    pub(crate) verdict: Weight,
    /// So often on one GPU is a failure.
    pub(crate) repeated: Option<u64>,
    pub(crate) means: String,
}

fn window<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}

/// What the site says of codes: `[xid.94]` and `[sxid.12028]` in the configuration.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Of GPUs.
    pub xid: BTreeMap<u32, RowOverride>,
    /// Of NVSwitches.
    pub sxid: BTreeMap<u32, RowOverride>,
}

/// The cells of a row that a site changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowOverride {
    /// What such an error means.
    pub verdict: Option<Weight>,
    /// What to do.
    pub action: Option<Action>,
    /// What ends it.
    pub clears_by: Option<ClearsBy>,
    /// How long it means that.
    #[serde(default, deserialize_with = "window")]
    pub window: Option<Duration>,
    /// What to do, in words.
    pub advice: Option<String>,
}

/// What one code means here, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What such an error means.
    pub verdict: Weight,
    /// What to do.
    pub action: Action,
    /// What ends it.
    pub clears_by: ClearsBy,
    /// How long it means that; without it, until what ends it.
    pub window: Option<Duration>,
    /// What to do, in words.
    pub advice: String,
    /// Who says so.
    pub source: String,
    /// The site has changed it.
    pub overridden: bool,
}

impl XidPolicy {
    /// What an error means. `detail` is what its line says after the number.
    #[must_use]
    pub fn ruling(
        &self,
        event: GpuEvent,
        detail: &str,
        catalogue: &Catalogue,
        overrides: &Overrides,
    ) -> Ruling {
        let (row, changed) = match event {
            GpuEvent::Xid(code) => (self.xid_row(code, catalogue), overrides.xid.get(&code)),
            GpuEvent::Sxid(code) => (self.sxid_row(code, detail, catalogue), overrides.sxid.get(&code)),
            GpuEvent::FellOff => (self.form.get("fell-off"), overrides.xid.get(&79)),
            GpuEvent::InitFailed => (self.form.get("init-failed"), None),
            GpuEvent::Cut => (self.form.get("cut"), None),
        };
        let fallback = || Ruling {
            verdict: Weight::Warn,
            action: Action::Diagnose,
            clears_by: ClearsBy::ActiveTest,
            window: None,
            advice: "look for other errors beside it".to_owned(),
            source: "no row has it".to_owned(),
            overridden: false,
        };
        let mut ruling = row.map_or_else(fallback, |row| Ruling {
            verdict: row.verdict,
            action: row.action,
            clears_by: row.clears_by,
            window: row.window,
            advice: row.advice.clone(),
            source: row.source.clone(),
            overridden: false,
        });
        if let Some(changed) = changed {
            // Another verdict is not what the row's window was made for.
            let keeps_window = changed.verdict.is_none_or(|verdict| verdict == ruling.verdict);
            ruling.window = changed.window.or(ruling.window.filter(|_| keeps_window));
            ruling.verdict = changed.verdict.unwrap_or(ruling.verdict);
            ruling.action = changed.action.unwrap_or(ruling.action);
            ruling.clears_by = changed.clears_by.unwrap_or(ruling.clears_by);
            if let Some(advice) = &changed.advice {
                ruling.advice.clone_from(advice);
            }
            ruling.overridden = true;
        }
        ruling
    }

    fn xid_row(&self, code: u32, catalogue: &Catalogue) -> Option<&Row> {
        let bucket = || catalogue.xids.get(&code).and_then(|row| self.bucket.get(&row.immediate));
        self.xid.get(&code.to_string()).or_else(bucket).or_else(|| self.bucket.get("UNSPECIFIED"))
    }

    fn sxid_row(&self, code: u32, detail: &str, catalogue: &Catalogue) -> Option<&Row> {
        let known = catalogue.sxids.get(&code);
        let says_fatal = detail.starts_with("Fatal");
        let class = if says_fatal || known.is_some_and(|row| row.always_fatal == "yes") {
            "fatal"
        } else if known.is_some_and(|row| row.severity == "warning") {
            "harmless"
        } else {
            "doubtful"
        };
        self.switch.get(class)
    }

    /// Whether the registers of XID 74 are explained for a GPU of this name.
    pub(crate) fn explains_registers(&self, name: &str) -> bool {
        name.split([' ', '-']).any(|word| self.nvlink_models.iter().any(|model| model == word))
    }

    /// What shows that a reset has ended an error of this code, for people.
    #[must_use]
    pub fn after_reset(&self, code: u32) -> Vec<String> {
        let mut told = Vec::new();
        if self.counted_by_ecc.contains(&code) {
            told.push(
                "over when the GPU counts no uncorrected error any more and no remapping is pending"
                    .to_owned(),
            );
        }
        if self.marked_for_recovery.contains(&code) {
            told.push("only warns once the driver's recovery action is none".to_owned());
        }
        if matches!(code, 74 | 144..=150) {
            told.push("only warns once all links are up and the driver's recovery action is none".to_owned());
        }
        told.push("over when the driver has said in the log since that nothing is left to be done (xid 154), or at the next boot".to_owned());
        told
    }

    /// What else decides about a code, for people.
    #[must_use]
    pub fn refinements(&self, code: u32) -> Vec<String> {
        let rule = &self.repeats;
        let mut told = Vec::new();
        let mut say = |text: &str| told.push(text.to_owned());
        match code {
            63 => say("fails when a remapping is pending on the GPU: reset it when it is idle"),
            94 => say("fails when a remapping is pending on the GPU; 95 beside it goes before it"),
            48 => say("only warns beside 94 and without 95, when no remapping is pending: it was contained"),
            74 => {
                say("on Hopper the registers in the line decide, all bits of them together:");
                for bits in &self.nvlink_bits {
                    let numbers: Vec<String> = bits.bits.iter().map(u32::to_string).collect();
                    let verdict = match bits.verdict {
                        Weight::Pass => "nothing",
                        Weight::Warn => "warns",
                        Weight::Fail => "fails",
                    };
                    let often = bits
                        .repeated
                        .map_or_else(String::new, |times| format!(", fails from {times} times on"));
                    say(&format!(
                        "register {} bits {}: {verdict}{often}; {}",
                        bits.register,
                        numbers.join(", "),
                        bits.means
                    ));
                }
            }
            144..=150 => say(
                "the codes in the line are looked up by the driver's version (data/xid_nvlink5.csv); what fits no row counts as above",
            ),
            154 => say("the action that the line names decides: none, reset, reboot, drain"),
            _ => {}
        }
        if rule.codes.contains(&code) {
            let window = rule
                .window
                .map_or_else(String::new, |window| format!(" within {}", humantime::format_duration(window)));
            let faults = if code == 31 { format!("{} times, ", rule.page_faults) } else { String::new() };
            say(&format!(
                "warns and asks for a diagnosis when it is seen {faults}{} times, or by {} jobs or programs, on one GPU{window} ({})",
                rule.same_code, rule.jobs_or_programs, rule.source
            ));
        }
        told
    }

    #[cfg(test)]
    fn buckets(&self) -> impl Iterator<Item = &str> {
        self.bucket.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;

    fn data() -> Data {
        Data::built_in().unwrap_or_else(|error| unreachable!("{error}"))
    }

    #[test]
    fn every_code_of_the_catalogue_has_a_row_and_every_bucket_is_known() {
        let data = data();
        assert_eq!(data.catalogue.xids.len(), 173);
        for (code, row) in &data.catalogue.xids {
            let named = !matches!(row.immediate.as_str(), "" | "-");
            assert!(
                !named || data.xid_policy.buckets().any(|b| b == row.immediate),
                "{code}: {}",
                row.immediate
            );
            let ruling =
                data.xid_policy.ruling(GpuEvent::Xid(*code), "", &data.catalogue, &Overrides::default());
            assert!(!ruling.source.is_empty() && !ruling.advice.is_empty(), "{code}");
        }
    }

    #[test]
    fn what_an_application_causes_never_fails_by_itself() {
        let data = data();
        for code in [13, 31, 43, 45] {
            let ruling =
                data.xid_policy.ruling(GpuEvent::Xid(code), "", &data.catalogue, &Overrides::default());
            assert_eq!(ruling.verdict, Weight::Pass, "{code}");
        }
    }

    #[test]
    fn a_site_changes_any_cell() {
        let data = data();
        let changed = RowOverride { verdict: Some(Weight::Fail), ..RowOverride::default() };
        let overrides = Overrides { xid: [(94, changed)].into(), ..Overrides::default() };
        let ruling = data.xid_policy.ruling(GpuEvent::Xid(94), "", &data.catalogue, &overrides);
        assert_eq!((ruling.verdict, ruling.action, ruling.window), (Weight::Fail, Action::RestartApp, None));
        assert!(ruling.overridden);
    }
}
