//! Whether the speed holds from one second to the next.
#![forbid(unsafe_code)]

use super::evidence::{IoErrors, Run};
use super::{Basis, Check, Evidence, Judgement, temperature};

pub const CHECK: Check = Check {
    id: "stability",
    limit: "each second >= 70 % of the median second",
    basis: Basis::Nvmetal,
    mandatory: false,
    judge,
};

/// The share of the median that each second has to reach, in per cent.
const STEADY_PERCENT: u64 = 70;
/// Whole seconds that a run needs to be judged.
const SECONDS: usize = 3;

fn judge(evidence: &Evidence) -> Judgement {
    let runs = [("sequential reads", &evidence.sequential_read), ("random reads", &evidence.random_read)];
    let judged: Vec<(&str, Spread)> =
        runs.into_iter().filter_map(|(name, run)| Some((name, spread(run.as_ref()?)?))).collect();
    let Some((name, worst)) = judged.iter().min_by_key(|(_, spread)| spread.percent()) else {
        return Judgement::not_tested(format!("no run was long enough ({SECONDS} whole seconds)"));
    };
    let seen = format!("slowest second {} % of the median ({name}, second {})", worst.percent(), worst.second);
    if worst.percent() >= STEADY_PERCENT {
        return Judgement::pass(seen);
    }
    let cause = cause(evidence);
    Judgement::warn(format!("{seen}; {cause}"))
        .advice("Test again on an idle machine; if the same second is slow again, the drive does it.")
}

/// The slowest second of a run beside its median.
struct Spread {
    second: usize,
    slowest: u64,
    median: u64,
}

impl Spread {
    fn percent(&self) -> u64 {
        100 * self.slowest / self.median.max(1)
    }
}

fn spread(run: &Run) -> Option<Spread> {
    if run.ios_per_second.len() < SECONDS {
        return None;
    }
    let (index, &slowest) = run.ios_per_second.iter().enumerate().min_by_key(|&(_, ios)| *ios)?;
    let mut sorted = run.ios_per_second.clone();
    sorted.sort_unstable();
    let &median = sorted.get(sorted.len() / 2)?;
    Some(Spread { second: index + 1, slowest, median })
}

/// What in the run could explain a slow second.
fn cause(evidence: &Evidence) -> String {
    if let Some(throttled) = temperature::throttled(evidence) {
        return throttled.to_owned();
    }
    if evidence.link.errors.as_ref().is_some_and(|errors| !errors.retrained.is_empty()) {
        return "the link was retrained".to_owned();
    }
    if evidence.io_errors() != IoErrors::default() {
        return "commands failed or were retried".to_owned();
    }
    "no cause was seen (temperature, link and commands were fine)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn evidence(seconds: &[u64]) -> Evidence {
        let mut evidence = Evidence::healthy();
        evidence.sequential_read.as_mut().expect("a run").ios_per_second = seconds.to_vec();
        evidence
    }

    #[test]
    fn seventy_per_cent_of_the_median_is_the_limit() {
        assert_eq!(judge(&evidence(&[100, 100, 70, 100])).status, Status::Pass);
        assert_eq!(judge(&evidence(&[100, 100, 69, 100])).status, Status::Warn);
        assert_eq!(judge(&evidence(&[100, 100, 0, 100])).status, Status::Warn);
    }

    #[test]
    fn the_slow_second_and_its_cause_are_named() {
        let mut evidence = evidence(&[100, 10, 100, 100]);
        let judgement = judge(&evidence);
        assert!(judgement.evidence.contains("10 % of the median (sequential reads, second 2)"), "{judgement:?}");
        assert!(judgement.evidence.contains("no cause was seen"), "{judgement:?}");
        evidence.smart_after.as_mut().expect("a page").thermal_management_2_transitions = 3.into();
        assert!(judge(&evidence).evidence.contains("throttled heavily"));
    }

    #[test]
    fn too_short_a_run_is_not_judged() {
        let mut evidence = evidence(&[100, 1]);
        evidence.random_read = None;
        assert_eq!(judge(&evidence).status, Status::NotTested);
    }
}
