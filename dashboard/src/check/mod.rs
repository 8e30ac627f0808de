//! The result of `plimsoll check`, one module a format.

mod explain;
mod json;
mod junit;
mod nagios;
mod table;
mod topology;
mod words;

pub use explain::{check_list, check_list_json, explanation, sxid_explanation, xid_explanation};
pub use json::{json, schema};
pub use junit::junit;
pub use nagios::nagios;
pub use table::{Style, table};
pub use topology::{topology, topology_json};
