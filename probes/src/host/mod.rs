//! The host: processors, memory, processes, the kernel.

mod cpu;
mod kernel;
mod memory;
pub(crate) mod processes;
mod spin;

use plimsoll_judge::Data;
use plimsoll_model::{HostSample, PressureReadings};

use crate::{Asked, Machine, kernel_log, parse};

/// Lines that are kept of what one rule finds about one device.
const LOG_REPEATS_MAX: usize = 8;

pub(crate) fn collect(machine: &Machine, data: &Data, asked: &Asked) -> HostSample {
    machine.step("processors (/sys/devices/system/cpu)");
    let cpu = cpu::collect(machine);
    machine.step("memory (/proc/meminfo, /sys/devices/system)");
    let memory = memory::collect(machine);
    machine.step("machine checks (/proc/interrupts)");
    let machine_checks = machine.read("/proc/interrupts", parse::machine_checks);
    machine.step("the process list (/proc)");
    let list = processes::list(machine);
    let limits = processes::limits(machine, &list);
    let services = processes::services(machine, &list, &asked.services);
    machine.step("pressure (/proc/pressure)");
    let pressure = PressureReadings {
        cpu: machine.read("/proc/pressure/cpu", parse::pressure),
        memory: machine.read("/proc/pressure/memory", parse::pressure),
        io: machine.read("/proc/pressure/io", parse::pressure),
    };
    machine.step("clocks and taint");
    let clock_source =
        machine.read("/sys/devices/system/clocksource/clocksource0/current_clocksource", parse::one_line);
    let clock_sync = kernel::clock_sync(machine);
    let taint = machine.read("/proc/sys/kernel/tainted", parse::one_number);
    let rdma_devices = kernel::rdma_devices(machine);
    machine.step("the kernel's log (/dev/kmsg)");
    // A rule is told by its place in memory.
    let log = kernel_log::collect(machine, asked.admit_injected_log, LOG_REPEATS_MAX, |line| {
        data.log_rule(line)
            .map(|rule| (std::ptr::from_ref(rule).addr(), rule.device(line).map(str::to_owned)))
    });
    HostSample {
        cpu,
        memory,
        machine_checks,
        limits,
        processes: processes::table(machine, &list),
        pressure,
        clock_source,
        clock_sync,
        taint,
        log,
        services,
        rdma_devices,
    }
}
