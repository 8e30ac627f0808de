//! Ctrl-C and its kin, as something that can be waited for.

use std::{
    io::ErrorKind,
    os::fd::{AsFd, BorrowedFd},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::consts::{SIGINT, SIGTERM};

/// A pipe that becomes readable when somebody wants the command to stop.
#[derive(Debug)]
pub(crate) struct Interrupts {
    receiver: UnixStream,
    released: Arc<AtomicBool>,
}

impl Interrupts {
    /// Catches SIGINT and SIGTERM from now on. SIGHUP stays as the caller set it: nohup ignores it.
    pub(crate) fn catch() -> std::io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        let released = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&released))?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self { receiver, released })
    }

    /// From now on such a signal ends the process at once: all that is left is to print, and whoever is to read that may
    /// not.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
    }

    /// Whether one has arrived. Once true, stays true only for the caller that remembers it.
    pub(super) fn arrived(&self) -> bool {
        let mut byte = [0_u8; 16];
        match rustix::io::read(&self.receiver, &mut byte) {
            Ok(count) => count > 0,
            Err(error) => std::io::Error::from(error).kind() != ErrorKind::WouldBlock,
        }
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
