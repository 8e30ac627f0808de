//! The kernel's own accounts: log, clocks, pressure, machine checks.

use plimsoll_model::{Absence, Absent, ClockSync, Percent, Pressure};

use super::{malformed, number};

/// Facility of lines that the kernel itself wrote. A process that writes to `/dev/kmsg` cannot claim it.
pub const FACILITY_KERNEL: u32 = 0;

/// The first field of `/proc/uptime`, in milliseconds.
///
/// # Errors
/// When it is no number of seconds.
pub fn uptime_ms(text: &str) -> Result<u64, Absent> {
    let seconds: f64 = number(text.split_ascii_whitespace().next(), "uptime")?;
    if (0.0..1e11).contains(&seconds) {
        Ok((seconds * 1000.0) as u64)
    } else {
        Err(malformed("an impossible uptime"))
    }
}

/// A boot id: a UUID.
///
/// # Errors
/// When it is none.
pub fn boot_id(text: &str) -> Result<String, Absent> {
    let id = text.trim();
    if id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        Ok(id.to_owned())
    } else {
        Err(malformed("not a boot id"))
    }
}

/// The head of one record of `/dev/kmsg`, and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmsgRecord<'a> {
    /// Who wrote it.
    pub facility: u32,
    /// Its number.
    pub seq: u64,
    /// Its time, in microseconds after boot.
    pub at_us: u64,
    /// Its first line.
    pub text: &'a str,
}

/// One record: `6,339,5140900,-;text`, then lines ` KEY=value` that are left out.
///
/// # Errors
/// When the head is of another form.
pub fn kmsg_record(record: &str) -> Result<KmsgRecord<'_>, Absent> {
    let (head, body) = record.split_once(';').ok_or_else(|| malformed("a record without a head"))?;
    let mut fields = head.split(',');
    let priority: u32 = number(fields.next(), "priority")?;
    let seq = number(fields.next(), "sequence number")?;
    let at_us = number(fields.next(), "time")?;
    if fields.next().is_none() {
        return Err(malformed("a record without flags"));
    }
    Ok(KmsgRecord { facility: priority >> 3, seq, at_us, text: body.lines().next().unwrap_or_default() })
}

/// One file of `/proc/pressure`.
///
/// # Errors
/// When it has no `some` line.
pub fn pressure(text: &str) -> Result<Pressure, Absent> {
    let share = |kind: &str| -> Result<Option<Percent>, Absent> {
        let Some(line) = text.lines().find_map(|line| line.strip_prefix(kind)) else { return Ok(None) };
        let field = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg60="));
        let percent: f64 = number(field, "avg60")?;
        if (0.0..=100.0).contains(&percent) {
            Ok(Some(Percent(percent)))
        } else {
            Err(malformed(format!("a share of {percent} %")))
        }
    };
    let some_60s = share("some ")?.ok_or_else(|| malformed("no `some` line"))?;
    Ok(Pressure { some_60s, full_60s: share("full ")? })
}

/// Machine-check exceptions of all processors: the `MCE` line of `/proc/interrupts`.
///
/// # Errors
/// When there is no such line, as on arm64, or a count is no number.
pub fn machine_checks(text: &str) -> Result<u64, Absent> {
    if !text.lines().next().is_some_and(|heading| heading.contains("CPU")) {
        return Err(malformed("no heading"));
    }
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("MCE:"));
    let line =
        line.ok_or_else(|| Absent::new(Absence::NotPresent, "this kernel counts no machine checks"))?;
    let mut sum: u64 = 0;
    let mut counts = 0;
    for field in line.split_ascii_whitespace().take_while(|field| !field.starts_with(char::is_alphabetic)) {
        sum = sum.saturating_add(number(Some(field), "MCE count")?);
        counts += 1;
    }
    if counts == 0 { Err(malformed("no MCE counts")) } else { Ok(sum) }
}

/// A tree's answer for `adjtimex`: `state=0 status=0x2001 maxerror_us=1500`.
///
/// # Errors
/// When a field is missing.
pub fn clock_sync(text: &str) -> Result<ClockSync, Absent> {
    let field = |name: &str| {
        text.split_ascii_whitespace()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .ok_or_else(|| malformed(format!("no {name}")))
    };
    let status = field("status")?;
    let status = status
        .strip_prefix("0x")
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        .ok_or_else(|| malformed("status is not a hexadecimal number"))?;
    Ok(ClockSync {
        state: number(Some(field("state")?), "state")?,
        status,
        max_error_us: number(Some(field("maxerror_us")?), "maxerror_us")?,
    })
}
