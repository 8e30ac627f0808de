//! Node trees, healthy and sick: each must yield exactly its listed passes, skips and problems.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use std::collections::BTreeSet;

use plimsoll_model::{Finding, Overall, Verdict};
use plimsoll_tests::node::{Node, found, others};

#[test]
fn a_healthy_node_yields_exactly_its_listed_passes_and_skips() {
    let node = Node::named("healthy");
    let report = node.check("healthy", &[]);
    assert_eq!(found(&report), node.expected("healthy"));
    assert_eq!(report.overall, Overall::Fit);
    assert!(
        !report.findings.iter().any(|finding| finding.verdict.is_problem()),
        "a healthy node has no problem"
    );
}

/// Nodes that are checked at the same time: each spends most of it waiting for its second reading.
const AT_ONCE: usize = 8;

fn at_once(names: &[String], differences: &(impl Fn(&String) -> Vec<String> + Sync)) -> Vec<String> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            names.iter().map(|name| (name, scope.spawn(move || differences(name)))).collect();
        let joined = threads
            .into_iter()
            .map(|(name, thread)| thread.join().unwrap_or_else(|_| vec![format!("{name}: no report")]));
        joined.flatten().collect()
    })
}

#[test]
fn every_other_node_yields_exactly_what_is_wrong_with_it() {
    let names = others();
    assert!(names.len() >= 12, "only {} nodes", names.len());
    let differences = |name: &String| -> Vec<String> {
        let node = Node::named(name);
        let report = node.check(name, &[]);
        let (found, expected) = (found(&report), node.expected(name));
        let differs = |key: &&String| found.get(*key) != expected.get(*key);
        let reason = |key: &str| {
            let of_key = |finding: &&Finding| format!("{} {}", finding.check, finding.device) == key;
            report.findings.iter().find(of_key).map_or("", |finding| finding.reason.as_str())
        };
        let keys: BTreeSet<_> = found.keys().chain(expected.keys()).filter(differs).collect();
        let told = |key: &String| {
            let (found, expected) = (found.get(key), expected.get(key));
            format!("{name}: {key} is {found:?} and not {expected:?}: {}", reason(key))
        };
        keys.into_iter().map(told).collect()
    };
    let failures: Vec<String> = names.chunks(AT_ONCE).flat_map(|some| at_once(some, &differences)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_problem_says_what_was_seen_and_what_to_do() {
    let says_little = |name: &String| -> Vec<String> {
        let findings = Node::named(name).check(name, &[]).findings;
        let problems = findings.iter().filter(|finding| finding.verdict.is_problem());
        let little = problems.filter(|finding| {
            let judged = matches!(finding.verdict, Verdict::Warn | Verdict::Fail);
            finding.reason.is_empty()
                || finding.advice.is_empty()
                || finding.evidence.is_empty()
                || finding.evidence.iter().any(|seen| seen.source.is_empty())
                || (judged && finding.expectation.what.is_empty())
        });
        little.map(|finding| format!("{name}: {finding:?}")).collect()
    };
    let wrong: Vec<String> = others().chunks(AT_ONCE).flat_map(|some| at_once(some, &says_little)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_failure_makes_the_node_unfit_and_a_warning_does_not() {
    let overall = |name: &str| Node::named(name).check(name, &[]).overall;
    assert_eq!(overall("scratch-missing"), Overall::Unfit);
    assert_eq!(overall("oom-kill"), Overall::Fit);
}
