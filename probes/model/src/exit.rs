//! Exit codes. Scripts depend on them: they are part of the interface and never change their meaning.

/// What `plimsoll` says through its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Nothing that was judged stands against a job. Warnings may.
    Fit = 0,
    /// At least one check failed.
    Unfit = 1,
    /// The command line or the configuration is wrong; nothing was judged.
    Usage = 2,
    /// No check failed, but one or more could not be judged, or none was.
    Undecided = 3,
    /// Stopped by a signal; what had been collected by then was judged and printed.
    Interrupted = 4,
}

impl Exit {
    /// The status for the operating system.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// Nagios' own convention, used with `--nagios` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NagiosExit {
    /// OK
    Ok = 0,
    /// WARNING
    Warning = 1,
    /// CRITICAL
    Critical = 2,
    /// UNKNOWN
    Unknown = 3,
}

impl NagiosExit {
    /// The status for the operating system.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The word that Nagios prints for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}
