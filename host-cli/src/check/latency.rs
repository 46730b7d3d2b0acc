//! How long one small read takes when the drive has nothing else to do.
#![forbid(unsafe_code)]

use super::evidence::Written;
use super::{Basis, Check, Evidence, Judgement};
use crate::units::nanoseconds;

pub const CHECK: Check = Check {
    id: "latency.read_4k_qd1",
    limit: "half of them within 300 us, all within 100 ms",
    basis: Basis::Nvmetal,
    mandatory: false,
    judge,
};

/// The median that passes.
const MEDIAN_NS: u64 = 300_000;
/// The slowest read that passes.
const SLOWEST_NS: u64 = 100_000_000;
/// A read that takes this long fails.
const STALL_NS: u64 = 1_000_000_000;

fn judge(evidence: &Evidence) -> Judgement {
    let Some(run) = &evidence.latency else { return Judgement::not_tested("no read took place one at a time") };
    if run.ios == 0 {
        return Judgement::skip("no read ended well");
    }
    let latency = run.latency_ns;
    let seen = format!(
        "median {}, 99 % {}, slowest {}",
        nanoseconds(latency.p50),
        nanoseconds(latency.p99),
        nanoseconds(latency.max)
    );
    if latency.max >= STALL_NS {
        return Judgement::fail(format!("{seen}: a read stalled for a second or more")).advice(
            "A drive that stalls is retrying, resetting or overheating. Look at the error log and the temperature, and \
             test with power saving off.",
        );
    }
    if latency.p50 > MEDIAN_NS || latency.max >= SLOWEST_NS {
        return Judgement::warn(seen).advice(
            "Power saving of drive, link (ASPM) or processor is the usual reason; `nvmetal doctor` tells what is set.",
        );
    }
    if let Written::Never(_) = run.written {
        return Judgement::skip(format!("{seen}; never written: link and controller, not flash"));
    }
    Judgement::pass(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn status(p50: u64, max: u64) -> Status {
        let mut evidence = Evidence::healthy();
        let latency = &mut evidence.latency.as_mut().expect("a run").latency_ns;
        (latency.p50, latency.max) = (p50, max);
        judge(&evidence).status
    }

    #[test]
    fn median_and_slowest_have_their_limits() {
        assert_eq!(status(300_000, 99_999_999), Status::Pass);
        assert_eq!(status(300_001, 1_000_000), Status::Warn);
        assert_eq!(status(80_000, 100_000_000), Status::Warn);
        assert_eq!(status(80_000, 999_999_999), Status::Warn);
        assert_eq!(status(80_000, 1_000_000_000), Status::Fail);
    }

    #[test]
    fn a_fast_answer_without_flash_is_no_pass_but_a_stall_is_still_a_fault() {
        let mut evidence = Evidence::healthy().never_written();
        assert_eq!(judge(&evidence).status, Status::Skip);
        evidence.latency.as_mut().expect("a run").latency_ns.max = 2_000_000_000;
        assert_eq!(judge(&evidence).status, Status::Fail);
    }
}
