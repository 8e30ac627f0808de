//! Plimsoll's judge: what samples say, and what that means. Pure: no I/O, no clock of its own.
//!
//! [`observe`] turns a sample and the one before it into signals; [`decide`] turns signals into findings. The cold
//! check, the agent and replay are these two functions.

mod check;
mod checks;
mod config;
mod config_values;
mod context;
mod data;
mod decide;
mod draft;
mod log_check;
mod mounts;
mod near;
mod observe;
mod registry;
mod state;
mod xid;

pub use check::Check;
pub use config::{Config, ConfigError};
pub use config_values::{BUDGET_ACCEPTED, Version, parse_budget};
pub use data::{Data, DataError, GpuModel, LogRule, Threshold, Weight};
pub use decide::{Policy, decide};
pub use mounts::{MOUNTS_ASKED_MAX, mounts_to_ask};
pub use near::nearest;
pub use observe::{GAP_MS_MIN, observe};
pub use registry::{all as checks, find, select};
pub use state::State;
pub use xid::{
    Catalogue, GpuEvent, GpuLine, Overrides, RowOverride, Ruling, SxidRow, XidPolicy, XidRow, gpu_line,
};
