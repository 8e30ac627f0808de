//! Mounts: space and inodes.

use plimsoll_model::{
    Absence, Absent, Action, Bytes, ClearsBy, Domain, FileSystemSpace, Mount, Origin, SkipWhy,
};

use super::mount::each_asked;
use crate::{
    check::{Check, Judge},
    context::StorageContext,
    draft::Judged,
};

pub(super) static CHECKS: [Check; 2] = [
    Check {
        id: "storage.mount.space",
        domain: Domain::Storage,
        asks: "Has each mount space left?",
        reads: &["statvfs(MOUNT)"],
        compares: "`available_min` and `used_percent_max` of the [[mount]] entries of the configuration, else the limit mount_used_percent_max",
        verdicts: "Fails when it breaks what the operator configured, or nothing is left; warns at the general limit. \
                   One finding a mount.",
        why: "A full scratch or root file system fails the next job at its first checkpoint or its first log line.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "find what fills it (du -xh --max-depth=2) and clean up",
        judge: Judge::StorageDevices(space),
    },
    Check {
        id: "storage.mount.inodes",
        domain: Domain::Storage,
        asks: "Has each mount inodes left?",
        reads: &["statvfs(MOUNT)"],
        compares: "`inodes_used_percent_max` of the [[mount]] entries of the configuration, else the limit mount_inodes_used_percent_max",
        verdicts: "Fails when it breaks what the operator configured, or none is left; warns at the general limit. One \
                   finding a mount.",
        why: "Millions of small files use up the inodes long before the space, and the error says `No space left`.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "find which directory holds the files (du --inodes -x) and clean up",
        judge: Judge::StorageDevices(inodes),
    },
];

fn space(context: &StorageContext<'_>) -> Vec<Judged> {
    each_asked(context, |mount, answer, mut draft| {
        let space = draft.need("answer", &answer.space, |space| {
            format!("{} available, {} free, {} in all", space.available, space.free, space.total)
        })?;
        let configured = context.config.mount(&mount.point);
        if space.used().is_none()
            && configured.is_some_and(|m| m.available_min.or(m.used_percent_max.map(|_| Bytes(0))).is_some())
        {
            let absent = Absent::new(Absence::Malformed, "it has a size of 0");
            return Ok(draft.absent("answer", &absent, &answer.space.source, false));
        }
        let Some(used) = space.used() else {
            return Ok(draft.skip(SkipWhy::NotSupported, "this file system does not count its space"));
        };
        if fills_never(context, mount) {
            return Ok(draft.skip(
                SkipWhy::NothingToCompareWith,
                format!("{used} used; a read-only file system does not fill"),
            ));
        }
        let (limit, is_configured, origin) =
            limit(context, mount, |m| m.used_percent_max, "mount_used_percent_max");
        let least = context.config.mount(&mount.point).and_then(|wanted| wanted.available_min);
        let wanted = least.map_or(String::new(), |least| format!(", {least} available"));
        draft.expect(format!("at most {limit} % used{wanted}"), origin);
        let is = format!("{used} used, {} of {} available", space.available, space.total);
        let too_little = least.is_some_and(|least| space.available < least);
        Ok(if too_little || space.available.0 == 0 || (used.0 > limit && is_configured) {
            draft.fail(is)
        } else if used.0 > limit {
            draft.warn(is)
        } else {
            draft.pass(is)
        })
    })
}

fn inodes(context: &StorageContext<'_>) -> Vec<Judged> {
    each_asked(context, |mount, answer, mut draft| {
        let space: &FileSystemSpace = draft.need("answer", &answer.space, |space| {
            format!("{} free of {}", space.inodes_free, space.inodes)
        })?;
        let Some(used) = space.inodes_used() else {
            return Ok(draft.skip(SkipWhy::NotSupported, "this file system does not count inodes"));
        };
        if fills_never(context, mount) {
            return Ok(draft.skip(
                SkipWhy::NothingToCompareWith,
                format!("{used} used; a read-only file system does not fill"),
            ));
        }
        let (limit, is_configured, origin) =
            limit(context, mount, |m| m.inodes_used_percent_max, "mount_inodes_used_percent_max");
        draft.expect(format!("at most {limit} % used"), origin);
        let is = format!("{used} used, {} of {} free", space.inodes_free, space.inodes);
        Ok(if space.inodes_free == 0 || (used.0 > limit && is_configured) {
            draft.fail(is)
        } else if used.0 > limit {
            draft.warn(is)
        } else {
            draft.pass(is)
        })
    })
}

/// The operator's limit for this mount, else the general one; and whether it is the operator's.
fn limit(
    context: &StorageContext<'_>,
    mount: &Mount,
    key: fn(&crate::config::MountConfig) -> Option<f64>,
    general: &str,
) -> (f64, bool, Origin) {
    match context.config.mount(&mount.point).and_then(key) {
        Some(limit) => (limit, true, context.config.origin()),
        None => {
            let (limit, origin) = context.limit(general);
            (limit, matches!(origin, Origin::Config { .. }), origin)
        }
    }
}

/// An image that is read-only by nature is full by nature.
fn fills_never(context: &StorageContext<'_>, mount: &Mount) -> bool {
    mount.read_only && context.config.mount(&mount.point).is_none_or(|wanted| wanted.read_only)
}
