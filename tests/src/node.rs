//! The nodes in `tests/nodes`: a tree each, and what must be found on it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use plimsoll_model::{Report, Verdict};
use serde::Deserialize;

use crate::tree::Tree;

/// One node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What is wrong with it, in words.
    pub about: String,
    /// What it lacks of the healthy tree.
    #[serde(default)]
    pub remove: Vec<String>,
    /// `CHECK DEVICE` and its verdict; for all but the healthy node only what differs from that, `gone` for a finding
    /// that there is not.
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

    /// The node's whole tree: the healthy one, less what it lacks, with its own files laid over.
    #[must_use]
    pub fn tree(&self, name: &str) -> Tree {
        let tree = healthy_tree();
        self.remove.iter().for_each(|path| tree.remove(path));
        let own = nodes().join(name).join("tree");
        if own.is_dir() {
            tree.overlay(&own);
        }
        tree
    }

    /// All findings that there must be.
    #[must_use]
    pub fn expected(&self) -> BTreeMap<String, String> {
        let mut all = Self::named("healthy").expect;
        for (finding, verdict) in &self.expect {
            if verdict == "gone" {
                assert!(
                    all.remove(finding).is_some(),
                    "{finding} is not on the healthy node, so it cannot be gone"
                );
            } else {
                assert_ne!(all.get(finding), Some(verdict), "{finding} is the same on the healthy node");
                all.insert(finding.clone(), verdict.clone());
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
