//! The nodes in `tests/nodes`: a tree each, and what must be found on it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use plimsoll_model::{Report, Verdict};
use serde::Deserialize;

use crate::{
    nvml::{FakeNvml, run_with},
    plimsoll, report,
    tree::Tree,
};

/// One node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What is wrong with it, in words.
    pub about: String,
    /// The node that it differs from; the healthy one without GPUs when it says nothing.
    base: Option<String>,
    /// Its GPUs, for expectations that hold of `each`.
    #[serde(default)]
    each: Vec<String>,
    /// More arguments for the check.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What it lacks of the healthy tree.
    #[serde(default)]
    pub remove: Vec<String>,
    /// `CHECK DEVICE` and its verdict; for all but the healthy node only what differs from its base, `gone` for a finding
    /// that there is not. `each` stands for each GPU, and `gpu.* DEVICE` for every GPU check that the base has of it.
    /// `gpu.* each->node` says that each of these says this of the node instead.
    pub expect: BTreeMap<String, String>,
}

/// Where the nodes are.
#[must_use]
pub fn nodes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("nodes")
}

/// Names of all nodes but the healthy one.
///
/// # Panics
/// When there are none to read.
#[must_use]
pub fn others() -> Vec<String> {
    let names = fs::read_dir(nodes()).expect("the nodes").map(|entry| entry.expect("a node").file_name());
    let mut names: Vec<_> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name != "healthy").collect();
    names.sort();
    names
}

impl Node {
    /// Reads a node's expectations.
    ///
    /// # Panics
    /// When they make no sense.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let path = nodes().join(name).join("node.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn base(&self, name: &str) -> Option<(String, Self)> {
        if name == "healthy" {
            return None;
        }
        let base = self.base.clone().unwrap_or_else(|| "healthy".to_owned());
        let node = Self::named(&base);
        Some((base, node))
    }

    /// The node's whole tree: that of its base, less what it lacks, with its own files laid over.
    #[must_use]
    pub fn tree(&self, name: &str) -> Tree {
        let Some((base_name, base)) = self.base(name) else { return healthy_tree() };
        let tree = base.tree(&base_name);
        self.remove.iter().for_each(|path| tree.remove(path));
        let own = nodes().join(name).join("tree");
        if own.is_dir() {
            tree.overlay(&own);
        }
        tree
    }

    /// What the fake driver's library is told to say on it, its base's files first.
    #[must_use]
    pub fn scenario(&self, name: &str) -> Vec<PathBuf> {
        let mut files = self.base(name).map(|(name, node)| node.scenario(&name)).unwrap_or_default();
        let own = nodes().join(name).join("nvml.toml");
        files.extend(own.is_file().then_some(own));
        files
    }

    /// Checks it.
    #[must_use]
    pub fn check(&self, name: &str, more: &[&str]) -> Report {
        let tree = self.tree(name);
        let mut command = plimsoll();
        command.args(["check", "--json", "--sysroot", tree.arg()]);
        let scenario = self.scenario(name);
        if !scenario.is_empty() {
            let library = FakeNvml::new();
            return report(&run_with(command, &library, &scenario, &self.arguments, more));
        }
        report(&command.args(&self.arguments).args(more).output().expect("the binary starts"))
    }

    fn each(&self, name: &str) -> Vec<String> {
        let of_base = self.base(name).map(|(name, node)| node.each(&name)).unwrap_or_default();
        if self.each.is_empty() { of_base } else { self.each.clone() }
    }

    /// All findings that there must be.
    #[must_use]
    pub fn expected(&self, name: &str) -> BTreeMap<String, String> {
        let Some((base_name, base)) = self.base(name) else { return self.expect.clone() };
        let mut all = base.expected(&base_name);
        let each = self.each(name);
        let is_each = |device: &str| each.iter().any(|one| one == device);
        // What is said of many comes first, so that what is said of one has the last word.
        let (of_many, of_one): (Vec<_>, Vec<_>) = self.expect.iter().partition(|(key, _)| key.contains('*'));
        for (key, verdict) in of_many {
            let (prefix, device) = key.split_once("* ").expect("CHECK* DEVICE");
            let keys: Vec<String> = all.keys().filter(|known| known.starts_with(prefix)).cloned().collect();
            let mut found = false;
            for known in keys {
                let (check, of) = known.split_once(' ').expect("CHECK DEVICE");
                if of == device || (device.starts_with("each") && is_each(of)) {
                    found = true;
                    all.remove(&known);
                    let now = if device == "each->node" { format!("{check} node") } else { known.clone() };
                    if verdict != "gone" {
                        all.insert(now, verdict.clone());
                    }
                }
            }
            assert!(found, "{name}: {key} stands for nothing that its base has");
        }
        let (of_each, of_one): (Vec<_>, Vec<_>) =
            of_one.into_iter().partition(|(key, _)| key.ends_with(" each"));
        for (key, verdict) in of_each.into_iter().chain(of_one) {
            let keys = match key.strip_suffix(" each") {
                Some(check) => each.iter().map(|device| format!("{check} {device}")).collect(),
                None => vec![key.clone()],
            };
            for key in keys {
                if verdict == "gone" {
                    assert!(
                        all.remove(&key).is_some(),
                        "{name}: {key} is not on its base, so it cannot be gone"
                    );
                } else {
                    assert_ne!(all.get(&key), Some(verdict), "{name}: {key} is the same on its base");
                    all.insert(key, verdict.clone());
                }
            }
        }
        all
    }
}

/// A copy of the healthy node's tree.
#[must_use]
pub fn healthy_tree() -> Tree {
    Tree::copy_of(&nodes().join("healthy/tree"))
}

/// A verdict in the words of `node.toml`.
#[must_use]
pub fn word(verdict: Verdict) -> String {
    let kebab = |value| {
        serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    };
    match verdict {
        Verdict::Pass => "pass".to_owned(),
        Verdict::Warn => "warn".to_owned(),
        Verdict::Fail => "fail".to_owned(),
        Verdict::Skipped { why } => format!("skipped {}", kebab(serde_json::json!(why))),
        Verdict::Unknown { blame } => format!("unknown {}", kebab(serde_json::json!(blame))),
    }
}

/// A report's findings in the words of `node.toml`.
#[must_use]
pub fn found(report: &Report) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for finding in &report.findings {
        let key = format!("{} {}", finding.check, finding.device);
        assert!(all.insert(key.clone(), word(finding.verdict)).is_none(), "{key} was found twice");
    }
    all
}
