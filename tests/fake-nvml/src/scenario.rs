//! What the library should say: TOML files, the later ones over the earlier, read again whenever one changes.
//!
//! ```toml
//! driver = "570.133.20"
//! gpus = 8                                   # what nvmlDeviceGetCount_v2 says
//! faults = { nvmlInit_v2 = "DRIVER_NOT_LOADED" }
//! [gpu]                                      # every GPU; a value that is not there is not supported
//! temperature = 34
//! pcie_replays = { base = 5, step = 2 }      # 5, 7, 9, ... at each call
//! [gpu3]                                     # this one
//! faults = { nvmlDeviceGetTemperature = { hang = true }, "*" = "GPU_IS_LOST" }
//! ```
//! A fault is an error's name, or a table with `error`, `delay_ms`, `hang`, `crash`, and `after`: calls that still work.

use std::{
    collections::HashMap,
    env, fs,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use toml::{Table, Value};

/// Where the files are named, with `:` between them.
const FILES: &str = "PLIMSOLL_FAKE_NVML";

static STATE: Mutex<Option<State>> = Mutex::new(None);

#[derive(Default)]
struct State {
    changed: Vec<Option<SystemTime>>,
    table: Table,
    asked: HashMap<(Option<u32>, String), u64>,
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the newest state of the files.
fn with<T>(look: impl FnOnce(&mut State) -> T) -> T {
    let files: Vec<String> = env::var(FILES).unwrap_or_default().split(':').map(str::to_owned).collect();
    let changed: Vec<_> =
        files.iter().map(|file| fs::metadata(file).and_then(|meta| meta.modified()).ok()).collect();
    let mut guard = state();
    let state = guard.get_or_insert_with(State::default);
    if state.changed != changed {
        let mut table = Table::new();
        for file in &files {
            let newer = fs::read_to_string(file).ok().and_then(|text| text.parse::<Table>().ok());
            merge(&mut table, newer.unwrap_or_default());
        }
        state.table = table;
        state.changed = changed;
    }
    look(state)
}

fn merge(into: &mut Table, newer: Table) {
    for (key, value) in newer {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if !new.contains_key("base") => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

impl State {
    fn section(&self, name: &str) -> Option<&Table> {
        self.table.get(name)?.as_table()
    }

    fn value(&self, gpu: Option<u32>, key: &str) -> Option<&Value> {
        let Some(gpu) = gpu else { return self.table.get(key) };
        let own = self.section(&format!("gpu{gpu}")).and_then(|table| table.get(key));
        own.or_else(|| self.section("gpu")?.get(key))
    }

    fn fault(&self, gpu: Option<u32>, call: &str) -> Option<Value> {
        let own = gpu.map(|gpu| format!("gpu{gpu}"));
        let sections =
            [own.as_deref(), gpu.map(|_| "gpu")].into_iter().flatten().map(|name| self.section(name));
        let faults =
            sections.chain([Some(&self.table)]).flatten().filter_map(|table| table.get("faults")?.as_table());
        faults.filter_map(|faults| faults.get(call).or_else(|| faults.get("*"))).next().cloned()
    }

    fn count(&mut self, gpu: Option<u32>, what: &str) -> u64 {
        let asked = self.asked.entry((gpu, what.to_owned())).or_default();
        *asked += 1;
        *asked - 1
    }
}

/// A number, or none when the scenario has none.
pub(crate) fn number(gpu: Option<u32>, key: &str) -> Option<i64> {
    with(|state| match state.value(gpu, key)?.clone() {
        Value::Integer(value) => Some(value),
        Value::Boolean(value) => Some(i64::from(value)),
        Value::Table(moving) => {
            let part = |name: &str| moving.get(name).and_then(Value::as_integer).unwrap_or(0);
            let asked = i64::try_from(state.count(gpu, key)).unwrap_or(0);
            Some(part("base") + part("step") * asked)
        }
        _ => None,
    })
}

pub(crate) fn text(gpu: Option<u32>, key: &str) -> Option<String> {
    with(|state| state.value(gpu, key)?.as_str().map(str::to_owned))
}

/// A list of numbers, or of lists of numbers laid end to end.
pub(crate) fn numbers(gpu: Option<u32>, key: &str) -> Option<Vec<i64>> {
    fn flat(value: &Value) -> Vec<i64> {
        match value {
            Value::Array(values) => values.iter().flat_map(flat).collect(),
            Value::Integer(value) => vec![*value],
            _ => Vec::new(),
        }
    }
    with(|state| state.value(gpu, key).map(flat))
}

/// What happens when this call is made: nothing, an error, a wait, the end.
pub(crate) fn enter(gpu: Option<u32>, call: &str) -> Result<(), u32> {
    let (fault, asked) = with(|state| (state.fault(gpu, call), state.count(gpu, call)));
    match fault {
        None => Ok(()),
        Some(Value::String(error)) => code(&error),
        Some(Value::Table(fault)) => {
            let number =
                |key: &str| fault.get(key).and_then(Value::as_integer).and_then(|n| u64::try_from(n).ok());
            let is = |key: &str| fault.get(key).and_then(Value::as_bool).unwrap_or(false);
            if asked < number("after").unwrap_or(0) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(number("delay_ms").unwrap_or(0)));
            while is("hang") {
                thread::sleep(Duration::from_secs(3600));
            }
            if is("crash") {
                std::process::abort();
            }
            fault.get("error").and_then(Value::as_str).map_or(Ok(()), code)
        }
        Some(_) => Err(999),
    }
}

fn code(name: &str) -> Result<(), u32> {
    Err(match name {
        "SUCCESS" => return Ok(()),
        "UNINITIALIZED" => 1,
        "INVALID_ARGUMENT" => 2,
        "NOT_SUPPORTED" => 3,
        "NO_PERMISSION" => 4,
        "NOT_FOUND" => 6,
        "INSUFFICIENT_SIZE" => 7,
        "INSUFFICIENT_POWER" => 8,
        "DRIVER_NOT_LOADED" => 9,
        "TIMEOUT" => 10,
        "IRQ_ISSUE" => 11,
        "FUNCTION_NOT_FOUND" => 13,
        "CORRUPTED_INFOROM" => 14,
        "GPU_IS_LOST" => 15,
        "RESET_REQUIRED" => 16,
        "OPERATING_SYSTEM" => 17,
        "LIB_RM_VERSION_MISMATCH" => 18,
        "NO_DATA" => 21,
        "ARGUMENT_VERSION_MISMATCH" => 25,
        _ => 999,
    })
}
