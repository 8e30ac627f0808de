//! Properties of the judge: no configuration and no sample makes it panic, and a fault stays until what clears it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use jiff::Timestamp;
use plimsoll_judge::{Config, Data, Policy, State, checks, decide, observe};
use plimsoll_model::{
    Blame, Body, BootId, Clock, Domain, Failure, Finding, SAMPLE_VERSION, Sample, SinceBoot, Verdict,
};
use proptest::prelude::*;

fn data() -> Data {
    Data::built_in().expect("the data files parse")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_configuration_panic(text in "\\PC{0,200}|(\\[[a-z]{1,8}\\]\n|[a-z_]{1,12} = [-0-9a-z\"\\[\\]{}.]{0,12}\n){0,8}") {
        let _ = Config::parse(&text, "plimsoll.toml", &data());
    }

    #[test]
    fn a_size_is_read_with_its_unit(count in 1_u64..4096, unit in prop::sample::select(&[("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)][..])) {
        let text = format!("[host]\nmemory = \"{count} {}\"\n", unit.0);
        let config = Config::parse(&text, "plimsoll.toml", &data()).expect("a size");
        prop_assert_eq!(config.host.memory.map(|bytes| bytes.0), Some(count << unit.1));
    }
}

fn failed(domain: Domain) -> Sample {
    let clock = Clock { wall: Timestamp::UNIX_EPOCH, since_boot: None, boot_id: None };
    let failure = Failure { blame: Blame::Device, reason: "it hung".to_owned(), advice: "look".to_owned() };
    Sample { version: SAMPLE_VERSION, clock, body: Body::Failed { domain, failure } }
}

#[test]
fn a_domain_that_could_not_be_collected_leaves_every_one_of_its_checks_unknown() {
    let (data, config) = (data(), Config::default());
    let policy = Policy { config: &config, data: &data, only: None };
    for domain in Domain::ALL {
        let sample = failed(domain);
        let (_, findings) = decide(&State::default(), &observe(None, &sample), &policy, &sample.clock);
        assert_eq!(findings.len(), checks().filter(|check| check.domain == domain).count());
        assert!(findings.iter().all(|f| f.verdict == Verdict::Unknown { blame: Blame::Device }));
    }
}

/// A whole host sample, that of the healthy node tree, with the values that a test is about changed in its JSON.
fn host(boot: &str, since_boot_ms: u64, change: impl FnOnce(&mut serde_json::Value)) -> Sample {
    let text = include_str!("host_sample.json");
    let mut body: serde_json::Value = serde_json::from_str(text).expect("a sample");
    change(&mut body);
    let clock = Clock {
        wall: Timestamp::UNIX_EPOCH,
        since_boot: Some(SinceBoot(since_boot_ms)),
        boot_id: Some(BootId(boot.to_owned())),
    };
    let host = serde_json::from_value(body).expect("a sample");
    Sample { version: SAMPLE_VERSION, clock, body: Body::Host(Box::new(host)) }
}

/// Judges samples one after the other, each with the state that the one before it left, and gives the verdicts of one
/// check.
fn verdicts(samples: &[Sample], check: &str) -> Vec<Verdict> {
    let (data, config) = (data(), Config::default());
    let policy = Policy { config: &config, data: &data, only: None };
    let (mut state, mut previous) = (State::default(), None);
    let mut verdicts = Vec::new();
    for sample in samples {
        let (next, findings): (State, Vec<Finding>) =
            decide(&state, &observe(previous, sample), &policy, &sample.clock);
        verdicts.extend(findings.iter().filter(|f| f.check.0 == check).map(|f| f.verdict));
        (state, previous) = (next, Some(sample));
    }
    verdicts
}

fn set(path: &'static str, value: serde_json::Value) -> impl FnOnce(&mut serde_json::Value) {
    move |body| *body.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value
}

const QUIET: fn(&mut serde_json::Value) = |_| ();

#[test]
fn a_machine_check_stays_until_the_next_boot_and_being_quiet_does_not_clear_it() {
    let bad = set("/machine_checks/value", 1.into());
    let samples =
        [host("a", 1000, QUIET), host("a", 2000, bad), host("a", 3000, QUIET), host("b", 500, QUIET)];
    let found = verdicts(&samples, "host.machine-check");
    assert_eq!(found, [Verdict::Pass, Verdict::Fail, Verdict::Fail, Verdict::Pass]);
}

#[test]
fn a_fault_stays_when_the_counter_behind_it_can_no_longer_be_read() {
    let bad = set("/machine_checks/value", 1.into());
    let gone = |body: &mut serde_json::Value| {
        let absent = serde_json::json!({"source": "/proc/interrupts", "at_us": 1, "absent": {"kind": "unreadable", "detail": "EIO"}});
        *body.pointer_mut("/machine_checks").expect("the reading") = absent;
    };
    let found = verdicts(&[host("a", 1000, bad), host("a", 2000, gone)], "host.machine-check");
    assert_eq!(found, [Verdict::Fail, Verdict::Fail]);
}

#[test]
fn a_clock_that_lost_its_step_is_a_warning_only_while_it_has() {
    let lost = set("/clock_sync/value/max_error_us", 4_500_000.into());
    let kept = || set("/clock_sync/value/max_error_us", 900_000.into());
    let samples = [host("a", 1000, kept()), host("a", 2000, lost), host("a", 3000, kept())];
    assert_eq!(verdicts(&samples, "host.clock.sync"), [Verdict::Pass, Verdict::Warn, Verdict::Pass]);
}

#[test]
fn a_clock_whose_error_is_answered_with_zero_passes_only_when_it_is_called_synchronised() {
    let told = |status: u32| {
        move |body: &mut serde_json::Value| {
            set("/clock_sync/value/max_error_us", 0.into())(body);
            set("/clock_sync/value/status", status.into())(body);
        }
    };
    let samples = [host("a", 1000, told(0x40)), host("a", 2000, told(0x1))];
    assert_eq!(verdicts(&samples, "host.clock.sync"), [Verdict::Warn, Verdict::Pass]);
    let negative = set("/clock_sync/value/max_error_us", (-1).into());
    assert_eq!(verdicts(&[host("a", 1000, negative)], "host.clock.sync"), [Verdict::Warn]);
}

fn with_log(seq: u64, at_us: u64, text: &str) -> impl FnOnce(&mut serde_json::Value) {
    set("/log/value/events", serde_json::json!([{"seq": seq, "at_us": at_us, "text": text}]))
}

#[test]
fn a_kill_for_want_of_memory_is_a_warning_for_an_hour() {
    let line = "Out of memory: Killed process 7 (python)";
    let at = |minutes: u64| minutes * 60_000;
    let samples = [
        host("a", at(10), with_log(9, 9 * 60_000_000, line)),
        host("a", at(60), with_log(9, 9 * 60_000_000, line)),
        host("a", at(70), with_log(9, 9 * 60_000_000, line)),
    ];
    assert_eq!(verdicts(&samples, "host.log.oom-kill"), [Verdict::Warn, Verdict::Warn, Verdict::Pass]);
}

#[test]
fn a_file_system_that_was_shut_down_fails_until_the_next_boot_even_when_the_log_forgets() {
    let line = "XFS (md0): Filesystem has been shut down due to log error (0x2).";
    let samples = [
        host("a", 60_000, with_log(9, 50_000_000, line)),
        host("a", 86_400_000, set("/log/value/events", serde_json::json!([]))),
        host("b", 60_000, QUIET),
    ];
    assert_eq!(verdicts(&samples, "host.log.read-only"), [Verdict::Fail, Verdict::Fail, Verdict::Pass]);
}

#[test]
fn a_process_that_does_not_move_for_a_minute_is_a_warning_and_one_that_waits_for_a_moment_is_not() {
    let task = |cpu: u64| serde_json::json!([{"pid": 7, "start_ticks": 5, "name": "cp", "cpu_ticks": cpu}]);
    let at = |ms, cpu| host("a", ms, set("/processes/value/blocked", task(cpu)));
    let still = [at(0, 3), at(30_000, 3), at(59_000, 3), at(61_000, 3)];
    let warns = [Verdict::Pass, Verdict::Pass, Verdict::Warn];
    assert_eq!(verdicts(&still, "host.processes.blocked").get(1..), Some(&warns[..]));
    let moving = [at(0, 3), at(30_000, 4), at(59_000, 5), at(61_000, 6)];
    assert!(!verdicts(&moving, "host.processes.blocked").contains(&Verdict::Warn));
}
