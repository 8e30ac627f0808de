//! Finding and reading the configuration file.

use std::path::{Path, PathBuf};

use plimsoll_judge::{Config, ConfigError, Data};
use plimsoll_model::{Absence, Absent};
use plimsoll_probes::Machine;

/// Where the configuration is unless somebody says otherwise.
pub(crate) const DEFAULT: &str = "/etc/plimsoll/plimsoll.toml";
const BYTES_MAX: usize = 1 << 20;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("cannot read the configuration {file}: {detail}")]
    Read { file: String, detail: String },
    #[error(transparent)]
    Parse(#[from] ConfigError),
}

/// Reads the configuration: the file that was named, else the default one of the machine (or of the tree that stands in
/// for it), else none.
pub(crate) fn load(named: Option<&Path>, machine: &Machine, data: &Data) -> Result<Config, ConfigFileError> {
    let (path, read) = match named {
        Some(path) => {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            let text = absolute.to_str().map(|path| read(&Machine::live(), path));
            let not_utf8 = || Err(Absent::new(Absence::Malformed, "its path is not UTF-8"));
            (path.display().to_string(), text.unwrap_or_else(not_utf8))
        }
        None => (DEFAULT.to_owned(), read(machine, DEFAULT)),
    };
    match read {
        Ok(text) => Ok(Config::parse(&text, &path, data)?),
        Err(absent) if named.is_none() && absent.kind == Absence::NotPresent => Ok(Config::default()),
        Err(absent) => Err(ConfigFileError::Read { file: path, detail: absent.detail }),
    }
}

fn read(machine: &Machine, path: &str) -> Result<String, Absent> {
    let bytes = machine.bytes(path, BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| Absent::new(Absence::Malformed, "it is not text"))
}
