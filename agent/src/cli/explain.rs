//! `plimsoll explain`: what a check reads, compares with, why, and what to do; and the same of a GPU's error codes.

use std::{path::PathBuf, time::Instant};

use anyhow::anyhow;
use clap::Args;
use plimsoll_dashboard::{explanation, sxid_explanation, xid_explanation};
use plimsoll_judge::{Config, Data, checks, find, nearest};
use plimsoll_model::Exit;

use super::{VerbError, check, print};
use crate::{collect::setup, config_file, supervise::Interrupts};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of a check, such as storage.mount.space (`plimsoll check --list` lists them); or `xid`, or `sxid`
    #[arg(value_name = "CHECK")]
    check: String,
    /// After `xid` or `sxid`: the number of an error of a GPU, or of an NVSwitch
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Configuration file, whose `[xid.CODE]` and `[sxid.CODE]` are shown [default: as for check]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8, VerbError> {
    let data = Data::built_in().map_err(VerbError::own)?;
    let columns = print::terminal_columns().unwrap_or(100).min(100);
    let kind = arguments.check.to_ascii_lowercase();
    let text = match (kind.as_str(), &arguments.code) {
        ("xid" | "sxid", None) => {
            return Err(VerbError::usage(anyhow!(
                "which {kind}? Say `plimsoll explain {kind} CODE`, such as {kind} {}",
                example(&kind)
            )));
        }
        ("xid" | "sxid", Some(code)) => explain_code(&kind, code, arguments, &data, columns)?,
        (_, Some(code)) => {
            return Err(VerbError::usage(anyhow!(
                "`{code}` is one too many: a check is explained by its name alone"
            )));
        }
        (_, None) => {
            let Some(check) = find(&arguments.check) else {
                let near = nearest(&arguments.check, checks().map(|check| check.id));
                let message = anyhow!(
                    "there is no check `{}`{near}; `plimsoll check --list` lists them",
                    arguments.check
                );
                return Err(VerbError::usage(message));
            };
            explanation(check, &data, columns)
        }
    };
    print::result(&text)?;
    Ok(Exit::Fit.code())
}

fn example(kind: &str) -> &'static str {
    if kind == "xid" { "79" } else { "12028" }
}

fn explain_code(
    kind: &str,
    code: &str,
    arguments: &Arguments,
    data: &Data,
    columns: usize,
) -> Result<String, VerbError> {
    let number: u32 = code.parse().map_err(|_| {
        VerbError::usage(anyhow!(
            "`{code}` is no number of an {kind}; say {kind} {}, for example",
            example(kind)
        ))
    })?;
    let config = configuration(arguments, data)?;
    let overrides = config.overrides();
    let text = if kind == "xid" {
        xid_explanation(number, data, overrides, columns)
    } else {
        sxid_explanation(number, data, overrides, columns)
    };
    text.ok_or_else(|| {
        let known: Vec<u32> = if kind == "xid" {
            data.catalogue.xids.keys().copied().collect()
        } else {
            data.catalogue.sxids.keys().copied().collect()
        };
        let (first, last) = (known.first().copied().unwrap_or(0), known.last().copied().unwrap_or(0));
        let how = if kind == "xid" {
            "one in the log warns for a day and asks for a diagnosis"
        } else {
            "one in the log fails when its line says Fatal, and warns for a day when not"
        };
        VerbError::usage(anyhow!(
            "nobody knows {kind} {number}: {} are known, from {first} to {last}; {how}",
            known.len()
        ))
    })
}

fn configuration(arguments: &Arguments, data: &Data) -> Result<Config, VerbError> {
    let interrupts = Interrupts::catch()
        .map_err(|error| VerbError::own(anyhow!(error).context("cannot catch signals")))?;
    let named = check::named_config(arguments.config.as_deref())?;
    let setup = setup(named, None, Instant::now() + check::BUDGET, &interrupts).map_err(VerbError::setup)?;
    interrupts.release();
    config_file::parse(setup.config, data).map_err(|error| VerbError::usage(anyhow!("{error}")))
}
