//! The only place that writes to the terminal.

use std::io::{self, ErrorKind, IsTerminal, Write as _};

use plimsoll_dashboard::clean;
use plimsoll_probes::parse;

use super::VerbError;

/// Writes a result to standard output, whole. A reader that has gone away is no error: it has what it wanted.
pub(super) fn result(text: &str) -> Result<(), VerbError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(VerbError::own(
            anyhow::Error::new(error).context("cannot write the result to standard output"),
        )),
        _ => Ok(()),
    }
}

const LINES_MAX: usize = 20;
const LINE_BYTES_MAX: usize = 1000;

/// Writes an error to standard error.
pub(super) fn error(text: &str) {
    // When standard error is gone too, the exit status still tells.
    // A message may quote a file that somebody else wrote.
    let harmless: Vec<_> = text
        .lines()
        .take(LINES_MAX)
        .map(|line| clean(parse::clip(line, LINE_BYTES_MAX)).into_owned())
        .collect();
    let _ = writeln!(io::stderr(), "plimsoll: {}", harmless.join("\n"));
}

/// Width of the terminal, when there is one and it tells.
pub(super) fn terminal_columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

/// Whether to colour: only on a terminal, and not where the user said no (`NO_COLOR`, `TERM=dumb`).
pub(super) fn colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !refused
}
