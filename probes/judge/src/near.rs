//! Names near to a name that does not exist.

/// ` (did you mean `x`?)` for the nearest of `names`, or nothing when none is near.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = names
        .map(|name| (likeness(wrong, name), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    near.map_or_else(String::new, |(_, name)| format!(" (did you mean `{name}`?)"))
}

fn likeness(wrong: &str, name: &str) -> f64 {
    // `space` is meant for `storage.mount.space`, which no edit distance sees.
    let last = name.rsplit('.').next().unwrap_or(name);
    strsim::jaro_winkler(wrong, name).max(strsim::normalized_damerau_levenshtein(wrong, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_or_a_last_part_finds_the_name() {
        let names = ["host.cpu.smt", "storage.mount.space", "storage.mount.inodes"];
        assert_eq!(
            nearest("storage.mount.spce", names.into_iter()),
            " (did you mean `storage.mount.space`?)"
        );
        assert_eq!(nearest("space", names.into_iter()), " (did you mean `storage.mount.space`?)");
        assert_eq!(nearest("zzz", names.into_iter()), "");
    }
}
