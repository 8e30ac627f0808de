//! How people and machines see a verdict. Renders to text; prints nothing.

mod check;
mod clean;
mod wrap;

pub use clean::clean;

pub use check::{
    Style, check_list, check_list_json, explanation, json, junit, nagios, schema, sxid_explanation, table,
    topology, topology_json, xid_explanation,
};
