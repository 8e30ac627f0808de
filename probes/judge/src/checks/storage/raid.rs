//! Software RAID.

use plimsoll_model::{Absence, Absent, Action, ClearsBy, Device, Domain, MdArray, Origin, SkipWhy};

use crate::{
    check::{Check, Judge},
    context::StorageContext,
    draft::{Draft, Judged, Verdicted},
};

pub(super) static CHECKS: [Check; 1] = [Check {
    id: "storage.md.state",
    domain: Domain::Storage,
    asks: "Is each software RAID array whole?",
    reads: &["/sys/block/md*/md/{array_state,level,raid_disks,degraded,sync_action}"],
    compares: "no missing member, and a state in which the array works",
    verdicts: "Warns when it works without a member; fails when it does not work, or misses more members than its level can \
               lose. One finding an array.",
    why: "A degraded array is slow, and one drive away from losing everything; a striped one has lost it already.",
    clears_by: ClearsBy::GoodReading,
    action: Action::Repair,
    advice: "see /proc/mdstat and mdadm --detail for the member that is missing, and have its drive replaced",
    judge: Judge::StorageDevices(arrays),
}];

fn arrays(context: &StorageContext<'_>) -> Vec<Judged> {
    let mut draft = Draft::node();
    let arrays = match draft.want("arrays", &context.now().md, |all| all.len().to_string()) {
        Ok(arrays) => arrays,
        Err(early) => return vec![*early],
    };
    if arrays.is_empty() {
        return vec![draft.skip(SkipWhy::NotPresent, "this machine has no software RAID array")];
    }
    arrays.iter().map(|array| judge(array).unwrap_or_else(|early| *early)).collect()
}

fn judge(array: &MdArray) -> Verdicted {
    let mut draft = Draft::new(Device(array.name.clone()));
    let state = draft.need("state", &array.state, Clone::clone)?;
    draft.expect("no member missing", Origin::Rule { source: "Linux kernel documentation, md".to_owned() });
    if state == "clear" {
        return Ok(draft.skip(SkipWhy::NotPresent, "a device without an array"));
    }
    if !matches!(
        state.as_str(),
        "clean" | "active" | "active-idle" | "write-pending" | "readonly" | "read-auto"
    ) {
        return Ok(draft.fail(format!("the array is {state}")));
    }
    let level = draft.need("level", &array.level, Clone::clone)?;
    if matches!(level.as_str(), "raid0" | "linear") {
        return Ok(draft.pass(format!("{state}, {level} without redundancy")));
    }
    let disks = *draft.need("members", &array.disks, ToString::to_string)?;
    let missing = *draft.need("members missing", &array.degraded, ToString::to_string)?;
    let sync = draft.need("at work", &array.sync_action, Clone::clone)?;
    if !matches!(sync.as_str(), "idle" | "frozen" | "resync" | "recover" | "check" | "repair" | "reshape") {
        let absent = Absent::new(Absence::Malformed, format!("no such work is known: {sync:?}"));
        return Ok(draft.absent("at work", &absent, &array.sync_action.source, false));
    }
    let Some(may_miss) = may_miss(level, disks) else {
        let absent = Absent::new(Absence::Malformed, format!("no such level is known: {level:?}"));
        return Ok(draft.absent("level", &absent, &array.level.source, false));
    };
    let is = format!("{level} of {disks} members, {missing} of them missing; {sync}");
    Ok(if missing > may_miss {
        draft.fail(is)
    } else if missing > 0 && matches!(sync.as_str(), "recover" | "resync") {
        draft.warn(is).advise(
            Action::Watch,
            "it is being rebuilt; wait for that (/proc/mdstat), and see why a member was lost",
        )
    } else if missing > 0 {
        draft.warn(is)
    } else {
        draft.pass(format!("{state}, {level}, {sync}"))
    })
}

/// Members that an array of this level can lose and still hold its data.
fn may_miss(level: &str, disks: u32) -> Option<u32> {
    match level {
        "raid1" => Some(disks.saturating_sub(1)),
        "raid4" | "raid5" => Some(1),
        "raid6" => Some(2),
        // Half of them at best, one a mirror; the kernel calls the array broken when it was not the best.
        "raid10" => Some(disks / 2),
        _ => None,
    }
}
