//! A library with NVML's ABI. It has no GPU; it says what its scenario tells it to say.

#![expect(unsafe_code, reason = "these are the C functions that NVML exports")]
#![expect(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "NVML's documentation says what they do and may be passed"
)]

mod scenario;

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    field_id, nvmlDevice_t, nvmlEccSramErrorStatus_t, nvmlFieldValue_t, nvmlGpuFabricInfo_t,
    nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t, nvmlMarginTemperature_t, nvmlPciInfo_t,
    nvmlProcessInfo_t, nvmlReturn_t, nvmlRowRemapperHistogramValues_t, nvmlUtilization_t, nvmlValue_t,
};

use scenario::{enter, number, numbers, text};

const SUCCESS: nvmlReturn_t = 0;
const INVALID_ARGUMENT: nvmlReturn_t = 2;
const NOT_SUPPORTED: nvmlReturn_t = 3;
const INSUFFICIENT_SIZE: nvmlReturn_t = 7;
const VERSION_MISMATCH: nvmlReturn_t = 25;

/// Handles are indices, moved so that none is null.
const FIRST_HANDLE: usize = 0x1000;

fn index(device: nvmlDevice_t) -> Option<u32> {
    let index = u32::try_from(device.addr().checked_sub(FIRST_HANDLE)?).ok()?;
    (index < 64).then_some(index)
}

fn ended(result: Result<(), nvmlReturn_t>) -> nvmlReturn_t {
    result.err().unwrap_or(SUCCESS)
}

/// Writes a value where the caller wants it.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), nvmlReturn_t> {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller of the library gives a place for a T, and it is not null.
    unsafe { to.write(value) };
    Ok(())
}

unsafe fn put_text(to: *mut c_char, length: c_uint, text: &str) -> Result<(), nvmlReturn_t> {
    let rude = number(None, "rude_text").is_some();
    let length = length as usize;
    if text.len() >= length && !rude {
        return Err(INSUFFICIENT_SIZE);
    }
    // Rude: as many bytes as fit, and no NUL.
    for (at, byte) in text.bytes().chain([0]).take(length).enumerate() {
        // SAFETY: the caller of the library gives a place for `length` bytes.
        unsafe { to.add(at).write(c_char::from_ne_bytes([byte])) };
    }
    Ok(())
}

fn gpu(device: nvmlDevice_t, call: &str) -> Result<Option<u32>, nvmlReturn_t> {
    let gpu = Some(index(device).ok_or(INVALID_ARGUMENT)?);
    enter(gpu, call).map(|()| gpu)
}

fn known<T: TryFrom<i64>>(gpu: Option<u32>, key: &str) -> Result<T, nvmlReturn_t> {
    let value = number(gpu, key).ok_or(NOT_SUPPORTED)?;
    T::try_from(value).map_err(|_| 999)
}

/// -1 stands for a counter full of ones.
fn count(gpu: Option<u32>, key: &str) -> Result<c_ulonglong, nvmlReturn_t> {
    number(gpu, key).map(i64::cast_unsigned).ok_or(NOT_SUPPORTED)
}

macro_rules! node {
    ($name:ident ( $($argument:ident : $kind:ty),* ) $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> nvmlReturn_t {
            ended(enter(None, stringify!($name)).and_then(|()| $body))
        }
    };
}

macro_rules! device {
    ($name:ident ( $gpu:ident $(, $argument:ident : $kind:ty)* ) $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(device: nvmlDevice_t $(, $argument: $kind)*) -> nvmlReturn_t {
            ended(gpu(device, stringify!($name)).and_then(|$gpu| $body))
        }
    };
}

/// Calls that give one number.
macro_rules! numbers {
    ($($name:ident = $key:literal),* $(,)?) => { $(
        device!($name(gpu, to: *mut c_uint) {
            // SAFETY: as NVML says.
            known(gpu, $key).and_then(|value| unsafe { put(to, value) })
        });
    )* };
}

/// Calls that give one text.
macro_rules! texts {
    ($($name:ident = $key:literal),* $(,)?) => { $(
        device!($name(gpu, to: *mut c_char, length: c_uint) {
            // SAFETY: as NVML says.
            text(gpu, $key).ok_or(NOT_SUPPORTED).and_then(|value| unsafe { put_text(to, length, &value) })
        });
    )* };
}

node!(nvmlInit_v2() {
    // Without a scenario there is nothing to say, which must not look like an old GPU.
    number(None, "gpus").map(drop).ok_or(999)
});
// What NVIDIA's Python bindings begin with.
node!(nvmlInitWithFlags(_flags: c_uint) { number(None, "gpus").map(drop).ok_or(999) });
node!(nvmlShutdown() { Ok(()) });
node!(nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) {
    // SAFETY: as NVML says.
    text(None, "driver").ok_or(NOT_SUPPORTED).and_then(|value| unsafe { put_text(to, length, &value) })
});
node!(nvmlDeviceGetCount_v2(to: *mut c_uint) {
    // SAFETY: as NVML says.
    known(None, "gpus").and_then(|value| unsafe { put(to, value) })
});

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut nvmlDevice_t) -> nvmlReturn_t {
    let count = u32::try_from(number(None, "gpus").unwrap_or(0)).unwrap_or(0);
    if index >= count {
        return INVALID_ARGUMENT;
    }
    let handle = std::ptr::without_provenance_mut(FIRST_HANDLE + index as usize);
    // SAFETY: as NVML says.
    ended(enter(Some(index), "nvmlDeviceGetHandleByIndex_v2").and_then(|()| unsafe { put(to, handle) }))
}

numbers! {
    nvmlDeviceGetMinorNumber = "minor",
    nvmlDeviceGetRetiredPagesPendingStatus = "retired_pending",
    nvmlDeviceGetCurrPcieLinkGeneration = "pcie_generation",
    nvmlDeviceGetMaxPcieLinkGeneration = "pcie_generation_max",
    nvmlDeviceGetCurrPcieLinkWidth = "pcie_width",
    nvmlDeviceGetMaxPcieLinkWidth = "pcie_width_max",
    nvmlDeviceGetPcieReplayCounter = "pcie_replays",
    nvmlDeviceGetPowerUsage = "power_mw",
    nvmlDeviceGetEnforcedPowerLimit = "power_limit_mw",
    nvmlDeviceGetPowerManagementDefaultLimit = "power_limit_default_mw",
    nvmlDeviceGetPersistenceMode = "persistence",
    nvmlDeviceGetComputeMode = "compute_mode",
}

texts! {
    nvmlDeviceGetName = "name",
    nvmlDeviceGetUUID = "uuid",
    nvmlDeviceGetSerial = "serial",
    nvmlDeviceGetVbiosVersion = "vbios",
    nvmlDeviceGetInforomImageVersion = "inforom",
}

device!(nvmlDeviceGetGspFirmwareVersion(gpu, to: *mut c_char) {
    // SAFETY: as NVML says: the caller gives 64 bytes.
    text(gpu, "gsp_firmware").ok_or(NOT_SUPPORTED).and_then(|value| unsafe { put_text(to, 64, &value) })
});

device!(nvmlDeviceGetPciInfo_v3(gpu, to: *mut nvmlPciInfo_t) {
    let address = text(gpu, "pci").ok_or(NOT_SUPPORTED)?;
    // SAFETY: a structure of numbers and bytes, for which all zeroes are a value.
    let mut info = unsafe { std::mem::zeroed::<nvmlPciInfo_t>() };
    for (to, from) in info.busId.iter_mut().zip(address.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    // SAFETY: as NVML says.
    unsafe { put(to, info) }
});

device!(nvmlDeviceGetEccMode(gpu, current: *mut c_uint, pending: *mut c_uint) {
    let mode: c_uint = known(gpu, "ecc")?;
    let later = known(gpu, "ecc_pending").unwrap_or(mode);
    // SAFETY: as NVML says.
    unsafe { put(current, mode).and_then(|()| put(pending, later)) }
});

device!(nvmlDeviceGetMigMode(gpu, current: *mut c_uint, pending: *mut c_uint) {
    let mode: c_uint = known(gpu, "mig")?;
    let later = known(gpu, "mig_pending").unwrap_or(mode);
    // SAFETY: as NVML says.
    unsafe { put(current, mode).and_then(|()| put(pending, later)) }
});

/// `ecc_dram_volatile_uncorrected` and the like.
fn ecc_key(memory: &str, kind: c_uint, since: c_uint) -> Result<String, nvmlReturn_t> {
    let kind = match kind {
        0 => "corrected",
        1 => "uncorrected",
        _ => return Err(INVALID_ARGUMENT),
    };
    let since = match since {
        0 => "volatile",
        1 => "aggregate",
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok(format!("ecc_{memory}_{since}_{kind}"))
}

device!(nvmlDeviceGetTotalEccErrors(gpu, kind: c_uint, since: c_uint, to: *mut c_ulonglong) {
    // SAFETY: as NVML says.
    ecc_key("total", kind, since).and_then(|key| count(gpu, &key)).and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetMemoryErrorCounter(gpu, kind: c_uint, since: c_uint, place: c_uint, to: *mut c_ulonglong) {
    let memory = match place {
        2 => "dram",
        7 => "sram",
        _ => return Err(NOT_SUPPORTED),
    };
    // SAFETY: as NVML says.
    ecc_key(memory, kind, since).and_then(|key| count(gpu, &key)).and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetSramEccErrorStatus(gpu, to: *mut nvmlEccSramErrorStatus_t) {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: as NVML says, and it is not null.
    let status = unsafe { &mut *to };
    if status.version != versioned::<nvmlEccSramErrorStatus_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    status.bThresholdExceeded = known(gpu, "sram_threshold_exceeded")?;
    status.aggregateUncParity = count(gpu, "sram_parity").unwrap_or(0);
    status.aggregateUncSecDed = count(gpu, "sram_double_bit").unwrap_or(0);
    Ok(())
});

const fn versioned<T>(version: u32) -> c_uint {
    size_of::<T>() as c_uint | version << 24
}

device!(nvmlDeviceGetRemappedRows(
    gpu, corrected: *mut c_uint, uncorrected: *mut c_uint, pending: *mut c_uint, failed: *mut c_uint
) {
    let rows = [
        (corrected, "rows_corrected"),
        (uncorrected, "rows_uncorrected"),
        (pending, "rows_pending"),
        (failed, "rows_failed"),
    ];
    rows.into_iter().try_for_each(|(to, key)| {
        // SAFETY: as NVML says.
        known(gpu, key).and_then(|value| unsafe { put(to, value) })
    })
});

device!(nvmlDeviceGetRowRemapperHistogram(gpu, to: *mut nvmlRowRemapperHistogramValues_t) {
    let banks = numbers(gpu, "banks").ok_or(NOT_SUPPORTED)?;
    let bank = |at: usize| banks.get(at).and_then(|n| c_uint::try_from(*n).ok()).unwrap_or(0);
    let values = nvmlRowRemapperHistogramValues_t { max: bank(0), high: bank(1), partial: bank(2), low: bank(3), none: bank(4) };
    // SAFETY: as NVML says.
    unsafe { put(to, values) }
});

device!(nvmlDeviceGetRetiredPages(gpu, cause: c_uint, size: *mut c_uint, _pages: *mut c_ulonglong) {
    let key = if cause == 0 { "retired_single_bit" } else { "retired_double_bit" };
    let pages: c_uint = known(gpu, key)?;
    // SAFETY: as NVML says.
    unsafe { put(size, pages) }?;
    if pages > 0 { Err(INSUFFICIENT_SIZE) } else { Ok(()) }
});

fn has_link(gpu: Option<u32>, link: c_uint) -> Result<(), nvmlReturn_t> {
    let links: c_uint = known(gpu, "nvlinks")?;
    if link < links { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

device!(nvmlDeviceGetNvLinkState(gpu, link: c_uint, to: *mut c_uint) {
    has_link(gpu, link)?;
    let down = numbers(gpu, "nvlinks_down").unwrap_or_default().contains(&i64::from(link));
    // SAFETY: as NVML says.
    unsafe { put(to, c_uint::from(!down)) }
});

device!(nvmlDeviceGetNvLinkVersion(gpu, link: c_uint, to: *mut c_uint) {
    has_link(gpu, link)?;
    // SAFETY: as NVML says.
    known(gpu, "nvlink_version").and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetNvLinkErrorCounter(gpu, link: c_uint, kind: c_uint, to: *mut c_ulonglong) {
    has_link(gpu, link)?;
    let what = match kind {
        0 => "nvlink_replays",
        1 => "nvlink_recoveries",
        2 => "nvlink_crc",
        _ => return Err(NOT_SUPPORTED),
    };
    let value = count(gpu, &format!("{what}_{link}")).or_else(|_| count(gpu, what))?;
    // SAFETY: as NVML says.
    unsafe { put(to, value) }
});

device!(nvmlDeviceGetGpuFabricInfo(gpu, to: *mut nvmlGpuFabricInfo_t) {
    let info = nvmlGpuFabricInfo_t {
        clusterUuid: [0; 16],
        status: known(gpu, "fabric_status")?,
        cliqueId: 0,
        state: known(gpu, "fabric_state")?,
    };
    // SAFETY: as NVML says.
    unsafe { put(to, info) }
});

device!(nvmlDeviceGetGpuFabricInfoV(gpu, to: *mut nvmlGpuFabricInfo_v3_t) {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the version is the first member of every version of the structure.
    let version = unsafe { to.cast::<c_uint>().read() };
    let (state, status) = (known(gpu, "fabric_state")?, known(gpu, "fabric_status")?);
    let health = number(gpu, "fabric_health").and_then(|mask| c_uint::try_from(mask).ok()).unwrap_or(0);
    if version == versioned::<nvmlGpuFabricInfo_v2_t>(2) {
        let info = nvmlGpuFabricInfo_v2_t { version, clusterUuid: [0; 16], status, cliqueId: 0, state, healthMask: health };
        // SAFETY: the version says that the caller has room for this structure.
        unsafe { put(to.cast(), info) }
    } else {
        Err(VERSION_MISMATCH)
    }
});

device!(nvmlDeviceGetClockInfo(gpu, clock: c_uint, to: *mut c_uint) {
    let key = match clock {
        1 => "sm_mhz",
        2 => "memory_mhz",
        _ => return Err(NOT_SUPPORTED),
    };
    // SAFETY: as NVML says.
    known(gpu, key).and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetMaxClockInfo(gpu, clock: c_uint, to: *mut c_uint) {
    let key = match clock {
        1 => "sm_max_mhz",
        2 => "memory_max_mhz",
        _ => return Err(NOT_SUPPORTED),
    };
    // SAFETY: as NVML says.
    known(gpu, key).and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetCurrentClocksEventReasons(gpu, to: *mut c_ulonglong) {
    // SAFETY: as NVML says.
    count(gpu, "clocks_held_by").and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetCurrentClocksThrottleReasons(gpu, to: *mut c_ulonglong) {
    // SAFETY: as NVML says.
    count(gpu, "clocks_held_by").and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetTemperature(gpu, sensor: c_uint, to: *mut c_uint) {
    if sensor != 0 {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: as NVML says.
    known(gpu, "temperature").and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetTemperatureThreshold(gpu, kind: c_uint, to: *mut c_uint) {
    let key = match kind {
        0 => "temperature_shutdown",
        1 => "temperature_slowdown",
        2 => "temperature_memory_max",
        3 => "temperature_gpu_max",
        _ => return Err(INVALID_ARGUMENT),
    };
    // SAFETY: as NVML says.
    known(gpu, key).and_then(|value| unsafe { put(to, value) })
});

device!(nvmlDeviceGetMarginTemperature(gpu, to: *mut nvmlMarginTemperature_t) {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: as NVML says, and it is not null.
    let margin = unsafe { &mut *to };
    if margin.version != versioned::<nvmlMarginTemperature_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    margin.marginTemperature = known(gpu, "temperature_margin")?;
    Ok(())
});

device!(nvmlDeviceGetComputeRunningProcesses_v3(gpu, count: *mut c_uint, to: *mut nvmlProcessInfo_t) {
    let list = numbers(gpu, "processes").ok_or(NOT_SUPPORTED)?;
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: as NVML says, and it is not null.
    let room = unsafe { count.read() } as usize;
    let running = c_uint::try_from(list.len() / 2).unwrap_or(0);
    // SAFETY: as above.
    unsafe { put(count, running) }?;
    if running as usize > room {
        return Err(INSUFFICIENT_SIZE);
    }
    for (at, one) in list.chunks_exact(2).enumerate() {
        let &[pid, memory] = one else { continue };
        let info = nvmlProcessInfo_t {
            pid: c_uint::try_from(pid).unwrap_or(0),
            usedGpuMemory: memory.cast_unsigned(),
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        };
        // SAFETY: there is room for as many as the caller said, and this is not more.
        unsafe { put(to.add(at), info) }?;
    }
    Ok(())
});

device!(nvmlDeviceGetUtilizationRates(gpu, to: *mut nvmlUtilization_t) {
    let rates = nvmlUtilization_t { gpu: known(gpu, "busy_percent")?, memory: 0 };
    // SAFETY: as NVML says.
    unsafe { put(to, rates) }
});

device!(nvmlDeviceGetFieldValues(gpu, count: c_int, values: *mut nvmlFieldValue_t) {
    for at in 0..usize::try_from(count).map_err(|_| INVALID_ARGUMENT)? {
        // SAFETY: there are as many values as the caller says.
        let value = unsafe { &mut *values.add(at) };
        let key = match value.fieldId {
            field_id::NVML_FI_DEV_MEMORY_TEMP => "temperature_memory",
            field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION => "recovery_action",
            field_id::NVML_FI_DEV_RESET_STATUS => "reset_status",
            _ => "",
        };
        // As a field of its own it can fail by itself.
        let field = enter(gpu, &format!("nvmlDeviceGetFieldValues({})", value.fieldId)).and_then(|()| known(gpu, key));
        value.valueType = 1;
        match field {
            Ok(number) => {
                value.nvmlReturn = SUCCESS;
                value.value = nvmlValue_t { uiVal: number };
            }
            Err(code) => value.nvmlReturn = code,
        }
    }
    Ok(())
});
