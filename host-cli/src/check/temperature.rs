//! Whether the drive stayed cool, by the drive's own thresholds.
//!
//! Only the composite temperature decides: what sensors 1 to 8 stand for is the vendor's secret. A drive that reports
//! no temperature (0 K), or no threshold, is not judged by it.
#![forbid(unsafe_code)]

use super::{Basis, Check, Evidence, Judgement};
use crate::units::celsius;

pub const CHECK: Check = Check {
    id: "temperature",
    limit: "5 K below the drive's warning threshold",
    basis: Basis::Spec,
    mandatory: true,
    judge,
};

/// How far below the warning threshold a drive has to stay, in kelvin.
const MARGIN_K: u16 = 5;
/// How long the end of a run is, over which a rise is looked at, in seconds.
const END_S: f64 = 10.0;
/// The rise over the end of a run that says that the drive has not reached its temperature yet, in kelvin.
const RISING_K: i32 = 1;

const COOL_IT: &str = "Give it air or a heat sink, check that its thermal pad touches, and test again.";

fn judge(evidence: &Evidence) -> Judgement {
    let samples: Vec<(f64, u16)> =
        evidence.temperature.samples.iter().copied().filter(|&(_, kelvin)| kelvin != 0).collect();
    let (Some(&(_, first)), Some(&(_, last))) = (samples.first(), samples.last()) else {
        return Judgement::skip("the drive reports no temperature");
    };
    let hottest = samples.iter().map(|&(_, kelvin)| kelvin).max().unwrap_or(last);
    let (warning, critical) = (evidence.temperature.warning, evidence.temperature.critical);
    let seen = format!("{} C before, {} C at most, {} C after", celsius(first), celsius(hottest), celsius(last));
    let Some(lowest) = warning.or(critical) else {
        return Judgement::skip(format!("{seen}; the drive reports no threshold to judge it by"));
    };
    let told = |name: &str, kelvin: Option<u16>| kelvin.map(|kelvin| format!("{name} at {} C", celsius(kelvin)));
    let thresholds: Vec<_> = [told("warns", warning), told("critical", critical)].into_iter().flatten().collect();
    let limit = format!("< {} C (the drive {})", celsius(lowest.saturating_sub(MARGIN_K)), thresholds.join(", "));

    if critical.is_some_and(|critical| hottest >= critical) {
        return Judgement::fail(format!("{seen}: at its critical threshold")).limit(limit).advice(COOL_IT);
    }
    if grew(evidence, |smart| u128::from(smart.critical_temperature_time.get())) {
        return Judgement::fail(format!("{seen}; the drive counted time over its critical threshold"))
            .limit(limit)
            .advice(COOL_IT);
    }
    if hottest >= lowest.saturating_sub(MARGIN_K) {
        return Judgement::warn(seen).limit(limit).advice(COOL_IT);
    }
    if let Some(what) = throttled(evidence) {
        return Judgement::warn(format!("{seen}; {what}")).limit(limit).advice(COOL_IT);
    }
    if let Some(rise) = rise_at_the_end(&samples).filter(|&rise| rise > RISING_K) {
        return Judgement::warn(format!("{seen}, still rising ({rise} K in the last {END_S:.0} s)")).limit(limit).advice(
            "The run ended before the drive had reached its temperature: test longer (--runtime) to see where it stops.",
        );
    }
    Judgement::pass(seen).limit(limit)
}

/// The counter that says that the drive slowed itself down in the run, if one did.
pub fn throttled(evidence: &Evidence) -> Option<&'static str> {
    if grew(evidence, |smart| u128::from(smart.thermal_management_2_transitions.get())) {
        return Some("the drive throttled heavily (thermal management 2)");
    }
    if grew(evidence, |smart| u128::from(smart.thermal_management_1_transitions.get())) {
        return Some("the drive throttled lightly (thermal management 1)");
    }
    grew(evidence, |smart| u128::from(smart.warning_temperature_time.get()))
        .then_some("the drive counted time over its warning threshold")
}

/// Whether a counter of the SMART log grew in the run.
fn grew(evidence: &Evidence, counter: impl Fn(&nvmetal_core::log::Smart) -> u128) -> bool {
    match (&evidence.smart_before, &evidence.smart_after) {
        (Some(before), Some(after)) => counter(after) > counter(before),
        _ => false,
    }
}

/// By how much the temperature rose over the last [`END_S`] seconds; `None` where the run was shorter.
fn rise_at_the_end(samples: &[(f64, u16)]) -> Option<i32> {
    let &(end, last) = samples.last()?;
    let &(_, then) = samples.iter().rev().find(|(seconds, _)| end - seconds >= END_S)?;
    Some(i32::from(last) - i32::from(then))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;
    use crate::check::evidence::Temperature;

    /// WCTEMP 345 K, CCTEMP 358 K.
    fn judgement(kelvin: &[u16]) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.temperature.samples =
            kelvin.iter().enumerate().map(|(index, &kelvin)| (10.0 * index as f64, kelvin)).collect();
        judge(&evidence)
    }

    #[test]
    fn five_kelvin_below_the_warning_threshold_is_the_limit() {
        assert_eq!(judgement(&[339, 339]).status, Status::Pass);
        assert_eq!(judgement(&[340, 340]).status, Status::Warn);
        assert_eq!(judgement(&[345, 345]).status, Status::Warn);
        assert_eq!(judgement(&[357, 320]).status, Status::Warn);
        assert_eq!(judgement(&[358, 320]).status, Status::Fail);
    }

    #[test]
    fn a05_zero_kelvin_is_not_reported_and_a_threshold_of_zero_raises_no_alarm() {
        assert_eq!(judgement(&[0, 0]).status, Status::Skip);
        assert_eq!(judgement(&[]).status, Status::Skip);
        let mut evidence = Evidence::healthy();
        evidence.temperature = Temperature { samples: vec![(0.0, 330)], warning: None, critical: None };
        let judgement = judge(&evidence);
        assert_eq!(judgement.status, Status::Skip);
        assert!(judgement.evidence.contains("57 C"), "{}", judgement.evidence);
    }

    #[test]
    fn one_threshold_alone_is_enough_to_judge() {
        let mut evidence = Evidence::healthy();
        evidence.temperature.warning = None;
        assert_eq!(judge(&evidence).status, Status::Pass);
        evidence.temperature.samples = vec![(0.0, 354)];
        assert_eq!(judge(&evidence).status, Status::Warn);
        evidence.temperature = Temperature { samples: vec![(0.0, 400)], warning: Some(345), critical: None };
        assert_eq!(judge(&evidence).status, Status::Warn);
    }

    #[test]
    fn a36_throttling_counted_by_the_drive_warns_though_it_looks_cool() {
        let mut evidence = Evidence::healthy();
        evidence.smart_after.as_mut().expect("a page").thermal_management_1_transitions = 1.into();
        let judgement = judge(&evidence);
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.contains("throttled lightly"), "{}", judgement.evidence);
    }

    #[test]
    fn critical_time_that_grew_fails_though_no_sample_saw_it() {
        let mut evidence = Evidence::healthy();
        evidence.smart_after.as_mut().expect("a page").critical_temperature_time = 1.into();
        assert_eq!(judge(&evidence).status, Status::Fail);
    }

    #[test]
    fn a_temperature_that_still_rises_at_the_end_warns() {
        assert_eq!(judgement(&[310, 320, 322]).status, Status::Warn);
        assert_eq!(judgement(&[310, 320, 321]).status, Status::Pass);
        // Shorter than the time over which a rise is looked at.
        let mut evidence = Evidence::healthy();
        evidence.temperature.samples = vec![(0.0, 310), (9.0, 330)];
        assert_eq!(judge(&evidence).status, Status::Pass);
    }

    #[test]
    fn a07_below_freezing_is_cold_not_hot() {
        let judgement = judgement(&[263, 263]);
        assert_eq!(judgement.status, Status::Pass);
        assert!(judgement.evidence.starts_with("-10 C"), "{}", judgement.evidence);
    }
}
