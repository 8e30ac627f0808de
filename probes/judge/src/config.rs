//! What the operator says: expectations, limits, budgets. Parsing only; reading the file is the caller's.
//!
//! Every error carries the file, the line and what would have been accepted.

use std::{collections::BTreeMap, time::Duration};

use plimsoll_model::{Backing, Bytes, Limit, MountPoint, Origin};
use serde::Deserialize;

use crate::{
    Data,
    config_values::{
        Accepted, Version, byte_limit, bytes, count, count_limit, duration, mount_point, percent, version,
    },
    near::nearest,
    xid::{Overrides, RowOverride},
};

/// The operator's configuration, `/etc/plimsoll/plimsoll.toml`. Every key is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How `plimsoll check` works.
    #[serde(default)]
    pub check: CheckConfig,
    /// What the host should be.
    #[serde(default)]
    pub host: HostConfig,
    /// What the GPUs should be.
    #[serde(default)]
    pub gpu: GpuConfig,
    /// What errors of GPUs mean here, by their number.
    #[serde(default)]
    xid: BTreeMap<String, RowOverride>,
    /// What errors of NVSwitches mean here, by their number.
    #[serde(default)]
    sxid: BTreeMap<String, RowOverride>,
    #[serde(skip)]
    overrides: Overrides,
    /// What the drives should be.
    #[serde(default)]
    pub storage: StorageConfig,
    /// Mounts that should be there.
    #[serde(default)]
    pub mount: Vec<MountConfig>,
    /// Limits that differ from the general ones, by name.
    #[serde(default)]
    limits: BTreeMap<String, f64>,
    /// The file it comes from, for display.
    #[serde(skip)]
    file: String,
}

/// How `plimsoll check` works.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckConfig {
    /// Time for the whole command.
    #[serde(default, deserialize_with = "duration")]
    pub budget: Option<Duration>,
}

/// What the host should be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Processor packages.
    #[serde(default, deserialize_with = "count")]
    pub sockets: Option<u32>,
    /// Physical cores, all packages together.
    #[serde(default, deserialize_with = "count")]
    pub cores: Option<u32>,
    /// Whether each core runs more than one thread.
    pub smt: Option<bool>,
    /// Frequency governor of every processor.
    pub governor: Option<Governor>,
    /// Memory; up to `memory_below_percent_max` less is accepted.
    #[serde(default, deserialize_with = "bytes")]
    pub memory: Option<Bytes>,
    /// NUMA nodes that have processors.
    #[serde(default, deserialize_with = "count")]
    pub numa_nodes: Option<u32>,
    /// Pages of 2 MiB in the pool.
    pub hugepages_2mib: Option<u64>,
    /// Pages of 1 GiB in the pool.
    pub hugepages_1gib: Option<u64>,
    /// Pages of 2 MiB that should be free.
    pub hugepages_2mib_free_min: Option<u64>,
    /// Pages of 1 GiB that should be free.
    pub hugepages_1gib_free_min: Option<u64>,
    /// Transparent huge pages.
    pub transparent_hugepages: Option<TransparentHugepages>,
    /// Whether there should be swap.
    pub swap: Option<bool>,
    /// Share of free memory that should lie in blocks of 2 MiB or more.
    #[serde(default, deserialize_with = "percent")]
    pub free_in_large_blocks_percent_min: Option<f64>,
    /// Locked memory that a job may have.
    #[serde(default, deserialize_with = "byte_limit")]
    pub memlock_min: Option<Limit>,
    /// Files that a job may have open.
    #[serde(default, deserialize_with = "count_limit")]
    pub open_files_min: Option<Limit>,
    /// Clock source.
    pub clock_source: Option<String>,
    /// Services that should be alive, by the name of their unit or process.
    #[serde(default)]
    pub services: Vec<String>,
    /// Share of the last minute in which some task waited for a processor.
    #[serde(default, deserialize_with = "percent")]
    pub cpu_pressure_percent_max: Option<f64>,
    /// Share of the last minute in which some task waited for storage.
    #[serde(default, deserialize_with = "percent")]
    pub io_pressure_percent_max: Option<f64>,
}

/// A frequency governor of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Governor {
    Conservative,
    Ondemand,
    Performance,
    Powersave,
    Schedutil,
    Userspace,
}

impl Governor {
    /// The kernel's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conservative => "conservative",
            Self::Ondemand => "ondemand",
            Self::Performance => "performance",
            Self::Powersave => "powersave",
            Self::Schedutil => "schedutil",
            Self::Userspace => "userspace",
        }
    }
}

/// A setting of transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransparentHugepages {
    Always,
    Madvise,
    Never,
}

impl TransparentHugepages {
    /// The kernel's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}

/// What the GPUs should be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuConfig {
    /// How many.
    #[serde(default, deserialize_with = "count")]
    pub count: Option<u32>,
    /// Model, as the driver names it.
    pub model: Option<String>,
    /// Oldest driver that will do: `570.86`.
    #[serde(default, deserialize_with = "version")]
    pub driver_min: Option<Version>,
    /// NVLinks of each that should be up; 0 for none.
    pub nvlinks: Option<u32>,
    /// Whether a fabric manager should run on the node.
    pub fabric_manager: Option<bool>,
    /// Whether errors in memory should be found.
    pub ecc: Option<bool>,
    /// Whether the driver should stay with GPUs that nobody uses.
    pub persistence: Option<bool>,
    /// Whether the GPUs should be cut into instances.
    pub mig: Option<bool>,
    /// Whether no program should be on them when the check runs.
    pub idle: Option<bool>,
}

/// What the drives should be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageConfig {
    /// NVMe drives in the machine, network block devices not counted.
    #[serde(default, deserialize_with = "count")]
    pub nvme_local: Option<u32>,
}

/// A mount that should be there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountConfig {
    /// Where.
    #[serde(deserialize_with = "mount_point")]
    pub path: MountPoint,
    /// Type, as the kernel names it.
    #[serde(rename = "type")]
    pub fs_type: Option<String>,
    /// Whether it should be read-only; if not said, it should not.
    #[serde(default)]
    pub read_only: bool,
    /// Where its blocks should be.
    pub backing: Option<Backing>,
    /// Space that users should have left.
    #[serde(default, deserialize_with = "bytes")]
    pub available_min: Option<Bytes>,
    /// Share of the space that may be used.
    #[serde(default, deserialize_with = "percent")]
    pub used_percent_max: Option<f64>,
    /// Share of the inodes that may be used.
    #[serde(default, deserialize_with = "percent")]
    pub inodes_used_percent_max: Option<f64>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct ConfigError {
    file: String,
    message: String,
}

impl Config {
    /// Makes sense of a configuration file's text.
    ///
    /// # Errors
    /// With the line and the accepted values, for an unknown key, a wrong unit, an impossible value, a limit that does
    /// not exist, or a mount that is named twice.
    pub fn parse(text: &str, file: &str, data: &Data) -> Result<Self, ConfigError> {
        let fail = |message: String| ConfigError { file: file.to_owned(), message };
        let mut config: Self =
            toml::from_str(text).map_err(|error| fail(error.to_string().trim_end().to_owned()))?;
        file.clone_into(&mut config.file);
        config.overrides = Overrides {
            xid: numbered("xid", &config.xid).map_err(&fail)?,
            sxid: numbered("sxid", &config.sxid).map_err(&fail)?,
        };
        for (name, value) in &config.limits {
            if data.limit(name).is_none() {
                let near = nearest(name, data.limit_names());
                return Err(fail(format!(
                    "[limits] has no `{name}`{near}; accepted are: {}",
                    Accepted(data.limit_names())
                )));
            }
            if !value.is_finite() || *value < 0.0 || (name.contains("percent") && *value > 100.0) {
                return Err(fail(format!(
                    "[limits] {name} = {value}: impossible; accepted is a number of 0 or more, and of 100 or less for a percentage"
                )));
            }
        }
        for (at, mount) in config.mount.iter().enumerate() {
            if config.mount.iter().take(at).any(|earlier| earlier.path == mount.path) {
                return Err(fail(format!("[[mount]] {} is named twice", mount.path)));
            }
        }
        if let Some(name) = config.host.services.iter().find(|name| !is_service_name(name)) {
            return Err(fail(format!(
                "[host] services: {name:?} is no name of a unit or process; accepted are letters, digits and `-_.@:`, and UNIT=PROCESS"
            )));
        }
        let services = &config.host.services;
        if let Some(name) =
            services.iter().enumerate().find(|(at, name)| services.iter().take(*at).any(|n| n == *name))
        {
            return Err(fail(format!("[host] services: {:?} is named twice", name.1)));
        }
        if config.mount.len() > 256 || config.host.services.len() > 256 {
            return Err(fail("more than 256 mounts or services".to_owned()));
        }
        Ok(config)
    }

    /// Where its expectations come from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::Config { file: self.file.clone() }
    }

    /// A limit and where it comes from: the operator's if there is one, else the general one.
    #[must_use]
    pub fn limit(&self, name: &str, data: &Data) -> (f64, Origin) {
        match (self.limits.get(name), data.limit(name)) {
            (Some(value), _) => (*value, self.origin()),
            (None, Some(general)) => (general.value, Origin::Rule { source: general.source.clone() }),
            // Only a name that no data file has gets here; the tests keep that out. NaN compares as neither.
            (None, None) => (f64::NAN, Origin::None),
        }
    }

    /// What the site says of errors of GPUs and NVSwitches.
    #[must_use]
    pub const fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// What is expected of a mount, if the operator named it.
    #[must_use]
    pub fn mount(&self, point: &MountPoint) -> Option<&MountConfig> {
        self.mount.iter().find(|mount| mount.path == *point)
    }
}

fn numbered(table: &str, rows: &BTreeMap<String, RowOverride>) -> Result<BTreeMap<u32, RowOverride>, String> {
    let mut numbered = BTreeMap::new();
    for (key, row) in rows {
        let code =
            key.parse().ok().filter(|code: &u32| (1..1_000_000).contains(code) && code.to_string() == *key);
        let code =
            code.ok_or_else(|| format!("[{table}.{key}]: accepted is a number, such as [{table}.94]"))?;
        numbered.insert(code, row.clone());
    }
    Ok(numbered)
}

fn is_service_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.@:=".contains(&b);
    !name.is_empty() && name.len() <= 128 && !name.starts_with('.') && name.bytes().all(allowed)
}
