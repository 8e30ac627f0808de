//! Memory: totals, pools, free blocks.

use plimsoll_model::{Absence, Absent, BuddyZone, Bytes, MemInfo};

use super::{malformed, number};

fn kib_after(line: &str, key: &str) -> Option<Result<Bytes, Absent>> {
    let rest = line.strip_prefix(key)?.strip_prefix(':')?;
    Some(match rest.trim().strip_suffix("kB") {
        Some(kib) => number(Some(kib), key).map(Bytes::from_kib),
        None => Err(malformed(format!("{key} is not in kB"))),
    })
}

/// `/proc/meminfo`.
///
/// # Errors
/// When it has no total, or an impossible one.
pub fn meminfo(text: &str) -> Result<MemInfo, Absent> {
    let find = |key| text.lines().find_map(|line| kib_after(line, key)).transpose();
    let total = find("MemTotal")?.ok_or_else(|| malformed("no MemTotal"))?;
    if total.0 == 0 {
        return Err(malformed("MemTotal is 0"));
    }
    Ok(MemInfo { total, available: find("MemAvailable")?, hugepage: find("Hugepagesize")? })
}

/// The total of a NUMA node's `meminfo` (`Node 0 MemTotal: 123 kB`).
///
/// # Errors
/// When it has none.
pub fn node_total(text: &str) -> Result<Bytes, Absent> {
    text.lines()
        .filter_map(|line| line.strip_prefix("Node ")?.trim_start().split_once(' '))
        .find_map(|(_, rest)| kib_after(rest.trim_start(), "MemTotal"))
        .ok_or_else(|| malformed("no MemTotal"))?
}

/// `/proc/buddyinfo`.
///
/// # Errors
/// When a line is of another form, or there is none.
pub fn buddyinfo(text: &str) -> Result<Vec<BuddyZone>, Absent> {
    let mut zones = Vec::new();
    for line in text.lines() {
        let rest = line.strip_prefix("Node ").ok_or_else(|| malformed("a line that is about no node"))?;
        let (node, rest) = rest.split_once(',').ok_or_else(|| malformed("a node without a zone"))?;
        let node = number(Some(node), "node")?;
        let mut fields = rest.split_ascii_whitespace();
        if fields.next() != Some("zone") {
            return Err(malformed("a node without a zone"));
        }
        let zone = fields.next().ok_or_else(|| malformed("a zone without a name"))?.to_owned();
        let free: Vec<u64> = fields.map(|field| number(Some(field), "blocks")).collect::<Result<_, _>>()?;
        if free.is_empty() || free.len() > 32 {
            return Err(malformed("an impossible number of orders"));
        }
        zones.push(BuddyZone { node, zone, free });
    }
    if zones.is_empty() { Err(malformed("no zones")) } else { Ok(zones) }
}

/// `/proc/swaps`: the areas' names.
///
/// # Errors
/// When its heading is missing.
pub fn swaps(text: &str) -> Result<Vec<String>, Absent> {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|heading| heading.starts_with("Filename")) {
        return Err(malformed("no heading"));
    }
    Ok(lines.filter_map(|line| line.split_ascii_whitespace().next()).map(str::to_owned).take(64).collect())
}

/// The word in brackets: `always [madvise] never`.
///
/// # Errors
/// When there is none.
pub fn selected_word(text: &str) -> Result<String, Absent> {
    text.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .map(str::to_owned)
        .ok_or_else(|| malformed("nothing is selected"))
}

/// Size of the pages that a directory of `/sys/kernel/mm/hugepages` is about (`hugepages-2048kB`).
#[must_use]
pub fn hugepage_directory(name: &str) -> Option<Bytes> {
    name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok().map(Bytes::from_kib)
}

/// Pages of size `page` that the kernel's command line asks for, if it does; `default_page` is the size that
/// `hugepages=` without `hugepagesz=` is about.
///
/// # Errors
/// When it asks for something that is no number.
pub fn hugepages_asked(command_line: &str, page: Bytes, default_page: Bytes) -> Result<Option<u64>, Absent> {
    let (mut size, mut default) = (None, default_page);
    let mut asked = Vec::new();
    for word in command_line.split_ascii_whitespace() {
        if let Some(value) = word.strip_prefix("default_hugepagesz=") {
            default = page_size(value)?;
        } else if let Some(value) = word.strip_prefix("hugepagesz=") {
            size = Some(page_size(value)?);
        } else if let Some(value) = word.strip_prefix("hugepages=") {
            // `0:512,1:512` asks by NUMA node.
            let count = value.split(',').try_fold(0_u64, |sum, part| {
                let count = part.rsplit_once(':').map_or(part, |(_, count)| count);
                number(Some(count), "hugepages").map(|count: u64| sum.saturating_add(count))
            })?;
            asked.push((size, count));
        }
    }
    Ok(asked.into_iter().rev().find(|(size, _)| size.unwrap_or(default) == page).map(|(_, count)| count))
}

fn page_size(value: &str) -> Result<Bytes, Absent> {
    let split = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (digits, unit) = value.split_at(split);
    let count: u64 = number(Some(digits), "hugepagesz")?;
    let scale: u64 = match unit {
        "" => 1,
        // As the kernel reads it: the first letter counts, whatever follows.
        unit if unit.starts_with(['K', 'k']) => 1 << 10,
        unit if unit.starts_with(['M', 'm']) => 1 << 20,
        unit if unit.starts_with(['G', 'g']) => 1 << 30,
        _ => return Err(Absent::new(Absence::Malformed, format!("hugepagesz={value} has an odd unit"))),
    };
    Ok(Bytes(count.saturating_mul(scale)))
}
