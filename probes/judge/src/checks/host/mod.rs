//! Checks of the host domain.

mod cpu;
mod errors;
mod kernel;
mod limits;
mod log;
mod memory;
mod pressure;
mod processes;

use crate::check::Check;

pub(crate) static ALL: [&[Check]; 8] = [
    &cpu::CHECKS,
    &memory::CHECKS,
    &errors::CHECKS,
    &limits::CHECKS,
    &processes::CHECKS,
    &pressure::CHECKS,
    &kernel::CHECKS,
    &log::CHECKS,
];
