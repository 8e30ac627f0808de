//! The registry of checks.

use crate::{check::Check, checks};

/// All checks, in the order in which people read them.
pub fn all() -> impl Iterator<Item = &'static Check> + Clone {
    checks::gpu::ALL
        .iter()
        .copied()
        .flatten()
        .chain(checks::host::ALL.iter().copied().flatten())
        .chain(checks::storage::ALL.iter().copied().flatten())
}

/// The check of this name.
#[must_use]
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// The checks that a selector names: a check's name, a domain, or the beginning of names (`storage.mount`).
pub fn select(selector: &str) -> impl Iterator<Item = &'static Check> {
    all().filter(move |check| {
        check.id == selector || check.id.strip_prefix(selector).is_some_and(|rest| rest.starts_with('.'))
    })
}
