//! Whether the drive itself says that something is wrong.
//!
//! The critical warning byte is the drive's own verdict, and the strongest one there is: a drive with a warning set is
//! not healthy whatever its other counters say. One bit is different: "temperature" may mean nothing but a warm day,
//! and is a fault only at the critical threshold. Bits that the specification has not named are shown as they are.
#![forbid(unsafe_code)]

use nvmetal_core::log::Smart;

use super::{Basis, Check, Evidence, Judgement};
use crate::units::celsius;

pub const CHECK: Check =
    Check { id: "smart.critical_warning", limit: "no bit set", basis: Basis::Spec, mandatory: true, judge };

/// Bits whose meaning is a fault: spare, reliability, read only, volatile memory backup, persistent memory region.
const FAULTS: u8 = 0b0011_1101;
/// The bit whose meaning is a temperature.
const TEMPERATURE: u8 = 0b0000_0010;

const NAMES: [&str; 6] = [
    "spare blocks below the threshold",
    "temperature beyond a threshold",
    "reliability degraded",
    "media is read-only",
    "volatile memory backup failed",
    "persistent memory region unreliable or read-only",
];

fn judge(evidence: &Evidence) -> Judgement {
    if evidence.smart().is_none() {
        return Judgement::skip("the SMART log could not be read");
    }
    let bits = [&evidence.smart_before, &evidence.smart_after]
        .into_iter()
        .flatten()
        .fold(0, |bits, smart| bits | smart.critical_warning.into_bits());
    if bits == 0 {
        return Judgement::pass("00h");
    }
    let seen = format!("{bits:02X}h: {}", names(bits));
    if bits & FAULTS != 0 {
        return Judgement::fail(seen).advice(advice(bits));
    }
    if bits & TEMPERATURE != 0 && evidence.temperature.critical.is_some_and(|critical| hottest(evidence) >= critical) {
        return Judgement::fail(format!("{seen}, at {} C", celsius(hottest(evidence))))
            .advice("The drive is at its critical temperature: give it a heat sink or air before anything else.");
    }
    let advice = if bits & TEMPERATURE == 0 {
        "This bit has no meaning in the specification that nvmetal knows; ask the drive's vendor."
    } else {
        "The drive is warm, not damaged. See the temperature check."
    };
    Judgement::warn(seen).advice(advice)
}

/// The set bits in words; those without a name as bits.
fn names(bits: u8) -> String {
    let named = |bit: usize| NAMES.get(bit).map_or_else(|| format!("bit {bit} (unknown)"), |name| (*name).to_owned());
    (0..8).filter(|bit| bits & (1 << bit) != 0).map(named).collect::<Vec<_>>().join(", ")
}

fn advice(bits: u8) -> &'static str {
    if bits & 0b0000_1000 != 0 {
        "The drive takes no writes any more. Copy the data off and replace it."
    } else if bits & 0b0000_0101 != 0 {
        "The flash is failing. Back up now and replace the drive."
    } else {
        "Data that the drive has acknowledged may be lost when power fails. Replace it, or do without its protection."
    }
}

/// The highest temperature that was seen, in kelvin.
fn hottest(evidence: &Evidence) -> u16 {
    let logged = [&evidence.smart_before, &evidence.smart_after];
    let logged = logged.into_iter().flatten().map(|smart: &Smart| smart.composite_temperature.get());
    evidence.temperature.samples.iter().map(|&(_, kelvin)| kelvin).chain(logged).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;
    use nvmetal_core::log::CriticalWarning;

    fn judgement(bits: u8) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.smart_after.as_mut().expect("a page").critical_warning = CriticalWarning::from_bits(bits);
        judge(&evidence)
    }

    #[test]
    fn every_named_bit_but_temperature_fails() {
        for bit in [0, 2, 3, 4, 5] {
            assert_eq!(judgement(1 << bit).status, Status::Fail, "bit {bit}");
        }
        assert_eq!(judgement(0).status, Status::Pass);
    }

    #[test]
    fn a12_a_failed_volatile_backup_is_named_and_fails_though_nothing_is_worn() {
        let judgement = judgement(0x10);
        assert_eq!(judgement.status, Status::Fail);
        assert_eq!(judgement.evidence, "10h: volatile memory backup failed");
    }

    #[test]
    fn a13_bit_2_is_named() {
        assert_eq!(judgement(0x04).evidence, "04h: reliability degraded");
    }

    #[test]
    fn temperature_alone_warns_below_the_critical_threshold_and_fails_at_it() {
        assert_eq!(judgement(0x02).status, Status::Warn);
        let mut evidence = Evidence::healthy();
        let page = evidence.smart_after.as_mut().expect("a page");
        page.critical_warning = CriticalWarning::from_bits(0x02);
        page.composite_temperature = 358.into();
        assert_eq!(judge(&evidence).status, Status::Fail);
        // A threshold that is not reported accuses nobody.
        evidence.temperature.critical = None;
        assert_eq!(judge(&evidence).status, Status::Warn);
    }

    #[test]
    fn a12_unknown_bits_are_shown_raw_and_warned_of() {
        let judgement = judgement(0x40);
        assert_eq!(judgement.status, Status::Warn);
        assert_eq!(judgement.evidence, "40h: bit 6 (unknown)");
    }

    #[test]
    fn a_warning_that_went_away_in_the_run_still_counts() {
        let mut evidence = Evidence::healthy();
        evidence.smart_before.as_mut().expect("a page").critical_warning = CriticalWarning::from_bits(0x08);
        assert_eq!(judge(&evidence).status, Status::Fail);
    }
}
