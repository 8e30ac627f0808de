//! Who the GPUs are, and whether they are alike.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Reading};

use super::{Peers, draft, like_the_others, peers, rule, same_model};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::Verdicted,
};

pub(super) static CHECKS: [Check; 3] = [
    Check {
        id: "gpu.identity",
        domain: Domain::Gpu,
        asks: "Does the GPU say who it is, and is no other the same?",
        reads: &["nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial"],
        compares: "the other GPUs",
        verdicts: "Fails when another GPU has the same UUID. Unknown when its name, UUID or serial number makes no sense.",
        why: "A GPU whose identity is damaged has a damaged inforom; a repair is ordered by serial number.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "have the GPU's inforom checked (nvidia-smi -q), and the GPU replaced if it is damaged",
        judge: Judge::EachGpu(identity),
    },
    Check {
        id: "gpu.same.model",
        domain: Domain::Gpu,
        asks: "Are all GPUs of one model?",
        reads: &["nvmlDeviceGetName"],
        compares: "`gpu.model` from the configuration, else the other GPUs",
        verdicts: "Fails when it is not the configured one. Warns when it differs from the others.",
        why: "A replacement of another model has other memory and another speed.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "have the GPU replaced by the right model, or mend the configuration",
        judge: Judge::EachGpu(model),
    },
    Check {
        id: "gpu.same.firmware",
        domain: Domain::Gpu,
        asks: "Have all GPUs the same firmware?",
        reads: &[
            "nvmlDeviceGetVbiosVersion",
            "nvmlDeviceGetInforomImageVersion",
            "nvmlDeviceGetGspFirmwareVersion",
        ],
        compares: "the other GPUs of its model",
        verdicts: "Warns when its video BIOS, inforom or GSP firmware differs.",
        why: "Other firmware has other clocks, limits and faults; a part that was swapped shows here.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "bring all GPUs to one version of firmware, with the machine maker's package",
        judge: Judge::EachGpu(firmware),
    },
];

fn identity(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let who = &one.now.identity;
    let name = draft.need("name", &who.name, Clone::clone)?;
    let uuid = draft.need("UUID", &who.uuid, Clone::clone)?;
    draft.expect("a UUID of its own", rule("NVIDIA NVML: a UUID names one GPU"));
    // Boards that were never given a serial number say that they do not support it.
    let serial = match who.serial.get() {
        Err(absent) if absent.kind == plimsoll_model::Absence::NotSupported => None,
        _ => Some(draft.need("serial", &who.serial, Clone::clone)?),
    };
    let same =
        one.all.iter().find(|other| other.index != one.now.index && other.identity.uuid.ok() == Some(uuid));
    if let Some(other) = same {
        return Ok(draft.fail(format!("its UUID {uuid} is also that of GPU {}", other.index)));
    }
    let serial = serial.map_or_else(String::new, |serial| format!(", serial {serial}"));
    Ok(draft.pass(format!("{name}{serial}")))
}

fn model(context: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let name = draft.need("name", &one.now.identity.name, Clone::clone)?;
    if let Some(wanted) = &context.config.gpu.model {
        draft.expect(wanted, context.config.origin());
        return Ok(if name == wanted { draft.pass(name) } else { draft.fail(name) });
    }
    Ok(like_the_others(draft, one, name, |gpu| gpu.identity.name.ok().cloned()))
}

/// Where the version of one part of the firmware is.
type Part = fn(&GpuReadings) -> &Reading<String>;

fn firmware(_: &GpuContext<'_>, one: One<'_>) -> Verdicted {
    let mut draft = draft();
    let parts: [(&str, Part); 3] = [
        ("video BIOS", |gpu| &gpu.identity.vbios),
        ("inforom", |gpu| &gpu.identity.inforom),
        ("GSP firmware", |gpu| &gpu.identity.gsp_firmware),
    ];
    let mut told = Vec::new();
    let mut odd = Vec::new();
    let mut compared = None;
    for (what, of) in parts {
        let reading = of(one.now);
        // A part that no GPU here has is no difference; one that only this GPU does not tell is.
        let nobody = one.all.iter().all(|gpu| of(gpu).ok().is_none());
        if nobody
            && reading.get().err().is_some_and(|absent| absent.kind == plimsoll_model::Absence::NotSupported)
        {
            continue;
        }
        let mine = draft.need(what, reading, Clone::clone)?;
        told.push(format!("{what} {mine}"));
        let of_model = |gpu: &GpuReadings| same_model(one, gpu).then(|| of(gpu).ok().cloned())?;
        match peers(one.all, of_model) {
            Peers::None => {}
            Peers::Most(most, count) => {
                compared = Some(count);
                if *mine != most {
                    odd.push(format!("{what} {mine} where the others have {most}"));
                }
            }
            Peers::Split(count) => {
                compared = Some(count);
                odd.push(format!("{what} {mine} where the others have several"));
            }
        }
    }
    let Some(count) = compared else {
        use plimsoll_model::SkipWhy;
        let (why, told) = if told.is_empty() {
            (SkipWhy::NotSupported, "the GPU tells no version of its firmware".to_owned())
        } else {
            (
                SkipWhy::NothingToCompareWith,
                format!("{}; there is no other GPU to compare with", told.join(", ")),
            )
        };
        return Ok(draft.skip(why, told));
    };
    draft.expect("that of the others", plimsoll_model::Origin::Peers { count });
    Ok(if odd.is_empty() { draft.pass(told.join(", ")) } else { draft.warn(odd.join("; ")) })
}
