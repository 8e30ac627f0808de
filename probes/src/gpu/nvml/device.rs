//! Everything that is asked about one GPU, in groups: when a call does not return, the groups before it are known.

#![expect(unsafe_code, reason = "NVML is a C library that is opened at run time")]

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_NVLINK_MAX_LINKS, NvmlLib, field_id, nvmlDevice_t, nvmlEccSramErrorStatus_t, nvmlFieldValue_t,
    nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t, nvmlMarginTemperature_t, nvmlPciInfo_t, nvmlProcessInfo_t,
    nvmlRowRemapperHistogramValues_t, nvmlUtilization_t,
};
use plimsoll_model::{
    Absence, Absent, BankHistogram, Bytes, Celsius, ClockReadings, EccCounters, EccReadings, FabricInfo,
    FabricState, GpuIdentity, GpuProcess, GpuReadings, Megahertz, Milliwatts, ModeReadings, NvLink,
    PageReadings, PciAddress, PcieReadings, Percent, PowerReadings, Reading, RecoveryAction,
    RecoveryReadings, RemappedRows, RowReadings, Setting, SramStatus, ThermalReadings,
};

use super::call::{Gpu, essential, refused, text_buffer, text_in};
use crate::parse::malformed;

/// Asks one group of questions and puts the answers where they belong.
pub(super) type Group = fn(&Gpu<'_>, &NvmlLib, &mut GpuReadings);

/// The groups, the most telling first.
pub(super) const GROUPS: [Group; 12] =
    [place, identity, recovery, ecc, rows, links, fabric, pcie, clocks, power_and_heat, mode, use_of_it];

/// More programs than this do not fit on a GPU.
const PROCESSES_MAX: usize = 512;
/// A version of 1 or 2 in NVML's versioned structures: size in the low bits, version above them.
const fn versioned<T>(version: u32) -> c_uint {
    size_of::<T>() as c_uint | version << 24
}

// Each macro is one calling convention. The first argument of every call is the GPU's handle.

macro_rules! value {
    ($gpu:ident, $lib:ident, $call:ident, $initial:expr $(, $argument:expr)*) => {
        $gpu.ask(stringify!($call), &$lib.$call, |call, device| {
            let mut value = $initial;
            // SAFETY: the handle is NVML's own and lives as long as the library, which is never closed; the value is of
            // the type that the declaration names, and lives through the call.
            let code = unsafe { call(device $(, $argument)*, &raw mut value) };
            (code, value)
        })
    };
}

macro_rules! pair {
    ($gpu:ident, $lib:ident, $call:ident) => {
        $gpu.ask(stringify!($call), &$lib.$call, |call, device| {
            let (mut first, mut second) = (0, 0);
            // SAFETY: as above, with two values.
            let code = unsafe { call(device, &raw mut first, &raw mut second) };
            (code, (first, second))
        })
    };
}

macro_rules! text {
    ($gpu:ident, $lib:ident, $call:ident) => {
        $gpu.ask(stringify!($call), &$lib.$call, |call, device| {
            let (mut buffer, size) = text_buffer();
            // SAFETY: as above; the library writes at most `size` bytes, and the buffer holds one more.
            let code = unsafe { call(device, buffer.as_mut_ptr(), size) };
            (code, buffer)
        })
        .and_then(|buffer| text_in(buffer))
    };
}

/// A number that is no sane value of its kind.
fn at_most(max: u32, what: &'static str) -> impl Fn(&c_uint) -> Result<u32, Absent> {
    move |value| {
        if *value <= max { Ok(*value) } else { Err(malformed(format!("{value} {what}: no GPU has that"))) }
    }
}

fn switch(state: u32) -> Result<bool, Absent> {
    match state {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(malformed(format!("{other} where on or off belongs"))),
    }
}

fn setting(values: &(c_uint, c_uint)) -> Result<Setting, Absent> {
    Ok(Setting { current: switch(values.0)?, pending: switch(values.1)? })
}

/// NVML fills counters that it does not have with ones.
fn counter(value: &u64) -> Result<u64, Absent> {
    if *value == u64::MAX { Err(malformed("the counter holds no count")) } else { Ok(*value) }
}

fn celsius(value: i64) -> Result<Celsius, Absent> {
    // Below and above this no part of a GPU works or reports.
    let sane = i32::try_from(value).ok().filter(|value| (-60..=200).contains(value));
    sane.map(Celsius).ok_or_else(|| malformed(format!("{value} °C: no GPU has that")))
}

/// An answer that every driver has to give.
fn always<T: Clone>(reading: Reading<T>) -> Reading<T> {
    let result = reading.get().cloned().map_err(essential);
    Reading::new(reading.source.clone(), reading.at_us, result)
}

/// The handle of the GPU with this index.
pub(super) fn open(gpu: &Gpu<'_>, lib: &NvmlLib, index: c_uint) -> Reading<nvmlDevice_t> {
    let opened = gpu.ask("nvmlDeviceGetHandleByIndex_v2", &lib.nvmlDeviceGetHandleByIndex_v2, |call, _| {
        let mut device: nvmlDevice_t = std::ptr::null_mut();
        // SAFETY: the library writes one handle.
        let code = unsafe { call(index, &raw mut device) };
        (code, device)
    });
    always(opened)
}

fn place(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    // SAFETY: a structure of numbers and bytes, for which all zeroes are a value.
    let empty = unsafe { std::mem::zeroed::<nvmlPciInfo_t>() };
    to.address = always(value!(gpu, lib, nvmlDeviceGetPciInfo_v3, empty)).and_then(|info| {
        let text = text_in(&info.busId)?;
        PciAddress::parse(&text).ok_or_else(|| malformed(format!("not a PCI address: {text}")))
    });
}

fn identity(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    to.identity = GpuIdentity {
        name: always(text!(gpu, lib, nvmlDeviceGetName)),
        uuid: always(text!(gpu, lib, nvmlDeviceGetUUID)),
        serial: text!(gpu, lib, nvmlDeviceGetSerial),
        minor: value!(gpu, lib, nvmlDeviceGetMinorNumber, 0).and_then(at_most(255, "as minor number")),
        vbios: text!(gpu, lib, nvmlDeviceGetVbiosVersion),
        inforom: text!(gpu, lib, nvmlDeviceGetInforomImageVersion),
        gsp_firmware: gpu
            .ask("nvmlDeviceGetGspFirmwareVersion", &lib.nvmlDeviceGetGspFirmwareVersion, |call, device| {
                let (mut buffer, _) = text_buffer();
                // SAFETY: the library writes at most NVML_GSP_FIRMWARE_VERSION_BUF_SIZE (64) bytes; the buffer is larger.
                let code = unsafe { call(device, buffer.as_mut_ptr()) };
                (code, buffer)
            })
            .and_then(|buffer| text_in(buffer)),
    };
}

fn recovery(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    let ids = [field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, field_id::NVML_FI_DEV_RESET_STATUS];
    let [action, reset] = fields(gpu, lib, ids);
    to.recovery = RecoveryReadings {
        action: action.and_then(|value| match value {
            0 => Ok(RecoveryAction::None),
            1 => Ok(RecoveryAction::Reset),
            2 => Ok(RecoveryAction::Reboot),
            3 => Ok(RecoveryAction::DrainPeerToPeer),
            4 => Ok(RecoveryAction::DrainAndReset),
            other => Err(malformed(format!("recovery action {other} is not known"))),
        }),
        reset_required: reset.and_then(|value| switch(u32::try_from(*value).unwrap_or(u32::MAX))),
    };
}

fn ecc(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    const CORRECTED: c_uint = 0;
    const UNCORRECTED: c_uint = 1;
    const VOLATILE: c_uint = 0;
    const AGGREGATE: c_uint = 1;
    const DRAM: c_uint = 2;
    const SRAM: c_uint = 7;
    let total = |kind, since| value!(gpu, lib, nvmlDeviceGetTotalEccErrors, 0, kind, since).and_then(counter);
    let of = |kind, since, memory| {
        value!(gpu, lib, nvmlDeviceGetMemoryErrorCounter, 0, kind, since, memory).and_then(counter)
    };
    let memory = |memory| EccCounters {
        volatile_uncorrected: of(UNCORRECTED, VOLATILE, memory),
        volatile_corrected: of(CORRECTED, VOLATILE, memory),
        aggregate_uncorrected: of(UNCORRECTED, AGGREGATE, memory),
        aggregate_corrected: of(CORRECTED, AGGREGATE, memory),
    };
    // SAFETY: a structure of numbers, for which all zeroes are a value.
    let mut empty = unsafe { std::mem::zeroed::<nvmlEccSramErrorStatus_t>() };
    empty.version = versioned::<nvmlEccSramErrorStatus_t>(1);
    to.ecc = EccReadings {
        mode: pair!(gpu, lib, nvmlDeviceGetEccMode).and_then(setting),
        total: EccCounters {
            volatile_uncorrected: total(UNCORRECTED, VOLATILE),
            volatile_corrected: total(CORRECTED, VOLATILE),
            aggregate_uncorrected: total(UNCORRECTED, AGGREGATE),
            aggregate_corrected: total(CORRECTED, AGGREGATE),
        },
        dram: memory(DRAM),
        sram: memory(SRAM),
        sram_threshold: value!(gpu, lib, nvmlDeviceGetSramEccErrorStatus, empty).and_then(|status| {
            Ok(SramStatus {
                threshold_exceeded: switch(status.bThresholdExceeded)?,
                aggregate_parity: status.aggregateUncParity,
                aggregate_double_bit: status.aggregateUncSecDed,
            })
        }),
    };
}

fn rows(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    let remapped = gpu.ask("nvmlDeviceGetRemappedRows", &lib.nvmlDeviceGetRemappedRows, |call, device| {
        let mut values = [0; 4];
        let [corrected, uncorrected, pending, failed] = &mut values;
        // SAFETY: as for `value!`, with four values.
        let code = unsafe { call(device, corrected, uncorrected, pending, failed) };
        (code, values)
    });
    let none = nvmlRowRemapperHistogramValues_t { max: 0, high: 0, partial: 0, low: 0, none: 0 };
    to.rows = RowReadings {
        remapped: remapped.and_then(|[corrected, uncorrected, pending, failed]| {
            Ok(RemappedRows {
                corrected: *corrected,
                uncorrected: *uncorrected,
                pending: switch(*pending)?,
                failed: switch(*failed)?,
            })
        }),
        banks: value!(gpu, lib, nvmlDeviceGetRowRemapperHistogram, none).and_then(|banks| {
            let banks = BankHistogram {
                max: banks.max,
                high: banks.high,
                partial: banks.partial,
                low: banks.low,
                none: banks.none,
            };
            let all = [banks.max, banks.high, banks.partial, banks.low, banks.none];
            let sum = all.into_iter().fold(0_u32, u32::saturating_add);
            if (1..=65_536).contains(&sum) { Ok(banks) } else { Err(malformed(format!("{sum} banks"))) }
        }),
    };
    let pages = |cause| {
        gpu.ask("nvmlDeviceGetRetiredPages", &lib.nvmlDeviceGetRetiredPages, |call, device| {
            let mut count: c_uint = 0;
            // SAFETY: with a count of 0 the library tells how many there are and writes none.
            let code = unsafe { call(device, cause, &raw mut count, std::ptr::null_mut()) };
            // That the buffer is too small is what it says when there are some.
            (if code == 7 { 0 } else { code }, count)
        })
    };
    to.pages = PageReadings {
        single_bit: pages(0),
        double_bit: pages(1),
        pending: value!(gpu, lib, nvmlDeviceGetRetiredPagesPendingStatus, 0).and_then(|state| switch(*state)),
    };
}

fn links(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    const REPLAY: c_uint = 0;
    const RECOVERY: c_uint = 1;
    const CRC_FLIT: c_uint = 2;
    let mut links = Vec::new();
    let mut refusal = None;
    for link in 0..NVML_NVLINK_MAX_LINKS {
        let active = value!(gpu, lib, nvmlDeviceGetNvLinkState, 0, link).and_then(|state| switch(*state));
        if let Err(absent) = active.get() {
            // The driver says so of every link beyond the last; and of each where there are none.
            let beyond = absent.kind == Absence::NotSupported || *absent == refused(2);
            if beyond {
                refusal.get_or_insert_with(|| absent.clone());
                break;
            }
        }
        let errors =
            |kind| value!(gpu, lib, nvmlDeviceGetNvLinkErrorCounter, 0, link, kind).and_then(counter);
        links.push(NvLink {
            link,
            version: value!(gpu, lib, nvmlDeviceGetNvLinkVersion, 0, link)
                .and_then(at_most(64, "as NVLink version")),
            replays: errors(REPLAY),
            recoveries: errors(RECOVERY),
            crc_errors: errors(CRC_FLIT),
            active,
        });
    }
    let none = refusal.filter(|_| links.is_empty());
    to.nvlinks = gpu.reading("nvmlDeviceGetNvLinkState", none.map_or(Ok(links), Err));
}

fn fabric(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    let known = |state, status, health_mask| {
        let state = match state {
            0 => FabricState::NotSupported,
            1 => FabricState::NotStarted,
            2 => FabricState::InProgress,
            3 => FabricState::Completed,
            other => return Err(malformed(format!("fabric state {other} is not known"))),
        };
        Ok(FabricInfo { state, status, health_mask })
    };
    let newer = gpu.ask("nvmlDeviceGetGpuFabricInfoV", &lib.nvmlDeviceGetGpuFabricInfoV, |call, device| {
        // SAFETY: a structure of numbers, for which all zeroes are a value.
        let mut info = unsafe { std::mem::zeroed::<nvmlGpuFabricInfo_v2_t>() };
        info.version = versioned::<nvmlGpuFabricInfo_v2_t>(2);
        // SAFETY: the library tells by the version how large the structure is, and writes no more than that.
        let code = unsafe { call(device, (&raw mut info).cast()) };
        (code, info)
    });
    to.fabric = match newer.get() {
        Err(absent) if absent.kind == Absence::NotSupported => {
            // SAFETY: a structure of numbers, for which all zeroes are a value.
            let empty = unsafe { std::mem::zeroed::<nvmlGpuFabricInfo_t>() };
            value!(gpu, lib, nvmlDeviceGetGpuFabricInfo, empty)
                .and_then(|info| known(info.state, info.status, 0))
        }
        _ => newer.and_then(|info| known(info.state, info.status, info.healthMask)),
    };
}

fn pcie(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    let lanes = |value: &c_uint| match value {
        1 | 2 | 4 | 8 | 12 | 16 | 32 => Ok(*value),
        other => Err(malformed(format!("a link of {other} lanes"))),
    };
    let generation = |value: &c_uint| match value {
        1..=8 => Ok(*value),
        other => Err(malformed(format!("PCIe generation {other}"))),
    };
    to.pcie = PcieReadings {
        generation: value!(gpu, lib, nvmlDeviceGetCurrPcieLinkGeneration, 0).and_then(generation),
        generation_max: value!(gpu, lib, nvmlDeviceGetMaxPcieLinkGeneration, 0).and_then(generation),
        width: value!(gpu, lib, nvmlDeviceGetCurrPcieLinkWidth, 0).and_then(lanes),
        width_max: value!(gpu, lib, nvmlDeviceGetMaxPcieLinkWidth, 0).and_then(lanes),
        replays: value!(gpu, lib, nvmlDeviceGetPcieReplayCounter, 0).and_then(|count| Ok(u64::from(*count))),
    };
}

fn clocks(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    const SM: c_uint = 1;
    const MEMORY: c_uint = 2;
    let mhz = |value: &c_uint| at_most(20_000, "MHz")(value).map(Megahertz);
    let now = |clock| value!(gpu, lib, nvmlDeviceGetClockInfo, 0, clock).and_then(mhz);
    let most = |clock| {
        value!(gpu, lib, nvmlDeviceGetMaxClockInfo, 0, clock).and_then(|value| match value {
            0 => Err(malformed("a highest clock of 0 MHz")),
            value => mhz(value),
        })
    };
    let newer = value!(gpu, lib, nvmlDeviceGetCurrentClocksEventReasons, 0);
    let held_by = match newer.get() {
        Err(absent) if absent.kind == Absence::NotSupported => {
            value!(gpu, lib, nvmlDeviceGetCurrentClocksThrottleReasons, 0)
        }
        _ => newer,
    };
    to.clocks = ClockReadings {
        sm: now(SM),
        sm_max: most(SM),
        memory: now(MEMORY),
        memory_max: most(MEMORY),
        held_by: held_by.and_then(counter),
    };
}

fn power_and_heat(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    const GPU_SENSOR: c_uint = 0;
    const SLOWDOWN: c_uint = 1;
    const MEMORY_MAX: c_uint = 2;
    const GPU_MAX: c_uint = 3;
    let watts = |value: &c_uint| at_most(10_000_000, "mW")(value).map(Milliwatts);
    to.power = PowerReadings {
        draw: value!(gpu, lib, nvmlDeviceGetPowerUsage, 0).and_then(watts),
        limit: value!(gpu, lib, nvmlDeviceGetEnforcedPowerLimit, 0).and_then(watts),
        limit_default: value!(gpu, lib, nvmlDeviceGetPowerManagementDefaultLimit, 0).and_then(watts),
    };
    let threshold = |kind| {
        value!(gpu, lib, nvmlDeviceGetTemperatureThreshold, 0, kind)
            .and_then(|value| celsius(i64::from(*value)))
    };
    let [memory] = fields(gpu, lib, [field_id::NVML_FI_DEV_MEMORY_TEMP]);
    let empty =
        nvmlMarginTemperature_t { version: versioned::<nvmlMarginTemperature_t>(1), marginTemperature: 0 };
    to.thermal = ThermalReadings {
        gpu: value!(gpu, lib, nvmlDeviceGetTemperature, 0, GPU_SENSOR)
            .and_then(|value| celsius(i64::from(*value))),
        memory: memory.and_then(|value| {
            // 0 is what GPUs without that sensor say.
            if *value == 0 { Err(Absent::new(Absence::NotSupported, "no sensor")) } else { celsius(*value) }
        }),
        margin: value!(gpu, lib, nvmlDeviceGetMarginTemperature, empty)
            .and_then(|margin| celsius(i64::from(margin.marginTemperature))),
        slowdown: threshold(SLOWDOWN),
        gpu_max: threshold(GPU_MAX),
        memory_max: threshold(MEMORY_MAX),
    };
}

fn mode(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    to.mode = ModeReadings {
        persistence: value!(gpu, lib, nvmlDeviceGetPersistenceMode, 0).and_then(|state| switch(*state)),
        mig: pair!(gpu, lib, nvmlDeviceGetMigMode).and_then(setting),
        compute: value!(gpu, lib, nvmlDeviceGetComputeMode, 0).and_then(at_most(3, "as compute mode")),
    };
}

fn use_of_it(gpu: &Gpu<'_>, lib: &NvmlLib, to: &mut GpuReadings) {
    let name = "nvmlDeviceGetComputeRunningProcesses_v3";
    let processes = gpu.ask(name, &lib.nvmlDeviceGetComputeRunningProcesses_v3, |call, device| {
        // SAFETY: a structure of numbers, for which all zeroes are a value.
        let mut list = vec![unsafe { std::mem::zeroed::<nvmlProcessInfo_t>() }; PROCESSES_MAX];
        let mut count = PROCESSES_MAX as c_uint;
        // SAFETY: the list has room for as many as the count says.
        let code = unsafe { call(device, &raw mut count, list.as_mut_ptr()) };
        list.truncate(count as usize);
        (code, list)
    });
    to.processes = processes.and_then(|list| {
        let known = |bytes: u64| (bytes != u64::MAX).then_some(Bytes(bytes));
        Ok(list.iter().map(|one| GpuProcess { pid: one.pid, memory: known(one.usedGpuMemory) }).collect())
    });
    let none = nvmlUtilization_t { gpu: 0, memory: 0 };
    to.utilization = value!(gpu, lib, nvmlDeviceGetUtilizationRates, none)
        .and_then(|rates| at_most(100, "% busy")(&rates.gpu).map(|percent| Percent(f64::from(percent))));
}

/// Several fields in one call. Each has its own return code.
fn fields<const N: usize>(gpu: &Gpu<'_>, lib: &NvmlLib, ids: [c_uint; N]) -> [Reading<i64>; N] {
    let name = "nvmlDeviceGetFieldValues";
    let all = gpu.ask(name, &lib.nvmlDeviceGetFieldValues, |call, device| {
        let mut values = ids.map(|id| {
            // SAFETY: a structure of numbers and a union of numbers, for which all zeroes are a value.
            let mut value = unsafe { std::mem::zeroed::<nvmlFieldValue_t>() };
            value.fieldId = id;
            // What the library leaves alone is not a success.
            value.nvmlReturn = 999;
            value
        });
        // SAFETY: the list has N values.
        let code = unsafe { call(device, N as i32, values.as_mut_ptr()) };
        (code, values)
    });
    let mut at = 0;
    ids.map(|id| {
        let one = all.and_then(|values| {
            let value = values.get(at).ok_or_else(|| malformed("a field without a value"))?;
            match value.nvmlReturn {
                0 => number_of(value),
                // Which is what a driver says of a field that it does not know yet.
                2 => Err(refused(3)),
                code => {
                    gpu.note(name, code);
                    Err(refused(code))
                }
            }
        });
        at += 1;
        Reading { source: format!("{name}({id})"), ..one }
    })
}

fn number_of(field: &nvmlFieldValue_t) -> Result<i64, Absent> {
    let value = field.value;
    let too_large = || malformed("a field with an impossible value");
    // SAFETY: every member of the union is a number and any bits are a value of it; the type says which was written.
    unsafe {
        match field.valueType {
            1 => Ok(i64::from(value.uiVal)),
            2 | 3 => i64::try_from(value.ullVal).map_err(|_| too_large()),
            4 => Ok(value.sllVal),
            5 => Ok(i64::from(value.siVal)),
            6 => Ok(i64::from(value.usVal)),
            _ => Err(malformed("a field of a type that is not known")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use nvml_wrapper_sys::bindings::{nvmlGpuFabricInfo_v3_t, nvmlRowRemapperHistogramValues_t};

    use super::*;

    /// Sizes and places as a C compiler gives them for NVIDIA's nvml.h on 64-bit Linux.
    #[test]
    fn structures_are_laid_out_as_in_nvml_h() {
        assert_eq!((size_of::<nvmlPciInfo_t>(), offset_of!(nvmlPciInfo_t, busId)), (68, 36));
        assert_eq!((size_of::<nvmlFieldValue_t>(), offset_of!(nvmlFieldValue_t, value)), (40, 32));
        assert_eq!(offset_of!(nvmlFieldValue_t, nvmlReturn), 28);
        assert_eq!(size_of::<nvmlEccSramErrorStatus_t>(), 104);
        assert_eq!(offset_of!(nvmlEccSramErrorStatus_t, bThresholdExceeded), 96);
        assert_eq!(size_of::<nvmlGpuFabricInfo_t>(), 28);
        assert_eq!((size_of::<nvmlGpuFabricInfo_v2_t>(), size_of::<nvmlGpuFabricInfo_v3_t>()), (36, 40));
        assert_eq!(offset_of!(nvmlGpuFabricInfo_v2_t, healthMask), 32);
        assert_eq!(size_of::<nvmlMarginTemperature_t>(), 8);
        assert_eq!(size_of::<nvmlProcessInfo_t>(), 24);
        assert_eq!((size_of::<nvmlRowRemapperHistogramValues_t>(), size_of::<nvmlUtilization_t>()), (20, 8));
        assert_eq!(versioned::<nvmlGpuFabricInfo_v2_t>(2), 0x0200_0024);
        assert_eq!(versioned::<nvmlMarginTemperature_t>(1), 0x0100_0008);
    }
}
