//! Whether every read of the run ended well.
#![forbid(unsafe_code)]

use super::evidence::IoErrors;
use super::{Basis, Check, Evidence, Judgement};
use crate::units::grouped;

pub const CHECK: Check =
    Check { id: "io.errors", limit: "0; recovered by a retry is WARN", basis: Basis::Spec, mandatory: true, judge };

fn judge(evidence: &Evidence) -> Judgement {
    let done: u64 = evidence.runs().map(|run| run.ios).sum();
    if let Some(how) = &evidence.lost {
        let after = if done > 0 { format!(" after {} reads", grouped(done.into())) } else { String::new() };
        return Judgement::fail(format!("the drive was lost{after}: {how}")).advice(
            "Reseat drive and card. If it comes back only after a power cycle, suspect power, heat or a power saving \
             state, in this order of cost.",
        );
    }
    let IoErrors { recovered, failed, miscompares, first } = evidence.io_errors();
    let first = first.unwrap_or_default();
    if evidence.runs().next().is_none() && failed == 0 {
        return Judgement::skip("no read took place");
    }
    let of = format!("of {} reads", grouped(u128::from(done) + u128::from(failed)));
    if miscompares > 0 {
        return Judgement::fail(format!("{miscompares} {of} gave other data than was written: {first}")).advice(
            "Do not trust this drive, its card or this machine's memory with data until you know which it is.",
        );
    }
    if failed > 0 {
        return Judgement::fail(format!("{failed} {of} failed: {first}")).advice(
            "The drive could not read what it holds (or claims to). Back up, look at its error log, replace it if it \
             happens again.",
        );
    }
    if recovered > 0 {
        return Judgement::warn(format!("{recovered} {of} ended well only after a retry: {first}"))
            .advice("Test again; if it happens again, look at link.errors and the drive's error log.");
    }
    if done == 0 {
        return Judgement::skip("no read ended");
    }
    Judgement::pass(format!("0 {of}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn judgement(errors: IoErrors) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.random_read.as_mut().expect("a run").errors = errors;
        judge(&evidence)
    }

    #[test]
    fn recovered_warns_and_failed_fails() {
        assert_eq!(judgement(IoErrors::default()).status, Status::Pass);
        assert_eq!(judgement(IoErrors { recovered: 1, ..IoErrors::default() }).status, Status::Warn);
        assert_eq!(judgement(IoErrors { recovered: 5, failed: 1, ..IoErrors::default() }).status, Status::Fail);
        assert_eq!(judgement(IoErrors { miscompares: 1, ..IoErrors::default() }).status, Status::Fail);
    }

    #[test]
    fn a_lost_drive_fails_whatever_went_well_before() {
        let mut evidence = Evidence::healthy();
        evidence.lost = Some("all registers read as ones".into());
        assert_eq!(judge(&evidence).status, Status::Fail);
    }

    #[test]
    fn a_sampled_block_that_cannot_be_read_counts_like_any_other() {
        let mut evidence = Evidence::healthy();
        evidence.samples = IoErrors { failed: 1, first: Some("read at LBA 7".into()), ..IoErrors::default() };
        let judgement = judge(&evidence);
        assert_eq!(judgement.status, Status::Fail);
        assert!(judgement.evidence.contains("LBA 7"), "{}", judgement.evidence);
    }

    #[test]
    fn no_read_is_no_pass() {
        let mut evidence = Evidence::healthy();
        (evidence.sequential_read, evidence.random_read, evidence.latency) = (None, None, None);
        assert_eq!(judge(&evidence).status, Status::Skip);
    }
}
