//! What each call of NVML costs, by call: on the fake library, or on a real one with `--library libnvidia-ml.so.1`.

use std::{collections::BTreeMap, time::Duration};

use plimsoll_probes::gpu::nvml::costs;
use plimsoll_tests::{node::Node, nvml::FakeNvml};

use crate::figure::Figure;

const ROUNDS: u32 = 50;

/// The median of each call of one GPU, the most expensive first, and of a whole reading of it.
pub(crate) fn figures(library: Option<&str>) -> Vec<Figure> {
    let Some(library) = library else {
        let fake = FakeNvml::new();
        let files = Node::named("gpu-healthy").scenario("gpu-healthy");
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        return with_scenario(&files.join(":"), &fake.path().display().to_string());
    };
    measured(library)
}

#[expect(unsafe_code, reason = "the fake library is told its scenario by the environment of this process")]
fn with_scenario(files: &str, library: &str) -> Vec<Figure> {
    // SAFETY: this program has one thread, and reads no environment elsewhere.
    unsafe { std::env::set_var("PLIMSOLL_FAKE_NVML", files) };
    measured(library)
}

fn measured(library: &str) -> Vec<Figure> {
    let all = match costs(library, 0, ROUNDS) {
        Ok(all) => all,
        Err(absent) => {
            eprintln!("{library}: {}", absent.detail);
            return Vec::new();
        }
    };
    let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
    let mut by_call: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (call, took) in &all {
        by_call.entry(call).or_default().push(microseconds(*took));
    }
    let total: f64 = all.iter().map(|(_, took)| microseconds(*took)).sum();
    let calls = all.len() as f64 / f64::from(ROUNDS);
    let figure = |name: String, unit, runs| Figure { name, unit, below: None, runs, noisy: false };
    let mut figures: Vec<Figure> =
        by_call.into_iter().map(|(call, runs)| figure(format!("{call}_us"), "us", runs)).collect();
    figures.sort_by(|a, b| b.median().total_cmp(&a.median()));
    figures.push(figure("nvml_calls_per_gpu".to_owned(), "", vec![calls]));
    figures.push(figure("nvml_reading_of_one_gpu_us".to_owned(), "us", vec![total / f64::from(ROUNDS)]));
    figures
}
