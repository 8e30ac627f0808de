//! Mounts: are they there, are they what they should be, do they answer?

use plimsoll_model::{
    Absence, Absent, Action, Backing, Blame, ClearsBy, Device, Domain, FileSystemKind, Mount, MountAnswer,
    Origin, SkipWhy, WriteProbe,
};

use crate::{
    check::{Check, Judge},
    context::StorageContext,
    draft::{Draft, Judged, Verdicted},
    mounts::{ExpectedMount, MOUNTS_ASKED_MAX, expected, mounts_to_ask},
};

pub(super) static CHECKS: [Check; 5] = [
    Check {
        id: "storage.mount.present",
        domain: Domain::Storage,
        asks: "Is everything mounted that should be?",
        reads: &["/proc/self/mountinfo", "/etc/fstab"],
        compares: "the [[mount]] entries of the configuration, then /etc/fstab without `noauto`",
        verdicts: "Fails when a mount is missing; warns when fstab says `nofail`. One finding a mount.",
        why: "A job that writes to a directory where a file system should be fills the root disk and loses its results.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "mount it, and see in the kernel's log and systemctl --failed why it was not",
        judge: Judge::StorageDevices(present),
    },
    Check {
        id: "storage.mount.type",
        domain: Domain::Storage,
        asks: "Is each mount of the type that it should be?",
        reads: &["/proc/self/mountinfo", "/etc/fstab"],
        compares: "`type` of the [[mount]] entries of the configuration, then /etc/fstab",
        verdicts: "Fails when it differs. One finding a mount.",
        why: "An NFS fallback where Lustre should be works, at a hundredth of the speed.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "find out who mounted it, and mount the right file system",
        judge: Judge::StorageDevices(fs_type),
    },
    Check {
        id: "storage.mount.backing",
        domain: Domain::Storage,
        asks: "Do the blocks of each mount lie where they should, in this machine or behind a network?",
        reads: &["/proc/self/mountinfo", "/sys/dev/block/*", "/sys/class/nvme/*/model"],
        compares: "`backing` of the [[mount]] entries of the configuration",
        verdicts: "Fails when it differs. One finding a mount that has one configured.",
        why: "Scratch that ended up on a network volume instead of the instance store is slow and costs money.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "see which drive it lies on (lsblk -o NAME,MODEL,MOUNTPOINT) and lay it on the right one",
        judge: Judge::StorageDevices(backing),
    },
    Check {
        id: "storage.mount.responds",
        domain: Domain::Storage,
        asks: "Does each mount answer, and would it take a write?",
        reads: &["statvfs(MOUNT)", "rmdir(MOUNT/a name that does not exist)"],
        compares: "the limit mount_seconds_max, and the time that the whole command has",
        verdicts: "Warns when the answer is slow, fails when the file system was shut down. Unknown when there is none: a file server's fault on network file \
                   systems, the node's on others. One finding a mount.",
        why: "A dead file server or frozen file system hangs every process that touches it, for ever.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "look at the file server and the way to it; on a local file system at the drive and at fsfreeze",
        judge: Judge::StorageDevices(responds),
    },
    Check {
        id: "storage.mount.writable",
        domain: Domain::Storage,
        asks: "Does each mount take writes, if it should?",
        reads: &["/proc/self/mountinfo", "/etc/fstab", "rmdir(MOUNT/a name that does not exist)"],
        compares: "`read_only` of the [[mount]] entries of the configuration, then /etc/fstab; without an entry there \
                   is nothing to compare with",
        verdicts: "Fails when it is read-only and should not be; warns the other way round. One finding a mount.",
        why: "The kernel makes a damaged file system read-only; the next job dies at its first write.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "look for errors in the kernel's log before mounting it read-write again",
        judge: Judge::StorageDevices(writable),
    },
];

/// One finding for each expected mount, or why there can be none.
fn each_expected(
    context: &StorageContext<'_>,
    concerns: impl Fn(&ExpectedMount) -> bool,
    judge: impl Fn(&ExpectedMount, Option<&Mount>, Draft) -> Verdicted,
) -> Vec<Judged> {
    let sample = context.now();
    let mut draft = Draft::node();
    let mounts = match draft.need("mount table", &sample.mounts, |all| format!("{} mounts", all.len())) {
        Ok(mounts) => mounts,
        Err(early) => return vec![*early],
    };
    let mut found = Vec::new();
    if let Err(absent) = sample.fstab.get()
        && absent.kind != Absence::NotPresent
    {
        // What fstab expects is not known, so nobody can say that all is there.
        found.push(draft.clone().absent("fstab", absent, &sample.fstab.source, false));
    }
    for one in expected(sample, context.config, context.data).iter().filter(|one| concerns(one)) {
        let mount = mounts.iter().find(|mount| mount.point == one.point);
        let mut draft = draft.clone_for(Device(one.point.0.clone()));
        if let Some(mount) = mount {
            draft.saw("mounted", format!("{} from {}", mount.fs_type, mount.source), &sample.mounts.source);
        }
        found.push(judge(one, mount, draft).unwrap_or_else(|early| *early));
    }
    if found.is_empty() {
        found.push(draft.incomparable("neither the configuration nor /etc/fstab names a mount", "[[mount]]"));
    }
    found
}

fn present(context: &StorageContext<'_>) -> Vec<Judged> {
    each_expected(
        context,
        |_| true,
        |one, mount, mut draft| {
            draft.expect("mounted", one.origin.clone());
            Ok(match mount {
                // An automount trigger is no mount; asking it should have made it one.
                Some(mount) if mount.fs_type == "autofs" && !answers(context, mount) => {
                    draft.fail("only its automount trigger is there, and it brings nothing")
                }
                Some(mount) => draft.pass(format!("{} from {}", mount.fs_type, mount.source)),
                None if one.no_fail => {
                    draft.warn("not mounted; fstab says that the node may do without (nofail)")
                }
                None => draft.fail("not mounted"),
            })
        },
    )
}

fn answers(context: &StorageContext<'_>, mount: &Mount) -> bool {
    let answer = context.now().answers.iter().find(|answer| answer.point == mount.point);
    answer.and_then(|answer| answer.space.ok()).is_some_and(|space| space.total.0 > 0)
}

fn fs_type(context: &StorageContext<'_>) -> Vec<Judged> {
    each_expected(
        context,
        |one| one.fs_type.is_some(),
        |one, mount, mut draft| {
            let Some((want, origin)) = &one.fs_type else {
                return Ok(draft.incomparable("", "[[mount]] type"));
            };
            draft.expect(want.clone(), origin.clone());
            let Some(mount) = mount else {
                return Ok(draft.skip(SkipWhy::NotPresent, "not mounted"));
            };
            Ok(if same_type(want, &mount.fs_type) {
                draft.pass(mount.fs_type.clone())
            } else {
                draft.fail(mount.fs_type.clone())
            })
        },
    )
}

/// The kernel reports `nfs` of version 4 as `nfs4`, and FUSE file systems with or without their prefix.
fn same_type(want: &str, is: &str) -> bool {
    let plain = |name: &str| match name.strip_prefix("fuse.").unwrap_or(name) {
        "nfs4" => "nfs".to_owned(),
        other => other.to_owned(),
    };
    plain(want) == plain(is)
}

fn backing(context: &StorageContext<'_>) -> Vec<Judged> {
    let wanted = |one: &ExpectedMount| -> Option<Backing> { context.config.mount(&one.point)?.backing };
    each_expected(
        context,
        |one| wanted(one).is_some(),
        |one, mount, mut draft| {
            let Some(want) = wanted(one) else { return Ok(draft.incomparable("", "[[mount]] backing")) };
            draft.expect(want.to_string(), one.origin.clone());
            let Some(mount) = mount else {
                return Ok(draft.skip(SkipWhy::NotPresent, "not mounted"));
            };
            // Somebody expects an answer here, so that it cannot be told is no reason to skip it.
            if let Err(absent) = mount.backing.get()
                && absent.kind == Absence::NotSupported
            {
                let absent = Absent::new(Absence::Unreadable, absent.detail.clone());
                return Ok(draft.absent("blocks", &absent, &mount.backing.source, false));
            }
            let is = draft.need("blocks", &mount.backing, ToString::to_string)?;
            Ok(if *is == want { draft.pass(is.to_string()) } else { draft.fail(is.to_string()) })
        },
    )
}

/// One finding for each mount that was to be asked.
pub(super) fn each_asked(
    context: &StorageContext<'_>,
    judge: impl Fn(&Mount, &MountAnswer, Draft) -> Verdicted,
) -> Vec<Judged> {
    let sample = context.now();
    let mut draft = Draft::node();
    if let Err(early) = draft.need("mount table", &sample.mounts, |all| format!("{} mounts", all.len())) {
        return vec![*early];
    }
    let asked = mounts_to_ask(sample, context.config, context.data);
    let mut found: Vec<Judged> = asked
        .iter()
        .take(MOUNTS_ASKED_MAX)
        .map(|mount| {
            let (blame, remedy) = match mount.kind {
                FileSystemKind::Network => (Blame::Shared, "look at the file server and the way to it"),
                _ => (
                    Blame::Device,
                    "look at the drive in the kernel's log; a frozen file system thaws with fsfreeze -u",
                ),
            };
            let draft = draft.clone_for(Device(mount.point.0.clone())).blaming(blame, remedy);
            match sample.answers.iter().find(|answer| answer.point == mount.point) {
                Some(answer) => judge(mount, answer, draft).unwrap_or_else(|early| *early),
                // Whatever was in the first table has an answer, if only that it gave none.
                None => draft.skip(SkipWhy::NoBaseline, "it was mounted while this check ran"),
            }
        })
        .collect();
    if asked.len() > MOUNTS_ASKED_MAX {
        let told = format!("only the first {MOUNTS_ASKED_MAX} of {} were asked", asked.len());
        let absent = Absent::new(Absence::NotAsked, told);
        found.push(draft.clone().absent("other mounts", &absent, &sample.mounts.source, false));
    }
    if found.is_empty() {
        found.push(draft.skip(SkipWhy::NotPresent, "nothing is mounted that could be asked"));
    }
    found
}

fn responds(context: &StorageContext<'_>) -> Vec<Judged> {
    each_asked(context, |mount, answer, mut draft| {
        let (seconds, origin) = context.limit("mount_seconds_max");
        draft.expect(format!("an answer within {seconds} s"), origin);
        draft.saw(
            "mounted",
            if mount.shut_down { "shut down" } else { "in use" },
            &context.now().mounts.source,
        );
        // It may answer with an error as well; that it was shut down is known either way.
        if mount.shut_down {
            return Ok(draft.fail("the file system was shut down after an error and serves nobody any more"));
        }
        draft.need("answer", &answer.space, |space| {
            format!("{} of {} available", space.available, space.total)
        })?;
        let ready = match answer.write.get() {
            Ok(WriteProbe::Ready) => "ready for writes",
            Ok(WriteProbe::ReadOnly) => "read-only",
            Err(absent) if absent.kind == Absence::NotSupported => "it cannot be asked about writes",
            Err(absent) => return Ok(draft.absent("answer", absent, &answer.write.source, false)),
        };
        draft.saw("write", ready, &answer.write.source);
        let is = format!("answered in {} ms, {ready}", answer.took_ms);
        Ok(if answer.took_ms as f64 <= seconds * 1000.0 { draft.pass(is) } else { draft.warn(is) })
    })
}

fn writable(context: &StorageContext<'_>) -> Vec<Judged> {
    let expected = expected(context.now(), context.config, context.data);
    each_asked(context, |mount, answer, mut draft| {
        let fstab = &context.now().fstab;
        let Some(want) = expected.iter().find(|one| one.point == mount.point) else {
            let is = if mount.read_only { "read-only" } else { "read-write" };
            return Ok(draft.incomparable(is, "[[mount]]"));
        };
        if matches!(&want.origin, Origin::Config { file } if *file == fstab.source) {
            draft.saw("fstab", if want.read_only { "ro" } else { "rw" }, &fstab.source);
        }
        draft.saw("mounted", if mount.read_only { "ro" } else { "rw" }, &context.now().mounts.source);
        draft.expect(if want.read_only { "read-only" } else { "read-write" }, want.origin.clone());
        if mount.shut_down {
            return Ok(draft.fail("the file system was shut down after an error and serves nobody any more"));
        }
        let probe = match answer.write.get() {
            Ok(probe) => Some(*probe),
            Err(absent) if absent.kind == Absence::NotSupported => None,
            Err(absent) => return Ok(draft.absent("answer", absent, &answer.write.source, false)),
        };
        draft.saw(
            "write",
            probe.map_or("not told", |p| if p == WriteProbe::Ready { "ready" } else { "refused" }),
            &answer.write.source,
        );
        let is_read_only = mount.read_only || probe == Some(WriteProbe::ReadOnly);
        Ok(match (is_read_only, want.read_only) {
            (true, true) => draft.pass("read-only"),
            (false, false) => draft.pass("read-write"),
            (true, false) => draft.fail("read-only"),
            (false, true) => draft
                .warn("read-write")
                .advise(Action::Diagnose, "mount it read-only, or mend the configuration"),
        })
    })
}
