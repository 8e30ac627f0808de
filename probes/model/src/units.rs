//! Units as newtypes: a number that leaves a reader carries its unit in its type.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of memory or storage, in bytes. Shown with binary prefixes (`1.5 TiB`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// One kibibyte, the unit of `/proc/meminfo`.
    pub const KIB: u64 = 1024;

    /// `kib` kibibytes; saturates.
    #[must_use]
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(Self::KIB))
    }

    /// This amount as a share of `whole`, or `None` when `whole` is nothing.
    #[must_use]
    pub fn percent_of(self, whole: Self) -> Option<Percent> {
        Percent::ratio(self.0, whole.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", bytesize::ByteSize::b(self.0).display().iec())
    }
}

/// A share of a whole, in percent: 100 is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Percent(pub f64);

impl Percent {
    /// `part` of `whole`, or `None` when there is no whole.
    #[must_use]
    pub fn ratio(part: u64, whole: u64) -> Option<Self> {
        (whole > 0).then(|| Self(part as f64 * 100.0 / whole as f64))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never round a nearly full file system up to 100 %, nor a small share down to 0 %.
        let shown = (self.0 * 10.0).round() / 10.0;
        if (self.0 < 100.0 && shown >= 100.0) || (self.0 > 0.0 && shown <= 0.0) {
            write!(f, "{:.3} %", self.0)
        } else {
            write!(f, "{shown} %")
        }
    }
}

/// A clock frequency, in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Megahertz(pub u32);

impl fmt::Display for Megahertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MHz", self.0)
    }
}

/// A PCIe transfer rate, in MT/s: generation 5 is 32,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Megatransfers(pub u32);

impl fmt::Display for Megatransfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s", f64::from(self.0) / 1000.0)
    }
}

/// A temperature, in degrees Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Celsius(pub i32);

impl fmt::Display for Celsius {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} °C", self.0)
    }
}

/// A power, in milliwatts. Shown in watts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Milliwatts(pub u32);

impl fmt::Display for Milliwatts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} W", (f64::from(self.0) / 100.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_full_file_system_is_never_shown_as_full() {
        assert_eq!(Percent(99.97).to_string(), "99.970 %");
        assert_eq!(Percent(100.0).to_string(), "100 %");
        assert_eq!(Percent(0.004).to_string(), "0.004 %");
    }

    #[test]
    fn a_share_of_nothing_is_no_number() {
        assert_eq!(Bytes(5).percent_of(Bytes(0)), None);
    }

    #[test]
    fn bytes_are_shown_with_binary_prefixes() {
        assert_eq!(Bytes::from_kib(1536).to_string(), "1.5 MiB");
    }
}
