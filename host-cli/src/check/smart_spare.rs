//! How much spare flash is left, against the drive's own threshold.
#![forbid(unsafe_code)]

use super::{Basis, Check, Evidence, Judgement};

pub const CHECK: Check =
    Check { id: "smart.spare", limit: "> threshold + 10", basis: Basis::Spec, mandatory: false, judge };

/// How far above the threshold a warning begins, in per cent.
const MARGIN_PERCENT: u16 = 10;

fn judge(evidence: &Evidence) -> Judgement {
    let Some(smart) = evidence.smart() else { return Judgement::skip("the SMART log could not be read") };
    let (spare, threshold) = (u16::from(smart.available_spare), u16::from(smart.available_spare_threshold));
    let seen = format!("{spare} % left, threshold {threshold} %");
    if spare > 100 || threshold > 100 {
        return Judgement::skip(format!("{seen}: more than 100 % is not a value that the specification has"));
    }
    let limit = format!("> {} %", threshold + MARGIN_PERCENT);
    if spare < threshold {
        return Judgement::fail(seen)
            .limit(limit)
            .advice("The drive has used up its spare blocks. Back up now and replace it.");
    }
    if spare <= threshold + MARGIN_PERCENT {
        return Judgement::warn(seen).limit(limit).advice("The spare blocks run out. Plan for another drive.");
    }
    Judgement::pass(seen).limit(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn status(spare: u8, threshold: u8) -> Status {
        let mut evidence = Evidence::healthy();
        let page = evidence.smart_after.as_mut().expect("a page");
        (page.available_spare, page.available_spare_threshold) = (spare, threshold);
        judge(&evidence).status
    }

    #[test]
    fn the_threshold_and_ten_above_it_are_the_limits() {
        assert_eq!(status(100, 10), Status::Pass);
        assert_eq!(status(21, 10), Status::Pass);
        assert_eq!(status(20, 10), Status::Warn);
        assert_eq!(status(10, 10), Status::Warn);
        assert_eq!(status(9, 10), Status::Fail);
    }

    #[test]
    fn a16_a_threshold_of_zero_never_fails() {
        assert_eq!(status(100, 0), Status::Pass);
        assert_eq!(status(0, 0), Status::Warn);
    }

    #[test]
    fn more_than_a_hundred_per_cent_is_no_value() {
        assert_eq!(status(101, 10), Status::Skip);
        assert_eq!(status(255, 255), Status::Skip);
    }
}
