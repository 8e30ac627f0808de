//! Errors that the driver reports in the kernel's log: what the lines say, what each source says of a code, and what
//! that means here.

mod catalogue;
mod faults;
mod line;
mod nvlink;
mod policy;

pub use catalogue::{Catalogue, SxidRow, XidRow};
pub(crate) use faults::{GpuFault, GpuFaults};
pub use line::{GpuEvent, GpuLine, gpu_line};
pub(crate) use nvlink::{decode_nvlink5, decode_registers};
pub use policy::{Overrides, RowOverride, Ruling, XidPolicy};
