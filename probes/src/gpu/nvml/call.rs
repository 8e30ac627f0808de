//! Calling NVML: one place for its calling conventions, its return codes, and what is being asked right now.

use std::{
    ffi::{c_char, c_uint},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};
use plimsoll_model::{Absence, Absent, GpuTrouble, Reading, TroubleKind};

use crate::parse;

/// Longest text that NVML gives.
const TEXT_BYTES: usize = 128;

const RESTING: &str = "";

/// A symbol of the library, or why it is missing.
pub(super) type Symbol<F, E> = Result<F, E>;

/// What is being asked of a GPU, for whoever waits for the answer.
#[derive(Debug)]
pub(super) struct Asking {
    call: Mutex<(&'static str, Instant)>,
    given_up: AtomicBool,
    /// What each call took, when somebody measures that.
    costs: Option<Mutex<Vec<(&'static str, Duration)>>>,
}

impl Asking {
    pub(super) fn new() -> Self {
        Self { call: Mutex::new((RESTING, Instant::now())), given_up: AtomicBool::new(false), costs: None }
    }

    pub(super) fn measuring() -> Self {
        Self { costs: Some(Mutex::default()), ..Self::new() }
    }

    /// What the calls took since this was asked last, in their order.
    pub(super) fn costs(&self) -> Vec<(&'static str, Duration)> {
        self.costs.as_ref().map_or_else(Vec::new, |costs| {
            std::mem::take(&mut *costs.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    fn took(&self, call: &'static str, began: Instant) {
        if let Some(costs) = &self.costs {
            costs.lock().unwrap_or_else(PoisonError::into_inner).push((call, began.elapsed()));
        }
    }

    /// Nothing is being asked for the time being.
    pub(super) fn rest(&self) {
        self.set(RESTING);
    }

    fn set(&self, call: &'static str) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = (call, Instant::now());
    }

    /// The call that is out, and since when; `None` when none is.
    pub(super) fn get(&self) -> Option<(&'static str, Instant)> {
        let asked = *self.call.lock().unwrap_or_else(PoisonError::into_inner);
        (asked.0 != RESTING).then_some(asked)
    }

    /// Nobody waits any more: no further call is made.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// One GPU, as one thread asks about it.
pub(super) struct Gpu<'a> {
    device: nvmlDevice_t,
    began: Instant,
    asking: &'a Asking,
    pub(super) troubles: Mutex<Vec<GpuTrouble>>,
}

impl<'a> Gpu<'a> {
    pub(super) const fn new(device: nvmlDevice_t, began: Instant, asking: &'a Asking) -> Self {
        Self { device, began, asking, troubles: Mutex::new(Vec::new()) }
    }

    /// Makes one call and turns what came of it into a reading.
    pub(super) fn ask<F: Copy, E, T>(
        &self,
        name: &'static str,
        symbol: &Symbol<F, E>,
        call: impl FnOnce(F, nvmlDevice_t) -> (nvmlReturn_t, T),
    ) -> Reading<T> {
        if self.asking.is_given_up() {
            return self
                .reading(name, Err(Absent::new(Absence::TimedOut, "an earlier call took all the time")));
        }
        self.asking.set(name);
        let result = match symbol {
            Err(_) => Err(no_such_call(name)),
            Ok(symbol) => {
                let began = Instant::now();
                let answer = call(*symbol, self.device);
                self.asking.took(name, began);
                match answer {
                    (0, value) => Ok(value),
                    (code, _) => {
                        self.note(name, code);
                        Err(refused(code))
                    }
                }
            }
        };
        self.reading(name, result)
    }

    pub(super) fn reading<T>(&self, name: &str, result: Result<T, Absent>) -> Reading<T> {
        let at_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Reading::new(name, at_us, result)
    }

    /// Remembers a return code that tells of the GPU itself.
    pub(super) fn note(&self, call: &str, code: nvmlReturn_t) {
        let kind = match code {
            10 => TroubleKind::TimedOut,
            15 => TroubleKind::Lost,
            16 => TroubleKind::ResetRequired,
            _ => return,
        };
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        if !troubles.iter().any(|trouble| trouble.kind == kind) {
            troubles.push(GpuTrouble { kind, call: call.to_owned() });
        }
    }
}

pub(super) fn no_such_call(name: &str) -> Absent {
    Absent::new(Absence::NotSupported, format!("this driver's library has no {name}"))
}

/// As NVIDIA names it, and as the judge knows it again.
const DRIVER_NOT_LOADED: &str = plimsoll_model::NVML_DRIVER_NOT_LOADED;

/// What a return code means for a reading. Names as in NVIDIA's nvml.h.
pub(super) fn refused(code: nvmlReturn_t) -> Absent {
    let (kind, told) = match code {
        1 => (Absence::Unreadable, "NVML_ERROR_UNINITIALIZED"),
        2 => (Absence::Unreadable, "NVML_ERROR_INVALID_ARGUMENT"),
        3 => (Absence::NotSupported, "NVML_ERROR_NOT_SUPPORTED"),
        4 => (Absence::PermissionDenied, "NVML_ERROR_NO_PERMISSION"),
        6 => (Absence::Unreadable, "NVML_ERROR_NOT_FOUND"),
        7 => (Absence::TooLarge, "NVML_ERROR_INSUFFICIENT_SIZE"),
        8 => (Absence::Unreadable, "NVML_ERROR_INSUFFICIENT_POWER: a power cable is not attached"),
        9 => (Absence::Unreadable, DRIVER_NOT_LOADED),
        10 => (Absence::TimedOut, "NVML_ERROR_TIMEOUT"),
        11 => (Absence::Unreadable, "NVML_ERROR_IRQ_ISSUE: an interrupt of the GPU does not work"),
        12 => (Absence::Unreadable, "NVML_ERROR_LIBRARY_NOT_FOUND"),
        13 => (Absence::NotSupported, "NVML_ERROR_FUNCTION_NOT_FOUND: the driver is older than the library"),
        14 => (Absence::Unreadable, "NVML_ERROR_CORRUPTED_INFOROM"),
        15 => (Absence::Unreadable, "NVML_ERROR_GPU_IS_LOST"),
        16 => (Absence::Unreadable, "NVML_ERROR_RESET_REQUIRED"),
        17 => (Absence::Unreadable, "NVML_ERROR_OPERATING_SYSTEM: the system blocked the call"),
        18 => (Absence::Unreadable, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        19 => (Absence::Unreadable, "NVML_ERROR_IN_USE"),
        20 => (Absence::Unreadable, "NVML_ERROR_MEMORY"),
        21 => (Absence::Unreadable, "NVML_ERROR_NO_DATA"),
        25 => {
            (Absence::NotSupported, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH: the driver knows another version")
        }
        27 => (Absence::Unreadable, "NVML_ERROR_NOT_READY"),
        28 => (Absence::Unreadable, "NVML_ERROR_GPU_NOT_FOUND"),
        29 => (Absence::Unreadable, "NVML_ERROR_INVALID_STATE"),
        _ => return Absent::new(Absence::Unreadable, format!("NVML error {code}")),
    };
    Absent::new(kind, told)
}

/// Every driver supports some calls; a refusal of one of these is no property of the GPU.
pub(super) fn essential(absent: &Absent) -> Absent {
    let kind = if absent.kind == Absence::NotSupported { Absence::Unreadable } else { absent.kind };
    Absent::new(kind, absent.detail.clone())
}

/// What NVML wrote into a buffer of its own size, up to the first NUL.
pub(super) fn text_in(buffer: &[c_char]) -> Result<String, Absent> {
    let bytes: Vec<u8> =
        buffer.iter().map(|byte| byte.to_ne_bytes()[0]).take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8(bytes).map_err(|_| parse::malformed("not text"))?;
    parse::one_line(&text)
}

/// A buffer for a text, and its size as NVML wants it.
pub(super) const fn text_buffer() -> ([c_char; TEXT_BYTES], c_uint) {
    // One byte less than there is, so that a NUL follows whatever the library writes.
    ([0; TEXT_BYTES], TEXT_BYTES as c_uint - 1)
}
