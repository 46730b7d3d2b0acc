//! All checks together: the overall verdict, and what it does not cover.
//!
//! FAIL if anything failed. WARN if anything warned, or if a check without which a verdict is not worth much (identity,
//! link, SMART, temperature, errors) could not be made. Otherwise PASS; and the headline lists what nobody looked at, so
//! that a PASS is never read as more than it is.
#![forbid(unsafe_code)]

use serde::Serialize;

use super::{CHECKS, CheckResult, Evidence, Status};
use crate::exit::Exit;

/// The overall verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Nothing to complain of.
    Pass,
    /// Something that its owner should know, or too little seen.
    Warn,
    /// A fault.
    Fail,
}

impl Verdict {
    /// How the process ends.
    pub const fn exit(self, strict: bool) -> Exit {
        match self {
            Self::Fail => Exit::Fail,
            Self::Warn if strict => Exit::WarnStrict,
            Self::Pass | Self::Warn => Exit::Pass,
        }
    }
}

/// All results and the verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The overall verdict.
    pub verdict: Verdict,
    /// Each check, in the order of [`CHECKS`].
    pub checks: Vec<CheckResult>,
}

impl Report {
    /// Judges the evidence by every check.
    pub fn of(evidence: &Evidence) -> Self {
        let checks: Vec<CheckResult> = CHECKS.iter().map(|check| check.result(evidence)).collect();
        Self { verdict: overall(&checks), checks }
    }

    /// Checks that ended so.
    pub fn with(&self, status: Status) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(move |check| check.status == status)
    }
}

fn overall(checks: &[CheckResult]) -> Verdict {
    let missing = |check: &CheckResult| check.mandatory && matches!(check.status, Status::Skip | Status::NotTested);
    if checks.iter().any(|check| check.status == Status::Fail) {
        Verdict::Fail
    } else if checks.iter().any(|check| check.status == Status::Warn || missing(check)) {
        Verdict::Warn
    } else {
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evidence::Temperature;

    #[test]
    fn a_healthy_drive_passes_and_the_verdict_says_what_was_not_tested() {
        let report = Report::of(&Evidence::healthy());
        assert_eq!(report.verdict, Verdict::Pass);
        let not_tested: Vec<_> = report.with(Status::NotTested).map(|check| check.id).collect();
        assert_eq!(not_tested, ["speed.read", "speed.random_read", "speed.write"]);
    }

    #[test]
    fn one_failure_outweighs_everything() {
        let mut evidence = Evidence::healthy();
        evidence.temperature = Temperature::default();
        evidence.random_read.as_mut().expect("a run").errors.failed = 1;
        assert_eq!(Report::of(&evidence).verdict, Verdict::Fail);
    }

    #[test]
    fn a_mandatory_check_that_cannot_be_made_warns() {
        let mut evidence = Evidence::healthy();
        evidence.temperature = Temperature::default();
        let report = Report::of(&evidence);
        assert_eq!(report.verdict, Verdict::Warn);
        assert_eq!(report.verdict.exit(false), Exit::Pass);
        assert_eq!(report.verdict.exit(true), Exit::WarnStrict);
    }

    #[test]
    fn a_check_that_is_not_mandatory_may_be_skipped() {
        let mut evidence = Evidence::healthy().never_written();
        evidence.link.errors = None;
        let report = Report::of(&evidence);
        assert_eq!(report.verdict, Verdict::Pass);
        assert!(report.with(Status::Skip).count() >= 3);
    }

    #[test]
    fn no_evidence_is_never_a_pass() {
        assert_eq!(Report::of(&Evidence::default()).verdict, Verdict::Warn);
    }
}
