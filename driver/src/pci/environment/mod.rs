//! What stands between this machine and driving a drive from user space.
//!
//! A list of [`Finding`]s, each with what was seen and, where something is missing, what to do. A *blocker* keeps a run
//! from happening at all; a *warning* costs speed, or makes figures harder to compare. Nothing is changed here and
//! nothing is opened: it can be asked at any time, by any user, also about a drive that is in use.
//!
//! `machine` looks at the kernel, its IOMMU and its modules; `drive` at one drive; `speed` at what matters to
//! people who want the last I/O per second.
#![forbid(unsafe_code)]

mod drive;
mod machine;
mod speed;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::Sysfs;
use super::enumerate::NvmeFunction;
use crate::vfio::memlock::LockedMemory;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but slower, or with something to know.
    Warn,
    /// It does not work this way.
    Blocker,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A short name that does not change: `iommu`, `module.vfio-pci`, ...
    pub what: &'static str,
    /// How bad it is.
    pub status: Status,
    /// What was seen.
    pub evidence: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, evidence: impl Into<String>) -> Self {
        Self { what, status: Status::Ok, evidence: evidence.into(), remedy: None }
    }

    fn warn(what: &'static str, evidence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, status: Status::Warn, evidence: evidence.into(), remedy: Some(remedy.into()) }
    }

    fn blocker(what: &'static str, evidence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, status: Status::Blocker, evidence: evidence.into(), remedy: Some(remedy.into()) }
    }
}

/// What the caller has in mind.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The drive, or none to ask about the machine alone.
    pub function: Option<&'a NvmeFunction>,
    /// The limit on locked memory as it is.
    pub locked_memory: LockedMemory,
    /// How much memory a run will lock: its queues and buffers.
    pub needed_bytes: u64,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// In the order in which a person would set things right.
    pub findings: Vec<Finding>,
}

impl Environment {
    /// Looks at the machine, and at the drive if there is one in the question.
    pub fn read(sysfs: &Sysfs, question: &Question<'_>) -> Self {
        let mut findings = machine::findings(sysfs);
        if let Some(function) = question.function {
            findings.extend(drive::findings(sysfs, function));
        }
        findings.extend(speed::findings(sysfs, question));
        Self { findings }
    }

    /// Whether nothing stands in the way.
    pub fn is_ready(&self) -> bool {
        self.findings.iter().all(|finding| finding.status != Status::Blocker)
    }

    /// The finding of this name.
    pub fn get(&self, what: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.what == what)
    }
}
