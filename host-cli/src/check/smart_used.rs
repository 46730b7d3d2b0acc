//! How much of its rated life the drive has used.
//!
//! An estimate by the vendor, which may pass 100 and go on; drives have run at 200. It tells when to plan, and never
//! that a drive is faulty: that is what the critical warning is for.
#![forbid(unsafe_code)]

use super::{Basis, Check, Evidence, Judgement};

pub const CHECK: Check = Check { id: "smart.used", limit: "< 80 %", basis: Basis::Nvmetal, mandatory: false, judge };

fn judge(evidence: &Evidence) -> Judgement {
    let Some(smart) = evidence.smart() else { return Judgement::skip("the SMART log could not be read") };
    let used = smart.percentage_used;
    let seen = match used {
        255 => "255 % or more of the rated life used".to_owned(),
        used => format!("{used} % of the rated life used"),
    };
    match used {
        0..80 => Judgement::pass(seen),
        80..100 => Judgement::warn(seen).advice("Most of the rated writes are done. Plan for another drive."),
        _ => Judgement::warn(seen).advice(
            "The rated writes are done. The drive may go on for long, but its warranty does not; keep backups.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn judgement(used: u8) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.smart_after.as_mut().expect("a page").percentage_used = used;
        judge(&evidence)
    }

    #[test]
    fn eighty_per_cent_is_the_limit() {
        assert_eq!(judgement(79).status, Status::Pass);
        assert_eq!(judgement(80).status, Status::Warn);
    }

    #[test]
    fn a13_more_than_a_hundred_is_printed_as_it_is_and_never_fails() {
        assert_eq!(judgement(100).status, Status::Warn);
        assert_eq!(judgement(200).status, Status::Warn);
        assert!(judgement(200).evidence.starts_with("200 %"));
        assert_eq!(judgement(255).evidence, "255 % or more of the rated life used");
    }
}
