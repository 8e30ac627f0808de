//! Whether a GPU may run as fast as it can: clocks and what holds them, heat, power.

use plimsoll_model::{Action, Celsius, ClearsBy, Domain, GpuReadings, Origin, Reading, SkipWhy};

use super::{Peers, busy, draft, peers, rule, same_model};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::Verdicted,
};

const COOL: &str = "have the node's cooling checked: fans, air flow, pumps";

pub(super) static CHECKS: [Check; 5] = [
    Check {
        id: "gpu.throttle",
        domain: Domain::Gpu,
        asks: "Is the GPU slowed down by heat, a power brake or its hardware?",
        reads: &["nvmlDeviceGetCurrentClocksEventReasons, twice"],
        compares: "none of: hardware slowdown 0x8, software thermal 0x20, hardware thermal 0x40, power brake 0x80. Its own power limit (0x4) is normal",
        verdicts: "Fails when its hardware slows it down in both readings. Warns when it does in one, or software does for heat.",
        why: "One GPU at half its clock makes all others of a job wait.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "have the node's cooling and power supplies checked; a power brake is pulled by the machine, not by the GPU",
        judge: Judge::EachGpu(throttle),
    },
    Check {
        id: "gpu.temperature",
        domain: Domain::Gpu,
        asks: "Is the GPU cool enough?",
        reads: &[
            "nvmlDeviceGetMarginTemperature",
            "nvmlDeviceGetTemperature",
            "nvmlDeviceGetTemperatureThreshold",
        ],
        compares: "the degrees that are left up to its highest operating temperature (gpu_temperature_margin_celsius_min, gpu_temperature_margin_celsius_below_zero_max); on older drivers, its thresholds",
        verdicts: "Warns at its highest operating temperature, fails where its clocks go down.",
        why: "Above it the GPU slows down, and at last shuts itself off.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: COOL,
        judge: Judge::EachGpu(temperature),
    },
    Check {
        id: "gpu.memory-temperature",
        domain: Domain::Gpu,
        asks: "Is the GPU's memory cool enough?",
        reads: &["nvmlDeviceGetFieldValues(82)", "nvmlDeviceGetTemperatureThreshold"],
        compares: "its highest operating temperature",
        verdicts: "Warns at it. Skipped where the GPU has no such sensor or does not tell the threshold.",
        why: "Hot memory is refreshed more often and loses bandwidth without a word.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: COOL,
        judge: Judge::EachGpu(memory_temperature),
    },
    Check {
        id: "gpu.clocks",
        domain: Domain::Gpu,
        asks: "Does a busy GPU run near its highest clocks?",
        reads: &["nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetUtilizationRates"],
        compares: "gpu_clock_percent_min and gpu_memory_clock_percent_min of its highest clocks",
        verdicts: "Warns below either when it is busy and not at its power limit. Skipped when it is idle.",
        why: "A GPU whose clocks were locked low and forgotten is slow without any error.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see whether its clocks are locked (nvidia-smi -q -d CLOCK), and reset them (nvidia-smi -rgc, -rmc, -rac)",
        judge: Judge::EachGpu(clocks),
    },
    Check {
        id: "gpu.power-limit",
        domain: Domain::Gpu,
        asks: "Is the GPU's power limit that of the others?",
        reads: &["nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementDefaultLimit"],
        compares: "the other GPUs; where there are none, the limit that it comes with",
        verdicts: "Warns when it is lower.",
        why: "A limit that was set on one GPU and forgotten makes the others wait for it.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "set the limit that the others have (nvidia-smi -pl)",
        judge: Judge::EachGpu(power_limit),
    },
];

const POWER_CAP: u64 = 0x4;
const HARDWARE: u64 = 0x8 | 0x40 | 0x80;
const SOFTWARE_THERMAL: u64 = 0x20;

fn told(bits: u64) -> String {
    let names = [
        (0x1, "idle"),
        (0x2, "application clocks"),
        (POWER_CAP, "power limit"),
        (0x8, "hardware slowdown"),
        (0x10, "sync boost"),
        (SOFTWARE_THERMAL, "heat (software)"),
        (0x40, "heat (hardware)"),
        (0x80, "power brake"),
        (0x100, "display clocks"),
    ];
    let told: Vec<&str> = names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    let rest = bits & !0x1ff;
    match (told.is_empty(), rest) {
        (true, 0) => "nothing".to_owned(),
        (_, 0) => told.join(", "),
        (_, rest) => format!("{}, unknown {rest:#x}", told.join(", ")),
    }
}

fn throttle(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let now = *draft.need("clocks held by", &one.now.clocks.held_by, |bits| told(*bits))?;
    draft.expect(
        "neither heat nor power brake nor hardware",
        rule("NVIDIA NVML: nvmlClocksEventReasons; the power limit is normal under load"),
    );
    let both = one.rates.held_by.ok().copied();
    if let Some(both) = both {
        draft.saw("in both readings", told(both), &one.rates.held_by.source);
    }
    let is = format!("clocks held by: {}", told(now));
    let lasting = both.unwrap_or(0) & HARDWARE;
    Ok(if lasting != 0 {
        draft.fail(is)
    } else if now & (HARDWARE | SOFTWARE_THERMAL) != 0 {
        draft.warn(is)
    } else {
        draft.pass(is)
    })
}

/// A threshold that some GPUs do not have.
fn known(reading: &Reading<Celsius>) -> Option<Celsius> {
    reading.ok().copied().filter(|value| value.0 > 0)
}

fn temperature(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let thermal = &one.now.thermal;
    let now = *draft.need("temperature", &thermal.gpu, ToString::to_string)?;
    if let Ok(margin) = thermal.margin.get() {
        draft.saw("margin", margin, &thermal.margin.source);
        let (least, origin) = context.limit("gpu_temperature_margin_celsius_min");
        let (below, _) = context.limit("gpu_temperature_margin_celsius_below_zero_max");
        draft.expect(format!("a margin above {least} °C"), origin);
        let left = f64::from(margin.0);
        let is = match margin.0 {
            below if below >= 0 => format!("{now}, {margin} below its highest operating temperature"),
            above => format!("{now}, {} above its highest operating temperature", Celsius(-above)),
        };
        return Ok(if left <= -below {
            draft.fail(is)
        } else if left <= least {
            draft.warn(is)
        } else {
            draft.pass(is)
        });
    }
    let supported = |absent: &plimsoll_model::Absent| absent.kind != plimsoll_model::Absence::NotSupported;
    if thermal.margin.get().err().is_some_and(supported) {
        draft.need("margin", &thermal.margin, ToString::to_string)?;
    }
    let slowdown = known(&thermal.slowdown);
    let highest = known(&thermal.gpu_max);
    let Some(limit) = slowdown.or(highest) else {
        draft.need("slowdown", &thermal.slowdown, ToString::to_string)?;
        return Ok(draft.skip(SkipWhy::NotSupported, format!("{now}; the GPU tells no threshold")));
    };
    draft.expect(format!("below {limit}"), rule("NVIDIA NVML: nvmlTemperatureThresholds_t"));
    let is = now.to_string();
    Ok(if slowdown.is_some_and(|limit| now >= limit) {
        draft.fail(is)
    } else if highest.is_some_and(|limit| now >= limit) {
        draft.warn(is)
    } else {
        draft.pass(is)
    })
}

fn memory_temperature(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let now = *draft.need("memory", &one.now.thermal.memory, ToString::to_string)?;
    let highest = *draft.need("highest", &one.now.thermal.memory_max, ToString::to_string)?;
    if highest.0 <= 0 {
        return Ok(draft.skip(SkipWhy::NotSupported, format!("{now}; the GPU tells no threshold")));
    }
    draft.expect(format!("below {highest}"), rule("NVIDIA NVML: NVML_TEMPERATURE_THRESHOLD_MEM_MAX"));
    Ok(if now >= highest { draft.warn(now.to_string()) } else { draft.pass(now.to_string()) })
}

fn clocks(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let clocks = &one.now.clocks;
    let sm = *draft.need("SM clock", &clocks.sm, ToString::to_string)?;
    let sm_max = *draft.need("SM clock at most", &clocks.sm_max, ToString::to_string)?;
    let memory = *draft.need("memory clock", &clocks.memory, ToString::to_string)?;
    let memory_max = *draft.need("memory clock at most", &clocks.memory_max, ToString::to_string)?;
    if !busy(context, one, &mut draft)? {
        return Ok(draft.skip(SkipWhy::Idle, format!("{sm}, memory {memory}; the GPU is idle")));
    }
    let (sm_min, origin) = context.limit("gpu_clock_percent_min");
    let (memory_min, _) = context.limit("gpu_memory_clock_percent_min");
    draft.expect(format!("{sm_min} % of {sm_max}, memory {memory_min} % of {memory_max}"), origin);
    let at_power_limit = clocks.held_by.ok().is_some_and(|bits| bits & POWER_CAP != 0);
    let share = |now: u32, most: u32| f64::from(now) * 100.0 / f64::from(most.max(1));
    let is = format!("{sm}, memory {memory} on a busy GPU");
    let slow = share(sm.0, sm_max.0) < sm_min && !at_power_limit;
    Ok(if slow || share(memory.0, memory_max.0) < memory_min { draft.warn(is) } else { draft.pass(is) })
}

fn power_limit(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let limit = *draft.need("power limit", &one.now.power.limit, ToString::to_string)?;
    let of = |gpu: &GpuReadings| same_model(one, gpu).then(|| gpu.power.limit.ok().copied())?;
    let (wanted, origin) = match peers(one.all, of) {
        Peers::Most(most, count) => (most, Origin::Peers { count }),
        Peers::None | Peers::Split(_) => {
            let default = *draft.need("default", &one.now.power.limit_default, ToString::to_string)?;
            (default, rule("the limit that the GPU comes with"))
        }
    };
    draft.expect(wanted.to_string(), origin);
    Ok(if limit < wanted { draft.warn(limit.to_string()) } else { draft.pass(limit.to_string()) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_holds_the_clocks_is_told_in_words() {
        assert_eq!(super::told(0), "nothing");
        assert_eq!(super::told(0x4 | 0x40), "power limit, heat (hardware)");
        assert_eq!(super::told(1 << 40 | 1), "idle, unknown 0x10000000000");
    }
}
