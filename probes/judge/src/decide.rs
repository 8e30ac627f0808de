//! Signals become findings.

use std::{borrow::Cow, collections::BTreeSet};

use plimsoll_model::{
    Action, CheckId, ClearsBy, Clock, Device, Domain, Evidence, Expectation, Failure, Finding, GpuSignals,
    HostSignals, Origin, Signals, StorageSignals, Verdict,
};

use crate::{
    Config, Data, State,
    check::{Check, Judge},
    checks,
    context::{GpuContext, HostContext, StorageContext},
    draft::Judged,
    log_check, registry,
};

/// By what the judge judges.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// What the operator says.
    pub config: &'a Config,
    /// What holds everywhere.
    pub data: &'a Data,
    /// The checks to judge; all when `None`.
    pub only: Option<&'a BTreeSet<&'static str>>,
}

impl Policy<'_> {
    fn checks(&self, domain: Domain) -> impl Iterator<Item = &'static Check> {
        registry::all().filter(move |check| {
            check.domain == domain && self.only.is_none_or(|only| only.contains(check.id))
        })
    }
}

/// Judges one domain's signals at `now`. Gives the state to judge the next sample with, and the findings in the order
/// of the registry.
#[must_use]
pub fn decide(
    state: &State,
    signals: &Signals<'_>,
    policy: &Policy<'_>,
    now: &Clock,
) -> (State, Vec<Finding>) {
    let mut next = state.clone();
    let (taken, judged) = match signals {
        Signals::Host(signals) => {
            next.enter_boot(signals.clock);
            (Some(signals.clock), judge_host(&mut next, signals, policy))
        }
        Signals::Gpu(signals) => {
            next.enter_boot(signals.clock);
            (Some(signals.clock), judge_gpu(&mut next, signals, policy))
        }
        Signals::Storage(signals) => {
            next.enter_boot(signals.clock);
            (Some(signals.clock), judge_storage(signals, policy))
        }
        Signals::Failed { domain, failure } => (None, judge_failed(*domain, failure, policy)),
    };
    let judged = bounded(judged);
    let age_ms = taken.map_or(0, |taken| age_ms(taken, now));
    let mut findings = Vec::with_capacity(judged.len());
    for (check, judged) in judged {
        let finding = finding(check, judged, age_ms);
        // What a good reading clears in general, the check itself remembers where it has to, as those of the log do.
        let finding = if check.clears_by == ClearsBy::GoodReading && finding.clears_by != ClearsBy::Person {
            finding
        } else {
            latch(&mut next, finding)
        };
        findings.push(finding);
    }
    (next, findings)
}

fn age_ms(taken: &Clock, now: &Clock) -> u64 {
    match (taken.since_boot, now.since_boot) {
        (Some(taken), Some(now)) => u64::try_from(now.since(taken).as_millis()).unwrap_or(u64::MAX),
        // Without the time since boot, the wall clock is all there is.
        _ => u64::try_from(now.wall.duration_since(taken.wall).as_millis()).unwrap_or(0),
    }
}

/// Most findings of one check; a machine has fewer devices of a kind.
const FINDINGS_MAX: usize = 512;

/// Of a check with too many findings the most serious are kept, and one stands for the others.
fn bounded(judged: Judgements) -> Judgements {
    let mut kept = Judgements::new();
    let mut rest = judged.into_iter().peekable();
    while let Some((check, first)) = rest.next() {
        let mut of_check = vec![first];
        while let Some((_, next)) = rest.next_if(|(next, _)| next.id == check.id) {
            of_check.push(next);
        }
        if of_check.len() > FINDINGS_MAX {
            of_check.sort_by_key(|judged| std::cmp::Reverse(judged.verdict));
            let others = of_check.split_off(FINDINGS_MAX - 1);
            if let Some(worst) = others.first().cloned() {
                let device = Device(format!("{} others", others.len()));
                of_check.push(Judged {
                    device,
                    reason: format!("the worst of them: {}", worst.reason),
                    ..worst
                });
            }
        }
        kept.extend(of_check.into_iter().map(|judged| (check, judged)));
    }
    kept
}

type Judgements = Vec<(&'static Check, Judged)>;

fn judge_host(state: &mut State, signals: &HostSignals<'_>, policy: &Policy<'_>) -> Judgements {
    if let Some(log) = signals.now.log.ok() {
        state.absorb_log(log, policy.data);
    }
    state.absorb_blocked(signals);
    let context = HostContext { signals, config: policy.config, data: policy.data, state };
    let judge = |check: &'static Check| match check.judge {
        Judge::Host(judge) => vec![judge(&context).unwrap_or_else(|early| *early)],
        Judge::HostDevices(judge) => judge(&context),
        Judge::HostLog => log_check::judge(&context, check.id),
        _ => Vec::new(),
    };
    policy
        .checks(Domain::Host)
        .flat_map(|check| judge(check).into_iter().map(move |judged| (check, judged)))
        .collect()
}

fn judge_gpu(state: &mut State, signals: &GpuSignals<'_>, policy: &Policy<'_>) -> Judgements {
    state.absorb_gpu_log(signals.now);
    let context = GpuContext { signals, config: policy.config, data: policy.data, state };
    policy
        .checks(Domain::Gpu)
        .flat_map(|check| checks::gpu::judge(&context, check).into_iter().map(move |judged| (check, judged)))
        .collect()
}

fn judge_storage(signals: &StorageSignals<'_>, policy: &Policy<'_>) -> Judgements {
    let context = StorageContext { signals, config: policy.config, data: policy.data };
    let judge = |check: &'static Check| match check.judge {
        Judge::StorageDevices(judge) => judge(&context),
        _ => Vec::new(),
    };
    policy
        .checks(Domain::Storage)
        .flat_map(|check| judge(check).into_iter().map(move |judged| (check, judged)))
        .collect()
}

/// A domain that could not be collected leaves every one of its checks unknown, and says who is to blame.
fn judge_failed(domain: Domain, failure: &Failure, policy: &Policy<'_>) -> Judgements {
    let judged = Judged {
        device: Device::node(),
        part: String::new(),
        verdict: Verdict::Unknown { blame: failure.blame },
        reason: failure.reason.clone(),
        evidence: Vec::<Evidence>::new(),
        expectation: Expectation { what: String::new(), origin: Origin::None },
        action: Some(Action::Diagnose),
        advice: Some(failure.advice.clone()),
        clears_by: Some(ClearsBy::GoodReading),
    };
    policy.checks(domain).map(|check| (check, judged.clone())).collect()
}

fn finding(check: &'static Check, judged: Judged, age_ms: u64) -> Finding {
    let problem = judged.verdict.is_problem();
    Finding {
        check: CheckId(Cow::Borrowed(check.id)),
        device: judged.device,
        part: judged.part,
        verdict: judged.verdict,
        reason: judged.reason,
        evidence: judged.evidence,
        expectation: judged.expectation,
        action: judged.action.unwrap_or(if problem { check.action } else { Action::None }),
        advice: judged
            .advice
            .unwrap_or_else(|| if problem { check.advice.to_owned() } else { String::new() }),
        clears_by: judged.clears_by.unwrap_or(check.clears_by),
        age_ms,
    }
}

/// A fault that no good reading ends stays until what its check declares has happened.
fn latch(state: &mut State, finding: Finding) -> Finding {
    if finding.clears_by == ClearsBy::GoodReading {
        return finding;
    }
    match state.standing(&finding).cloned() {
        Some(old) if old.verdict > finding.verdict || matches!(finding.verdict, Verdict::Unknown { .. }) => {
            let reason = format!("{} (seen before; only {} clears it)", old.reason, old.clears_by);
            let shown = if old.reason.ends_with("clears it)") { old.reason.clone() } else { reason };
            Finding { reason: shown, ..old }
        }
        _ => {
            if matches!(finding.verdict, Verdict::Warn | Verdict::Fail) {
                state.stand(&finding);
            }
            finding
        }
    }
}
