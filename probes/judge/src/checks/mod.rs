//! The checks, by domain.

pub(crate) mod gpu;
pub(crate) mod host;
pub(crate) mod storage;
