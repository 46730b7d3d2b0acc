//! Whether sequential reads come near what the path can carry.
//!
//! The ceiling is arithmetic on the narrowest link: line rate, lanes, encoding, packet overhead. Published healthy
//! drives reach 82 to 99 % of theirs. A low share alone fails nobody, because many good drives are slower than their
//! link; and a share over 103 % fails nobody either: then the registers do not describe the way the data takes, as in a
//! virtual machine.
#![forbid(unsafe_code)]

use nvmetal_driver::pci::link::Ceiling;

use super::evidence::Written;
use super::{Basis, Check, Evidence, Judgement};

pub const CHECK: Check = Check {
    id: "link.throughput",
    limit: ">= 75 % of the path's ceiling at 128 KiB, 32 in flight",
    basis: Basis::Link,
    mandatory: false,
    judge,
};

/// The share of the ceiling that passes, in per cent.
const GOOD_PERCENT: f64 = 75.0;
/// The share above which the ceiling cannot be right: a ceiling is good to 3 %.
const BELIEVABLE_PERCENT: f64 = 103.0;

/// The ceiling for reads in 10^6 bytes per second, as the path was while reads were running.
pub fn ceiling(evidence: &Evidence) -> Option<Ceiling> {
    let path = evidence.link.under_load.last().or(evidence.link.path.as_ref())?;
    path.ceiling()
}

fn judge(evidence: &Evidence) -> Judgement {
    let Some(run) = &evidence.sequential_read else {
        return Judgement::not_tested("no sequential read took place");
    };
    let Some(ceiling) = ceiling(evidence) else {
        return Judgement::skip("the path's ceiling is not known, since its link registers are not");
    };
    if run.ios == 0 {
        return Judgement::skip("no read ended well");
    }
    let measured = run.bytes_per_second / 1e6;
    let share = Ceiling::share_percent(measured, ceiling.read_mb_s);
    let seen = format!("{measured:.0} MB/s, ~{share:.0} % of {:.0} ({})", ceiling.read_mb_s, ceiling.basis);
    if share > BELIEVABLE_PERCENT {
        return Judgement::skip(format!("{seen}: the link registers are not believable (a virtual machine?)"));
    }
    if share >= GOOD_PERCENT {
        return Judgement::pass(seen);
    }
    let advice = match &run.written {
        Written::Never(_) => {
            "The blocks were never written, so the drive did not even have to read flash: the drive's controller, its \
             power state or the host is slower than the link."
        }
        _ => {
            "The link could carry more: this drive's own speed may be the limit (see its data sheet and \
             --expect-read), or its temperature, or a power saving state."
        }
    };
    Judgement::warn(seen).advice(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn judgement(megabytes_per_second: f64) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.sequential_read.as_mut().expect("a run").bytes_per_second = megabytes_per_second * 1e6;
        judge(&evidence)
    }

    #[test]
    fn three_quarters_of_the_ceiling_pass_and_less_warns() {
        // Gen3 x4 with 256 bytes of payload: 3601 MB/s.
        assert_eq!(judgement(2702.0).status, Status::Pass);
        assert_eq!(judgement(2699.0).status, Status::Warn);
        assert_eq!(judgement(1.0).status, Status::Warn);
    }

    #[test]
    fn the_share_is_told_with_what_it_rests_on() {
        let judgement = judgement(3562.0);
        assert_eq!(judgement.status, Status::Pass);
        assert_eq!(judgement.evidence, "3562 MB/s, ~99 % of 3601 (8 GT/s x4, MPS 256, read from the ports)");
    }

    #[test]
    fn a_share_over_103_percent_is_skipped_never_passed_and_never_clamped() {
        assert_eq!(judgement(3708.0).status, Status::Pass);
        let over = judgement(7000.0);
        assert_eq!(over.status, Status::Skip);
        assert!(over.evidence.contains("~194 %"), "{}", over.evidence);
    }

    #[test]
    fn the_ceiling_is_that_of_the_link_under_load() {
        let mut evidence = Evidence::healthy();
        let idle = evidence.link.path.as_mut().expect("a path");
        idle.hops[0].lower.speed_now = Some(nvmetal_driver::pci::link::LinkSpeed::GEN1);
        assert_eq!(judge(&evidence).status, Status::Pass);
    }

    #[test]
    fn without_a_ceiling_there_is_no_judgement() {
        let mut evidence = Evidence::healthy();
        evidence.link = super::super::evidence::Link::default();
        assert_eq!(judge(&evidence).status, Status::Skip);
    }
}
