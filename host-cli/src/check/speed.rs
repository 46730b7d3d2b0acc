//! Speeds against what the user expects of the drive.
//!
//! nvmetal knows no data sheets. Without an expectation a speed is told and not judged; with one, a tenth less passes,
//! for figures of data sheets are best cases. Blocks that were never written are answered from tables, without the
//! flash: their speed judges the link and the controller, and says nothing about what the drive was bought for.
#![forbid(unsafe_code)]

use super::evidence::{Run, Written};
use super::{Basis, Check, Evidence, Judgement};
use crate::units;

pub const READ: Check = Check {
    id: "speed.read",
    limit: ">= 90 % of --expect-read; < 75 % fails",
    basis: Basis::Expectation,
    mandatory: false,
    judge: judge_read,
};

pub const RANDOM_READ: Check = Check {
    id: "speed.random_read",
    limit: ">= 90 % of --expect-riops; < 75 % fails",
    basis: Basis::Expectation,
    mandatory: false,
    judge: judge_random_read,
};

pub const WRITE: Check = Check {
    id: "speed.write",
    limit: ">= 90 % of --expect-write; < 75 % fails",
    basis: Basis::Expectation,
    mandatory: false,
    judge: judge_write,
};

/// The share of the expectation that passes, in per cent.
const GOOD_PERCENT: f64 = 90.0;
/// The share below which it fails, in per cent.
const BAD_PERCENT: f64 = 75.0;

fn judge_read(evidence: &Evidence) -> Judgement {
    let Some(run) = &evidence.sequential_read else { return Judgement::not_tested("no sequential read took place") };
    let seen = format!("{}, {}", units::rate(run.bytes_per_second), shape(run));
    judge(run, &seen, run.bytes_per_second, evidence.wishes.read_bytes_per_second, "--expect-read", |value| {
        units::megabytes(value)
    })
}

fn judge_random_read(evidence: &Evidence) -> Judgement {
    let Some(run) = &evidence.random_read else { return Judgement::not_tested("no random read took place") };
    let seen = format!("{} IOPS, {}, {}", iops(run.iops), units::megabytes(run.bytes_per_second), shape(run));
    judge(run, &seen, run.iops, evidence.wishes.read_iops, "--expect-riops", |value| format!("{} IOPS", iops(value)))
}

fn judge_write(evidence: &Evidence) -> Judgement {
    if evidence.wishes.write_bytes_per_second.is_some() {
        return Judgement::not_tested("this run only reads; --expect-write has nothing to be compared with");
    }
    Judgement::not_tested("this run only reads")
}

fn judge(
    run: &Run,
    seen: &str,
    measured: f64,
    expected: Option<f64>,
    option: &str,
    show: impl Fn(f64) -> String,
) -> Judgement {
    if run.ios == 0 {
        return Judgement::skip("no read ended well");
    }
    if let Written::Never(why) = &run.written {
        return Judgement::skip(format!("{seen}; never written ({why}): link and controller, not flash")).advice(
            "Reads of blocks that were never written do not touch the flash. Test again when the drive holds data.",
        );
    }
    let Some(expected) = expected.filter(|&expected| expected > 0.0) else {
        return Judgement::not_tested(format!("{seen}; told, not judged (no {option})"));
    };
    let share = 100.0 * measured / expected;
    let limit = format!("{} ({GOOD_PERCENT:.0} % of {option})", show(expected * GOOD_PERCENT / 100.0));
    let seen = format!("{seen}, {share:.0} % of the expected {}", show(expected));
    if share >= GOOD_PERCENT {
        return Judgement::pass(seen).limit(limit);
    }
    let judgement = if share >= BAD_PERCENT { Judgement::warn(seen) } else { Judgement::fail(seen) };
    judgement.limit(limit).advice(
        "See link.throughput for whether the link is the limit, and temperature and stability for whether the drive \
         slowed down.",
    )
}

/// The shape of a run in a few words: `128 KiB, 32 in flight`.
fn shape(run: &Run) -> String {
    let queues = if run.jobs > 1 { format!(" on each of {} queues", run.jobs) } else { String::new() };
    format!("{}, {} in flight{queues}", units::block(run.block_bytes), run.depth)
}

fn iops(value: f64) -> String {
    units::grouped(value.max(0.0) as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn judgement(measured: f64, expected: Option<f64>) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.sequential_read.as_mut().expect("a run").bytes_per_second = measured;
        evidence.wishes.read_bytes_per_second = expected;
        judge_read(&evidence)
    }

    #[test]
    fn ninety_and_seventy_five_per_cent_of_the_expectation_are_the_limits() {
        assert_eq!(judgement(3.15e9, Some(3.5e9)).status, Status::Pass);
        assert_eq!(judgement(3.14e9, Some(3.5e9)).status, Status::Warn);
        assert_eq!(judgement(2.63e9, Some(3.5e9)).status, Status::Warn);
        assert_eq!(judgement(2.62e9, Some(3.5e9)).status, Status::Fail);
        assert_eq!(judgement(9.9e9, Some(3.5e9)).status, Status::Pass);
    }

    #[test]
    fn without_an_expectation_the_speed_is_told_and_not_judged() {
        let judgement = judgement(3.5e9, None);
        assert_eq!(judgement.status, Status::NotTested);
        assert!(judgement.evidence.starts_with("3500 MB/s, 3338 MiB/s, 128 KiB, 32 in flight"), "{judgement:?}");
    }

    #[test]
    fn blocks_that_were_never_written_are_skipped_whatever_the_speed() {
        let mut evidence = Evidence::healthy().never_written();
        evidence.wishes.read_bytes_per_second = Some(3.5e9);
        evidence.wishes.read_iops = Some(5e5);
        for judge in [judge_read, judge_random_read] {
            let judgement = judge(&evidence);
            assert_eq!(judgement.status, Status::Skip);
            assert!(judgement.evidence.contains("link and controller, not flash"), "{}", judgement.evidence);
        }
    }

    #[test]
    fn a_reading_run_does_not_judge_writing() {
        let mut evidence = Evidence::healthy();
        evidence.wishes.write_bytes_per_second = Some(3e9);
        assert_eq!(judge_write(&evidence).status, Status::NotTested);
    }

    #[test]
    fn random_reads_are_judged_by_their_number() {
        let mut evidence = Evidence::healthy();
        evidence.random_read.as_mut().expect("a run").iops = 500_000.0;
        evidence.wishes.read_iops = Some(560_000.0);
        let judgement = judge_random_read(&evidence);
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.starts_with("500 000 IOPS"), "{}", judgement.evidence);
    }
}
