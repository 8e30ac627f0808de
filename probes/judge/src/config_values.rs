//! Values in the configuration that carry a unit or have a range. Each error says what is accepted.

use std::{fmt, time::Duration};

use bytesize::ByteSize;
use plimsoll_model::{Bytes, Limit, MountPoint};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Unexpected},
};

/// Names, for "accepted are: …".
pub(crate) struct Accepted<I>(pub(crate) I);

impl<'a, I: Iterator<Item = &'a str> + Clone> fmt::Display for Accepted<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.clone().enumerate() {
            write!(f, "{}`{name}`", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

fn invalid<E: Error>(got: &str, accepted: &str) -> E {
    E::invalid_value(Unexpected::Str(got), &accepted)
}

const DURATION: &str = "a time with its unit from \"500ms\" to \"10min\", such as \"8s\"";
const BYTES: &str = "a size with its unit, such as \"1.9 TiB\" or \"512 GB\"";

/// A budget: 500 ms to 10 minutes. Two readings 210 ms apart and a spin of up to 120 ms fit into no less.
pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_budget(&text).map(Some).ok_or_else(|| invalid(&text, DURATION))
}

/// A budget as people write it, if it is one: 500 ms to 10 minutes.
#[must_use]
pub fn parse_budget(text: &str) -> Option<Duration> {
    let range = Duration::from_millis(500)..=Duration::from_secs(600);
    humantime::parse_duration(text).ok().filter(|budget| range.contains(budget))
}

/// What [`parse_budget`] accepts.
pub const BUDGET_ACCEPTED: &str = DURATION;

/// A version of numbers with dots between them: `570.133.20`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u32>);

impl Version {
    /// A version as people and drivers write it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Option<Vec<u32>> = text.split('.').take(8).map(|part| part.parse().ok()).collect();
        parts.map(Self)
    }

    /// Its first number.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.0.first().copied().unwrap_or(0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

pub(crate) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Version>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Version::parse(&text).map(Some).ok_or_else(|| invalid(&text, "a version such as \"570.86\""))
}

fn parse_bytes(text: &str) -> Option<Bytes> {
    let has_unit = text.trim_end().ends_with(|c: char| c.is_ascii_alphabetic());
    let size: ByteSize = text.parse().ok()?;
    (has_unit && size.as_u64() > 0).then_some(Bytes(size.as_u64()))
}

/// A size with its unit.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_bytes(&text).map(Some).ok_or_else(|| invalid(&text, BYTES))
}

/// A size with its unit, or `unlimited`.
pub(crate) fn byte_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Limit>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "unlimited" {
        return Ok(Some(Limit::Unlimited));
    }
    let accepted = "a size with its unit, such as \"16 GiB\", or \"unlimited\"";
    parse_bytes(&text).map(|bytes| Some(Limit::At(bytes.0))).ok_or_else(|| invalid(&text, accepted))
}

/// A number, or `unlimited`.
pub(crate) fn count_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Limit>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a whole number of 1 or more, or \"unlimited\"")]
    enum Value {
        Number(u64),
        Text(String),
    }
    let accepted = "a whole number of 1 or more, or \"unlimited\"";
    match Value::deserialize(deserializer)? {
        Value::Number(0) => Err(D::Error::invalid_value(Unexpected::Unsigned(0), &accepted)),
        Value::Number(number) => Ok(Some(Limit::At(number))),
        Value::Text(text) if text == "unlimited" => Ok(Some(Limit::Unlimited)),
        Value::Text(text) => Err(invalid(&text, accepted)),
    }
}

/// How many there should be: at least one, and no more than any machine has.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    u32::try_from(number)
        .ok()
        .filter(|number| (1..=65_536).contains(number))
        .map(Some)
        .ok_or_else(|| D::Error::invalid_value(Unexpected::Signed(number), &"a whole number from 1 to 65536"))
}

/// A share in percent.
pub(crate) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if (0.0..=100.0).contains(&number) {
        Ok(Some(number))
    } else {
        Err(D::Error::invalid_value(Unexpected::Float(number), &"a percentage from 0 to 100"))
    }
}

/// An absolute path without `.`, `..` or a slash at its end.
pub(crate) fn mount_point<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MountPoint, D::Error> {
    let text = String::deserialize(deserializer)?;
    let plain = text.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
    if text == "/" || (text.starts_with('/') && plain && text.len() < 4096 && !text.contains('\0')) {
        Ok(MountPoint::from_bytes(text.as_bytes()))
    } else {
        Err(invalid(&text, "an absolute path as the mount table has it, such as \"/scratch\""))
    }
}
