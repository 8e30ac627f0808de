//! NVMe drives.

use plimsoll_model::{
    Absence, Action, Backing, ClearsBy, Device, Domain, Megatransfers, NvmeController, Origin, SkipWhy,
};

use crate::{
    check::{Check, Judge},
    context::StorageContext,
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 5] = [
    Check {
        id: "storage.nvme.count",
        domain: Domain::Storage,
        asks: "Are as many NVMe drives in the machine as there should be?",
        reads: &["/sys/class/nvme/nvme*/model"],
        compares: "[storage] nvme_local in the configuration; without it there is nothing to compare with",
        verdicts: "Fails when there are fewer; warns when there are more. Network block devices (EBS, Persistent Disk) do not count.",
        why: "A drive that is gone makes local scratch smaller and slower, or takes a striped array with it.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "look for the drive in the kernel's log and in lspci; reboot, and repair if it stays away",
        judge: Judge::StorageDevices(count),
    },
    Check {
        id: "storage.nvme.state",
        domain: Domain::Storage,
        asks: "Is each NVMe controller live?",
        reads: &["/sys/class/nvme/nvme*/state"],
        compares: "`live`",
        verdicts: "Warns while it is being reset or connected; fails when it is dead or being removed. One finding a drive.",
        why: "A controller that does not come back takes everything on it along.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "see the kernel's log for what happened; have the drive replaced if it does not come back",
        judge: Judge::StorageDevices(state),
    },
    Check {
        id: "storage.nvme.health",
        domain: Domain::Storage,
        asks: "Does each NVMe drive call itself healthy?",
        reads: &["SMART / Health Information log page of /dev/nvme*, as root"],
        compares: "the drive's own critical warnings, spare threshold and wear estimate",
        verdicts: "Fails on a critical warning or spare below the drive's threshold; warns when its rated life is used up. \
                   Lifetime media errors are shown and not judged. One finding a drive.",
        why: "Drives announce most of their failures here.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "save what is on it and have it replaced; for a temperature warning look at the fans first",
        judge: Judge::StorageDevices(health),
    },
    Check {
        id: "storage.nvme.media-errors",
        domain: Domain::Storage,
        asks: "Is an NVMe drive losing data right now?",
        reads: &["SMART / Health Information log page of /dev/nvme*, as root"],
        compares: "no growth between two readings",
        verdicts: "Warns when the count grew. One finding a drive.",
        why: "Each is data that the drive could not give back.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Repair,
        advice: "save what is on it and have it replaced",
        judge: Judge::StorageDevices(media_errors),
    },
    Check {
        id: "storage.nvme.link",
        domain: Domain::Storage,
        asks: "Does each NVMe drive's PCIe link run at its full speed and width?",
        reads: &["/sys/class/nvme/nvme*/device/{current,max}_link_{speed,width}"],
        compares: "two or more other drives of the same model; else the lesser of what the drive and the port that it is \
                   plugged into can do, where both tell",
        verdicts: "Warns when it is slower or narrower. One finding a drive.",
        why: "A link that trained down halves a drive, and a striped array runs at the pace of its slowest drive.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "reboot; if it stays, have the drive reseated or replaced",
        judge: Judge::StorageDevices(link),
    },
];

/// One finding a controller, or one for the node when there is none.
fn each(
    context: &StorageContext<'_>,
    judge: impl Fn(usize, &NvmeController, &[NvmeController]) -> Verdicted,
) -> Vec<Judged> {
    let mut draft = Draft::node();
    let all = match draft.want("NVMe drives", &context.now().nvme, |all| all.len().to_string()) {
        Ok(all) => all,
        Err(early) => return vec![*early],
    };
    if all.is_empty() {
        return vec![draft.skip(SkipWhy::NotPresent, "this machine has no NVMe drive")];
    }
    all.iter().enumerate().map(|(at, one)| judge(at, one, all).unwrap_or_else(|early| *early)).collect()
}

fn device(controller: &NvmeController) -> Draft {
    Draft::new(Device(controller.name.clone()))
}

/// Which part to pull: its model and PCI address, as far as they are known.
fn which(controller: &NvmeController) -> String {
    let known: Vec<&str> = [&controller.model, &controller.address]
        .into_iter()
        .filter_map(|r| r.ok().map(String::as_str))
        .collect();
    if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
}

fn count(context: &StorageContext<'_>) -> Vec<Judged> {
    vec![count_drives(context).unwrap_or_else(|early| *early)]
}

fn count_drives(context: &StorageContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let reading = &context.now().nvme;
    let none = Vec::new();
    let all = match reading.get() {
        // Without the directory there is no drive, which may well be the fault.
        Err(absent) if absent.kind == Absence::NotPresent => {
            draft.saw("NVMe drives", "none", &reading.source);
            &none
        }
        _ => draft.need("NVMe drives", reading, |all| all.len().to_string())?,
    };
    let (mut local, mut network) = (0_u32, 0_u32);
    for controller in all {
        draft.need(&controller.name, &controller.model, Clone::clone)?;
        match draft.need(&controller.name, &controller.backing, ToString::to_string)? {
            Backing::Local => local += 1,
            Backing::Network => network += 1,
        }
    }
    let is = format!("{local} in the machine, {network} network block devices");
    let Some(want) = context.config.storage.nvme_local else {
        return Ok(if all.is_empty() {
            draft.skip(SkipWhy::NotPresent, "this machine has no NVMe drive")
        } else {
            draft.incomparable(is, "storage.nvme_local")
        });
    };
    draft.expect(format!("{want} in the machine"), context.config.origin());
    Ok(if local < want {
        draft.fail(is)
    } else if local > want {
        draft.warn(is).advise(Action::None, "mend the configuration, or find out who put the others in")
    } else {
        draft.pass(is)
    })
}

fn state(context: &StorageContext<'_>) -> Vec<Judged> {
    each(context, |_, controller, _| {
        let mut draft = device(controller);
        let state = draft.need("state", &controller.state, Clone::clone)?;
        draft.expect("live", rule("Linux kernel, NVMe controller states"));
        Ok(match state.as_str() {
            "live" => draft.pass("live"),
            "new" | "resetting" | "connecting" => {
                draft.warn(format!("the controller is {state}{}", which(controller)))
            }
            _ => draft.fail(format!("the controller is {state}{}", which(controller))),
        })
    })
}

fn health(context: &StorageContext<'_>) -> Vec<Judged> {
    each(context, |_, controller, _| {
        let mut draft = device(controller);
        let log = draft.need("health log", &controller.smart, |log| {
            format!(
                "critical warning {:#04x}, {}, spare {} % (threshold {} %), {} % of life used, {} media errors",
                log.critical_warning,
                log.temperature,
                log.spare_percent,
                log.spare_threshold_percent,
                log.used_percent,
                log.media_errors
            )
        })?;
        draft.expect(
            "no critical warning",
            rule("NVM Express Base Specification, SMART / Health Information"),
        );
        let mut warnings = critical_warnings(log.critical_warning);
        if log.spare_percent < log.spare_threshold_percent && !warnings.contains(&SPARE_LOW) {
            warnings.push(SPARE_LOW);
        }
        let is = format!(
            "{}, spare {} %, {} % of life used",
            log.temperature, log.spare_percent, log.used_percent
        );
        Ok(if !warnings.is_empty() {
            draft.fail(format!("{}; {is}{}", warnings.join("; "), which(controller)))
        } else if log.used_percent >= 100 {
            let judged = draft.warn(format!("its rated life is used up: {is}"));
            Judged { action: Some(Action::Watch), advice: Some("plan its replacement".to_owned()), ..judged }
        } else {
            draft.pass(is)
        })
    })
}

const SPARE_LOW: &str = "spare blocks are running out";

fn critical_warnings(bits: u8) -> Vec<&'static str> {
    let known = [
        SPARE_LOW,
        "the temperature is outside its limits",
        "reliability is degraded by errors",
        "the media are read-only",
        "the volatile memory's backup has failed",
        "the persistent memory region is unreliable",
    ];
    let mut warnings: Vec<_> =
        known.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, text)| *text).collect();
    if bits >> known.len() != 0 {
        warnings.push("a critical warning of a kind that is not known");
    }
    warnings
}

fn media_errors(context: &StorageContext<'_>) -> Vec<Judged> {
    each(context, |at, controller, _| {
        let mut draft = device(controller);
        let Some(rate) = context.signals.media_errors.get(at) else {
            return Ok(draft.skip(SkipWhy::NoBaseline, "a rate needs two samples"));
        };
        draft.need("health log", &controller.smart, |log| format!("{} media errors", log.media_errors))?;
        let rate = draft.need("media errors", rate, ToString::to_string)?;
        draft.expect("no growth", rule("NVM Express Base Specification, SMART / Health Information"));
        let is = format!("{} media errors in {} ms", rate.delta, rate.over_ms);
        Ok(if rate.delta == 0 { draft.pass(is) } else { draft.warn(is) })
    })
}

/// Speed and width; the wider link counts before the faster one when they are compared.
type Link = (Megatransfers, u32);

fn current_link(controller: &NvmeController) -> Option<Link> {
    Some((*controller.link.speed.ok()?, *controller.link.width.ok()?))
}

fn link(context: &StorageContext<'_>) -> Vec<Judged> {
    each(context, |_, controller, all| {
        let mut draft = device(controller);
        if *draft.need("blocks", &controller.backing, ToString::to_string)? == Backing::Network {
            return Ok(draft.skip(SkipWhy::NotSupported, "a network block device has no link of its own"));
        }
        let readings = &controller.link;
        let speed = *draft.want("speed", &readings.speed, ToString::to_string)?;
        let width = *draft.want("width", &readings.width, |lanes| format!("x{lanes}"))?;
        let is = format!("{speed} x{width}");
        let model = draft.need("model", &controller.model, Clone::clone)?;
        let same = |other: &&NvmeController| other.name != controller.name && other.model.ok() == Some(model);
        let peers: Vec<Link> = all.iter().filter(same).filter_map(current_link).collect();
        let (want, origin) = match most_common(&peers) {
            Some((want, count)) => (want, Origin::Peers { count }),
            None => {
                let speed = *draft.want("speed at most", &readings.speed_max, ToString::to_string)?;
                let width = *draft.want("width at most", &readings.width_max, |lanes| format!("x{lanes}"))?;
                // A drive in a slower or narrower slot is not at fault, and only the slot's port tells.
                let port_speed =
                    *draft.want("the port's speed", &readings.port_speed_max, ToString::to_string)?;
                let port_width =
                    *draft.want("the port's width", &readings.port_width_max, |n| format!("x{n}"))?;
                let origin = rule("PCI Express: the lesser of what the device and its port can do");
                ((speed.min(port_speed), width.min(port_width)), origin)
            }
        };
        draft.expect(format!("{} x{}", want.0, want.1), origin);
        if speed < want.0 || width < want.1 {
            return Ok(draft.warn(format!("{is}{}", which(controller))));
        }
        Ok(draft.pass(is))
    })
}

/// What most of two or more peers have, and how many peers there are.
fn most_common(peers: &[Link]) -> Option<(Link, u32)> {
    let count = |link: &Link| peers.iter().filter(|other| *other == link).count();
    let best = peers.iter().max_by_key(|link| (count(link), **link))?;
    (peers.len() >= 2).then(|| (*best, u32::try_from(peers.len()).unwrap_or(u32::MAX)))
}

fn rule(source: &str) -> Origin {
    Origin::Rule { source: source.to_owned() }
}
