//! `plimsoll`: is this GPU or HPC node fit for a job?

mod cli;
mod collect;
mod config_file;
mod descriptors;
mod probe;
mod supervise;

use std::process::ExitCode;

fn main() -> ExitCode {
    descriptors::keep_from_children();
    cli::main()
}
