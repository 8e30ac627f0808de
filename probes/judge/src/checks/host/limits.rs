//! Limits that a job would inherit.

use plimsoll_model::{Action, Bytes, ClearsBy, Domain, Limit, SkipWhy};

use crate::{
    check::{Check, Judge},
    context::HostContext,
    draft::{Draft, Verdicted},
};

pub(super) static CHECKS: [Check; 2] = [
    Check {
        id: "host.limits.memlock",
        domain: Domain::Host,
        asks: "May a job lock enough memory for RDMA?",
        reads: &[
            "/proc/PID/limits of slurmd, or of this process where no slurmd runs",
            "/sys/class/infiniband",
        ],
        compares: "[host] memlock_min in the configuration; else, where there are RDMA devices, the limit memlock_bytes_min",
        verdicts: "Warns when it is lower.",
        why: "Registering memory with EFA or InfiniBand fails at this limit, often only at scale.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "set LimitMEMLOCK=infinity in slurmd's unit (PropagateResourceLimitsExcept=MEMLOCK in slurm.conf), or memlock in /etc/security/limits.d",
        judge: Judge::Host(memlock),
    },
    Check {
        id: "host.limits.open-files",
        domain: Domain::Host,
        asks: "May a job open enough files?",
        reads: &["/proc/PID/limits of slurmd, or of this process where no slurmd runs"],
        compares: "[host] open_files_min in the configuration; without it there is nothing to compare with",
        verdicts: "Warns when it is lower.",
        why: "Data loaders and all-to-all connections run out of descriptors on large jobs.",
        clears_by: ClearsBy::GoodReading,
        action: Action::Diagnose,
        advice: "set LimitNOFILE in slurmd's unit, or nofile in /etc/security/limits.d",
        judge: Judge::Host(open_files),
    },
];

fn shown_bytes(limit: &Limit) -> String {
    match limit {
        Limit::Unlimited => "unlimited".to_owned(),
        Limit::At(bytes) => Bytes(*bytes).to_string(),
    }
}

fn shown(limit: &Limit) -> String {
    match limit {
        Limit::Unlimited => "unlimited".to_owned(),
        Limit::At(number) => number.to_string(),
    }
}

/// Where slurmd should be and is not, nothing is known about the jobs that it would start.
fn slurmd_is_gone(context: &HostContext<'_>) -> bool {
    let expected =
        context.config.host.services.iter().any(|name| name.split(['.', '=']).next() == Some("slurmd"));
    expected && !context.now().limits.whose.starts_with("slurmd")
}

fn memlock(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let limits = &context.now().limits;
    if slurmd_is_gone(context) {
        return Ok(draft.skip(SkipWhy::NotPresent, "slurmd, from which jobs inherit it, is not running"));
    }
    let is = draft.need("locked memory", &limits.memlock, shown_bytes)?;
    let told = format!("{} for {}", shown_bytes(is), limits.whose);
    let (want, origin) = match context.config.host.memlock_min {
        Some(want) => (want, context.config.origin()),
        None => {
            let rdma = *draft.need("RDMA devices", &context.now().rdma_devices, ToString::to_string)?;
            if rdma == 0 {
                return Ok(
                    draft.incomparable(format!("{told}; no RDMA device needs more"), "host.memlock_min")
                );
            }
            let (bytes, origin) = context.limit("memlock_bytes_min");
            (Limit::At(bytes as u64), origin)
        }
    };
    draft.expect(format!("at least {}", shown_bytes(&want)), origin);
    Ok(if *is >= want { draft.pass(told) } else { draft.warn(told) })
}

fn open_files(context: &HostContext<'_>) -> Verdicted {
    let mut draft = Draft::node();
    let limits = &context.now().limits;
    if slurmd_is_gone(context) {
        return Ok(draft.skip(SkipWhy::NotPresent, "slurmd, from which jobs inherit it, is not running"));
    }
    let is = draft.need("open files", &limits.open_files, shown)?;
    let told = format!("{} for {}", shown(is), limits.whose);
    let Some(want) = context.config.host.open_files_min else {
        return Ok(draft.incomparable(told, "host.open_files_min"));
    };
    draft.expect(format!("at least {}", shown(&want)), context.config.origin());
    Ok(if *is >= want { draft.pass(told) } else { draft.warn(told) })
}
