//! What only a system call tells, and what the kernel lists of its devices.

use plimsoll_model::{Absence, Absent, ClockSync, Reading};

use crate::{Machine, parse};

/// State of the clock discipline. A tree says it in `answers/adjtimex`.
pub(super) fn clock_sync(machine: &Machine) -> Reading<ClockSync> {
    if machine.is_live() {
        machine.reading("adjtimex()", adjtimex())
    } else {
        machine.read("/answers/adjtimex", parse::clock_sync)
    }
}

#[expect(unsafe_code, reason = "adjtimex has no safe wrapper in our dependencies")]
fn adjtimex() -> Result<ClockSync, Absent> {
    // SAFETY: `timex` is plain integers, for which all zeroes is a value; `modes` 0 asks and changes nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live, exclusively borrowed `timex` for the length of the call.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(Absent::new(Absence::Unreadable, std::io::Error::last_os_error().to_string()));
    }
    Ok(ClockSync { state, status: timex.status.cast_unsigned(), max_error_us: timex.maxerror })
}

/// Number of RDMA devices.
pub(super) fn rdma_devices(machine: &Machine) -> Reading<u32> {
    const DEVICES: &str = "/sys/class/infiniband";
    let count = match machine.list(DEVICES) {
        Ok(names) => Ok(u32::try_from(names.len()).unwrap_or(u32::MAX)),
        // Without the RDMA subsystem there are certainly none.
        Err(absent) if absent.kind == Absence::NotPresent => Ok(0),
        Err(absent) => Err(absent),
    };
    machine.reading(DEVICES, count)
}
