//! Files that a caller left open to us must not reach our children: a child that hangs for ever would hold them, and
//! with them whoever reads the caller's pipe.

/// Marks every descriptor above standard error to be closed when a child is started.
#[expect(unsafe_code, reason = "descriptors that we inherited have no owner in Rust")]
pub(crate) fn keep_from_children() {
    const FIRST: libc::c_long = 3;
    const LAST: libc::c_long = 0xFFFF_FFFF;
    const CLOSE_RANGE_CLOEXEC: libc::c_long = 1 << 2;
    // By number and not by glibc's wrapper, which old systems lack.
    // SAFETY: close_range takes three integers; with CLOEXEC it closes nothing now and touches no memory.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST, LAST, CLOSE_RANGE_CLOEXEC) } == 0 {
        return;
    }
    // Before Linux 5.11: one by one.
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<libc::c_int>().ok());
        if let Some(fd) = number.filter(|fd| *fd > 2) {
            // SAFETY: F_SETFD takes integers only; on a number that is not open it fails and does nothing.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}
