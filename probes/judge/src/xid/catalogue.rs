//! What NVIDIA and the peers say of each code: facts, with every source's own view kept.

use std::collections::BTreeMap;

use serde::Deserialize;

/// All codes that anybody says something of.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Errors of GPUs.
    pub xids: BTreeMap<u32, XidRow>,
    /// Errors of NVSwitches.
    pub sxids: BTreeMap<u32, SxidRow>,
    /// How NVLink 5 errors are told apart.
    pub(crate) nvlink5: Vec<NvLink5Row>,
}

/// One error of a GPU.
#[derive(Clone, Debug, Deserialize)]
pub struct XidRow {
    xid: u32,
    /// NVIDIA's name for it.
    pub name: String,
    /// Its severity in NVIDIA's catalogue.
    pub severity: String,
    /// What the catalogue says to do at once: its bucket.
    pub immediate: String,
    /// What the catalogue says to look into.
    pub investigate: String,
    /// GPUs that have it.
    pub applies_to: String,
    nvsentinel: String,
    gpud: String,
    dcgm: String,
    aws_suite: String,
    eks_nma: String,
    aznhc: String,
    meta_gcm: String,
    imbue: String,
    k8s_device_plugin: String,
}

impl XidRow {
    /// What each other tool does about it, for those that do anything.
    pub fn views(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("NVSentinel", &self.nvsentinel),
            ("gpud", &self.gpud),
            ("DCGM", &self.dcgm),
            ("AWS health suite", &self.aws_suite),
            ("EKS node agent", &self.eks_nma),
            ("AzNHC", &self.aznhc),
            ("Meta gcm", &self.meta_gcm),
            ("imbue", &self.imbue),
            ("k8s device plugin", &self.k8s_device_plugin),
        ]
        .into_iter()
        .map(|(who, view)| (who, view.as_str()))
        .filter(|(_, view)| !view.is_empty())
    }
}

/// One error of an NVSwitch.
#[derive(Clone, Debug, Deserialize)]
pub struct SxidRow {
    sxid: u32,
    /// What it is.
    pub name: String,
    /// gpud's severity.
    pub severity: String,
    /// What gpud does about it.
    pub gpud: String,
    /// `yes` when it may be fatal.
    pub potentially_fatal: String,
    /// `yes` when it always is.
    pub always_fatal: String,
}

/// One kind of NVLink 5 error. The patterns are 32 binary digits, with `-` for those that do not matter.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NvLink5Row {
    pub(crate) xid: u32,
    pub(crate) unit: String,
    pub(crate) before_575: String,
    pub(crate) since_575: String,
    pub(crate) error_status: String,
    pub(crate) action: String,
    pub(crate) investigate: String,
}

fn rows<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<T>, csv::Error> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect()
}

impl Catalogue {
    pub(crate) fn built_in() -> Result<Self, csv::Error> {
        let xids: Vec<XidRow> = rows(include_str!("../../data/xid.csv"))?;
        let sxids: Vec<SxidRow> = rows(include_str!("../../data/sxid.csv"))?;
        Ok(Self {
            xids: xids.into_iter().map(|row| (row.xid, row)).collect(),
            sxids: sxids.into_iter().map(|row| (row.sxid, row)).collect(),
            nvlink5: rows(include_str!("../../data/xid_nvlink5.csv"))?,
        })
    }
}
