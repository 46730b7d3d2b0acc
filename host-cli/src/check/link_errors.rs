//! Whether the links carried the run's data cleanly.
//!
//! PCI Express allows one wrong bit in 10^12, and repairs it by sending the packet again; 12.5 GB are 10^11 bits, so
//! one correctable error for each 12.5 GB is ten times what the specification allows and still says nothing about a
//! drive that moved only a little. More than that, or anything that could not be repaired, is bad contact or a bad cable.
#![forbid(unsafe_code)]

use super::{Basis, Check, Evidence, Judgement};
use crate::units;

pub const CHECK: Check =
    Check { id: "link.errors", limit: "no error, no retraining", basis: Basis::Spec, mandatory: false, judge };

/// Bytes that may cost one correctable error.
const BYTES_PER_ERROR: u64 = 12_500_000_000;

const REMEDY: &str = "Reseat drive and card, clean the contacts, replace a riser or cable; a lower slot speed in the \
                      firmware setup shows whether the signal is at fault.";

fn judge(evidence: &Evidence) -> Judgement {
    let Some(errors) = &evidence.link.errors else {
        return Judgement::skip(match &evidence.link.path {
            None => "the links between drive and processor are not shown to us",
            Some(_) => "the ports were not asked at both ends of the run",
        });
    };
    let moved = evidence.moved_bytes();
    let allowed = (moved / BYTES_PER_ERROR).max(1);
    let limit = format!("0; up to {allowed} correctable for {} moved is WARN", units::bytes(u128::from(moved)));
    let named = || {
        let named: Vec<_> =
            errors.moved.iter().map(|(port, name, count)| format!("{count} {name} at {port}")).collect();
        if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) }
    };
    if let Some(uncorrectable @ 1..) = errors.uncorrectable {
        return Judgement::fail(format!("{uncorrectable} uncorrectable{}", named())).limit(limit).advice(REMEDY);
    }
    if !errors.retrained.is_empty() {
        let ports: Vec<_> = errors.retrained.iter().map(ToString::to_string).collect();
        return Judgement::fail(format!("the link was retrained in the run ({})", ports.join(", ")))
            .limit(limit)
            .advice(REMEDY);
    }
    match errors.correctable {
        None => {
            Judgement::skip("no port of the path counts its errors: without AER, or the firmware keeps it to itself")
        }
        Some(0) => Judgement::pass(format!("0 in {} moved", units::bytes(u128::from(moved)))).limit(limit),
        Some(count) if count <= allowed => Judgement::warn(format!("{count} correctable{}", named()))
            .limit(limit)
            .advice("Repaired by the link itself, and within what PCI Express allows. Watch whether it grows."),
        Some(count) => Judgement::fail(format!("{count} correctable{}", named())).limit(limit).advice(REMEDY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;
    use nvmetal_driver::pci::link::ErrorChange;

    fn status(correctable: Option<u64>, uncorrectable: Option<u64>, moved_gb: u64) -> Status {
        let mut evidence = Evidence::healthy();
        evidence.link.errors = Some(ErrorChange { correctable, uncorrectable, ..ErrorChange::default() });
        evidence.random_read = None;
        evidence.latency = None;
        evidence.sequential_read.as_mut().expect("a run").bytes = moved_gb * 1_000_000_000;
        judge(&evidence).status
    }

    #[test]
    fn none_passes_and_one_is_always_only_a_warning() {
        assert_eq!(status(Some(0), Some(0), 100), Status::Pass);
        assert_eq!(status(Some(1), Some(0), 1), Status::Warn);
    }

    #[test]
    fn the_number_allowed_grows_with_the_bytes_moved() {
        assert_eq!(status(Some(2), Some(0), 24), Status::Fail);
        assert_eq!(status(Some(2), Some(0), 25), Status::Warn);
        assert_eq!(status(Some(8), None, 100), Status::Warn);
        assert_eq!(status(Some(9), None, 100), Status::Fail);
    }

    #[test]
    fn one_uncorrectable_error_or_a_retrained_link_fails() {
        assert_eq!(status(Some(0), Some(1), 1000), Status::Fail);
        let mut evidence = Evidence::healthy();
        evidence.link.errors =
            Some(ErrorChange { retrained: vec!["00:1c.4".parse().unwrap()], ..ErrorChange::default() });
        assert_eq!(judge(&evidence).status, Status::Fail);
    }

    #[test]
    fn counters_that_nobody_keeps_are_skipped_not_passed() {
        assert_eq!(status(None, None, 10), Status::Skip);
        let mut evidence = Evidence::healthy();
        evidence.link.errors = None;
        assert_eq!(judge(&evidence).status, Status::Skip);
    }
}
