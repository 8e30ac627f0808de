//! The command line: what there is, and where each verb goes. Only this layer prints.

mod check;
mod explain;
mod print;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};
use plimsoll_dashboard::clean;
use plimsoll_model::Exit;

use crate::{collect::SetupError, probe::PROBE_VERB};

/// Is this GPU or HPC node fit for a job?
///
/// Exit status: 0 fit, 1 unfit, 2 wrong usage or configuration, 3 undecided, 4 interrupted.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Judge this node now: its GPUs, host and storage; the network fabric is not judged yet
    Check(check::Arguments),
    /// Say what a check reads, compares with, why, and what to do; or what an error code of a GPU means
    Explain(explain::Arguments),
    #[command(name = PROBE_VERB, hide = true)]
    Probe { order: String, sysroot: Option<OsString> },
}

/// Parses, dispatches, and turns what came of it into an exit status.
pub(crate) fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // `--help` and `--version` arrive here too; clap knows which stream each belongs to.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage.code() } else { Exit::Fit.code() });
        }
    };
    let result = match arguments.verb {
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Explain(arguments) => explain::run(&arguments),
        Verb::Probe { order, sysroot } => return crate::probe::run(&order, sysroot.as_deref()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            print::error(&format!("{:#}", error.source));
            ExitCode::from(error.exit.code())
        }
    }
}

/// A verb that could not do its work, and the exit status that says so.
#[derive(Debug)]
pub(crate) struct VerbError {
    exit: Exit,
    source: anyhow::Error,
}

impl VerbError {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(source: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, source: source.into() }
    }

    /// What went wrong, harmless and on one line.
    pub(crate) fn line(&self) -> String {
        clean(&format!("{:#}", self.source)).replace('|', "/")
    }

    /// Nothing could be collected.
    pub(crate) fn setup(error: SetupError) -> Self {
        let exit = match error {
            SetupError::Tree(_) => Exit::Usage,
            SetupError::Interrupted => Exit::Interrupted,
            SetupError::Silent(_) => Exit::Undecided,
        };
        Self { exit, source: error.into() }
    }

    /// Something of ours went wrong, so nothing can be said of the node.
    pub(crate) fn own(source: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Undecided, source: source.into() }
    }
}
