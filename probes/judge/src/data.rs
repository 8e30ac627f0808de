//! The judge's data: rules and limits with their sources, from the files in `data/`, which are built into the binary.

use std::{collections::BTreeMap, time::Duration};

use plimsoll_model::{Backing, FileSystemKind};
use serde::Deserialize;

use crate::xid::{Catalogue, XidPolicy};

/// Everything in `data/`.
#[derive(Clone, Debug)]
pub struct Data {
    /// Rules about lines of the kernel's log.
    pub kernel_log: Vec<LogRule>,
    /// What the kernel's taint bits mean.
    pub taint: TaintBits,
    /// Clock sources by their cost.
    pub clock_sources: ClockSources,
    /// What everybody says of each error of a GPU or NVSwitch.
    pub catalogue: Catalogue,
    /// What such an error means here.
    pub xid_policy: XidPolicy,
    gpu_models: Vec<GpuModel>,
    named_by_users: Vec<String>,
    limits: BTreeMap<String, Threshold>,
    file_systems: FileSystems,
    models: Vec<BlockModel>,
}

/// A data file that is built in does not parse: a bug, which the tests keep out.
#[derive(Debug, thiserror::Error)]
#[error("this is a bug in plimsoll: its data file {file} is broken: {error}")]
pub struct DataError {
    file: &'static str,
    error: Box<dyn std::error::Error + Send + Sync>,
}

/// What a rule makes of a line or a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Nothing.
    Pass,
    /// A warning.
    Warn,
    /// A failure.
    Fail,
}

/// A rule about lines of the kernel's log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRule {
    /// The check that such a line is evidence for.
    pub check: String,
    starts: Vec<String>,
    #[serde(default)]
    all: Vec<String>,
    #[serde(default)]
    none: Vec<String>,
    device_after: Option<String>,
    /// What such a line means.
    pub verdict: Weight,
    #[serde(default, deserialize_with = "duration")]
    /// How long it means that; without it, until a new boot.
    pub window: Option<Duration>,
    /// Who prints such lines.
    pub source: String,
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}

impl LogRule {
    /// What tells it from the other rules.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {} {}", self.check, self.starts.join("|"), self.all.join("|"))
    }

    /// What it makes of which lines, for people.
    #[must_use]
    pub fn told(&self) -> String {
        let verdict = match self.verdict {
            Weight::Pass => "nothing",
            Weight::Warn => "warns",
            Weight::Fail => "fails",
        };
        let until = match self.window {
            Some(window) => format!("for {}", humantime::format_duration(window)),
            None => "until the next boot".to_owned(),
        };
        let quoted =
            |texts: &[String]| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
        let holds =
            if self.all.is_empty() { String::new() } else { format!(" and holds {}", quoted(&self.all)) };
        // The others say the same with what older kernels put before it.
        let begins = self.starts.iter().map(String::as_str).min_by_key(|text| text.len()).unwrap_or_default();
        format!("{verdict} {until}: begins `{begins}`{holds}")
    }

    /// Whether a line is evidence by this rule.
    #[must_use]
    pub fn matches(&self, line: &str) -> bool {
        self.starts.iter().any(|text| line.starts_with(text))
            && self.all.iter().all(|text| line.contains(text))
            && !self.none.iter().any(|text| line.contains(text))
            && (self.device_after.is_none() || self.device(line).is_some())
    }

    /// The device that the line names, if this kind of line names one.
    #[must_use]
    pub fn device<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (_, rest) = line.split_once(self.device_after.as_deref()?)?;
        // Older kernels say `on device sda` where newer ones say `on dev sda`.
        let rest = rest.strip_prefix("ice").unwrap_or(rest).trim_start();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty() && name.len() <= 32)
    }
}

/// What the kernel's taint bits mean.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaintBits {
    /// Who says so.
    pub source: String,
    /// The bits.
    pub bit: Vec<TaintBit>,
}

/// One taint bit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaintBit {
    /// Its number.
    pub bit: u32,
    /// Its letter.
    pub letter: char,
    /// What it says.
    pub what: String,
    /// What it means for a job.
    pub verdict: Weight,
}

/// Clock sources by what reading them costs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockSources {
    /// Read in user space.
    pub fast: Vec<String>,
    /// A device or the hypervisor at every reading.
    pub slow: Vec<String>,
    /// Who says so.
    pub source: String,
}

/// A limit with its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The limit; its unit is in its name.
    pub value: f64,
    /// Who holds it, or why we do.
    pub source: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSystems {
    local: Vec<String>,
    network: Vec<String>,
    memory: Vec<String>,
    memory_judged: Vec<String>,
    network_sources: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockModels {
    model: Vec<BlockModel>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockModel {
    model: String,
    backing: Backing,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuModels {
    model: Vec<GpuModel>,
}

/// What a GPU of one model has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuModel {
    /// Its names, exactly.
    names: Vec<String>,
    /// NVLinks, all of which are in use on the boards that it comes on.
    pub nvlinks: u32,
    /// Whether a fabric manager on the same node sets up the NVSwitches between such GPUs, where there are some.
    pub fabric_manager: bool,
    /// Who says so.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogRules {
    named_by_users: Vec<String>,
    rule: Vec<LogRule>,
}

macro_rules! embedded {
    ($file:literal) => {
        toml::from_str(include_str!(concat!("../data/", $file)))
            .map_err(|error| DataError { file: $file, error: Box::new(error) })
    };
}

impl Data {
    /// The data that is built in.
    ///
    /// # Errors
    /// Only when the build is broken.
    pub fn built_in() -> Result<Self, DataError> {
        let rules: LogRules = embedded!("kernel_log.toml")?;
        let models: BlockModels = embedded!("block_devices.toml")?;
        let gpus: GpuModels = embedded!("gpus.toml")?;
        Ok(Self {
            kernel_log: rules.rule,
            named_by_users: rules.named_by_users,
            taint: embedded!("taint.toml")?,
            clock_sources: embedded!("clock_sources.toml")?,
            catalogue: Catalogue::built_in()
                .map_err(|error| DataError { file: "xid.csv", error: Box::new(error) })?,
            xid_policy: embedded!("xid_policy.toml")?,
            gpu_models: gpus.model,
            limits: embedded!("thresholds.toml")?,
            file_systems: embedded!("file_systems.toml")?,
            models: models.model,
        })
    }

    /// The rule that a line of the kernel's log is evidence by.
    #[must_use]
    pub fn log_rule(&self, line: &str) -> Option<&LogRule> {
        let rule = self.kernel_log.iter().find(|rule| rule.matches(line))?;
        let by_user = self.named_by_users.iter().any(|text| line.contains(text));
        (!by_user).then_some(rule)
    }

    /// What is known of GPUs of this name.
    #[must_use]
    pub fn gpu_model(&self, name: &str) -> Option<&GpuModel> {
        self.gpu_models.iter().find(|model| model.names.iter().any(|known| known == name))
    }

    /// A limit by its name in `thresholds.toml`; `None` only for a name that is not in it.
    #[must_use]
    pub fn limit(&self, name: &str) -> Option<&Threshold> {
        self.limits.get(name)
    }

    /// The names of all limits.
    pub fn limit_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.limits.keys().map(String::as_str)
    }

    /// What lies behind a mount.
    #[must_use]
    pub fn file_system_kind(&self, fs_type: &str, source: &str, point: &str) -> FileSystemKind {
        let known = |list: &[String]| list.iter().any(|name| name == fs_type);
        let fs = &self.file_systems;
        let is_network = fs.network_sources.iter().any(|name| fs_type == "fuse" && name == source);
        if known(&fs.network) || is_network {
            FileSystemKind::Network
        } else if known(&fs.memory) {
            FileSystemKind::Memory
        } else if known(&fs.local) || source.starts_with("/dev/") || (fs_type == "overlay" && point == "/") {
            FileSystemKind::Local
        } else {
            FileSystemKind::Pseudo
        }
    }

    /// Whether this is a type that mount tables name, and not only the name of some mount helper.
    #[must_use]
    pub fn is_file_system_type(&self, fs_type: &str) -> bool {
        let fs = &self.file_systems;
        [&fs.local, &fs.network, &fs.memory].into_iter().flatten().any(|name| name == fs_type)
    }

    /// Whether programs and jobs write to this memory file system.
    #[must_use]
    pub fn memory_judged(&self, point: &str) -> bool {
        self.file_systems.memory_judged.iter().any(|place| place == point)
    }

    /// Where the blocks of a drive of this model are, if the model is known.
    #[must_use]
    pub fn backing(&self, model: &str) -> Option<Backing> {
        self.models.iter().find(|known| known.model == model).map(|known| known.backing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        match Data::built_in() {
            Ok(data) => data,
            Err(error) => unreachable!("{error}"),
        }
    }

    #[test]
    fn a_jobs_own_memory_limit_is_not_the_nodes_fault() {
        let data = data();
        let rule = |line| data.log_rule(line).map(|rule| rule.check.as_str());
        assert_eq!(rule("Out of memory: Killed process 7 (python)"), Some("host.log.oom-kill"));
        assert_eq!(rule("Memory cgroup out of memory: Killed process 7 (python)"), None);
    }

    #[test]
    fn a_drives_name_is_found_in_its_error() {
        let data = data();
        let device = |line| data.log_rule(line).and_then(|rule| rule.device(line));
        assert_eq!(device("I/O error, dev nvme3n1, sector 8 op 0x0:(READ)"), Some("nvme3n1"));
        assert_eq!(device("EXT4-fs (nvme1n1p1): Remounting filesystem read-only"), Some("nvme1n1p1"));
        assert_eq!(device("Buffer I/O error on dev sr0, logical block 0"), None);
        assert_eq!(device("Buffer I/O error on device sdb1, logical block 0"), Some("sdb1"));
        assert_eq!(device("nvme nvme3: I/O 12 QID 3 timeout, aborting"), Some("nvme3"));
    }

    #[test]
    fn what_kernels_of_many_ages_print_is_recognised() {
        let data = data();
        let lines = [
            ("Out of memory: Kill process 7 (python) score 900 or sacrifice child", "host.log.oom-kill"),
            ("INFO: task dd:456 blocked in I/O wait for more than 122 seconds.", "host.log.hung-task"),
            ("INFO: task nvidia-smi:5120 blocked for more than 120 seconds.", "host.log.hung-task"),
            ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "host.log.lockup"),
            ("rcu: INFO: rcu_sched self-detected stall on CPU", "host.log.lockup"),
            ("INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-... }", "host.log.lockup"),
            ("blk_update_request: I/O error, dev sda, sector 8", "host.log.io-error"),
            ("nvme nvme3: Device not ready; aborting initialisation, CSTS=0x0", "host.log.io-error"),
            ("EXT4-fs (nvme1n1): shut down requested (2)", "host.log.read-only"),
            ("{1}[Hardware Error]: event severity: recoverable", "host.log.machine-check"),
            ("[Hardware Error]: Uncorrected, software restartable error.", "host.log.machine-check"),
            (
                "mce: [Hardware Error]: CPU 1: Machine Check Exception: 5 Bank 7: be00000000800400",
                "host.log.machine-check",
            ),
            ("EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0", "host.log.machine-check"),
        ];
        for (line, check) in lines {
            assert_eq!(data.log_rule(line).map(|rule| rule.check.as_str()), Some(check), "{line}");
        }
    }

    #[test]
    fn a_process_cannot_be_named_so_that_its_crash_reads_like_a_fault() {
        let data = data();
        let forged = [
            "EDAC MC0: 1 UE [4242]: segfault at 0 ip 0 sp 0 error 4",
            "I/O error, dev [4242]: segfault at 0",
            "I/O error, dev sd invoked oom-killer: gfp_mask=0x0",
            "my Out of memory: Killed process 1 (systemd)",
            "[Hardware Error]: event severity: fatal",
        ];
        for line in forged {
            assert!(data.log_rule(line).is_none(), "{line}");
        }
    }
}
