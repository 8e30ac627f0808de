//! NVMe drives and their PCIe links.

use plimsoll_model::{Absence, Absent, Celsius, Megatransfers, SmartLog};

use super::{malformed, number};

/// Size of the SMART / Health Information log page.
pub const SMART_LOG_BYTES: usize = 512;

/// `32.0 GT/s PCIe`.
///
/// # Errors
/// When the device does not tell (`Unknown`), or it is of another form.
pub fn link_speed(text: &str) -> Result<Megatransfers, Absent> {
    let text = text.trim();
    if text.starts_with("Unknown") {
        return Err(Absent::new(Absence::NotSupported, "the device does not tell"));
    }
    let (value, _) = text.split_once(" GT/s").ok_or_else(|| malformed("not in GT/s"))?;
    let rate: f64 = number(Some(value), "link speed")?;
    if (1.0..=1000.0).contains(&rate) {
        Ok(Megatransfers((rate * 1000.0).round() as u32))
    } else {
        Err(malformed(format!("no link runs at {rate} GT/s")))
    }
}

/// The log page, whose numbers are little-endian (NVM Express Base Specification, "SMART / Health Information").
///
/// # Errors
/// When it is not whole, or its values are impossible.
pub fn smart_log(page: &[u8]) -> Result<SmartLog, Absent> {
    if page.len() != SMART_LOG_BYTES {
        return Err(malformed(format!("{} bytes where a log page of {SMART_LOG_BYTES} belongs", page.len())));
    }
    if page.iter().all(|byte| *byte == 0) {
        return Err(Absent::new(Absence::NotSupported, "the log page is empty, as of some virtual drives"));
    }
    let byte = |at: usize| page.get(at).copied().unwrap_or_default();
    let kelvin = i32::from(u16::from_le_bytes([byte(1), byte(2)]));
    let (spare_percent, spare_threshold_percent) = (byte(3), byte(4));
    // A drive always has a temperature; a page of zeroes is no health log.
    if kelvin == 0 || spare_percent > 100 || spare_threshold_percent > 100 {
        return Err(malformed("the log page holds impossible values"));
    }
    let media: [u8; 16] = std::array::from_fn(|i| byte(160 + i));
    Ok(SmartLog {
        critical_warning: byte(0),
        temperature: Celsius(kelvin - 273),
        spare_percent,
        spare_threshold_percent,
        used_percent: byte(5),
        media_errors: u64::try_from(u128::from_le_bytes(media)).unwrap_or(u64::MAX),
    })
}
