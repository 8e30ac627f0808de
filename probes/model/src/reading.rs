//! A value read from the machine, or why there is none. Never a made-up 0.

use serde::{Deserialize, Serialize};

/// Why a reading has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// The source does not exist on this machine.
    NotPresent,
    /// The source exists and says that it does not do this.
    NotSupported,
    /// Plimsoll was not allowed to read it.
    PermissionDenied,
    /// Reading it failed.
    Unreadable,
    /// It was read and made no sense.
    Malformed,
    /// It holds more than any sane source of its kind.
    TooLarge,
    /// It did not answer in time.
    TimedOut,
    /// A rate needs two samples and there was one, or its counter was reset between them.
    NoBaseline,
    /// Plimsoll did not ask, by its own choice; the detail says why.
    NotAsked,
}

/// Why a reading has no value, with what a person needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// The kind, which decides the verdict.
    pub kind: Absence,
    /// The detail, for people.
    pub detail: String,
}

impl Absent {
    /// An absence of this kind.
    pub fn new(kind: Absence, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

/// A value or its absence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome<T> {
    /// It was read.
    Value(T),
    /// It was not.
    Absent(Absent),
}

/// One value read from the machine, with where and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading<T> {
    /// The file, call or command that was asked. `*` stands for "each of them".
    pub source: String,
    /// Microseconds after the sample was begun.
    pub at_us: u64,
    /// What it said.
    #[serde(flatten)]
    pub outcome: Outcome<T>,
}

impl<T> Reading<T> {
    /// A reading from what a reader returned.
    pub fn new(source: impl Into<String>, at_us: u64, result: Result<T, Absent>) -> Self {
        let outcome = match result {
            Ok(value) => Outcome::Value(value),
            Err(absent) => Outcome::Absent(absent),
        };
        Self { source: source.into(), at_us, outcome }
    }

    /// The value, or why there is none.
    ///
    /// # Errors
    /// The absence.
    pub fn get(&self) -> Result<&T, &Absent> {
        match &self.outcome {
            Outcome::Value(value) => Ok(value),
            Outcome::Absent(absent) => Err(absent),
        }
    }

    /// The value, if there is one. For display and for values that only add to another.
    pub fn ok(&self) -> Option<&T> {
        self.get().ok()
    }

    /// The same reading with its value changed; source and time stay.
    ///
    /// # Errors
    /// `f` may find the value senseless; then the reading becomes absent.
    pub fn and_then<U>(&self, f: impl FnOnce(&T) -> Result<U, Absent>) -> Reading<U> {
        let result = self.get().map_err(Clone::clone).and_then(f);
        Reading::new(self.source.clone(), self.at_us, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_survives_the_wire() {
        let reading: Reading<u64> = Reading::new(
            "/proc/x",
            7,
            Err(Absent::new(Absence::Malformed, "letters where a number belongs")),
        );
        let json = serde_json::to_string(&reading).unwrap_or_default();
        assert!(json.contains(r#""absent":{"kind":"malformed""#), "{json}");
        assert_eq!(serde_json::from_str::<Reading<u64>>(&json).ok(), Some(reading));
    }
}
