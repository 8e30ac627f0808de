//! What the end-to-end tests share: the binary, node trees, and what they expect.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

pub mod freezer;
pub mod node;
pub mod nvml;
pub mod processes;
pub mod silent;
pub mod tree;

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use plimsoll_model::Report;

/// The binary under test: the one that was built beside this test.
///
/// # Panics
/// When it was not built.
#[must_use]
pub fn binary() -> PathBuf {
    let ours = std::env::current_exe().expect("this program has a path");
    // Programs lie in target/PROFILE, tests in target/PROFILE/deps.
    let beside = ours.ancestors().skip(1).take(2).map(|directory| directory.join("plimsoll"));
    let built = beside.into_iter().find(|binary| binary.is_file());
    built.expect("the binary is built first: cargo build, or tests/run")
}

/// The binary with its environment made plain: no configuration of this machine's, no colours.
#[must_use]
pub fn plimsoll() -> Command {
    let mut command = Command::new(binary());
    command.env_remove("PLIMSOLL_CONFIG").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn run(arguments: &[&str]) -> Output {
    plimsoll().args(arguments).output().expect("the binary starts")
}

/// Runs `plimsoll check --json` with more arguments, and reads what it says.
///
/// # Panics
/// When it says no report.
#[must_use]
pub fn check(arguments: &[&str]) -> Report {
    report(&plimsoll().args(["check", "--json"]).args(arguments).output().expect("the binary starts"))
}

/// Reads a report from what the binary printed.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn report(output: &Output) -> Report {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let out = String::from_utf8_lossy(&output.stdout);
        panic!(
            "no report ({error}) but {:?}: {out}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// What was printed to standard output.
#[must_use]
pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What was printed to standard error.
#[must_use]
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Says why a test that needs more than this machine gives is not run: to `tests/run`, which collects the reasons, and
/// to standard error.
pub fn skip(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
    if let Some(file) = std::env::var_os("PLIMSOLL_SKIPPED_FILE") {
        let file = std::fs::OpenOptions::new().append(true).open(file);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// Whether this is root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
