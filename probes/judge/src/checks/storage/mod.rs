//! Checks of the storage domain.

mod mount;
mod mount_space;
mod nvme;
mod raid;

use crate::check::Check;

pub(crate) static ALL: [&[Check]; 4] = [&mount::CHECKS, &mount_space::CHECKS, &nvme::CHECKS, &raid::CHECKS];
