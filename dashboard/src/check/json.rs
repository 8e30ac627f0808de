//! JSON, and the schema that it keeps to.

use plimsoll_model::Report;
use schemars::schema_for;

use crate::clean::clean_json;

/// The report as JSON, on several lines, with a line feed at its end.
///
/// # Errors
/// Only for a bug of ours.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report).map(|text| clean_json(&text) + "\n")
}

/// The JSON Schema of what [`json`] writes.
///
/// # Errors
/// Only for a bug of ours.
pub fn schema() -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&schema_for!(Report)).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_published_schema_is_that_of_the_code() {
        let published = include_str!("../../schema/check.v1.json");
        assert_eq!(
            super::schema().unwrap_or_default(),
            published,
            "run `PLIMSOLL_WRITE_SCHEMA=1 cargo test -p plimsoll-dashboard writes_the_schema` and see what changed"
        );
    }

    #[test]
    fn writes_the_schema() {
        if std::env::var_os("PLIMSOLL_WRITE_SCHEMA").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/check.v1.json");
            assert!(std::fs::write(path, super::schema().unwrap_or_default()).is_ok());
        }
    }
}
