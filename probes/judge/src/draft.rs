//! Writing a judgement: evidence is noted as it is looked at, and what is absent ends the judgement by itself.

use plimsoll_model::{
    Absence, Absent, Action, Blame, ClearsBy, Device, Evidence, Expectation, Origin, Reading, SkipWhy,
    Verdict,
};

/// A judgement about one device, before the registry's words are added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) device: Device,
    /// What a person calls the device, where that is something else.
    pub(crate) part: String,
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) expectation: Expectation,
    /// Instead of the check's own action.
    pub(crate) action: Option<Action>,
    /// Instead of the check's own advice.
    pub(crate) advice: Option<String>,
    /// Instead of what clears the check in general.
    pub(crate) clears_by: Option<ClearsBy>,
}

impl Judged {
    /// The same with another way out than the check's own.
    pub(crate) fn advise(self, action: Action, advice: &str) -> Self {
        Self { action: Some(action), advice: Some(advice.to_owned()), ..self }
    }
}

/// A judgement, or one that ended early because something is absent.
pub(crate) type Verdicted = Result<Judged, Box<Judged>>;

const REMEDY: &str = "find out why the node does not give a sane answer here";

/// A judgement in the making.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    device: Device,
    evidence: Vec<Evidence>,
    expectation: Expectation,
    blame: Blame,
    remedy: &'static str,
}

impl Draft {
    pub(crate) fn new(device: Device) -> Self {
        let expectation = Expectation { what: String::new(), origin: Origin::None };
        Self { device, evidence: Vec::new(), expectation, blame: Blame::Device, remedy: REMEDY }
    }

    pub(crate) fn node() -> Self {
        Self::new(Device::node())
    }

    /// The same evidence, about another device.
    pub(crate) fn clone_for(&self, device: Device) -> Self {
        Self { device, ..self.clone() }
    }

    /// Whom a device's silence is blamed on, and what to do about it.
    pub(crate) fn blaming(self, blame: Blame, remedy: &'static str) -> Self {
        Self { blame, remedy, ..self }
    }

    /// Notes evidence.
    pub(crate) fn saw(&mut self, what: &str, value: impl ToString, source: &str) {
        let evidence =
            Evidence { what: what.to_owned(), value: value.to_string(), source: source.to_owned() };
        self.evidence.push(evidence);
    }

    /// Looks at a reading that every machine has: absence is `Unknown`.
    pub(crate) fn need<'r, T>(
        &mut self,
        what: &str,
        reading: &'r Reading<T>,
        show: impl FnOnce(&T) -> String,
    ) -> Result<&'r T, Box<Judged>> {
        self.look(what, reading, show, false)
    }

    /// Looks at a reading that a machine may do without: that it does is `Skipped`.
    pub(crate) fn want<'r, T>(
        &mut self,
        what: &str,
        reading: &'r Reading<T>,
        show: impl FnOnce(&T) -> String,
    ) -> Result<&'r T, Box<Judged>> {
        self.look(what, reading, show, true)
    }

    /// Looks at a reading that a machine may do without, unless the operator expects something of it.
    pub(crate) fn want_unless<'r, T>(
        &mut self,
        expected: bool,
        what: &str,
        reading: &'r Reading<T>,
        show: impl FnOnce(&T) -> String,
    ) -> Result<&'r T, Box<Judged>> {
        self.look(what, reading, show, !expected)
    }

    fn look<'r, T>(
        &mut self,
        what: &str,
        reading: &'r Reading<T>,
        show: impl FnOnce(&T) -> String,
        optional: bool,
    ) -> Result<&'r T, Box<Judged>> {
        match reading.get() {
            Ok(value) => {
                self.saw(what, show(value), &reading.source);
                Ok(value)
            }
            Err(absent) => Err(Box::new(self.clone().absent(what, absent, &reading.source, optional))),
        }
    }

    /// Ends because of an absence.
    pub(crate) fn absent(mut self, what: &str, absent: &Absent, source: &str, optional: bool) -> Judged {
        self.saw(what, &absent.detail, source);
        let told = format!("{what}: {} ({source})", absent.detail);
        match absent.kind {
            Absence::NotPresent if optional => self.end(
                Verdict::Skipped { why: SkipWhy::NotPresent },
                format!("{what}: this machine has none ({source})"),
            ),
            Absence::NotSupported => self.end(Verdict::Skipped { why: SkipWhy::NotSupported }, told),
            Absence::NoBaseline => self.end(Verdict::Skipped { why: SkipWhy::NoBaseline }, told),
            Absence::PermissionDenied => {
                let judged = self.end(Verdict::Unknown { blame: Blame::Plimsoll }, told);
                Judged {
                    action: Some(Action::None),
                    advice: Some("run plimsoll as root".to_owned()),
                    ..judged
                }
            }
            Absence::NotAsked => {
                let judged = self.end(Verdict::Unknown { blame: Blame::Plimsoll }, told);
                Judged {
                    action: Some(Action::None),
                    advice: Some("let it be asked, and run plimsoll again".to_owned()),
                    ..judged
                }
            }
            Absence::NotPresent
            | Absence::Unreadable
            | Absence::Malformed
            | Absence::TooLarge
            | Absence::TimedOut => {
                let (blame, remedy) = (self.blame, self.remedy);
                let judged = self.end(Verdict::Unknown { blame }, told);
                Judged { action: Some(Action::Diagnose), advice: Some(remedy.to_owned()), ..judged }
            }
        }
    }

    /// Notes what is expected.
    pub(crate) fn expect(&mut self, what: impl Into<String>, origin: Origin) {
        self.expectation = Expectation { what: what.into(), origin };
    }

    /// Ends with nothing to compare with; `key` is the configuration key that would change that.
    pub(crate) fn incomparable(self, is: impl Into<String>, key: &str) -> Judged {
        let judged = self.end(Verdict::Skipped { why: SkipWhy::NothingToCompareWith }, is);
        Judged { advice: Some(format!("set `{key}` in the configuration to have it judged")), ..judged }
    }

    pub(crate) fn pass(self, reason: impl Into<String>) -> Judged {
        self.end(Verdict::Pass, reason)
    }

    pub(crate) fn warn(self, reason: impl Into<String>) -> Judged {
        self.end(Verdict::Warn, reason)
    }

    pub(crate) fn fail(self, reason: impl Into<String>) -> Judged {
        self.end(Verdict::Fail, reason)
    }

    pub(crate) fn skip(self, why: SkipWhy, reason: impl Into<String>) -> Judged {
        self.end(Verdict::Skipped { why }, reason)
    }

    /// Ends with this verdict.
    pub(crate) fn end(self, verdict: Verdict, reason: impl Into<String>) -> Judged {
        Judged {
            device: self.device,
            part: String::new(),
            verdict,
            reason: reason.into(),
            evidence: self.evidence,
            expectation: self.expectation,
            action: None,
            advice: None,
            clears_by: None,
        }
    }
}
