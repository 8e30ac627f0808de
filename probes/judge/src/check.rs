//! What a check is: its name, what it reads, compares with, and does.

use plimsoll_model::{Action, ClearsBy, Domain};

use crate::{
    context::{GpuContext, HostContext, One, StorageContext},
    draft::{Judged, Verdicted},
};

/// A named rule from signals to findings.
#[derive(Debug)]
pub struct Check {
    /// Its name.
    pub id: &'static str,
    /// The domain whose sample it judges.
    pub domain: Domain,
    /// What it asks, in one line.
    pub asks: &'static str,
    /// The files and calls that it reads.
    pub reads: &'static [&'static str],
    /// What it compares with, most binding first.
    pub compares: &'static str,
    /// When it warns, fails, or says neither.
    pub verdicts: &'static str,
    /// Why anybody should care.
    pub why: &'static str,
    /// What ends a problem.
    pub clears_by: ClearsBy,
    /// What to do about a problem.
    pub action: Action,
    /// The same, in words.
    pub advice: &'static str,
    pub(crate) judge: Judge,
}

/// The rule itself. Most checks say one thing about the node, some say one thing about each of its devices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Judge {
    Host(fn(&HostContext<'_>) -> Verdicted),
    HostDevices(fn(&HostContext<'_>) -> Vec<Judged>),
    /// Kernel-log checks share one rule and differ in their name.
    HostLog,
    /// Of the GPUs as a whole.
    Gpu(fn(&GpuContext<'_>) -> Verdicted),
    /// Of each GPU that the driver knows.
    EachGpu(fn(&GpuContext<'_>, One<'_>) -> Verdicted),
    /// Of what is told of GPUs or switches in another way.
    GpuDevices(fn(&GpuContext<'_>) -> Vec<Judged>),
    StorageDevices(fn(&StorageContext<'_>) -> Vec<Judged>),
}
