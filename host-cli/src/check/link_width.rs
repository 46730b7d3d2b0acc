//! Whether the drive's link has as many lanes as drive and slot have in common.
#![forbid(unsafe_code)]

use super::link_trained::{Aspect, judge as judge_aspect};
use super::{Basis, Check, Evidence, Judgement};

pub const CHECK: Check = Check {
    id: "link.width",
    limit: "the fewer lanes of the two ends of each link, read three times under load",
    basis: Basis::Link,
    mandatory: true,
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    judge_aspect(
        evidence,
        &Aspect {
            word: "width",
            trained: |hop| hop.width(),
            able: |end| end.width_able,
            limit: |limit| limit.width,
            remedy: "Reseat drive and card and clean the contacts: lanes that are missing have no contact. If the slot \
                     shares lanes with another one, look for that in the firmware setup.",
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;
    use crate::check::evidence::{end, path};
    use nvmetal_driver::pci::link::LinkSpeed;

    #[test]
    fn f03_one_lane_of_four_at_a_lower_speed_fails_both_checks_apart() {
        let (able, now) = ((LinkSpeed::GEN3, 4), (LinkSpeed::GEN2, 1));
        let low = path(end("03:00.0", able, now), Some(end("00:1c.4", able, now)));
        let mut evidence = Evidence::healthy();
        evidence.link.path = Some(low.clone());
        evidence.link.under_load = vec![low; 3];
        let width = judge(&evidence);
        assert_eq!((width.status, width.evidence.as_str()), (Status::Fail, "x1, drive and slot can x4 (0000:00:1c.4)"));
        let speed = (super::super::link_speed::CHECK.judge)(&evidence);
        assert_eq!(speed.status, Status::Fail);
        assert!(speed.evidence.starts_with("5 GT/s"), "{}", speed.evidence);
    }

    #[test]
    fn f13_a_lower_speed_alone_leaves_the_width_fine() {
        let (able, now) = ((LinkSpeed::GEN2, 1), (LinkSpeed::GEN1, 1));
        let low = path(end("03:00.0", able, now), Some(end("00:1c.4", able, now)));
        let mut evidence = Evidence::healthy();
        evidence.link.path = Some(low.clone());
        evidence.link.under_load = vec![low; 3];
        assert_eq!(judge(&evidence).status, Status::Pass);
    }

    #[test]
    fn a_card_with_one_lane_is_warned_of_not_failed() {
        let (drive, card) = ((LinkSpeed::GEN3, 4), (LinkSpeed::GEN3, 1));
        let narrow = path(end("03:00.0", drive, card), Some(end("00:1c.4", card, card)));
        let mut evidence = Evidence::healthy();
        evidence.link.path = Some(narrow.clone());
        evidence.link.under_load = vec![narrow; 3];
        let judgement = judge(&evidence);
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.contains("limited to x1 by the slot"), "{}", judgement.evidence);
    }
}
