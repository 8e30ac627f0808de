//! Files of PCI devices in sysfs.

use plimsoll_model::Absent;

use super::{malformed, one_word};

/// A number in hexadecimal digits after `0x`: a vendor, a device, a class.
///
/// # Errors
/// When it is none.
pub fn hex(text: &str) -> Result<u32, Absent> {
    let word = one_word(text)?;
    let digits = word.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| malformed(format!("not a hexadecimal number: {word}")))
}

/// The NUMA node of a device; `None` for -1, which stands for none.
///
/// # Errors
/// When it is no number.
pub fn numa_node(text: &str) -> Result<Option<u32>, Absent> {
    let node: i64 = super::number(Some(text), "NUMA node")?;
    match u32::try_from(node) {
        Ok(node) => Ok(Some(node)),
        Err(_) if node == -1 => Ok(None),
        Err(_) => Err(malformed(format!("NUMA node {node}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pci_devices_are_hexadecimal() {
        assert_eq!(hex("0x10de\n"), Ok(0x10de));
        assert_eq!(hex("0x030200\n"), Ok(0x03_0200));
        for wrong in ["", "10de", "0x", "0x+1", "0xzz", "0x1ffffffff"] {
            assert!(hex(wrong).is_err(), "{wrong}");
        }
        assert_eq!(numa_node("-1\n"), Ok(None));
        assert_eq!(numa_node("1\n"), Ok(Some(1)));
        assert!(numa_node("-2").is_err());
    }
}
