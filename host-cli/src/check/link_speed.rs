//! Whether the drive's link runs at the best speed that drive and slot have in common.
#![forbid(unsafe_code)]

use super::link_trained::{Aspect, judge as judge_aspect};
use super::{Basis, Check, Evidence, Judgement};

pub const CHECK: Check = Check {
    id: "link.speed",
    limit: "the lower speed of the two ends of each link, read three times under load",
    basis: Basis::Link,
    mandatory: true,
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    judge_aspect(
        evidence,
        &Aspect {
            word: "speed",
            trained: |hop| hop.speed(),
            able: |end| end.speed_able,
            limit: |limit| limit.speed,
            remedy: "Reseat drive and card, look for a slot speed setting in the firmware setup, and try another slot: \
                     a link that trains low has bad contacts, a riser that is too long, or is told to.",
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;
    use crate::check::evidence::{end, gen3x4, path};
    use nvmetal_driver::pci::link::{Hop, LinkPath, LinkSpeed, LinkState, PortEnd};

    fn evidence(before: LinkPath, under_load: Vec<LinkPath>) -> Evidence {
        let mut evidence = Evidence::healthy();
        evidence.link.path = Some(before);
        evidence.link.under_load = under_load;
        evidence
    }

    fn trained(drive: (LinkSpeed, u8), port: (LinkSpeed, u8), now: (LinkSpeed, u8)) -> LinkPath {
        path(end("03:00.0", drive, now), Some(end("00:1c.4", port, now)))
    }

    const GEN2: (LinkSpeed, u8) = (LinkSpeed::GEN2, 4);
    const GEN3: (LinkSpeed, u8) = (LinkSpeed::GEN3, 4);
    const GEN4: (LinkSpeed, u8) = (LinkSpeed::GEN4, 4);

    #[test]
    fn a_link_at_its_common_best_passes() {
        let judgement = judge(&Evidence::healthy());
        assert_eq!(judgement.status, Status::Pass);
        assert_eq!(judgement.evidence, "8 GT/s under load, drive and slot can 8 GT/s (0000:00:1c.4)");
    }

    #[test]
    fn a_link_below_both_ends_fails_when_three_readings_under_load_agree() {
        let low = trained(GEN3, GEN3, GEN2);
        let judgement = judge(&evidence(low.clone(), vec![low.clone(); 3]));
        assert_eq!(judgement.status, Status::Fail);
        assert_eq!(judgement.evidence, "5 GT/s, drive and slot can 8 GT/s (0000:00:1c.4)");
        assert!(judgement.advice.is_some_and(|advice| advice.contains("Reseat")));
        assert_eq!(judge(&evidence(low.clone(), vec![low; 2])).status, Status::Warn);
    }

    #[test]
    fn f13_a_link_that_is_slow_only_when_idle_passes() {
        let low = trained(GEN2, GEN2, (LinkSpeed::GEN1, 4));
        assert_eq!(judge(&evidence(low.clone(), vec![trained(GEN2, GEN2, GEN2); 3])).status, Status::Pass);
        // Never read under load: a doubt, not a fault.
        assert_eq!(judge(&evidence(low, Vec::new())).status, Status::Warn);
    }

    #[test]
    fn a_link_that_changes_under_load_is_warned_of() {
        let judgement = judge(&evidence(gen3x4(), vec![gen3x4(), trained(GEN3, GEN3, GEN2), gen3x4()]));
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.contains("1 of 3"), "{}", judgement.evidence);
    }

    #[test]
    fn a_slower_slot_is_warned_of_and_may_be_accepted() {
        let slot = trained(GEN4, GEN3, GEN3);
        let mut evidence = evidence(slot.clone(), vec![slot; 3]);
        let judgement = judge(&evidence);
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.contains("limited to 8 GT/s by the slot (0000:00:1c.4)"), "{}", judgement.evidence);
        evidence.wishes.accept_slot = true;
        assert_eq!(judge(&evidence).status, Status::Pass);
    }

    #[test]
    fn a_slower_drive_in_a_faster_slot_passes() {
        let fine = trained(GEN3, GEN4, GEN3);
        assert_eq!(judge(&evidence(fine.clone(), vec![fine; 3])).status, Status::Pass);
    }

    #[test]
    fn f01_a_narrower_port_further_up_is_named() {
        let gen5x16 = (LinkSpeed::GEN5, 16);
        let mut up = path(end("03:00.0", gen5x16, gen5x16), Some(end("02:00.0", gen5x16, gen5x16)));
        let now = (LinkSpeed::GEN4, 8);
        up.hops.push(Hop::new(end("01:00.0", gen5x16, now), Some(end("00:01.0", (LinkSpeed::GEN4, 8), now))));
        let judgement = judge(&evidence(up.clone(), vec![up; 3]));
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.contains("0000:00:01.0"), "{}", judgement.evidence);
    }

    #[test]
    fn a_link_further_up_that_trained_low_and_is_the_narrowest_fails() {
        let mut up = gen3x4();
        up.hops.push(Hop::new(end("01:00.0", GEN3, (LinkSpeed::GEN1, 4)), Some(end("00:01.0", GEN3, GEN3))));
        let judgement = judge(&evidence(up.clone(), vec![up; 3]));
        assert_eq!(judgement.status, Status::Fail);
        assert!(judgement.evidence.contains("above the slot"), "{}", judgement.evidence);
    }

    #[test]
    fn f04_unknown_is_skipped_with_its_reason() {
        let drive = PortEnd { speed_able: Some(LinkSpeed::GEN3), ..PortEnd::unknown("03:00.0".parse().unwrap()) };
        let unknown = path(drive, Some(PortEnd::unknown("00:1c.4".parse().unwrap())));
        let judgement = judge(&evidence(unknown, Vec::new()));
        assert_eq!(judgement.status, Status::Skip);
        assert_eq!(judgement.evidence, "the link status is not known");

        let hidden = path(end("03:00.0", GEN3, GEN3), None);
        let judgement = judge(&evidence(hidden.clone(), vec![hidden; 3]));
        assert_eq!(judgement.status, Status::Skip);
        assert!(judgement.evidence.contains("not shown"), "{}", judgement.evidence);

        let no_links = LinkPath { drive: "03:00.0".parse().unwrap(), hops: Vec::new(), behind_vmd: None };
        assert_eq!(judge(&evidence(no_links, Vec::new())).status, Status::Skip);
    }

    #[test]
    fn f04_a_device_that_is_gone_or_a_link_that_is_down_is_no_slow_link() {
        for state in [LinkState::Gone, LinkState::Down] {
            let drive = PortEnd { state, ..end("03:00.0", GEN3, GEN3) };
            let gone = path(drive, Some(end("00:1c.4", GEN3, GEN3)));
            assert_eq!(judge(&evidence(gone.clone(), vec![gone; 3])).status, Status::Skip, "{state:?}");
        }
    }

    #[test]
    fn registers_that_contradict_themselves_are_skipped() {
        let odd = trained(GEN3, GEN3, GEN4);
        let judgement = judge(&evidence(odd.clone(), vec![odd; 3]));
        assert_eq!(judgement.status, Status::Skip);
        assert!(judgement.evidence.contains("not believable"), "{}", judgement.evidence);
    }

    #[test]
    fn f06_a_newer_speed_is_a_speed() {
        let code7 = (LinkSpeed::from_code(7).unwrap(), 4);
        let new = trained(code7, code7, code7);
        let judgement = judge(&evidence(new.clone(), vec![new; 3]));
        assert_eq!(judgement.status, Status::Pass);
        assert!(judgement.evidence.starts_with("code 7 "), "{}", judgement.evidence);
    }
}
