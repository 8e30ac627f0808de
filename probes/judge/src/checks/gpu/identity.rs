//! Who the GPUs are, and whether they are alike.

use plimsoll_model::{Action, ClearsBy, Domain, GpuReadings, Reading};

use super::{draft, like_the_others, rule, same_model};
use crate::{
    check::{Check, Judge},
    context::{GpuContext, One},
    draft::Verdicted,
};

pub(super) static CHECKS: [Check; 5] = [
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
        judge: Judge::EachGpu(|_, one| firmware(one, "video BIOS", |gpu| &gpu.identity.vbios)),
        ..same_firmware(
            "gpu.same.vbios",
            "Have all GPUs the same video BIOS?",
            &["nvmlDeviceGetVbiosVersion"],
        )
    },
    Check {
        judge: Judge::EachGpu(|_, one| firmware(one, "inforom", |gpu| &gpu.identity.inforom)),
        ..same_firmware(
            "gpu.same.inforom",
            "Have all GPUs the same inforom?",
            &["nvmlDeviceGetInforomImageVersion"],
        )
    },
    Check {
        judge: Judge::EachGpu(|_, one| firmware(one, "GSP firmware", |gpu| &gpu.identity.gsp_firmware)),
        ..same_firmware(
            "gpu.same.gsp-firmware",
            "Have all GPUs the same GSP firmware?",
            &["nvmlDeviceGetGspFirmwareVersion"],
        )
    },
];

const fn same_firmware(id: &'static str, asks: &'static str, reads: &'static [&'static str]) -> Check {
    Check {
        id,
        domain: Domain::Gpu,
        asks,
        reads,
        compares: "the other GPUs of its model",
        verdicts: "Warns when it differs. Skipped where the GPUs do not tell it.",
        why: "Other firmware has other clocks, limits and faults; a part that was swapped shows here.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "bring all GPUs to one version of firmware, with the machine maker's package",
        judge: Judge::EachGpu(identity),
    }
}

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

fn firmware(one: One<'_>, what: &str, of: fn(&GpuReadings) -> &Reading<String>) -> Verdicted {
    let mut draft = draft();
    let mine = draft.need(what, of(one.now), Clone::clone)?;
    Ok(like_the_others(draft, one, mine, |gpu| same_model(one, gpu).then(|| of(gpu).ok().cloned())?))
}
