//! Parsers of outside text. Pure; each takes what a file holds and gives a value or says what is wrong with it.

mod cpu;
mod kernel;
mod memory;
mod mounts;
mod nvme;
mod pci;
mod process;

pub use cpu::{cpu_list, cpu_times, cpuinfo_mhz, khz};
pub use kernel::{
    FACILITY_KERNEL, KmsgRecord, boot_id, clock_sync, kmsg_record, machine_checks, pressure, uptime_ms,
};
pub use memory::{buddyinfo, hugepage_directory, hugepages_asked, meminfo, node_total, selected_word, swaps};
pub use mounts::{MountLine, fstab, mountinfo, plain_path, space_answer};
pub use nvme::{SMART_LOG_BYTES, link_speed, smart_log};
pub use pci::{hex, numa_node};
pub use process::{ProcessLimits, ProcessStat, limits, process_stat, slurm_job, user_id};

use std::str::FromStr;

use plimsoll_model::{Absence, Absent};

/// What was read makes no sense.
pub(crate) fn malformed(detail: impl Into<String>) -> Absent {
    Absent::new(Absence::Malformed, detail)
}

/// A number where one belongs.
///
/// # Errors
/// When it is none, or is too large for its type.
pub(crate) fn number<T: FromStr>(field: Option<&str>, what: &str) -> Result<T, Absent> {
    let field = field.ok_or_else(|| malformed(format!("no {what}")))?.trim();
    field.parse().map_err(|_| malformed(format!("{what} is not a sane number: {:?}", clip(field, 40))))
}

/// A file that holds one number.
///
/// # Errors
/// When it holds anything else.
pub fn one_number<T: FromStr>(text: &str) -> Result<T, Absent> {
    number(Some(text), "value")
}

/// A file that holds one line.
///
/// # Errors
/// When it is empty, has more lines, or control characters.
pub fn one_line(text: &str) -> Result<String, Absent> {
    let line = text.trim();
    if line.is_empty() {
        return Err(malformed("empty"));
    }
    if line.chars().any(char::is_control) || line.len() > 256 {
        return Err(malformed("not one short line of text"));
    }
    Ok(line.to_owned())
}

/// A file that holds one word.
///
/// # Errors
/// When it holds anything else.
pub fn one_word(text: &str) -> Result<String, Absent> {
    let word = one_line(text)?;
    if word.bytes().all(|byte| byte.is_ascii_graphic()) { Ok(word) } else { Err(malformed("not one word")) }
}

/// The beginning of `text`, at most `bytes_max` bytes, whole characters.
#[must_use]
pub fn clip(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}
