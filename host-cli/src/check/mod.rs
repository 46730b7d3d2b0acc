//! Verdicts: what the evidence of a run says about a drive, its card and its slot.
//!
//! A check is a pure function from [`Evidence`] to a [`Judgement`]; it measures nothing and knows no device, so that
//! each limit, and each way of getting it wrong, is a unit test. [`CHECKS`] is the list of them in the order in which
//! they are shown. A check says what it saw, the limit it used and where that comes from, and what to do; a limit that
//! is somebody's taste says so ([`Basis::Nvmetal`]).
//!
//! Unknown is an answer of its own: a drive that reports no temperature is not cool, and a link whose registers cannot
//! be read is not fast. Such a check is SKIP, with the reason, and never PASS.
#![forbid(unsafe_code)]

pub mod evidence;
mod identity;
mod io_errors;
mod latency;
mod link_errors;
mod link_speed;
mod link_throughput;
mod link_trained;
mod link_width;
mod smart_critical_warning;
mod smart_error_log;
mod smart_media_errors;
mod smart_spare;
mod smart_used;
mod speed;
mod stability;
mod temperature;
mod verdict;

use serde::Serialize;

pub use evidence::Evidence;
pub use link_throughput::ceiling;
pub use verdict::{Report, Verdict};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Within its limit.
    Pass,
    /// Nobody looked: the run was cut short, or an option it depends on was not given.
    NotTested,
    /// Looked at, and cannot be judged.
    Skip,
    /// Something that its owner should know.
    Warn,
    /// A fault.
    Fail,
}

/// Where a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// NVMe's or PCI Express's specification, or a value that the drive itself states as they define it.
    Spec,
    /// What the links between drive and processor are able to do.
    Link,
    /// nvmetal's own choice.
    #[serde(rename = "config")]
    Nvmetal,
    /// What the user said the drive should do.
    Expectation,
}

impl Basis {
    /// The word in every output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Link => "link",
            Self::Nvmetal => "config",
            Self::Expectation => "expectation",
        }
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// How it ended.
    pub status: Status,
    /// What was seen, with numbers.
    pub evidence: String,
    /// What to do, where something can be done.
    pub advice: Option<String>,
    /// The limit, where it differs from the check's general one.
    pub limit: Option<String>,
}

impl Judgement {
    fn new(status: Status, evidence: impl Into<String>) -> Self {
        Self { status, evidence: evidence.into(), advice: None, limit: None }
    }

    fn pass(evidence: impl Into<String>) -> Self {
        Self::new(Status::Pass, evidence)
    }

    fn warn(evidence: impl Into<String>) -> Self {
        Self::new(Status::Warn, evidence)
    }

    fn fail(evidence: impl Into<String>) -> Self {
        Self::new(Status::Fail, evidence)
    }

    fn skip(reason: impl Into<String>) -> Self {
        Self::new(Status::Skip, reason)
    }

    fn not_tested(reason: impl Into<String>) -> Self {
        Self::new(Status::NotTested, reason)
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn limit(mut self, limit: impl Into<String>) -> Self {
        self.limit = Some(limit.into());
        self
    }
}

/// One check.
pub struct Check {
    /// Its name: `link.speed`.
    pub id: &'static str,
    /// The limit in general.
    pub limit: &'static str,
    /// Where the limit comes from.
    pub basis: Basis,
    /// Whether a verdict without it is not worth much: SKIP makes the overall verdict WARN.
    pub mandatory: bool,
    /// The judge.
    pub judge: fn(&Evidence) -> Judgement,
}

/// All checks, in the order in which they are shown.
pub const CHECKS: &[Check] = &[
    identity::CHECK,
    link_width::CHECK,
    link_speed::CHECK,
    link_errors::CHECK,
    link_throughput::CHECK,
    smart_critical_warning::CHECK,
    smart_spare::CHECK,
    smart_used::CHECK,
    smart_media_errors::CHECK,
    smart_error_log::CHECK,
    temperature::CHECK,
    speed::READ,
    speed::RANDOM_READ,
    speed::WRITE,
    latency::CHECK,
    stability::CHECK,
    io_errors::CHECK,
];

/// A judged check as it is shown and saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The check.
    pub id: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was seen.
    pub evidence: String,
    /// The limit that was used.
    pub limit: String,
    /// Where the limit comes from.
    pub basis: Basis,
    /// What to do.
    pub advice: Option<String>,
    /// Whether its absence lowers the verdict.
    pub mandatory: bool,
}

impl Check {
    /// Judges the evidence.
    pub fn result(&self, evidence: &Evidence) -> CheckResult {
        let judgement = (self.judge)(evidence);
        CheckResult {
            id: self.id,
            status: judgement.status,
            evidence: judgement.evidence,
            limit: judgement.limit.unwrap_or_else(|| self.limit.to_owned()),
            basis: self.basis,
            advice: judgement.advice,
            mandatory: self.mandatory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_names_are_unique_and_speak_of_their_group_first() {
        let mut ids: Vec<_> = CHECKS.iter().map(|check| check.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CHECKS.len());
    }

    #[test]
    fn a_healthy_drive_passes_everything_that_was_tested() {
        let evidence = Evidence::healthy();
        for check in CHECKS {
            let result = check.result(&evidence);
            assert!(matches!(result.status, Status::Pass | Status::NotTested), "{result:?}");
        }
    }

    #[test]
    fn without_any_evidence_nothing_passes() {
        let evidence = Evidence::default();
        for check in CHECKS {
            let result = check.result(&evidence);
            assert!(matches!(result.status, Status::Skip | Status::NotTested), "{result:?}");
            assert!(!result.evidence.is_empty(), "{result:?}");
        }
    }
}
