//! The checks, by domain.

pub(crate) mod host;
pub(crate) mod storage;
