//! NVLink errors: the registers of XID 74 and the codes of XID 144 to 150.

use crate::Weight;

use super::{Catalogue, policy::XidPolicy};

/// What the numbers in a line say: how serious it is, and in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) weight: Weight,
    pub(crate) told: String,
}

/// XID 74: `NVLink: fatal error detected on link 4(0x10000, 0x0, …)`. `None` when there are no registers, or bits in
/// them that nobody explains.
pub(crate) fn decode_registers(policy: &XidPolicy, detail: &str, count: u64) -> Option<Decoded> {
    let (_, after) = detail.split_once("on link ")?;
    let (link, rest) = after.split_once('(')?;
    let registers: Vec<u32> =
        rest.split_once(')')?.0.split(',').map(|text| hex(text.trim())).collect::<Option<_>>()?;
    let mut weight = Weight::Pass;
    let mut told = Vec::new();
    for (place, register) in registers.iter().enumerate() {
        for bit in (0..32).filter(|bit| register >> bit & 1 == 1) {
            let rule =
                policy.nvlink_bits.iter().find(|rule| rule.register == place && rule.bits.contains(&bit))?;
            let repeated = rule.repeated.is_some_and(|times| count >= times);
            weight = weight.max(if repeated { Weight::Fail } else { rule.verdict });
            let line = format!("register {place} bit {bit}: {}", rule.means);
            if !told.contains(&line) {
                told.push(line);
            }
        }
    }
    (!told.is_empty()).then(|| Decoded { weight, told: format!("link {}: {}", link.trim(), told.join("; ")) })
}

/// XID 144 to 150: `NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 …)`. `None` when no row fits.
pub(crate) fn decode_nvlink5(
    catalogue: &Catalogue,
    xid: u32,
    detail: &str,
    driver_major: u32,
) -> Option<Decoded> {
    let (_, rest) = detail.split_once('(')?;
    let mut words = rest.split_once(')')?.0.split([' ', ',']).filter(|word| !word.is_empty());
    let (info, status) = (hex(words.next()?)?, hex(words.next()?)?);
    let row = catalogue.nvlink5.iter().find(|row| {
        let pattern = if driver_major < 575 { &row.before_575 } else { &row.since_575 };
        row.xid == xid
            && fits(pattern, info)
            && (row.error_status.is_empty() || has_status(&row.error_status, status))
    })?;
    let weight = match row.action.as_str() {
        "RESET_GPU" => Weight::Fail,
        "IGNORE" if row.investigate == "IGNORE" => Weight::Pass,
        _ => Weight::Warn,
    };
    Some(Decoded { weight, told: format!("{}: {}, then {}", row.unit, row.action, row.investigate) })
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn fits(pattern: &str, value: u32) -> bool {
    pattern.len() == 32
        && pattern.bytes().rev().enumerate().all(|(bit, wanted)| match wanted {
            b'0' => value >> bit & 1 == 0,
            b'1' => value >> bit & 1 == 1,
            _ => true,
        })
}

/// One status or several with `/` between: each a whole value.
fn has_status(wanted: &str, status: u32) -> bool {
    wanted.split('/').any(|one| hex(&one.to_ascii_lowercase()) == Some(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;

    fn data() -> Data {
        Data::built_in().unwrap_or_else(|error| unreachable!("{error}"))
    }

    #[test]
    fn the_registers_of_a_link_error_say_how_bad_it_is() {
        let policy = data().xid_policy;
        let decode = |registers: &str, count| {
            decode_registers(&policy, &format!("NVLink: fatal error detected on link 4({registers})"), count)
                .map(|decoded| decoded.weight)
        };
        assert_eq!(decode("0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", 1), Some(Weight::Fail));
        assert_eq!(decode("0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", 1), Some(Weight::Pass));
        assert_eq!(decode("0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", 1), Some(Weight::Warn));
        assert_eq!(decode("0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", 3), Some(Weight::Fail));
        assert_eq!(decode("0x0, 0x4, 0x0, 0x0, 0x0, 0x0, 0x0", 1), None, "nobody explains that bit");
        assert_eq!(decode("0x0, 0x0", 1), None);
    }

    #[test]
    fn the_codes_of_nvlink_5_are_read_by_the_drivers_version() {
        let catalogue = data().catalogue;
        let decode = |xid, codes: &str, major| {
            let line = format!("NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 ({codes} 0x0 0x0)");
            decode_nvlink5(&catalogue, xid, &line, major)
        };
        // Bits 6 to 9 and 1, 2: the link went down; 20 to 25: why.
        let old = decode(149, "0x000001c6 0x00000000", 570);
        assert_eq!(old.as_ref().map(|d| d.weight), Some(Weight::Fail), "{old:?}");
        let new = decode(149, "0x00000011 0x00000000", 580);
        assert_eq!(new.as_ref().map(|d| d.weight), Some(Weight::Fail), "{new:?}");
        assert_eq!(decode(149, "0xffffffff 0x00000000", 580), None);
    }
}
