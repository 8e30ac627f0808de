//! `plimsoll explain`: what a check reads, compares with, why, and what to do.

use anyhow::anyhow;
use clap::Args;
use plimsoll_dashboard::explanation;
use plimsoll_judge::{Data, checks, find, nearest};
use plimsoll_model::Exit;

use super::{VerbError, print};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of a check, such as storage.mount.space; `plimsoll check --list` lists them
    #[arg(value_name = "CHECK")]
    check: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8, VerbError> {
    let Some(check) = find(&arguments.check) else {
        let near = nearest(&arguments.check, checks().map(|check| check.id));
        let message =
            anyhow!("there is no check `{}`{near}; `plimsoll check --list` lists them", arguments.check);
        return Err(VerbError::usage(message));
    };
    let data = Data::built_in().map_err(VerbError::own)?;
    print::result(&explanation(check, &data, print::terminal_columns().unwrap_or(100).min(100)))?;
    Ok(Exit::Fit.code())
}
