//! Whether the drive has lost data.
//!
//! The counter has no dates: what it held before the run may be years old. What it gained in the run is a fault now.
#![forbid(unsafe_code)]

use super::{Basis, Check, Evidence, Judgement};
use crate::units::grouped;

pub const CHECK: Check = Check {
    id: "smart.media_errors",
    limit: "0, and no more at the end than at the start",
    basis: Basis::Spec,
    mandatory: false,
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let count = |page: &Option<nvmetal_core::log::Smart>| page.as_ref().map(|smart| smart.media_errors.get());
    let (before, after) = (count(&evidence.smart_before), count(&evidence.smart_after));
    match (before, after) {
        (None, None) => Judgement::skip("the SMART log could not be read"),
        (Some(before), Some(after)) if after > before => {
            Judgement::fail(format!("{} before the run, {} after", grouped(before), grouped(after)))
                .advice("The drive could not read back what it holds. Back up now and replace it.")
        }
        (_, Some(0)) | (Some(0), None) => Judgement::pass("0"),
        (_, Some(count)) | (Some(count), None) => Judgement::warn(format!("{}, unchanged by the run", grouped(count)))
            .advice("Old events, without a date. Note the number; if it grows, replace the drive."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn status(before: u128, after: u128) -> Status {
        let mut evidence = Evidence::healthy();
        evidence.smart_before.as_mut().expect("a page").media_errors = before.into();
        evidence.smart_after.as_mut().expect("a page").media_errors = after.into();
        judge(&evidence).status
    }

    #[test]
    fn only_growth_in_the_run_fails() {
        assert_eq!(status(0, 0), Status::Pass);
        assert_eq!(status(7, 7), Status::Warn);
        assert_eq!(status(7, 8), Status::Fail);
        assert_eq!(status(0, u128::MAX), Status::Fail);
    }

    #[test]
    fn one_page_alone_cannot_show_growth() {
        let mut evidence = Evidence::healthy();
        evidence.smart_after = None;
        assert_eq!(judge(&evidence).status, Status::Pass);
        evidence.smart_before.as_mut().expect("a page").media_errors = 1.into();
        assert_eq!(judge(&evidence).status, Status::Warn);
    }
}
