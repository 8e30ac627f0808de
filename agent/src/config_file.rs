//! The configuration file: read in a child, as its file system may hang; made sense of in the parent.

use plimsoll_judge::{Config, ConfigError, Data};
use plimsoll_model::{Absence, Absent};
use plimsoll_probes::Machine;
use serde::{Deserialize, Serialize};

/// Where the configuration is unless somebody says otherwise.
pub(crate) const DEFAULT: &str = "/etc/plimsoll/plimsoll.toml";
const BYTES_MAX: usize = 1 << 20;

/// What reading the configuration came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ConfigText {
    /// There is none, and nobody named one.
    None,
    /// A file and what it holds.
    File { path: String, text: String },
    /// A file that cannot be read, and why.
    Unreadable { path: String, detail: String },
}

impl ConfigText {
    /// The file, if there is one.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::File { path, .. } | Self::Unreadable { path, .. } => Some(path),
        }
    }
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("cannot read the configuration {path}: {detail}")]
    Read { path: String, detail: String },
    #[error(transparent)]
    Parse(#[from] ConfigError),
}

/// Reads the file that was named, which is one of this machine's; else the default one of the machine or of the tree
/// that stands in for it.
pub(crate) fn read(machine: &Machine, named: Option<&str>) -> ConfigText {
    let (path, bytes) = match named {
        Some(path) => (path, Machine::live().bytes(path, BYTES_MAX)),
        None => (DEFAULT, machine.bytes(DEFAULT, BYTES_MAX)),
    };
    let not_text = |_| Absent::new(Absence::Malformed, "it is not text");
    match bytes.and_then(|bytes| String::from_utf8(bytes).map_err(not_text)) {
        Ok(text) => ConfigText::File { path: path.to_owned(), text },
        Err(absent) if named.is_none() && absent.kind == Absence::NotPresent => ConfigText::None,
        Err(absent) => ConfigText::Unreadable { path: path.to_owned(), detail: absent.detail },
    }
}

/// Makes sense of what was read.
pub(crate) fn parse(read: ConfigText, data: &Data) -> Result<Config, ConfigFileError> {
    match read {
        ConfigText::None => Ok(Config::default()),
        ConfigText::File { path, text } => Ok(Config::parse(&text, &path, data)?),
        ConfigText::Unreadable { path, detail } => Err(ConfigFileError::Read { path, detail }),
    }
}
