//! A thread that ends the child when its parent closes the pipe, or its time is up.

use std::{os::fd::AsFd, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The parent ends us in time; this is for a parent that is stopped itself.
const GRACE: Duration = Duration::from_secs(1);
const EXIT_UNWANTED: libc::c_int = 5;

pub(super) fn start(remaining: Duration) -> std::io::Result<()> {
    let watch = move || {
        let out = std::io::stdout();
        let timeout = Timespec::try_from(remaining.saturating_add(GRACE)).ok();
        loop {
            // Nobody asks for events: a pipe without a reader reports its error unasked.
            let mut fds = [PollFd::from_borrowed_fd(out.as_fd(), PollFlags::empty())];
            match poll(&mut fds, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                _ => exit(EXIT_UNWANTED),
            }
        }
    };
    std::thread::Builder::new().name("watcher".to_owned()).stack_size(64 << 10).spawn(watch).map(drop)
}

/// Ends the child, all said.
pub(super) fn leave() -> ! {
    exit(0)
}

#[expect(unsafe_code, reason = "exit() would wait for locks that a hung thread may hold")]
fn exit(code: libc::c_int) -> ! {
    // SAFETY: _exit ends the process at once and runs none of its code; nothing here needs to be written or removed.
    unsafe { libc::_exit(code) }
}
